package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// movable opens a manager of two directories and makes a log in the first.
func movable(t *testing.T, fsys vfs.FS, c *clock, kv ...string) (*Manager, *Log) {
	t.Helper()
	o := options(t, fsys, c)
	o.Dirs = []string{"/a", "/b"}
	m := open(t, o)
	if l, ok := m.Log(tp0); ok {
		return m, l
	}
	must(t, m.Prefer(tp0, "/a"))
	l, err := m.Create(tp0, wire.UUID{7}, topicConfig(t, append([]string{"segment.bytes", "1000", "index.interval.bytes", "200"}, kv...)...))
	must(t, err)
	if l.Dir() != "/a" {
		t.Fatal("made in", l.Dir())
	}
	return m, l
}

// fillMovable appends some of everything and returns the batch that a producer
// sent last.
func fillMovable(t *testing.T, l *Log) (last []byte) {
	t.Helper()
	for i := range 40 {
		_, err := l.Append(AppendRequest{Records: plain(t, 2, int64(1000+i), fmt.Sprint("value", i)), LogAppendTime: -1, LeaderEpoch: int32(i / 10)})
		must(t, err)
	}
	p := &record.Producer{ID: 9, Epoch: 1}
	last = batch(t, record.BatchOptions{LeaderEpoch: -1, Producer: p, Transactional: true}, 2, 2000, "open")
	_, err := l.Append(AppendRequest{Records: slices.Clone(last), LogAppendTime: -1, LeaderEpoch: 4})
	must(t, err)
	l.SetHighWatermark(l.EndOffset())
	return last
}

func TestALogMovesToAnotherDirectoryWithAllThatItKnows(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m, l := movable(t, mem, c)
	last := fillMovable(t, l)
	_, err := l.DeleteRecordsTo(30)
	must(t, err)
	want := readAll(t, l, 30, l.EndOffset(), 1<<20)
	must(t, m.Move(tp0, "/b"))
	if f := m.Futures(); len(f) != 1 || f[0].Dir != "/b" || f[0].Lag != l.EndOffset() || f[0].Partition != tp0 {
		t.Fatalf("%+v", f)
	}
	reader, err := l.Read(40, 1<<20, 1<<62, true) // of the old files
	must(t, err)
	m.Tick(c.Now())
	check := func() {
		t.Helper()
		if l.Dir() != "/b" || len(m.Futures()) != 0 {
			t.Fatal(l.Dir(), m.Futures())
		}
		if got := readAll(t, l, 30, l.EndOffset(), 1<<20); !slices.Equal(got[:len(want)], want) {
			t.Fatal(got)
		}
		if l.StartOffset() != 30 || l.LastStableOffset() != 80 || l.LatestEpoch() != 4 || l.TopicID() != (wire.UUID{7}) {
			t.Fatal(l.StartOffset(), l.LastStableOffset(), l.LatestEpoch(), l.TopicID())
		}
		if at, found, err := l.OffsetForTimestamp(1020); err != nil || !found || at.Offset != 39 {
			t.Fatal(at, found, err)
		}
		info, err := l.Append(AppendRequest{Records: slices.Clone(last), LogAppendTime: -1, LeaderEpoch: 4})
		if err != nil || !info.Duplicate || info.FirstOffset != 80 {
			t.Fatal("a repeated batch:", info, err)
		}
	}
	check()
	b := make([]byte, reader.Len)
	if _, err := reader.ReadAt(b, 0); err != nil {
		t.Fatal("what was handed out can't be read:", err)
	}
	reader.Release()
	_, err = l.Append(AppendRequest{Records: plain(t, 3, 3000, "after"), LogAppendTime: -1, LeaderEpoch: 4})
	must(t, err)
	l.SetHighWatermark(l.EndOffset())
	must(t, m.Close())
	m, l = movable(t, mem, c)
	l.SetHighWatermark(l.EndOffset())
	check()
	for name := range list(t, mem, "/a") {
		if strings.HasPrefix(name, "t-") && !strings.HasSuffix(name, "-delete") {
			t.Fatal("left behind:", name)
		}
	}
	if list(t, mem, "/b/t-0")[movedFile] {
		t.Fatal("the mark is left")
	}
	must(t, m.Close())
}

func TestAMoveIsCalledOffChangedAndRefused(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	o := options(t, mem, c)
	o.Dirs = []string{"/a", "/b", "/c"}
	m := open(t, o)
	must(t, m.Prefer(tp0, "/a"))
	l := create(t, m, topicConfig(t))
	fillMovable(t, l)
	if err := m.Move(tp0, "/x"); !errors.Is(err, ErrNoSuchDir) || Code(err) != wire.LogDirNotFound {
		t.Fatal(err)
	}
	if err := m.Move(wire.TopicPartition{Topic: "none"}, "/b"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	must(t, m.Move(tp0, "/a"))
	if len(m.Futures()) != 0 {
		t.Fatal("a move to where it is")
	}
	must(t, m.Move(tp0, "/b"))
	must(t, m.Move(tp0, "/b"))
	must(t, m.Move(tp0, "/c"))
	if f := m.Futures(); len(f) != 1 || f[0].Dir != "/c" {
		t.Fatal(f)
	}
	must(t, m.Move(tp0, "/a"))
	m.Tick(c.Now())
	if len(m.Futures()) != 0 || l.Dir() != "/a" {
		t.Fatal(m.Futures(), l.Dir())
	}
	must(t, m.Move(tp0, "/b"))
	must(t, m.Delete(tp0))
	m.Tick(c.advance(time.Hour))
	for _, dir := range o.Dirs {
		for name := range list(t, mem, dir) {
			if strings.HasPrefix(name, "t-") {
				t.Fatal(dir, name)
			}
		}
	}
	must(t, m.Close())
}

// A copy that an earlier run left is brought in line with the log, which went
// another way meanwhile.
func TestAMoveGoesOnAfterARestartAndATruncation(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m, l := movable(t, mem, c)
	fillMovable(t, l)
	must(t, m.Move(tp0, "/b"))
	mv := m.moveOf(tp0)
	for range 30 {
		if _, _, err := mv.step(); err != nil {
			t.Fatal(err)
		}
	}
	if m.Futures()[0].Lag != 0 {
		t.Fatal(m.Futures())
	}
	must(t, m.Close())
	var future string
	for name := range list(t, mem, "/b") {
		if strings.HasSuffix(name, "-future") {
			future = name
		}
	}
	if future == "" {
		t.Fatal(list(t, mem, "/b"))
	}
	m, l = movable(t, mem, c)
	must(t, l.TruncateTo(33))
	_, err := l.Append(AppendRequest{Records: plain(t, 9, 5000, "another way"), LogAppendTime: -1, LeaderEpoch: 7})
	must(t, err)
	want := readAll(t, l, 0, l.EndOffset(), 1<<20)
	if got := filepath.Base(m.moveOf(tp0).copy.folder()); got != future {
		t.Fatal(got, future)
	}
	m.Tick(c.Now())
	if got := readAll(t, l, 0, l.EndOffset(), 1<<20); l.Dir() != "/b" || !slices.Equal(got, want) {
		t.Fatal(l.Dir(), got, want)
	}
	must(t, m.Close())
}

// At each change of the files during a move the process is killed, or the power
// goes: the log is there with all its records, once, and the move goes on.
func TestAMoveSurvivesCrashesAtEachStep(t *testing.T) {
	for _, how := range []vfs.Crash{vfs.KillProcess, vfs.LoseUnsynced, vfs.LoseSome} {
		rng := seed(t)
		for stopAt := 1; ; stopAt++ {
			mem, c, n := vfs.NewMem(), newClock(), 0
			var clone *vfs.Mem
			moving := false
			m, l := movable(t, vfs.NewFaulty(mem, func(op vfs.Op, _ string, _ int) error {
				switch op {
				case vfs.OpMkdir, vfs.OpRemove, vfs.OpRename, vfs.OpWrite, vfs.OpTruncate, vfs.OpSync, vfs.OpSyncDir:
					if n++; moving && n == stopAt {
						clone = mem.CrashClone(how, rng)
					}
				}
				return nil
			}), c)
			fillMovable(t, l)
			must(t, l.Flush())
			must(t, m.Checkpoint())
			want := readAll(t, l, 0, l.EndOffset(), 1<<20)
			n, moving = 0, true
			must(t, m.Move(tp0, "/b"))
			m.Tick(c.Now())
			moving = false
			must(t, m.Close())
			if clone == nil {
				if stopAt < 20 {
					t.Fatal("only", stopAt, "steps")
				}
				break
			}
			o := options(t, clone, c)
			o.Dirs = []string{"/a", "/b"}
			if how != vfs.KillProcess {
				o.BootID = "another"
			}
			m, err := Open(o)
			if err != nil {
				t.Fatalf("%v at step %d: %v", how, stopAt, err)
			}
			l, _ = m.Log(tp0)
			if got := readAll(t, l, 0, l.EndOffset(), 1<<20); !slices.Equal(got, want) {
				t.Fatalf("%v at step %d: %d records in %s, expected %d", how, stopAt, len(got), l.Dir(), len(want))
			}
			appendPlain(t, l, 1, 9000, "more")
			must(t, m.Move(tp0, "/b"))
			m.Tick(c.Now())
			if got := readAll(t, l, 0, l.EndOffset(), 1<<20); l.Dir() != "/b" || !slices.Equal(got[:len(want)], want) || len(got) != len(want)+1 {
				t.Fatalf("%v at step %d, moved again: %d records in %s", how, stopAt, len(got), l.Dir())
			}
			must(t, m.Close())
		}
	}
}

// A copy that was called off is not gone on with after the power went, when the
// log may hold other records.
func TestAMoveThatWasCalledOffStaysSo(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m, l := movable(t, mem, c)
	fillMovable(t, l)
	must(t, m.Move(tp0, "/b"))
	_, _, err := m.moveOf(tp0).step()
	must(t, err)
	must(t, m.Checkpoint())
	must(t, mem.SyncDir("/b"))
	must(t, m.Move(tp0, "/a"))
	o := options(t, mem.CrashClone(vfs.LoseUnsynced, nil), c)
	o.Dirs, o.BootID = []string{"/a", "/b"}, "another"
	after, err := Open(o)
	must(t, err)
	defer after.Close()
	if f := after.Futures(); len(f) != 0 {
		t.Fatalf("goes on with %+v", f)
	}
	must(t, m.Close())
}

// A log whose records have all gone below its end has moved without a file.
func TestALogWithoutRecordsIsCutAfterItMoved(t *testing.T) {
	m, l := movable(t, vfs.NewMem(), newClock())
	defer m.Close()
	_, err := l.AppendFollower(batch(t, record.BatchOptions{BaseOffset: 3, LeaderEpoch: 1}, 2, 1000, "v"))
	must(t, err)
	must(t, l.TruncateTo(4)) // the whole batch goes
	must(t, m.Move(tp0, "/b"))
	m.Tick(l.dir().now())
	if l.Dir() != "/b" {
		t.Fatal(l.Dir())
	}
	must(t, l.TruncateTo(1))
	produced := plain(t, 2, 1000, "after")
	if info, err := l.Append(AppendRequest{Records: produced, LogAppendTime: -1, LeaderEpoch: 1}); err != nil || info.FirstOffset > 1 {
		t.Fatal(info, err)
	}
}

// A directory that fails while a log is moved there takes the copy with it, not
// the log.
func TestAMoveToADirectoryThatFailsLeavesTheLogAlone(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpSync, vfs.OpRename, vfs.OpTruncate} {
		bad := false
		m, l := movable(t, vfs.NewFaulty(vfs.NewMem(), func(o vfs.Op, name string, _ int) error {
			if bad && o == op && strings.HasPrefix(name, "/b/") {
				return errors.New("I/O error")
			}
			return nil
		}), newClock())
		fillMovable(t, l)
		want := readAll(t, l, 0, l.EndOffset(), 1<<20)
		bad = true
		must(t, m.Move(tp0, "/b"))
		m.Tick(l.dir().now())
		if got := readAll(t, l, 0, l.EndOffset(), 1<<20); l.Dir() != "/a" || !slices.Equal(got, want) || l.move.Load() != nil {
			t.Fatal(op, l.Dir(), len(got))
		}
		if m.Dirs()[1].Err == nil || len(m.Futures()) != 0 {
			t.Fatal(op, m.Dirs(), m.Futures())
		}
		appendPlain(t, l, 1, 9000, "more")
		_ = m.Close()
	}
}

// Producers and consumers go on while a log moves to and fro.
func TestALogMovesUnderLoad(t *testing.T) {
	dir := t.TempDir()
	o := options(t, vfs.OS, newClock())
	o.Dirs = []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	o.Manual, o.Now = false, time.Now
	m := open(t, o)
	l := create(t, m, topicConfig(t, "segment.bytes", "200000", "retention.ms", "-1", "file.delete.delay.ms", "0", "flush.messages", "20"))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for p := range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := l.Append(AppendRequest{Records: plain(t, 1+i%3, int64(i), fmt.Sprint(p, "-", i)), LogAppendTime: -1}); err != nil {
					t.Error(err)
					return
				}
				l.SetHighWatermark(l.EndOffset())
			}
		})
		wg.Go(func() {
			next := int64(0)
			for {
				end := l.EndOffset()
				for _, r := range readAll(t, l, next, end, 3000) {
					if r.offset != next {
						t.Errorf("offset %d where %d comes next", r.offset, next)
						return
					}
					next++
				}
				if end > 0 {
					if _, _, err := l.OffsetForTimestamp(end / 4); err != nil {
						t.Error(err)
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range 6 {
		to := o.Dirs[(i+1)%2]
		if l.Dir() == to {
			to = o.Dirs[i%2]
		}
		must(t, m.Move(tp0, to))
		for l.Dir() != to {
			if err := l.Err(); err != nil {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
	close(stop)
	wg.Wait()
	end := l.EndOffset()
	must(t, m.Close())
	o.Manual = true
	m = open(t, o)
	l, _ = m.Log(tp0)
	if got := readAll(t, l, 0, end, 1<<20); int64(len(got)) != end {
		t.Fatal(len(got), end)
	}
	must(t, m.Close())
}

func TestThePaceOfMoves(t *testing.T) {
	p, now := newPace(1000), time.Unix(1000, 0)
	if d, _ := p.owe(500, now); d != 500*time.Millisecond {
		t.Fatal(d)
	}
	if d, _ := p.owe(0, now.Add(400*time.Millisecond)); d.Round(time.Millisecond) != 100*time.Millisecond {
		t.Fatal(d)
	}
	_, changed := p.owe(1<<40, now)
	p.set(1 << 62)
	<-changed
	if d, _ := p.owe(0, now.Add(time.Second)); d != 0 {
		t.Fatal(d)
	}
}
