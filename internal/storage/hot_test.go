package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// onDisk opens a log in a temporary folder of the host.
func onDisk(t testing.TB, kv ...string) (*Manager, *Log) {
	t.Helper()
	m := open(t, Options{Dirs: []string{filepath.Join(t.TempDir(), "d")}, Config: broker(t), BrokerID: 1, ClusterID: "c", Logger: quiet(), Manual: true})
	return m, create(t, m, topicConfig(t, kv...))
}

func TestAppendingAllocatesNothing(t *testing.T) {
	for _, kind := range []string{"plain", "idempotent", "follower"} {
		m, l := onDisk(t)
		o := record.BatchOptions{LeaderEpoch: -1}
		if kind == "idempotent" {
			o.Producer = &record.Producer{ID: 1, Sequence: 0}
		}
		set := batch(t, o, 10, 1000, "some bytes of a value, so that index entries come now and then")
		seq := int32(0)
		n := testing.AllocsPerRun(2000, func() {
			var err error
			if kind == "follower" {
				record.Batch(set).SetBaseOffset(l.EndOffset())
				_, err = l.AppendFollower(set)
			} else {
				if kind == "idempotent" {
					set[53], set[54], set[55], set[56] = byte(seq>>24), byte(seq>>16), byte(seq>>8), byte(seq)
					seq += 10
				}
				_, err = l.Append(AppendRequest{Records: set, LogAppendTime: -1, LeaderEpoch: 1})
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a batch", kind, n)
		}
		must(t, m.Close())
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	m, l := onDisk(t)
	defer m.Close()
	for range 1000 {
		appendPlain(t, l, 10, 1000, "some bytes of a value")
	}
	for _, offset := range []int64{5, 5005, 9995} { // from the index, and among the newest
		n := testing.AllocsPerRun(500, func() {
			s, err := l.Read(offset, 1<<20, 10_000, true)
			if err != nil || s.Len == 0 {
				t.Fatal(s, err)
			}
			s.Release()
		})
		if n != 0 {
			t.Errorf("offset %d: %v allocations a read", offset, n)
		}
	}
}

// Readers follow appends, rolls and retention without a lock, and see only whole
// published batches.
func TestReadersAlongsideAppendsRollsAndRetention(t *testing.T) {
	c := newClock()
	o := options(t, vfs.OS, c)
	o.Dirs = []string{filepath.Join(t.TempDir(), "d")}
	o.MaxOpenFiles = 4 // so that files are closed and opened all the time
	m := open(t, o)
	l := create(t, m, topicConfig(t, "segment.bytes", "4000", "retention.bytes", "20000", "index.interval.bytes", "100", "file.delete.delay.ms", "0"))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var reads atomic.Int64
	failed := make(chan error, 10)
	for i := range 3 {
		wg.Go(func() { failed <- follow(l, stop, i == 0, &reads) })
	}
	for i := range 3000 {
		appendPlain(t, l, 1+i%5, int64(1000+i), fmt.Sprintf("value %0*d", i%200, i))
		l.SetHighWatermark(l.EndOffset())
		if i%50 == 0 {
			m.due.retention = c.Now()
			m.Tick(c.advance(time.Second))
		}
		if i%700 == 699 {
			must(t, l.TruncateTo(l.EndOffset()-3))
		}
	}
	close(stop)
	wg.Wait()
	for range 3 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if l.StartOffset() == 0 || reads.Load() == 0 {
		t.Fatal("nothing was deleted, or nothing read:", l.StartOffset(), reads.Load())
	}
	must(t, m.Close())
}

// follow reads from the start to the end over and over, or at the end.
func follow(l *Log, stop chan struct{}, tail bool, reads *atomic.Int64) error {
	buf := make([]byte, 1<<20)
	from := int64(0)
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		end := l.EndOffset()
		if from >= end {
			from = l.StartOffset()
			if tail {
				from = max(from, end-5)
			}
		}
		s, err := l.Read(from, 3000, end, true)
		if errors.Is(err, ErrOffsetOutOfRange) {
			from = l.StartOffset()
			continue
		}
		if err != nil {
			return err
		}
		n, _ := s.ReadAt(buf[:s.Len], 0) // a truncation may have shortened the file
		first := true
		for sp := record.Split(buf[:n]); sp.Next(); first = false {
			b := sp.Batch()
			if first && b.LastOffset() < from {
				return fmt.Errorf("asked for %d, got a batch of %d-%d", from, b.BaseOffset(), b.LastOffset())
			}
			if err := b.Check(); err != nil && n == s.Len && l.EndOffset() >= end {
				return fmt.Errorf("at %d: %w", from, err)
			}
			from = b.NextOffset()
			reads.Add(1)
		}
		s.Release()
	}
}

func TestConcurrentAppendersShareSyncs(t *testing.T) {
	var syncs atomic.Int64
	fsys := vfs.NewFaulty(vfs.OS, func(op vfs.Op, _ string, _ int) error {
		if op == vfs.OpSync {
			syncs.Add(1)
		}
		return nil
	})
	o := options(t, fsys, newClock())
	o.Dirs = []string{filepath.Join(t.TempDir(), "d")}
	m := open(t, o)
	l := create(t, m, topicConfig(t, "flush.messages", "1"))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				info := appendPlain(t, l, 1, 1, "v")
				if l.FlushedOffset() <= info.LastOffset {
					t.Error("answered before it was synced")
				}
			}
		})
	}
	wg.Wait()
	if n := syncs.Load(); n > 300 {
		t.Error(n, "syncs for 320 appends by 16 producers")
	}
	must(t, m.Close())
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{100, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m, l := onDisk(b, "retention.bytes", "0")
			set := plain(b, 1, 1000, string(make([]byte, size)))
			b.SetBytes(int64(len(set)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Append(AppendRequest{Records: set, LogAppendTime: -1}); err != nil {
					b.Fatal(err)
				}
				if end := l.EndOffset(); l.Size() > 2<<30 && end%100 == 0 {
					b.StopTimer()
					l.SetHighWatermark(end)
					must(b, l.retain(0))
					m.dirs[0].removeDue(time.Now().Add(time.Hour))
					b.StartTimer()
				}
			}
			b.StopTimer()
			must(b, m.Close())
		})
	}
}

// BenchmarkPwrite is what appends are measured against: the same bytes by plain
// writes.
func BenchmarkPwrite(b *testing.B) {
	for _, size := range []int{100, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			name := filepath.Join(b.TempDir(), "f")
			set := plain(b, 1, 1000, string(make([]byte, size)))
			b.SetBytes(int64(len(set)))
			f, err := vfs.OS.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
			must(b, err)
			pos := int64(0)
			for b.Loop() {
				if _, err := f.WriteAt(set, pos); err != nil {
					b.Fatal(err)
				}
				if pos += int64(len(set)); pos > 1<<30 {
					b.StopTimer()
					must(b, f.Close())
					must(b, vfs.OS.Remove(name))
					f, err = vfs.OS.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
					must(b, err)
					pos = 0
					b.StartTimer()
				}
			}
			must(b, f.Close())
		})
	}
}

// BenchmarkLookup finds random offsets in a log of many segments.
func BenchmarkLookup(b *testing.B) {
	m, l := onDisk(b, "segment.bytes", "1048576")
	set := plain(b, 10, 1000, string(make([]byte, 80)))
	for range 20_000 {
		if _, err := l.Append(AppendRequest{Records: set, LogAppendTime: -1}); err != nil {
			b.Fatal(err)
		}
	}
	must(b, l.checkpoint())
	i := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		i = (i + 7919*10) % 200_000
		s, err := l.Read(i, 1<<20, 200_000, true)
		if err != nil || s.Len == 0 {
			b.Fatal(s, err)
		}
		s.Release()
	}
	must(b, m.Close())
}

// BenchmarkStart opens a directory of many partitions that hold records, and
// asks for the end of each.
func BenchmarkStart(b *testing.B) {
	for _, how := range []string{"clean", "killed"} {
		b.Run(how, func(b *testing.B) {
			const n = 2_000
			o := Options{Dirs: []string{filepath.Join(b.TempDir(), "d")}, Config: broker(b), BrokerID: 1, ClusterID: "c", Logger: quiet(), Manual: true}
			m := open(b, o)
			for i := range int32(n) {
				l, err := m.Create(wire.TopicPartition{Topic: "t", Partition: i}, wire.NewUUID(), nil)
				must(b, err)
				appendPlain(b, l, 10, 1000, "a value")
			}
			must(b, m.Close())
			for b.Loop() {
				b.StopTimer()
				if how == "killed" {
					must(b, os.Remove(filepath.Join(o.Dirs[0], cleanFile)))
				}
				b.StartTimer()
				m = open(b, o)
				for _, l := range m.Logs() {
					if l.EndOffset() != 10 {
						b.Fatal(l.EndOffset(), l.Err())
					}
				}
				b.StopTimer()
				must(b, m.Close())
				b.StartTimer()
			}
		})
	}
}
