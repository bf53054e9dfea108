package storage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"barnabas/internal/config"
	"barnabas/internal/record"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

var kafkaFolders = []string{"kafka-2.8.2", "kafka-3.9.1", "kafka-2.8.2-killed", "kafka-3.9.1-killed"}

type kafkaRecord struct {
	offset, ts int64
	key, value string
}

// expected is what kcat read from the real broker.
func expected(t testing.TB, file string) []kafkaRecord {
	t.Helper()
	b, err := os.ReadFile(file)
	must(t, err)
	var out []kafkaRecord
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		f := strings.SplitN(line, " ", 4)
		offset, err := strconv.ParseInt(f[0], 10, 64)
		must(t, err)
		ts, err := strconv.ParseInt(f[1], 10, 64)
		must(t, err)
		out = append(out, kafkaRecord{offset, ts, f[2], f[3]})
	}
	return out
}

// consume reads a log as a consumer does, a few batches at a time.
func consume(t testing.TB, l *Log, from int64, maxBytes int) []kafkaRecord {
	t.Helper()
	var out []kafkaRecord
	for end := l.EndOffset(); from < end; {
		s, err := l.Read(from, maxBytes, end, true)
		must(t, err)
		if s.Len == 0 {
			break
		}
		b := make([]byte, s.Len)
		_, err = s.ReadAt(b, 0)
		must(t, err)
		s.Release()
		for sp := record.Split(b); sp.Next(); {
			must(t, sp.Batch().Check())
			if !sp.Batch().Control() {
				must(t, sp.Batch().Each(0, func(r *record.Record) error {
					if r.Offset >= from {
						// kcat shows 0 where format v0 has no timestamp
						out = append(out, kafkaRecord{r.Offset, max(r.Timestamp, 0), string(r.Key), string(r.Value)})
					}
					return nil
				}))
			}
			from = max(from, sp.Batch().NextOffset())
		}
	}
	return out
}

func openKafkaFolder(t testing.TB, mem *vfs.Mem, dir string) *Manager {
	t.Helper()
	id, err := ReadIdentity(mem, []string{dir})
	must(t, err)
	o := options(t, mem, newClock())
	o.Dirs, o.BrokerID, o.ClusterID = []string{dir}, id.BrokerID, id.ClusterID
	return open(t, o)
}

func TestFoldersOfApacheKafkaAreReadAndContinued(t *testing.T) {
	for _, name := range kafkaFolders {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			copyTree(t, mem, filepath.Join("testdata", name), "/k")
			m := openKafkaFolder(t, mem, "/k")
			if n := len(m.Logs()); n == 0 {
				t.Fatal("no logs found")
			}
			for _, l := range m.Logs() {
				want := expected(t, filepath.Join("testdata", name, l.Partition().Topic+".txt"))
				checkKafkaLog(t, l, want)
				if n := len(*l.segments.Load()); n < 3 {
					t.Fatal(l.Partition(), "has only", n, "segments")
				}
				end := l.EndOffset()
				info := appendPlain(t, l, 3, 1_800_000_000_000, "ours")
				if info.FirstOffset != end {
					t.Fatalf("appended at %d, the end was %d", info.FirstOffset, end)
				}
			}
			must(t, m.Close())

			m = openKafkaFolder(t, mem, "/k")
			for _, l := range m.Logs() {
				want := expected(t, filepath.Join("testdata", name, l.Partition().Topic+".txt"))
				got := consume(t, l, 0, 1<<20)
				if len(got) != len(want)+3 || !slices.Equal(got[:len(want)], want) {
					t.Fatalf("%s: %d records after ours, expected %d", l.Partition(), len(got), len(want)+3)
				}
			}
			must(t, m.Close())
		})
	}
}

func checkKafkaLog(t *testing.T, l *Log, want []kafkaRecord) {
	t.Helper()
	for _, maxBytes := range []int{1, 500, 1 << 20} {
		for i := 0; i < len(want); i += 5 {
			if got := consume(t, l, want[i].offset, maxBytes); !slices.Equal(got, want[i:]) {
				t.Fatalf("%s from %d: %d records, expected %d\n%v\n%v", l.Partition(), want[i].offset, len(got), len(want)-i, got, want[i:])
			}
		}
	}
	if l.Partition().Topic == "old0" {
		return // no timestamps
	}
	for _, r := range want {
		first := want[slices.IndexFunc(want, func(x kafkaRecord) bool { return x.ts >= r.ts })]
		at, found, err := l.OffsetForTimestamp(r.ts)
		marker := at.Offset < first.offset && !slices.ContainsFunc(want, func(x kafkaRecord) bool { return x.offset == at.Offset })
		if err != nil || !found || at.Offset != first.offset && !marker {
			t.Fatalf("%s: time %d: %+v %v %v, expected %d", l.Partition(), r.ts, at, found, err, first.offset)
		}
	}
}

// The indexes that we make of Kafka's segments are Kafka's, byte for byte. (2.8
// names a later offset in time entries, and indexes old formats by the set.)
func TestRebuiltIndexesEqualThoseOfApacheKafka(t *testing.T) {
	for _, name := range []string{"kafka-3.9.1"} {
		mem := vfs.NewMem()
		copyTree(t, mem, filepath.Join("testdata", name), "/k")
		must(t, mem.Remove("/k/"+cleanFile))
		must(t, mem.Remove("/k/"+recoveryPointFile))
		want := map[string][]byte{}
		for folder := range list(t, mem, "/k") {
			if _, ok := parseFolder(folder); !ok {
				continue
			}
			for file := range list(t, mem, "/k/"+folder) {
				path := filepath.Join("/k", folder, file)
				if strings.HasSuffix(file, indexSuffix) || strings.HasSuffix(file, timeIndexSuffix) {
					want[path] = readFile(t, mem, path)
					must(t, mem.Remove(path))
				}
			}
		}
		id, err := ReadIdentity(mem, []string{"/k"})
		must(t, err)
		o := options(t, mem, newClock())
		o.Dirs, o.BrokerID, o.ClusterID = []string{"/k"}, id.BrokerID, id.ClusterID
		cfg := topicConfig(t, "index.interval.bytes", "200")
		o.Topic = func(string) *config.Topic { return cfg }
		must(t, open(t, o).Close())
		for path, b := range want {
			if got := readFile(t, mem, path); !bytes.Equal(got, b) {
				t.Errorf("%s %s: %d bytes, Kafka has %d\n%x\n%x", name, path, len(got), len(b), got, b)
			}
		}
	}
}

func TestCheckpointsOfApacheKafka(t *testing.T) {
	mem := vfs.NewMem()
	copyTree(t, mem, "testdata/kafka-3.9.1", "/k")
	m := openKafkaFolder(t, mem, "/k")
	defer m.Close()
	l, _ := m.Log(wire.TopicPartition{Topic: "mixed", Partition: 0})
	if l.state.Load() != unloaded {
		t.Fatal("a log is loaded before its first use")
	}
	end := l.EndOffset()
	if l.state.Load() != unloaded || end == 0 || l.HighWatermark() != end {
		t.Fatal("after a clean stop the end is known without loading:", end, l.HighWatermark())
	}
	if l.TopicID().IsZero() {
		t.Fatal("partition.metadata was not read")
	}
	if _ = l.StartOffset(); l.EndOffset() != end {
		t.Fatal("the end changed when the log was loaded:", l.EndOffset(), end)
	}
	if got := fmt.Sprint(l.LatestEpoch(), l.EndOffsetForEpoch(0)); got != fmt.Sprintf("0 {0 %d}", end) {
		t.Fatal("epochs:", got)
	}
	if p := l.mu.producers; len(p.byID) != 2 {
		t.Fatal("producers:", len(p.byID))
	}
}

// The bytes that docs/formats draws are those of real files.
func TestThePagesOfFormatsDrawRealBytes(t *testing.T) {
	hex := regexp.MustCompile(`(?m)^[0-9a-f]{4,16}( [0-9a-f]{4,16})+$`)
	for page, files := range map[string][]string{
		"indexes.md":  {"00000000000000000040.index", "00000000000000000040.timeindex"},
		"snapshot.md": {"00000000000000000131.snapshot"},
	} {
		text, err := os.ReadFile("../../docs/formats/" + page)
		must(t, err)
		drawn := strings.ReplaceAll(strings.Join(hex.FindAllString(string(text), -1), ""), " ", "")
		var want string
		for _, f := range files {
			b, err := os.ReadFile("testdata/kafka-3.9.1/mixed-0/" + f)
			must(t, err)
			want += fmt.Sprintf("%x", b)
		}
		if drawn != want {
			t.Errorf("%s draws\n%s\nthe files hold\n%s", page, drawn, want)
		}
	}
}
