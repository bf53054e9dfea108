package storage

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"barnabas/internal/vfs"
)

// fileCache bounds how many files are open. Which one goes when there are too
// many is decided by a clock (second chance), an approximation of LRU that
// costs a hit no lock.
type fileCache struct {
	fs    vfs.FS
	limit int
	mu    struct {
		sync.Mutex
		open []*handle // those with a reference of the cache
		hand int
	}
}

func newFileCache(fsys vfs.FS, limit int) *fileCache {
	c := &fileCache{limit: limit}
	c.fs = &thrifty{fsys, c}
	return c
}

// location is where the files of a segment lie. They share it, and work their
// names out when they are opened: there are many more of them than open files.
type location struct {
	base int64
	home atomic.Pointer[home] // the log's, changes when the log has moved
}

func (at *location) name(suffix string) string {
	return filepath.Join(at.home.Load().folder, offsetName(at.base, suffix))
}

// handle is a file by name, opened when it is needed.
type handle struct {
	at     *location
	suffix string
	ref    atomic.Pointer[FileRef] // the cache's reference; nil while not open
	used   atomic.Bool             // since the clock last passed
	closed atomic.Bool
	slot   int // in cache.mu.open, guarded by cache.mu
}

func (h *handle) path() string      { return h.at.name(h.suffix) }
func (h *handle) cache() *fileCache { return h.at.home.Load().dir.cache } // one for all directories

func (r *FileRef) tryAcquire() bool {
	for {
		n := r.refs.Load()
		if n <= 0 {
			return false
		}
		if r.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (r *FileRef) release() {
	if r.refs.Add(-1) == 0 {
		_ = r.file.Close() // only read from, or synced by name
	}
}

// acquire returns a reference to the open file, opening it if need be. The
// error is ErrClosed after close, else what the file system said.
func (h *handle) acquire() (*FileRef, error) { return h.acquireFlag(os.O_RDWR) }

func (h *handle) acquireFlag(flag int) (*FileRef, error) {
	if r := h.cached(); r != nil {
		return r, nil
	}
	for {
		if h.closed.Load() {
			return nil, ErrClosed
		}
		f, err := h.cache().fs.OpenFile(h.path(), flag, 0o644)
		if err != nil {
			return nil, err
		}
		r := &FileRef{file: f}
		r.refs.Store(2) // the cache's and the caller's
		h.used.Store(true)
		if h.ref.CompareAndSwap(nil, r) {
			h.cache().add(h)
			if h.closed.Load() {
				h.drop()
			}
			return r, nil
		}
		_ = f.Close()
		if r := h.cached(); r != nil {
			return r, nil
		}
	}
}

// cached returns a reference if the file is open already.
func (h *handle) cached() *FileRef {
	r := h.ref.Load()
	if r == nil || !r.tryAcquire() {
		return nil
	}
	if !h.used.Load() {
		h.used.Store(true)
	}
	return r
}

// drop gives the cache's reference up.
func (h *handle) drop() {
	h.cache().remove(h)
	h.forget()
}

// forget is drop for a handle that is off the cache's list.
func (h *handle) forget() {
	if r := h.ref.Swap(nil); r != nil {
		r.release()
	}
}

// close ends the handle; references in use stay good.
func (h *handle) close() {
	h.closed.Store(true)
	h.drop()
}

func (c *fileCache) add(h *handle) {
	var victim *handle
	c.mu.Lock()
	h.slot = len(c.mu.open)
	c.mu.open = append(c.mu.open, h)
	if len(c.mu.open) > c.limit {
		victim = c.evictLocked(h)
	}
	c.mu.Unlock()
	if victim != nil {
		victim.forget()
	}
}

// evictLocked takes one handle other than keep off the list, if there is one.
func (c *fileCache) evictLocked(keep *handle) *handle {
	if len(c.mu.open) == 0 {
		return nil
	}
	for range 2*len(c.mu.open) + 1 {
		if c.mu.hand >= len(c.mu.open) {
			c.mu.hand = 0
		}
		h := c.mu.open[c.mu.hand]
		if h != keep && !h.used.Swap(false) {
			c.removeLocked(h)
			return h
		}
		c.mu.hand++
	}
	return nil
}

func (c *fileCache) remove(h *handle) {
	c.mu.Lock()
	c.removeLocked(h)
	c.mu.Unlock()
}

func (c *fileCache) removeLocked(h *handle) {
	if h.slot >= len(c.mu.open) || c.mu.open[h.slot] != h {
		return
	}
	last := len(c.mu.open) - 1
	c.mu.open[h.slot] = c.mu.open[last]
	c.mu.open[h.slot].slot = h.slot
	c.mu.open[last] = nil
	c.mu.open = c.mu.open[:last]
}
