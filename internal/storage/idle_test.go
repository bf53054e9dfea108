package storage

import (
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// counting counts the calls that change names or reach the disk.
type counting struct {
	vfs.FS
	opens, renames, syncs atomic.Int64
}

func (c *counting) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	c.opens.Add(1)
	return c.FS.OpenFile(name, flag, perm)
}

func (c *counting) Rename(from, to string) error {
	c.renames.Add(1)
	return c.FS.Rename(from, to)
}

func (c *counting) SyncDir(name string) error {
	c.syncs.Add(1)
	return c.FS.SyncDir(name)
}

func TestAStopDoesNothingForLogsInWhichNothingChanged(t *testing.T) {
	const n = 50
	c := newClock()
	fsys := &counting{FS: vfs.NewMem()}
	m := open(t, options(t, fsys, c))
	for i := range int32(n) {
		l, err := m.Create(wire.TopicPartition{Topic: "idle", Partition: i}, wire.NewUUID(), nil)
		must(t, err)
		must(t, l.AssignEpoch(0))
		if i%2 == 0 {
			appendPlain(t, l, 3, 1000, "v")
		}
	}
	m.Tick(c.advance(time.Second))
	must(t, m.Close())
	for round := range int32(3) {
		m = open(t, options(t, fsys, c))
		for _, l := range m.Logs() {
			must(t, l.AssignEpoch(2*round+1))
			if l.state.Load() == loaded {
				t.Fatal("a leader of a log that was left cleanly loads it")
			}
			if l.LatestEpoch() != 2*round+1 || l.EpochForOffset(l.EndOffset()) != 2*round+1 {
				t.Fatal("the epoch is not known:", entriesOf(&l.epochs))
			}
			must(t, l.AssignEpoch(2*round+2))
		}
		m.Tick(c.advance(time.Second))
		for _, n := range []*atomic.Int64{&fsys.opens, &fsys.renames, &fsys.syncs} {
			n.Store(0)
		}
		must(t, m.Close())
		if got := fmt.Sprint(fsys.opens.Load() < 10, fsys.renames.Load() < 6, fsys.syncs.Load() < 6); got != "true true true" {
			t.Fatalf("a stop of %d logs: %d files opened, %d renames, %d folders synced", n, fsys.opens.Load(), fsys.renames.Load(), fsys.syncs.Load())
		}
	}
	files := list(t, fsys, "/d/idle-1")
	if len(files) != 1 || !files[partitionFile] {
		t.Fatal("the folder of an empty log has only its id, not", files)
	}
}
