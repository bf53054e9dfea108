package storage

import (
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// narrow is a file system of a process that may have few files open, of which
// others have taken some.
type narrow struct {
	vfs.FS
	open, refused atomic.Int64
	limit         atomic.Int64
}

type narrowFile struct {
	vfs.File
	fs *narrow
}

func (f *narrowFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

func (n *narrow) take(name string) error {
	if n.open.Add(1) > n.limit.Load() {
		n.open.Add(-1)
		n.refused.Add(1)
		return &fs.PathError{Op: "open", Path: name, Err: unix.EMFILE}
	}
	return nil
}

func (n *narrow) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if err := n.take(name); err != nil {
		return nil, err
	}
	f, err := n.FS.OpenFile(name, flag, perm)
	if err != nil {
		n.open.Add(-1)
		return nil, err
	}
	return &narrowFile{f, n}, nil
}

func (n *narrow) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := n.take(name); err != nil {
		return nil, err
	}
	defer n.open.Add(-1)
	return n.FS.ReadDir(name)
}

func (n *narrow) SyncDir(name string) error {
	if err := n.take(name); err != nil {
		return err
	}
	defer n.open.Add(-1)
	return n.FS.SyncDir(name)
}

func TestWithoutDescriptorsFilesOpenForLaterUseAreGivenUp(t *testing.T) {
	c := newClock()
	narrow := &narrow{FS: vfs.NewMem()}
	narrow.limit.Store(1 << 30)
	m := open(t, options(t, narrow, c))
	config := topicConfig(t, "segment.bytes", "2000")
	const logs, batches = 20, 10
	for round := range int32(4) {
		for i := range int32(logs) {
			l, err := m.Create(wire.TopicPartition{Topic: fmt.Sprint("t", i%3*round), Partition: i}, wire.UUID{}, config)
			must(t, err)
			for n := range int64(batches) {
				appendPlain(t, l, 10, 1000+n, "a value of some length")
			}
		}
		must(t, m.Delete(wire.TopicPartition{Topic: "t0", Partition: 3 * round}))
		for range 10 {
			m.Tick(c.advance(time.Minute))
		}
		narrow.limit.Store(max(narrow.open.Load()/2, 4)) // others take them
	}
	for _, l := range m.Logs() {
		if got, want := len(readAll(t, l, 0, l.EndOffset(), 1<<20)), int(l.EndOffset()); got != want || want == 0 {
			t.Errorf("%s: %d records, expected %d", l.Partition(), got, want)
		}
	}
	for _, d := range m.Dirs() {
		must(t, d.Err)
	}
	must(t, m.Close())
	if narrow.refused.Load() < 10 {
		t.Error("there were descriptors all the time")
	}
}
