package storage

import (
	"strings"
	"testing"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

// epochScene is a log of several segments and the epochs 4 (from 0), 5 (from 20)
// and 6 (from 100), as a clean stop leaves it and as a killed process does, with
// the recovery point at 50.
func epochScene(t *testing.T, c *clock) (clean, killed *vfs.Mem) {
	mem := vfs.NewMem()
	m := open(t, options(t, mem, c))
	l := create(t, m, topicConfig(t, "segment.bytes", "500"))
	appendEpochs(t, m, l)
	roll(t, l) // the epochs are not those of the active segment, which is empty
	killed = mem.CrashClone(vfs.KillProcess, nil)
	must(t, m.Close())
	return mem, killed
}

// A follower that went another way is cut where the leader's epochs begin, and
// they are not forgotten with their file.
func TestLostEpochsAreRebuiltFromTheBatches(t *testing.T) {
	const want = "0\n3\n4 0\n5 20\n6 100\n"
	for name, lose := range map[string]func(fsys vfs.FS) error{
		"missing":    func(fsys vfs.FS) error { return fsys.Remove(part + "/" + epochFile) },
		"empty":      func(fsys vfs.FS) error { return vfs.WriteFile(fsys, part+"/"+epochFile, nil, 0o644) },
		"no entries": func(fsys vfs.FS) error { return vfs.WriteFile(fsys, part+"/"+epochFile, []byte("0\n0\n"), 0o644) },
		"damaged":    func(fsys vfs.FS) error { return vfs.WriteFile(fsys, part+"/"+epochFile, []byte("0\n2\n4 0\n"), 0o644) },
	} {
		c := newClock()
		clean, killed := epochScene(t, c)
		for stop, fsys := range map[string]*vfs.Mem{"clean stop": clean, "kill": killed} {
			if ok, _ := vfs.Exists(fsys, part+"/"+epochFile); !ok {
				t.Fatal("there is no file")
			}
			must(t, lose(fsys))
			m := open(t, options(t, fsys, c))
			l, _ := m.Log(tp0)
			for epoch, end := range map[int32]EpochEnd{3: {3, 0}, 4: {4, 20}, 5: {5, 100}, 6: {6, 110}} {
				if got := l.EndOffsetForEpoch(epoch); got != end {
					t.Errorf("%s, %s: the end of epoch %d is %v, expected %v", name, stop, epoch, got, end)
				}
			}
			must(t, m.Close())
			if got := string(readFile(t, fsys, part+"/"+epochFile)); got != want {
				t.Errorf("%s, %s: %q", name, stop, got)
			}
		}
	}
}

// Batches of old formats have no epochs, and their logs no file: that is no
// reason to read them whole at each start.
func TestALogWithoutEpochsIsNotReadForThem(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	counted, read := countOf(mem, vfs.OpRead, func(name string) bool { return strings.HasSuffix(name, logSuffix) })
	o := options(t, counted, c)
	m := open(t, o)
	l := create(t, m, topicConfig(t, "segment.bytes", "500"))
	for base := int64(0); base < 500; base += 2 {
		_, err := l.AppendFollower(batch(t, record.BatchOptions{BaseOffset: base, LeaderEpoch: -1}, 2, 1000, "v"))
		must(t, err)
	}
	segments := len(*l.segments.Load())
	must(t, m.Close())
	*read = 0
	m = open(t, o)
	l, _ = m.Log(tp0)
	if l.StartOffset(); l.Err() != nil || l.LatestEpoch() != -1 {
		t.Fatal(l.Err(), l.LatestEpoch())
	}
	if *read > 10 || segments < 20 {
		t.Errorf("%d reads, of %d segments", *read, segments)
	}
	must(t, m.Close())
}

// A log that DeleteRecords emptied has no epochs either, though its files are
// there until retention comes: none of what they hold is asked for.
func TestAnEmptiedLogIsNotReadForItsEpochs(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	counted, read := countOf(mem, vfs.OpRead, func(name string) bool { return strings.HasSuffix(name, logSuffix) })
	o := options(t, counted, c)
	m := open(t, o)
	l := create(t, m, topicConfig(t, "segment.bytes", "500"))
	for range 250 {
		_, err := l.Append(AppendRequest{Records: plain(t, 2, 1000, "v"), LeaderEpoch: 4, LogAppendTime: -1})
		must(t, err)
	}
	segments := len(*l.segments.Load())
	again := func(start int64, most int) {
		l.SetHighWatermark(500)
		_, err := l.DeleteRecordsTo(start)
		must(t, err)
		must(t, m.Close())
		must(t, mem.RemoveAll(part+"/"+epochFile))
		*read = 0
		m = open(t, o)
		l, _ = m.Log(tp0)
		if l.StartOffset() != start || l.EndOffset() != 500 {
			t.Fatal(l.StartOffset(), l.EndOffset(), l.Err())
		}
		if *read > most {
			t.Errorf("%d reads, of %d segments, the log being from %d to 500", *read, segments, start)
		}
	}
	again(490, 20)
	if got := l.EndOffsetForEpoch(3); got != (EpochEnd{3, 490}) {
		t.Error(got)
	}
	again(500, 10)
	if l.LatestEpoch() != -1 {
		t.Error(l.LatestEpoch())
	}
	must(t, m.Close())
}
