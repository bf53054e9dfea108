package storage

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

func entriesOf(e *epochs) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprint(e.mu.entries)
}

func TestEpochAnswersAreThoseOfKafka(t *testing.T) {
	var e epochs
	if got := e.endFor(0, 100); got != (EpochEnd{-1, -1}) {
		t.Fatal("nothing known:", got)
	}
	e.assign(2, 10)
	e.assign(4, 30)
	e.assign(4, 40) // the same epoch again
	e.assign(7, 60)
	for _, c := range []struct {
		epoch int32
		want  EpochEnd
	}{
		{-1, EpochEnd{-1, -1}}, {0, EpochEnd{0, 10}}, {1, EpochEnd{1, 10}}, {2, EpochEnd{2, 30}}, {3, EpochEnd{2, 30}},
		{4, EpochEnd{4, 60}}, {6, EpochEnd{4, 60}}, {7, EpochEnd{7, 100}}, {8, EpochEnd{-1, -1}},
	} {
		if got := e.endFor(c.epoch, 100); got != c.want {
			t.Errorf("end of epoch %d: %v, expected %v", c.epoch, got, c.want)
		}
	}
	for offset, want := range map[int64]int32{0: -1, 9: -1, 10: 2, 29: 2, 30: 4, 59: 4, 60: 7, 1000: 7} {
		if got := e.forOffset(offset); got != want {
			t.Errorf("epoch of offset %d: %d, expected %d", offset, got, want)
		}
	}
	e.truncateFromStart(35)
	if got := entriesOf(&e); got != "[{4 35} {7 60}]" {
		t.Error(got)
	}
	e.truncateFromEnd(60)
	if got := entriesOf(&e); got != "[{4 35}]" {
		t.Error(got)
	}
	e.assign(5, 70)
	e.assign(6, 70) // epoch 5 had no records
	if got := entriesOf(&e); got != "[{4 35} {6 70}]" {
		t.Error(got)
	}
	e.assign(1, 80) // epochs began anew
	if got := entriesOf(&e); got != "[{1 80}]" {
		t.Error(got)
	}
}

func TestRecoveryCorrectsOnlyEpochsThatContradictTheBatches(t *testing.T) {
	for _, c := range []struct {
		what  string
		epoch int32
		base  int64
		want  string
	}{
		{"in the middle of an epoch", 5, 50, "[{4 0} {5 20} {6 100}]"},
		{"the first batches of an epoch were compacted away", 6, 103, "[{4 0} {5 20} {6 100}]"},
		{"a newer epoch", 7, 100, "[{4 0} {5 20} {7 100}]"},
		{"a newer epoch below", 7, 50, "[{4 0} {5 20} {7 50}]"},
		{"an epoch that was cut off and not yet taken out of the file", 5, 100, "[{4 0} {5 20}]"},
		{"an epoch that the file lacks", 3, 50, "[{3 50}]"},
		{"an old format", -1, 50, "[{4 0} {5 20} {6 100}]"},
	} {
		var e epochs
		must(t, e.parse([]byte("0\n3\n4 0\n5 20\n6 100\n")))
		e.recovered(c.epoch, c.base)
		if got := entriesOf(&e); got != c.want {
			t.Errorf("%s: %s, expected %s", c.what, got, c.want)
		}
	}
}

func TestEpochsFollowLeadersAndBatches(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	l := create(t, m, nil)
	must(t, l.AssignEpoch(0))
	send := func(epoch int32) {
		t.Helper()
		_, err := l.Append(AppendRequest{Records: plain(t, 2, 1000, "v"), LeaderEpoch: epoch, LogAppendTime: -1})
		must(t, err)
	}
	send(0)
	must(t, l.AssignEpoch(3))
	m.Tick(c.advance(time.Second))
	if got := string(readFile(t, mem, part+"/"+epochFile)); got != "0\n1\n0 0\n" {
		t.Fatalf("epochs are in the file after a moment, those without records are not: %q", got)
	}
	send(3)
	m.Tick(c.advance(time.Second))
	if got := string(readFile(t, mem, part+"/"+epochFile)); got != "0\n2\n0 0\n3 2\n" {
		t.Fatalf("an epoch is in the file when it has a record: %q", got)
	}
	_, err := l.AppendFollower(batch(t, record.BatchOptions{BaseOffset: 4, LeaderEpoch: 5}, 2, 1000, "v"))
	must(t, err)
	if got := entriesOf(&l.epochs); got != "[{0 0} {3 2} {5 4}]" {
		t.Fatal(got)
	}
	killed := mem.CrashClone(vfs.KillProcess, nil)
	must(t, m.Close())
	for _, fsys := range []vfs.FS{killed, mem} {
		m = open(t, options(t, fsys, c))
		l, _ = m.Log(tp0)
		if got := l.EndOffsetForEpoch(4); got != (EpochEnd{3, 4}) || l.LatestEpoch() != 5 {
			t.Fatal(got, l.LatestEpoch())
		}
		must(t, m.Close())
	}
}

func TestEpochsAreRebuiltFromBatches(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	l := create(t, m, topicConfig(t, "segment.bytes", "300"))
	for epoch := range int32(6) {
		for range 2 {
			_, err := l.Append(AppendRequest{Records: plain(t, 2, 1000, "v"), LeaderEpoch: epoch, LogAppendTime: -1})
			must(t, err)
		}
	}
	want := entriesOf(&l.epochs)
	must(t, m.Close())
	patch(t, mem, part+"/"+epochFile, func(b []byte) []byte { return slices.Concat(b, []byte("1 0\n")) })
	m = open(t, options(t, mem, c))
	l, _ = m.Log(tp0)
	l.StartOffset()
	if got := entriesOf(&l.epochs); got != want {
		t.Fatal(got, want)
	}
	must(t, m.Close())
}
