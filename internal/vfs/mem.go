package vfs

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory, for tests. It remembers what was synced: a
// file's bytes up to its last Sync, a folder's names up to its last SyncDir.
type Mem struct {
	mu struct {
		sync.Mutex
		root  *node
		locks map[*node]bool
	}
}

// node is a file or folder; Mem.mu guards all nodes.
type node struct {
	dir      bool
	modified time.Time
	// of a file
	data   []byte
	synced []byte
	// of a folder
	names       map[string]*node
	syncedNames map[string]*node
}

// NewMem returns an empty file system whose root is durable.
func NewMem() *Mem {
	m := &Mem{}
	m.mu.root = newFolder()
	m.mu.locks = map[*node]bool{}
	return m
}

func newFolder() *node {
	return &node{dir: true, names: map[string]*node{}, syncedNames: map[string]*node{}}
}

func split(name string) []string {
	clean := filepath.ToSlash(filepath.Clean("/" + filepath.ToSlash(name)))
	if clean == "/" {
		return nil
	}
	return strings.Split(clean[1:], "/")
}

func fail(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// findLocked returns the node of a name.
func (m *Mem) findLocked(name string) (*node, error) {
	n := m.mu.root
	for _, part := range split(name) {
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		next := n.names[part]
		if next == nil {
			return nil, fs.ErrNotExist
		}
		n = next
	}
	return n, nil
}

// parentLocked returns the folder that holds a name, and the name's last part.
func (m *Mem) parentLocked(name string) (*node, string, error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", fs.ErrInvalid
	}
	n, err := m.findLocked(strings.Join(parts[:len(parts)-1], "/"))
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	return n, parts[len(parts)-1], err
}

// OpenFile implements FS.
func (m *Mem) OpenFile(name string, flag int, _ fs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, last, err := m.parentLocked(name)
	if err != nil {
		return nil, fail("open", name, err)
	}
	n := parent.names[last]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, fail("open", name, fs.ErrNotExist)
	case n == nil:
		n = &node{modified: time.Now()}
		parent.names[last] = n
	case n.dir:
		return nil, fail("open", name, syscall.EISDIR)
	case flag&os.O_EXCL != 0:
		return nil, fail("open", name, fs.ErrExist)
	case flag&os.O_TRUNC != 0:
		n.data = nil
	}
	return &memFile{m: m, n: n, name: name}, nil
}

// Mkdir implements FS.
func (m *Mem) Mkdir(name string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, last, err := m.parentLocked(name)
	if err == nil && parent.names[last] != nil {
		err = fs.ErrExist
	}
	if err != nil {
		return fail("mkdir", name, err)
	}
	parent.names[last] = newFolder()
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.mu.root
	for _, part := range split(name) {
		next := n.names[part]
		if next == nil {
			next = newFolder()
			n.names[part] = next
		}
		if !next.dir {
			return fail("mkdir", name, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, last, err := m.parentLocked(name)
	if err == nil {
		n := parent.names[last]
		if n == nil {
			err = fs.ErrNotExist
		} else if n.dir && len(n.names) > 0 {
			err = syscall.ENOTEMPTY
		}
	}
	if err != nil {
		return fail("remove", name, err)
	}
	delete(parent.names, last)
	return nil
}

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, last, err := m.parentLocked(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fail("remove", name, err)
	}
	delete(parent.names, last)
	return nil
}

// Rename implements FS.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	src, srcName, err := m.parentLocked(from)
	if err == nil && src.names[srcName] == nil {
		err = fs.ErrNotExist
	}
	var dst *node
	var dstName string
	if err == nil {
		dst, dstName, err = m.parentLocked(to)
	}
	if err == nil {
		if old := dst.names[dstName]; old != nil && (old.dir && len(old.names) > 0 || old.dir != src.names[srcName].dir) {
			err = fs.ErrExist
		}
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	n := src.names[srcName]
	delete(src.names, srcName)
	dst.names[dstName] = n
	return nil
}

// Free implements FS.
func (m *Mem) Free(string) (free, total int64, err error) { return 0, 0, errors.ErrUnsupported }

// SetModTime implements FS.
func (m *Mem) SetModTime(name string, t time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.findLocked(name)
	if err != nil {
		return fail("chtimes", name, err)
	}
	n.modified = t
	return nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.findLocked(name)
	if err != nil {
		return nil, fail("stat", name, err)
	}
	return infoOf(filepath.Base(name), n), nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.findLocked(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, fail("readdir", name, err)
	}
	list := make([]fs.DirEntry, 0, len(n.names))
	for part, child := range n.names {
		list = append(list, fs.FileInfoToDirEntry(infoOf(part, child)))
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name() < list[j].Name() })
	return list, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.findLocked(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return fail("sync", name, err)
	}
	n.syncedNames = make(map[string]*node, len(n.names))
	for part, child := range n.names {
		n.syncedNames[part] = child
	}
	return nil
}

// SyncAll implements FS.
func (m *Mem) SyncAll(string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.root.syncLocked()
	return nil
}

func (n *node) syncLocked() {
	n.synced = append(n.synced[:0:0], n.data...)
	if !n.dir {
		return
	}
	n.syncedNames = make(map[string]*node, len(n.names))
	for part, child := range n.names {
		n.syncedNames[part] = child
		child.syncLocked()
	}
}

// Lock implements FS.
func (m *Mem) Lock(name string) (io.Closer, error) {
	if f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	} else if err := f.Close(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.findLocked(name)
	if err == nil && m.mu.locks[n] {
		err = ErrLocked
	}
	if err != nil {
		return nil, fail("lock", name, err)
	}
	m.mu.locks[n] = true
	return &memLock{m, n}, nil
}

type memLock struct {
	m *Mem
	n *node
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	delete(l.m.mu.locks, l.n)
	return nil
}

// Crash says what survives of what was never synced.
type Crash int

// The kinds of crash.
const (
	// KillProcess keeps all: the page cache survives.
	KillProcess Crash = iota
	// LoseUnsynced drops every byte and name that was not synced.
	LoseUnsynced
	// LoseSome drops or keeps each unsynced file, name and page by chance; a
	// page that is lost inside a file reads as zeros or as it was before.
	LoseSome
)

const page = 4096

// CrashClone returns the tree as it could be found after a crash; m itself goes
// on unharmed. rng is used for LoseSome only.
func (m *Mem) CrashClone(how Crash, rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &cloner{how: how, rng: rng}
	clone := &Mem{}
	clone.mu.root = c.clone(m.mu.root)
	clone.mu.locks = map[*node]bool{}
	return clone
}

type cloner struct {
	how Crash
	rng *rand.Rand
}

// clone copies a node; a file that a half-done rename left with two names
// becomes two files.
func (c *cloner) clone(n *node) *node {
	d := &node{dir: n.dir, modified: n.modified}
	if !n.dir {
		d.data = c.bytes(n)
		d.synced = append([]byte(nil), d.data...)
		return d
	}
	d.names, d.syncedNames = map[string]*node{}, map[string]*node{}
	for _, name := range c.survivors(n) {
		child := n.names[name.part]
		if name.old {
			child = n.syncedNames[name.part]
		}
		d.names[name.part] = c.clone(child)
		d.syncedNames[name.part] = d.names[name.part]
	}
	return d
}

type survivor struct {
	part string
	old  bool // as synced, not as it is now
}

// survivors chooses the names of a folder, in a fixed order so that a seed
// repeats a run.
func (c *cloner) survivors(n *node) []survivor {
	all := map[string]bool{}
	for part := range n.names {
		all[part] = true
	}
	for part := range n.syncedNames {
		all[part] = true
	}
	parts := make([]string, 0, len(all))
	for part := range all {
		parts = append(parts, part)
	}
	sort.Strings(parts)
	var list []survivor
	for _, part := range parts {
		old := c.how == LoseUnsynced || c.how == LoseSome && n.names[part] != n.syncedNames[part] && c.rng.IntN(2) == 0
		if old && n.syncedNames[part] != nil || !old && n.names[part] != nil {
			list = append(list, survivor{part, old})
		}
	}
	return list
}

func (c *cloner) bytes(n *node) []byte {
	switch c.how {
	case KillProcess:
		return append([]byte(nil), n.data...)
	case LoseUnsynced:
		return append([]byte(nil), n.synced...)
	}
	size := len(n.data)
	if len(n.synced) != size && c.rng.IntN(2) == 0 {
		size = min(size, len(n.synced)) + c.rng.IntN(max(size-len(n.synced), len(n.synced)-size)+1)
	}
	out := make([]byte, size)
	for at := 0; at < size; at += page {
		from := n.data
		if c.rng.IntN(3) == 0 {
			from = n.synced
		}
		if at < len(from) {
			copy(out[at:min(at+page, size)], from[at:])
		}
	}
	// what both agree on was not in doubt
	for i := 0; i < min(len(n.data), len(n.synced), size); i++ {
		if n.data[i] == n.synced[i] {
			out[i] = n.data[i]
		}
	}
	return out
}

type memInfo struct {
	name string
	size int64
	dir  bool
	mod  time.Time
}

func infoOf(name string, n *node) memInfo {
	return memInfo{name, int64(len(n.data)), n.dir, n.modified}
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return i.mod }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }
func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

type memFile struct {
	m    *Mem
	n    *node
	name string
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if off < 0 {
		return 0, fail("read", f.name, fs.ErrInvalid)
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if off < 0 {
		return 0, fail("write", f.name, fs.ErrInvalid)
	}
	f.n.growLocked(off + int64(len(p)))
	f.n.modified = time.Now()
	return copy(f.n.data[off:], p), nil
}

func (n *node) growLocked(size int64) {
	if more := size - int64(len(n.data)); more > 0 {
		n.data = append(n.data, make([]byte, more)...)
	}
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return int64(len(f.n.data)), nil
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if size < int64(len(f.n.data)) {
		f.n.data = f.n.data[:size:size]
	}
	f.n.growLocked(size)
	return nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.synced = append(f.n.synced[:0:0], f.n.data...)
	return nil
}

func (f *memFile) Reserve(_, _ int64) error { return nil }

func (f *memFile) Fd() (uintptr, bool) { return 0, false }
func (f *memFile) Name() string        { return f.name }
func (f *memFile) Close() error        { return nil }
