package storage

import (
	"path/filepath"
	"testing"

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
