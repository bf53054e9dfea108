package storage

import (
	"errors"
	"path/filepath"
	"testing"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

// A follower's set that leaves a gap, as compaction does, begins a segment above
// the end of the log. When its write fails the segment is there without it: what
// is appended next must not lie below the segment's base.
func TestAFailedAppendThatRollsOverAGapLosesNothingAppendedLater(t *testing.T) {
	for _, gap := range []int64{50, 1 << 32} {
		full := ""
		mem, c := vfs.NewMem(), newClock()
		m := open(t, options(t, vfs.NewFaulty(mem, func(op vfs.Op, name string, _ int) error {
			if op == vfs.OpWrite && filepath.Base(name) == full {
				return errors.New("no space")
			}
			return nil
		}), c))
		l := create(t, m, topicConfig(t, "segment.bytes", "2000"))
		follow := func(base int64, value string) error {
			_, err := l.AppendFollower(batch(t, record.BatchOptions{BaseOffset: base, LeaderEpoch: 3}, 10, 1000, value))
			return err
		}
		big := string(make([]byte, 150))
		must(t, follow(0, big))
		full = offsetName(10+gap, logSuffix)
		if err := follow(10+gap, big); err == nil {
			t.Fatal("the write was to fail")
		}
		full = ""
		failed := mem.CrashClone(vfs.KillProcess, nil)
		kept := l.EndOffset()
		must(t, follow(kept, big))
		must(t, follow(l.EndOffset(), big))
		want := readAll(t, l, 0, l.EndOffset(), 1<<20)
		if len(want) != 30 || want[10].offset != kept {
			t.Errorf("gap %d: %d records are read, the 11th is at %d", gap, len(want), want[min(10, len(want)-1)].offset)
		}
		must(t, l.Flush())
		for how, fsys := range map[vfs.Crash]*vfs.Mem{vfs.KillProcess: mem.CrashClone(vfs.KillProcess, nil), vfs.LoseUnsynced: mem.CrashClone(vfs.LoseUnsynced, nil)} {
			again := open(t, options(t, fsys, c))
			l, _ := again.Log(tp0)
			if got := readAll(t, l, 0, l.EndOffset(), 1<<20); len(got) != 30 || got[29] != want[29] || l.EndOffset() != kept+20 {
				t.Errorf("gap %d, crash %v: %d records, the end is %d", gap, how, len(got), l.EndOffset())
			}
			must(t, again.Close())
		}
		must(t, m.Close())

		// A start says the same of the end as the run before it did.
		m = open(t, options(t, failed, c))
		l, _ = m.Log(tp0)
		if l.EndOffset() != kept {
			t.Errorf("gap %d: the end was %d and is %d", gap, kept, l.EndOffset())
		}
		must(t, m.Close())
	}
}
