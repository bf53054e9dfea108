package bench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"

	"barnabas/internal/config"
	"barnabas/internal/record"
	"barnabas/internal/storage"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// openLog makes a log directory with one partition, or opens it again.
func openLog(t *testing.T, dir string, properties map[string]string) (*storage.Manager, *storage.Log) {
	t.Helper()
	all := map[string]string{"broker.id": "1", "log.retention.ms": "-1"}
	for k, v := range properties {
		all[k] = v
	}
	c, err := config.NewBroker(all)
	if err != nil {
		t.Fatal(err)
	}
	m, err := storage.Open(storage.Options{Dirs: []string{dir}, Config: c, BrokerID: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	tp := wire.TopicPartition{Topic: "t"}
	l, ok := m.Log(tp)
	if !ok {
		if l, err = m.Create(tp, wire.UUID{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return m, l
}

// words returns values that a codec can shrink to about a third.
func words(size int) [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"broker", "partition", "offset", "leader", "replica", "epoch", "segment", "topic"}
	out := make([][]byte, 1024)
	for i := range out {
		var v []byte
		for len(v) < size {
			v = fmt.Appendf(v, "%s=%x ", names[random.IntN(len(names))], random.Uint32N(1<<20))
		}
		out[i] = v[:size]
	}
	return out
}

// setOf returns a batch of about size bytes of 1 KiB records.
func setOf(t *testing.T, size int, codec record.Codec) record.Batch {
	t.Helper()
	b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1, Codec: codec})
	payload := values(1024)
	if codec != record.None {
		payload = words(1024)
	}
	for i, v := range payload {
		if i*1030 > size {
			break
		}
		b.Append(time.Now().UnixMilli(), nil, v)
	}
	set, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestAppendAgainstPwrite appends batches of 1 MiB of 1 KiB records, and after
// each of them writes its bytes to a plain file. What the writes to the file do
// not use of the process's time is the log's, its syncs too.
func TestAppendAgainstPwrite(t *testing.T) {
	const n = 1024
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := setOf(t, 1<<20-2000, record.None)
	var ratio, rate series
	for range rounds {
		dir := t.TempDir()
		m, l := openLog(t, filepath.Join(dir, "log"), nil)
		f, err := vfs.OS.OpenFile(filepath.Join(dir, "plain"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		cool := warmMemory(t, 3*n*int64(len(set)), 3<<30)
		var plain, took time.Duration
		all := processorTime(t)
		for i := range int64(n) {
			began := time.Now()
			if _, err := l.Append(storage.AppendRequest{Records: set, LogAppendTime: -1}); err != nil {
				t.Fatal(err)
			}
			took += time.Since(began)
			before := usedBy(t, unix.RUSAGE_THREAD)
			if _, err := f.WriteAt(set, i*int64(len(set))); err != nil {
				t.Fatal(err)
			}
			plain += usedBy(t, unix.RUSAGE_THREAD) - before
		}
		all = processorTime(t) - all - cool()
		ratio = append(ratio, plain.Seconds()/(all-plain).Seconds())
		rate = append(rate, float64(n*len(set))/took.Seconds()/1e6)
		f.Close()
		m.Close()
		os.RemoveAll(dir)
	}
	fmt.Printf("%-44s %s of the speed of pwrite by processor time, %s MB/s   goal at least 0.8\n", "append of 1 MiB batches", ratio, rate)
}

// TestValidateAgainstDecoder validates compressed batches, and decompresses them
// with the bare decoder as a walk over the records does.
func TestValidateAgainstDecoder(t *testing.T) {
	o := record.ValidateOptions{Version: 11, Now: time.Now().UnixMilli(), Codec: record.ProducerCodec, BeforeMaxMs: math.MaxInt64, AfterMaxMs: 3600000}
	for _, codec := range []record.Codec{record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		set := setOf(t, 1<<18, codec)
		var ratio series
		for range rounds {
			timed := func(f func() error) float64 {
				began, n := processorTime(t), 0
				for n%64 != 0 || processorTime(t)-began < 300*time.Millisecond {
					if err := f(); err != nil {
						t.Fatal(err)
					}
					n++
				}
				return float64(n) / (processorTime(t) - began).Seconds()
			}
			validated := timed(func() error { _, err := record.Validate(set, o); return err })
			ratio = append(ratio, validated/timed(func() error { return record.DecompressOnly(set) }))
		}
		fmt.Printf("%-44s %s of the bare decoder's speed   goal at least 0.7\n", "validate "+codec.String(), ratio)
	}
}

// TestRandomOffsetOfALargeLog looks offsets up in a sparse log of 1 TiB of batches
// of 1 MiB.
func TestRandomOffsetOfALargeLog(t *testing.T) {
	const segments, batches, perBatch, looked = 1024, 1023, 1000, 4000
	dir := filepath.Join(t.TempDir(), "log")
	m, _ := openLog(t, dir, nil)
	m.Close()
	folder := filepath.Join(dir, "t-0")
	head := record.NewBuilder(record.BatchOptions{LeaderEpoch: 0})
	for range perBatch {
		head.Append(1000, nil, nil)
	}
	empty, err := head.Build()
	if err != nil {
		t.Fatal(err)
	}
	header := bytes.Clone(empty[:record.BatchHeaderSize])
	binary.BigEndian.PutUint32(header[8:], 1<<20-12)
	write := func(f *os.File, base int64, at int) {
		binary.BigEndian.PutUint64(header, uint64(base))
		if _, err := f.WriteAt(header, int64(at)<<20); err != nil {
			t.Fatal(err)
		}
	}
	var targets []int64
	for s := range int64(segments) {
		base := s * batches * perBatch
		name := filepath.Join(folder, fmt.Sprintf("%020d", base))
		f, err := os.Create(name + ".log")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(batches << 20); err != nil {
			t.Skip("no sparse files here: ", err)
		}
		var index []byte
		for i := range batches {
			if i > 0 {
				index = binary.BigEndian.AppendUint32(index, uint32((i+1)*perBatch-1))
				index = binary.BigEndian.AppendUint32(index, uint32(i)<<20)
			}
		}
		for range looked/segments + 1 {
			i := rand.IntN(batches)
			// The search begins with the entry before.
			for j := max(i-1, 0); j <= i; j++ {
				write(f, base+int64(j)*perBatch, j)
			}
			targets = append(targets, base+int64(i)*perBatch+rand.Int64N(perBatch))
		}
		write(f, base, 0)
		write(f, base+(batches-1)*perBatch, batches-1)
		f.Close()
		for suffix, b := range map[string][]byte{".index": index, ".timeindex": append(binary.BigEndian.AppendUint64(nil, 1000), 0, 0, 0, 1)} {
			if err := os.WriteFile(name+suffix, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	end := int64(segments * batches * perBatch)
	if err := os.WriteFile(filepath.Join(dir, "recovery-point-offset-checkpoint"), fmt.Appendf(nil, "0\n1\nt 0 %d\n", end), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m, l := openLog(t, dir, nil)
	if l.EndOffset() != end || l.StartOffset() != 0 {
		t.Fatal(l.StartOffset(), l.EndOffset(), l.Err())
	}
	opened := time.Since(began)
	var warm series
	for round := range rounds + 1 {
		began := time.Now()
		for _, at := range targets {
			s, err := l.Read(at, 1<<20, end, true)
			if err != nil || s.Len != 1<<20 {
				t.Fatal(at, s.Len, err)
			}
			s.Release()
		}
		if round > 0 {
			warm = append(warm, float64(time.Since(began).Nanoseconds())/1e3/float64(len(targets)))
		}
	}
	fmt.Printf("%-44s %s us, opened and loaded in %v   goal at most 50 us\n", "random offset in a log of 1 TiB, warm", warm, opened.Round(time.Millisecond))
	m.Close()
}

// TestFlushedProducers has 64 producers send one record of 1 KiB at a time to one
// partition with flush.messages=1, and without, in turns.
func TestFlushedProducers(t *testing.T) {
	ours, kafka := both(t)
	rate := map[string]series{}
	for round := range rounds + 1 {
		for _, s := range []side{ours, kafka} {
			for _, flush := range []string{"1", "9223372036854775807"} {
				topic := fmt.Sprintf("flush-%d-%.1s", round, flush)
				createTopicWith(t, s.addr, topic, map[string]*string{"flush.messages": &flush})
				n := 0.0
				if r := sendOneByOne(t, s.addr, topic, 64, 3*time.Second); round > 0 {
					n = r
				} else {
					continue // warm-up
				}
				what := s.name
				if flush == "1" {
					what += " flushed"
				}
				rate[what] = append(rate[what], n)
			}
		}
	}
	for _, s := range []side{ours, kafka} {
		with, without := rate[s.name+" flushed"], rate[s.name]
		fmt.Printf("%-44s %s records/s, %s without: ratio %.2f   goal at least 0.5\n", "flush.messages=1, 64 producers, "+s.name, with, without, with.median()/without.median())
	}
}

func createTopicWith(t *testing.T, addr, topic string, properties map[string]*string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, properties, topic); err != nil {
		t.Fatal(err)
	}
}

// sendOneByOne returns the records a second that n producers get acknowledged.
func sendOneByOne(t *testing.T, addr, topic string, n int, during time.Duration) float64 {
	t.Helper()
	payload := values(1024)
	var sent atomic.Int64
	var wg sync.WaitGroup
	ready, begin := make(chan struct{}, n), make(chan struct{})
	var began time.Time
	for i := range n {
		wg.Go(func() {
			client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.NoCompression()))
			if err == nil {
				err = client.ProduceSync(t.Context(), &kgo.Record{Value: payload[i]}).FirstErr()
			}
			ready <- struct{}{}
			if err != nil {
				t.Error(err)
				return
			}
			defer client.Close()
			<-begin
			for time.Since(began) < during {
				if err := client.ProduceSync(t.Context(), &kgo.Record{Value: payload[i]}).FirstErr(); err != nil {
					t.Error(err)
					return
				}
				sent.Add(1)
			}
		})
	}
	for range n {
		<-ready
	}
	began = time.Now()
	close(begin)
	wg.Wait()
	return float64(sent.Load()) / time.Since(began).Seconds()
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration { return usedBy(t, unix.RUSAGE_SELF) }
