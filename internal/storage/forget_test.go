package storage

import (
	"errors"
	"strings"
	"testing"

	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// A topic that is made again under the name of one that was deleted must not be
// taken, after a crash, for the one that the checkpoints tell of.
func TestANewLogInheritsNothingFromADeletedOne(t *testing.T) {
	for i := range 4 {
		how, unsynced := []vfs.Crash{vfs.KillProcess, vfs.LoseUnsynced}[i%2], i >= 2
		mem, c := vfs.NewMem(), newClock()
		m := open(t, options(t, mem, c))
		l := create(t, m, nil)
		for range 50 {
			appendPlain(t, l, 2, 1000, "old")
		}
		l.SetHighWatermark(100)
		_, err := l.DeleteRecordsTo(50)
		must(t, err)
		must(t, l.checkpoint())
		l.cleaned.Store(90)
		must(t, m.Checkpoint())
		must(t, l.dir().saveCleaned(true))
		must(t, m.Delete(tp0))
		if unsynced { // after lost power the checkpoints are those before
			d := l.dir()
			must(t, errors.Join(d.saveRecoveryPoints(false), d.saveStarts(false), d.saveHighWatermarks(false), d.saveCleaned(false)))
		}

		l = create(t, m, nil)
		appendPlain(t, l, 10, 1000, "new")
		l.SetHighWatermark(5)
		must(t, l.Flush())
		crashed := mem.CrashClone(how, nil)
		must(t, m.Close())

		o := options(t, crashed, c)
		if how != vfs.KillProcess {
			o.BootID = "another"
		}
		m = open(t, o)
		l, _ = m.Log(tp0)
		if got := readAll(t, l, 0, 100, 1<<20); len(got) != 10 || l.StartOffset() != 0 || l.EndOffset() != 10 {
			t.Errorf("crash %v: %d records, from %d up to %d", how, len(got), l.StartOffset(), l.EndOffset())
		}
		if l.HighWatermark() > 5 || l.cleaned.Load() != -1 || l.found.known {
			t.Errorf("crash %v: high watermark %d, cleaned up to %d, recovery point %d", how, l.HighWatermark(), l.cleaned.Load(), l.found.recovery)
		}
		must(t, m.Close())
	}
}

// So it is when the crash came before the new one was made, and when a move that
// was called off is begun again.
func TestANewLogInheritsNothingFromBeforeTheLastStart(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m, l := movable(t, mem, c)
	fillMovable(t, l)
	_, err := l.DeleteRecordsTo(30)
	must(t, err)
	must(t, l.checkpoint())
	must(t, m.Checkpoint())
	must(t, m.Delete(tp0))
	killed := mem.CrashClone(vfs.KillProcess, nil)
	must(t, m.Close())

	m, l = movable(t, killed, c)
	appendPlain(t, l, 10, 1000, "new")
	again := killed.CrashClone(vfs.KillProcess, nil)
	must(t, m.Move(tp0, "/b"))
	_, _, err = m.moveOf(tp0).step()
	must(t, err)
	must(t, m.moveOf(tp0).copy.checkpoint())
	must(t, m.Checkpoint())
	must(t, m.Move(tp0, "/a")) // calls it off
	must(t, m.Move(tp0, "/b"))
	moving := killed.CrashClone(vfs.KillProcess, nil)
	must(t, m.Close())

	m, l = movable(t, again, c)
	if l.StartOffset() != 0 || l.EndOffset() != 10 || l.found.known {
		t.Errorf("from %d up to %d, recovery point %d", l.StartOffset(), l.EndOffset(), l.found.recovery)
	}
	must(t, m.Close())
	m, _ = movable(t, moving, c)
	if mv := m.moveOf(tp0); mv == nil || mv.copy.found.recovery != 0 {
		t.Errorf("the copy begun again: %+v", mv)
	}
	must(t, m.Close())
}

// openCounted counts how often a checkpoint is written.
func openCounted(t *testing.T) (m *Manager, renames *int) {
	fsys, renames := countOf(vfs.NewMem(), vfs.OpRename, func(name string) bool { return !strings.HasPrefix(name, "/d/t-") })
	return open(t, options(t, fsys, newClock())), renames
}

// The checkpoints are written once for many logs, not once a log.
func TestManyLogsAreDeletedAndMadeAgainWithFewWrites(t *testing.T) {
	m, renames := openCounted(t)
	each := func(do func(wire.TopicPartition)) {
		for p := range int32(100) {
			do(wire.TopicPartition{Topic: "t", Partition: p})
		}
	}
	again := func(tp wire.TopicPartition) {
		_, err := m.Create(tp, wire.UUID{}, nil)
		must(t, err)
	}
	each(again)
	must(t, m.Checkpoint())
	*renames = 0
	each(func(tp wire.TopicPartition) { must(t, m.Delete(tp)) })
	each(again)
	if *renames > 4 {
		t.Errorf("%d checkpoints were written", *renames)
	}
	must(t, m.Close())
}

// Nor do others wait where a checkpoint was written without a sync, and where one
// is being written.
func TestALogOfANewNameWaitsForNoCheckpoint(t *testing.T) {
	m, renames := openCounted(t)
	of := func(p int32) wire.TopicPartition { return wire.TopicPartition{Topic: "t", Partition: p} }
	l := create(t, m, nil)
	for range 5 {
		appendPlain(t, l, 2, 1000, "v")
	}
	l.SetHighWatermark(10)
	_, err := m.Create(of(1), wire.UUID{}, nil)
	must(t, err)
	must(t, m.Checkpoint())
	must(t, m.Delete(of(1)))
	for p := range int32(5) {
		must(t, l.RaiseStartOffset(2*int64(p)+1))
		l.cleaned.Store(int64(p))
		must(t, l.dir().saveCleaned(false))
		*renames = 0
		_, err := m.Create(of(100+p), wire.UUID{}, nil)
		must(t, err)
		if *renames > 0 {
			t.Errorf("%d checkpoints were written", *renames)
		}
	}
	l.dir().checkpoints.Lock() // as while one is written
	_, err = m.Create(of(200), wire.UUID{}, nil)
	l.dir().checkpoints.Unlock()
	must(t, err)
	_, err = m.Create(of(1), wire.UUID{}, nil)
	must(t, err)
	if *renames == 0 {
		t.Error("the checkpoints still name a log that has left")
	}
	must(t, m.Close())
}

// Names that never come again don't pile up.
func TestTheLogsThatHaveLeftAreForgottenInTheEnd(t *testing.T) {
	m := open(t, options(t, vfs.NewMem(), newClock()))
	d := create(t, m, nil).dir()
	for p := range int32(mostLeft) {
		d.left[wire.TopicPartition{Topic: "gone", Partition: p}] = true
	}
	_, err := m.Create(wire.TopicPartition{Topic: "t", Partition: 1}, wire.UUID{}, nil)
	must(t, err)
	if len(d.left) > 0 {
		t.Error(len(d.left))
	}
	must(t, m.Close())
}

// A log of a name that no checkpoint has needs none of them written first,
// whatever was deleted.
func TestALogOfAnotherNameIsMadeWithoutWritesAfterADelete(t *testing.T) {
	m, renames := openCounted(t)
	of := func(p int32) wire.TopicPartition { return wire.TopicPartition{Topic: "t", Partition: p} }
	make := func(p int32) {
		_, err := m.Create(of(p), wire.UUID{}, nil)
		must(t, err)
	}
	for p := range int32(20) {
		make(p)
	}
	must(t, m.Checkpoint())
	*renames = 0
	for p := range int32(10) {
		must(t, m.Delete(of(p)))
		make(100 + p)
		must(t, m.Delete(of(100+p)))
		make(100 + p) // in no checkpoint yet
	}
	if *renames > 0 {
		t.Errorf("%d checkpoints were written", *renames)
	}
	make(0)
	if *renames == 0 {
		t.Error("the checkpoints still name a log that has left")
	}
	must(t, m.Close())
}
