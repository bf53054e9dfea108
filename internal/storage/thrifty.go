package storage

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"barnabas/internal/vfs"
)

// thrifty is a file system that gives up files which are open for later use
// when there are no descriptors left: that says nothing of the disk, and must
// not take a directory offline.
type thrifty struct {
	vfs.FS
	cache *fileCache
}

// Files that are given up at once, and how often: others may take what one
// caller gave up.
const shedFiles, shedTimes = 8, 32

func (t *thrifty) again(call func() error) error {
	err := call()
	for n := 0; n < shedTimes && (errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)) && t.cache.shed(shedFiles); n++ {
		err = call()
	}
	return err
}

func (t *thrifty) OpenFile(name string, flag int, perm fs.FileMode) (f vfs.File, err error) {
	err = t.again(func() (err error) { f, err = t.FS.OpenFile(name, flag, perm); return err })
	return f, err
}

func (t *thrifty) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = t.again(func() (err error) { entries, err = t.FS.ReadDir(name); return err })
	return entries, err
}

func (t *thrifty) RemoveAll(name string) error {
	return t.again(func() error { return t.FS.RemoveAll(name) })
}

func (t *thrifty) SyncDir(name string) error {
	return t.again(func() error { return t.FS.SyncDir(name) })
}

func (t *thrifty) SyncAll(dir string) error {
	return t.again(func() error { return t.FS.SyncAll(dir) })
}

// shed gives up to n references of the cache up, and says whether there was any.
func (c *fileCache) shed(n int) bool {
	var victims []*handle
	c.mu.Lock()
	for len(victims) < n {
		h := c.evictLocked(nil)
		if h == nil {
			break
		}
		victims = append(victims, h)
	}
	c.mu.Unlock()
	for _, h := range victims {
		h.forget()
	}
	return len(victims) > 0
}
