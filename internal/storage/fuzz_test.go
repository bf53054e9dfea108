package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"runtime/metrics"
	"testing"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// addFiles makes the files that Apache Kafka and we wrote the seeds.
func addFiles(f *testing.F, pattern string, mine ...string) {
	f.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "kafka-*", pattern))
	if err != nil || len(names) == 0 {
		f.Fatal("no seeds: ", pattern, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 64<<10 {
			f.Add(b)
		}
	}
	for _, text := range mine {
		f.Add([]byte(text))
	}
}

// bounded fails the test if f allocates more than a multiple of the input.
func bounded(t *testing.T, input []byte, f func()) {
	t.Helper()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	f()
	metrics.Read(sample)
	if n := sample[0].Value.Uint64() - before; n > uint64(len(input))*256+8<<20 {
		t.Fatalf("%d bytes allocated for an input of %d", n, len(input))
	}
}

// What is read, and written, is read as the same again.

func FuzzTxnIndex(f *testing.F) {
	f.Add(formatTxnIndex(nil, []abortedTxn{{1, 2, 3, 2}, {4, 2, 9, 10}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		bounded(t, b, func() {
			all, err := parseTxnIndex(b)
			if err == nil && !bytes.Equal(formatTxnIndex(nil, all), b) {
				t.Fatal(all)
			}
		})
	})
}

func FuzzSnapshot(f *testing.F) {
	addFiles(f, "*-0/*.snapshot")
	f.Fuzz(func(t *testing.T, b []byte) {
		bounded(t, b, func() {
			p, err := decodeProducers(b)
			if err != nil {
				return
			}
			again, err := decodeProducers(p.encode())
			if err != nil || !reflect.DeepEqual(p.byID, again.byID) {
				t.Fatal(err, p.byID, again)
			}
		})
	})
}

func FuzzLeaderEpochs(f *testing.F) {
	addFiles(f, "*-0/leader-epoch-checkpoint", "0\n2\n0 0\n3 17\n", "")
	f.Fuzz(func(t *testing.T, b []byte) {
		bounded(t, b, func() {
			var e, again epochs
			if e.parse(b) != nil {
				return
			}
			e.mu.saved, e.mu.synced = []epochStart{{-9, -9}}, false
			data, entries := e.unsaved(true, 1<<62)
			if err := again.parse(data); err != nil || len(again.mu.entries) != len(entries) {
				t.Fatalf("%v %q %v", err, data, entries)
			}
			for i := range entries {
				if again.mu.entries[i] != entries[i] {
					t.Fatal(entries, again.mu.entries)
				}
			}
		})
	})
}

func FuzzOffsetCheckpoint(f *testing.F) {
	addFiles(f, "*-checkpoint", "0\n2\ntopic 0 42\ntopic 1 17\n", "0\n0\n")
	f.Fuzz(func(t *testing.T, b []byte) {
		bounded(t, b, func() {
			offsets, err := parseOffsets(b)
			if err != nil {
				return
			}
			again, err := parseOffsets(formatOffsets(offsets))
			if err != nil || !reflect.DeepEqual(offsets, again) {
				t.Fatal(err, offsets, again)
			}
		})
	})
}

func FuzzPartitionMetadata(f *testing.F) {
	addFiles(f, "*-0/partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw")
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := vfs.NewMem()
		must(t, mem.MkdirAll("/d", 0o755))
		must(t, vfs.WriteFile(mem, "/d/"+partitionFile, b, 0o644))
		bounded(t, b, func() {
			id, err := readPartitionFile(mem, "/d")
			if err != nil || id == (wire.UUID{}) {
				return
			}
			must(t, writePartitionFile(mem, "/d", id))
			if again, err := readPartitionFile(mem, "/d"); err != nil || again != id {
				t.Fatal(id, again, err)
			}
		})
	})
}

func FuzzMetaProperties(f *testing.F) {
	addFiles(f, "meta.properties", "version=0\nbroker.id=1\ncluster.id=k0GXQSJzQhqPxGCRCRwuxg\n", "#x\nversion = 0\n")
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := vfs.NewMem()
		must(t, mem.MkdirAll("/d", 0o755))
		must(t, vfs.WriteFile(mem, "/d/"+metaFile, b, 0o644))
		bounded(t, b, func() {
			m, err := readMeta(mem, "/d")
			if err != nil {
				return
			}
			o := &Options{BrokerID: 1, ClusterID: "cluster"}
			if checkMeta("/d", m.identity(), o) != nil {
				return
			}
			must(t, writeMeta(mem, "/d", m, o, newClock().Now()))
			if again, err := readMeta(mem, "/d"); err != nil || again.identity() != (Identity{1, m.identity().ClusterID}) && m.identity().ClusterID != "" {
				t.Fatal(err, again)
			}
		})
	})
}

// Whatever the index files hold, every record is found by offset, and the search
// by time does not fail.
func FuzzIndexes(f *testing.F) {
	const records = 60
	made := func(t testing.TB) *vfs.Mem {
		mem := vfs.NewMem()
		m := open(t, options(t, mem, newClock()))
		l := create(t, m, topicConfig(t, "segment.bytes", "2500", "index.interval.bytes", "100"))
		for i := range int64(records) {
			appendPlain(t, l, 1, 1000+i, fmt.Sprint("value", i))
		}
		must(t, m.Close())
		return mem
	}
	mem := made(f)
	index, times := readFile(f, mem, part+"/"+offsetName(0, indexSuffix)), readFile(f, mem, part+"/"+offsetName(0, timeIndexSuffix))
	f.Add(index, times, true)
	f.Add(index[:len(index)/2], times, false)
	f.Add(append(bytes.Clone(index), make([]byte, 80)...), times[:7], true)
	f.Add([]byte{}, []byte{}, false)
	f.Fuzz(func(t *testing.T, index, times []byte, clean bool) {
		if len(index)+len(times) > 64<<10 {
			return
		}
		mem := made(t)
		if !clean {
			must(t, mem.Remove("/d/"+cleanFile))
			must(t, mem.Remove("/d/"+recoveryPointFile))
		}
		for name := range list(t, mem, part) {
			switch filepath.Ext(name) {
			case indexSuffix:
				must(t, vfs.WriteFile(mem, part+"/"+name, index, 0o644))
			case timeIndexSuffix:
				must(t, vfs.WriteFile(mem, part+"/"+name, times, 0o644))
			}
		}
		m := open(t, options(t, mem, newClock()))
		l, _ := m.Log(tp0)
		for _, from := range []int64{0, 1, 17, 42, records - 1} {
			if got := readAll(t, l, from, records, 300); len(got) != int(records-from) || got[0].offset != from {
				t.Fatalf("from %d: %d records", from, len(got))
			}
		}
		// What a time index says can't be told from what it should say.
		for _, ts := range []int64{0, 1030} {
			if at, found, err := l.OffsetForTimestamp(ts); err != nil || found && (at.Offset >= records || at.Timestamp < ts) {
				t.Fatal(at, found, err)
			}
		}
		_, err := l.Append(AppendRequest{Records: batch(t, record.BatchOptions{LeaderEpoch: -1}, 1, 9000, "more"), LogAppendTime: -1})
		must(t, err)
		must(t, l.TruncateTo(records-2))
		if got := readAll(t, l, 0, records-2, 1<<20); len(got) != records-2 {
			t.Fatal(len(got))
		}
		must(t, m.Close())
	})
}

// Whatever a segment holds, a start after a crash cuts it where whole batches in
// order end, and the log goes on from there.
func FuzzLog(f *testing.F) {
	mem := vfs.NewMem()
	m := open(f, options(f, mem, newClock()))
	l := create(f, m, nil)
	appendPlain(f, l, 3, 1000, "plain")
	transactional(f, l, 1, 0, 2)
	mark(f, l, 1, false)
	must(f, m.Close())
	good := readFile(f, mem, part+"/"+offsetName(0, logSuffix))
	f.Add(good, false, false)
	f.Add(good[:len(good)-5], true, false)
	f.Add(append(bytes.Clone(good), make([]byte, 100)...), false, true)
	// A message of v0 whose offset, which no checksum covers, was damaged.
	v0 := "\x7f\xff\xff\xff\xff\xff\xff\xfe\x00\x00\x00\x14\xa4\xcd\xab\x3a\x00\x00\x00\x00\x00\x01k\x00\x00\x00\x05hello"
	f.Add([]byte(v0), false, false)
	names, err := filepath.Glob(filepath.Join("testdata", "kafka-*", "*", "*"+logSuffix))
	must(f, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		must(f, err)
		f.Add(b[:min(len(b), 4096)], false, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, sameBoot, sum bool) {
		if len(b) > 64<<10 {
			return
		}
		if sum { // what lies behind a checksum that is right
			b = bytes.Clone(b)
			for s := record.Split(b); s.Next(); {
				if e := s.Batch(); e.Magic() == 2 {
					binary.BigEndian.PutUint32(e[17:], crc32.Checksum(e[21:], castagnoli))
				}
			}
		}
		checkLog(t, b, sameBoot)
	})
}

// checkLog starts with b as the only segment.
func checkLog(t *testing.T, b []byte, sameBoot bool) {
	mem, c := vfs.NewMem(), newClock()
	must(t, mem.MkdirAll(part, 0o755))
	must(t, vfs.WriteFile(mem, part+"/"+offsetName(0, logSuffix), b, 0o644))
	o := options(t, mem, c)
	if sameBoot {
		must(t, vfs.WriteFile(mem, "/d/"+bootFile, []byte(o.BootID+"\n"), 0o644))
	}
	var l *Log
	var m *Manager
	bounded(t, b, func() {
		m = open(t, o)
		l, _ = m.Log(tp0)
		must(t, l.ready())
	})
	end := checkedEnd(t, l)
	_, _, _ = l.OffsetForTimestamp(1000) // records may be malformed behind their checksum
	_, _, _ = l.MaxTimestamp()
	_, err := l.AbortedTransactions(0, end)
	must(t, err)
	info := appendPlain(t, l, 1, 9000, "more")
	if info.FirstOffset != end || checkedEnd(t, l) != end+1 {
		t.Fatal(info, end)
	}
	must(t, m.Close())
	m = open(t, o)
	l, _ = m.Log(tp0)
	if got := checkedEnd(t, l); got != end+1 {
		t.Fatal("the log ends at", got, "after a restart, and ended at", end+1)
	}
	must(t, m.Close())
}

// checkedEnd reads all batches, which must be whole and in order, and returns the
// end of the log.
func checkedEnd(t *testing.T, l *Log) int64 {
	t.Helper()
	end, at := l.EndOffset(), l.StartOffset()
	for at < end {
		s, err := l.Read(at, 1<<20, end, true)
		must(t, err)
		b := make([]byte, s.Len)
		_, err = s.ReadAt(b, 0)
		s.Release()
		before := at
		for sp := record.Split(b); err == nil && sp.Next(); at = sp.Batch().NextOffset() {
			if err = sp.Batch().Check(); err == nil && sp.Batch().LastOffset() < at {
				err = errOrder
			}
		}
		if err != nil || at <= before {
			t.Fatal(before, at, end, err)
		}
	}
	if at != end {
		t.Fatal("the last batch ends at", at, "the log at", end)
	}
	return end
}
