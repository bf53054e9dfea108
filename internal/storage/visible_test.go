package storage

import (
	"io/fs"
	"runtime"
	"sync"
	"testing"

	"barnabas/internal/config"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// syncs counts the syncs of files, and can hold them back.
type syncs struct {
	vfs.FS
	mu sync.Mutex
	n  int
	// if set, a sync waits for a token of it
	gate chan struct{}
}

type countedFile struct {
	vfs.File
	fs *syncs
}

func (s *syncs) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return countedFile{f, s}, nil
}

func (f countedFile) Sync() error {
	f.fs.mu.Lock()
	gate := f.fs.gate
	f.fs.n++
	f.fs.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return f.File.Sync()
}

func TestAppendsThatWaitForTheDiskShareItsSyncs(t *testing.T) {
	for _, how := range []string{"flush.messages=1", "log.flush.visible.topics"} {
		c := newClock()
		fsys := &syncs{FS: vfs.NewMem()}
		o := options(t, fsys, c)
		topic := topicConfig(t, "flush.messages", "1")
		if how != "flush.messages=1" {
			b, err := config.NewBroker(map[string]string{"broker.id": "1", "log.flush.visible.topics": "x|t.*"})
			must(t, err)
			o.Config, topic = b, topicConfig(t)
		}
		m := open(t, o)
		l := create(t, m, topic)
		other, err := m.Create(wire.TopicPartition{Topic: "other"}, wire.UUID{}, topicConfig(t))
		must(t, err)
		appendPlain(t, other, 1, 1000, "v")
		if other.FlushedOffset() != 0 || other.CommitEnd() != 1 {
			t.Fatal(how, "holds for another topic too")
		}
		const n = 64
		fsys.gate, fsys.n = make(chan struct{}), 0
		var writing sync.WaitGroup
		for range n {
			writing.Go(func() { appendPlain(t, l, 1, 1000, "v") })
		}
		for l.EndOffset() < n {
			if l.CommitEnd() != 0 {
				t.Fatal(how, "records count as replicated before the sync:", l.CommitEnd())
			}
		}
		if l.CommitEnd() != 0 {
			t.Fatal(how, l.CommitEnd())
		}
		close(fsys.gate)
		writing.Wait()
		if l.CommitEnd() != n || fsys.n > n/4 {
			t.Fatalf("%s: committed up to %d after %d appends, with %d syncs", how, l.CommitEnd(), n, fsys.n)
		}
		must(t, m.Close())
	}
}

// A batch that is sent again is in the log already, and not on the disk yet.
func TestARepeatedBatchWaitsForTheSyncOfTheFirst(t *testing.T) {
	fsys := &syncs{FS: vfs.NewMem()}
	m := open(t, options(t, fsys, newClock()))
	l := create(t, m, topicConfig(t, "flush.messages", "1"))
	fsys.gate = make(chan struct{})
	send := func() {
		info, err := produce(t, l, 1, 0, 0, 1)
		if err != nil || info.FirstOffset != 0 {
			t.Error(info, err)
		}
		if l.FlushedOffset() != 1 {
			t.Error("answered before the sync, duplicate:", info.Duplicate)
		}
	}
	var sending sync.WaitGroup
	sending.Go(send)
	for l.EndOffset() < 1 {
		runtime.Gosched()
	}
	for range 20 { // at least some of them while the first one syncs
		sending.Go(send)
		runtime.Gosched()
	}
	close(fsys.gate)
	sending.Wait()
	must(t, m.Close())
}
