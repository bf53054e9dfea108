package storage

import (
	"testing"

	"barnabas/internal/vfs"
)

// Records that were deleted before a move stay so, also when the process is
// killed, or the power goes, at any step of the move.
func TestAMoveKeepsTheStartOffsetInACrashAtEachStep(t *testing.T) {
	for _, how := range []vfs.Crash{vfs.KillProcess, vfs.LoseUnsynced} {
		for stopAt := 1; ; stopAt++ {
			mem, c, n := vfs.NewMem(), newClock(), 0
			var clone *vfs.Mem
			moving := false
			m, l := movable(t, vfs.NewFaulty(mem, func(op vfs.Op, _ string, _ int) error {
				switch op {
				case vfs.OpMkdir, vfs.OpRemove, vfs.OpRename, vfs.OpWrite, vfs.OpTruncate, vfs.OpSync, vfs.OpSyncDir:
					if n++; moving && n == stopAt {
						clone = mem.CrashClone(how, nil)
					}
				}
				return nil
			}), c)
			for i := range int64(12) {
				appendPlain(t, l, 2, i, "v")
			}
			l.SetHighWatermark(24)
			must(t, l.checkpoint())
			_, err := l.DeleteRecordsTo(15) // within a segment
			must(t, err)
			must(t, mem.SyncAll("/"))
			n, moving = 0, true
			must(t, m.Move(tp0, "/b"))
			m.Tick(c.Now())
			moving = false
			must(t, m.Close())
			if clone == nil {
				if stopAt < 15 {
					t.Fatal("only", stopAt, "steps")
				}
				break
			}
			o := options(t, clone, c)
			o.Dirs = []string{"/a", "/b"}
			if how != vfs.KillProcess {
				o.BootID = "another"
			}
			m = open(t, o)
			l, _ = m.Log(tp0)
			if l.StartOffset() != 15 || l.EndOffset() != 24 {
				t.Errorf("crash %v at step %d: from %d up to %d, in %s", how, stopAt, l.StartOffset(), l.EndOffset(), l.Dir())
			}
			must(t, m.Move(tp0, "/b"))
			m.Tick(c.Now())
			if l.StartOffset() != 15 || l.EndOffset() != 24 || l.Dir() != "/b" {
				t.Errorf("crash %v at step %d, moved again: from %d up to %d, in %s", how, stopAt, l.StartOffset(), l.EndOffset(), l.Dir())
			}
			must(t, m.Close())
		}
	}
}
