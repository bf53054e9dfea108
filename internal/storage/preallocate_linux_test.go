package storage

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"barnabas/internal/vfs"
)

// With preallocate the active segment has its room on the disk from its first
// record on, and gives back what it has not used when it is sealed or closed.
func TestPreallocatedSegmentsHaveTheirRoomAtOnce(t *testing.T) {
	dir := t.TempDir()
	o := options(t, vfs.OS, newClock())
	o.Dirs = []string{dir}
	m := open(t, o)
	l := create(t, m, topicConfig(t, "preallocate", "true", "segment.bytes", "1000000"))
	appendPlain(t, l, 1, 1000, "value")
	room := func(name string) (length, blocks int64) {
		t.Helper()
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(dir, "t-0", name), &st))
		return st.Size, st.Blocks * 512
	}
	first, second := offsetName(0, logSuffix), offsetName(1, logSuffix)
	if length, blocks := room(first); length != l.Size() {
		t.Fatal(length, l.Size())
	} else if blocks < 1_000_000 {
		t.Skip("the file system has no reservations: ", blocks)
	}
	roll(t, l)
	appendPlain(t, l, 1, 2000, "value")
	if _, blocks := room(second); blocks < 1_000_000 {
		t.Fatal("the second segment has", blocks)
	}
	must(t, l.checkpoint())
	if _, blocks := room(first); blocks > 100_000 {
		t.Fatal("the sealed segment has", blocks)
	}
	must(t, m.Close())
	if length, blocks := room(second); blocks > 100_000 || length == 0 {
		t.Fatal("the closed segment has", blocks, length)
	}
	m = open(t, o)
	l, _ = m.Log(tp0)
	if got := readAll(t, l, 0, 2, 1<<20); len(got) != 2 {
		t.Fatal(got)
	}
	must(t, m.Close())
}

// A large active segment has room for a few more records than it holds, and no
// more than that; it gives it back when it is sealed or closed.
func TestLargeSegmentsHaveRoomAhead(t *testing.T) {
	dir := t.TempDir()
	o := options(t, vfs.OS, newClock())
	o.Dirs = []string{dir}
	m := open(t, o)
	l := create(t, m, topicConfig(t, "max.message.bytes", "2000000"))
	room := func(name string) int64 {
		t.Helper()
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(dir, "t-0", name), &st))
		return st.Blocks * 512
	}
	const slack = 64 << 10 // of the file system itself
	value := strings.Repeat("v", 1<<20)
	first, second := offsetName(0, logSuffix), offsetName(7, logSuffix)
	for i := range 3 {
		appendPlain(t, l, 1, int64(i), value)
	}
	must(t, l.Flush())
	if blocks := room(first); blocks > l.Size()+slack {
		t.Fatalf("a segment of %d bytes takes %d of the disk", l.Size(), blocks)
	}
	for i := range 4 {
		appendPlain(t, l, 1, int64(i), value)
	}
	must(t, l.Flush())
	if blocks := room(first); blocks <= l.Size()+slack {
		t.Skip("the file system has no reservations")
	} else if blocks < 2*reserveStep || blocks > l.Size()+reserveStep+slack {
		t.Fatalf("a segment of %d bytes takes %d of the disk", l.Size(), blocks)
	}
	must(t, l.TruncateTo(6))
	appendPlain(t, l, 1, 5, value)
	roll(t, l)
	for i := range 5 {
		appendPlain(t, l, 1, int64(i), value)
	}
	must(t, l.checkpoint())
	if blocks := room(first); blocks > 7*(1<<20)+slack {
		t.Fatal("the sealed segment takes", blocks)
	}
	if blocks := room(second); blocks < 2*reserveStep {
		t.Fatal("the second segment takes", blocks)
	}
	must(t, m.Close())
	if blocks := room(second); blocks > 5*(1<<20)+slack {
		t.Fatal("the closed segment takes", blocks)
	}
	m = open(t, o)
	l, _ = m.Log(tp0)
	if got := readAll(t, l, 0, 12, 2<<20); len(got) != 12 {
		t.Fatal(len(got))
	}
	must(t, m.Close())
}

// A disk without room for more than the records still takes those, and is not
// asked again with each of them.
func TestRoomAheadIsNotNeeded(t *testing.T) {
	asked := 0
	fsys := vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op, _ string, _ int) error {
		if op == vfs.OpReserve {
			asked++
			return syscall.ENOSPC
		}
		return nil
	})
	m := open(t, options(t, fsys, newClock()))
	l := create(t, m, topicConfig(t, "max.message.bytes", "2000000"))
	value := strings.Repeat("v", 1<<20)
	for i := range 12 {
		appendPlain(t, l, 1, int64(i), value)
	}
	if got := readAll(t, l, 0, 12, 2<<20); len(got) != 12 || asked != 1 {
		t.Fatalf("%d records, asked %d times", len(got), asked)
	}
	must(t, m.Close())
}

// diskOf is a file system on a disk with so much free.
type diskOf struct {
	vfs.FS
	free int64
}

func (d *diskOf) Free(string) (free, total int64, err error) { return d.free, 1 << 30, nil }

// Room that is reserved counts as written, and none is where the disk is almost
// full.
func TestRoomAheadFillsNoDisk(t *testing.T) {
	asked := 0
	disk := &diskOf{free: 1 << 29}
	disk.FS = vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op, _ string, _ int) error {
		if op == vfs.OpReserve {
			asked++
			disk.free = 2*keepFree(1<<30) + 1
		}
		return nil
	})
	c := newClock()
	m := open(t, options(t, disk, c))
	l := create(t, m, topicConfig(t, "max.message.bytes", "5000000"))
	value := strings.Repeat("v", reserveStep)
	appendPlain(t, l, 1, 1, value)
	if asked != 1 {
		t.Fatal("reserved", asked, "times")
	}
	for i := range 3 {
		appendPlain(t, l, 1, int64(i), value)
	}
	if asked != 1 {
		t.Fatal("reserved on a disk that is almost full")
	}
	disk.free = 1 << 29
	m.Tick(c.Now())
	appendPlain(t, l, 1, 3, value)
	if asked != 2 {
		t.Fatal("reserved", asked, "times")
	}
	must(t, m.Close())
}

// A stop does not make an idle segment look younger.
func TestRoomThatIsGivenBackChangesNoTime(t *testing.T) {
	dir := t.TempDir()
	o := options(t, vfs.OS, newClock())
	o.Dirs = []string{dir}
	m := open(t, o)
	l := create(t, m, topicConfig(t, "max.message.bytes", "7000000"))
	appendPlain(t, l, 1, 1, strings.Repeat("v", 6<<20))
	name, old := filepath.Join(dir, "t-0", offsetName(0, logSuffix)), time.Unix(1_700_000_000, 0)
	must(t, os.Chtimes(name, old, old))
	must(t, m.Close())
	if info, err := os.Stat(name); err != nil || !info.ModTime().Equal(old) {
		t.Fatal(info.ModTime(), err)
	}
}
