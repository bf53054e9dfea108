package vfs

import (
	"io"
	"io/fs"
)

// Op names a call that can be made to fail.
type Op string

// The operations, as [Hook] sees them.
const (
	OpOpen     Op = "open"
	OpMkdir    Op = "mkdir"
	OpRemove   Op = "remove"
	OpRename   Op = "rename"
	OpReadDir  Op = "readdir"
	OpStat     Op = "stat"
	OpRead     Op = "read"
	OpWrite    Op = "write"
	OpTruncate Op = "truncate"
	OpReserve  Op = "reserve"
	OpSync     Op = "sync"
	OpSyncDir  Op = "syncdir"
	OpLock     Op = "lock"
)

// Hook decides before each call whether it fails: nil lets it pass. For OpWrite
// of n bytes it may return a [ShortWrite], after which that many bytes have
// been written.
type Hook func(op Op, name string, n int) error

// ShortWrite makes a write stop after Written bytes with Err.
type ShortWrite struct {
	Written int
	Err     error
}

func (e *ShortWrite) Error() string { return "short write: " + e.Err.Error() }
func (e *ShortWrite) Unwrap() error { return e.Err }

// NewFaulty wraps a file system so that hook sees each call first. hook may be
// called from several goroutines.
func NewFaulty(under FS, hook Hook) FS { return &faulty{under, hook} }

type faulty struct {
	FS
	hook Hook
}

func (f *faulty) check(op Op, name string) error {
	if err := f.hook(op, name, 0); err != nil {
		return &fs.PathError{Op: string(op), Path: name, Err: err}
	}
	return nil
}

func (f *faulty) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if err := f.check(OpOpen, name); err != nil {
		return nil, err
	}
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f}, nil
}

func (f *faulty) Mkdir(name string, perm fs.FileMode) error {
	if err := f.check(OpMkdir, name); err != nil {
		return err
	}
	return f.FS.Mkdir(name, perm)
}

func (f *faulty) MkdirAll(name string, perm fs.FileMode) error {
	if err := f.check(OpMkdir, name); err != nil {
		return err
	}
	return f.FS.MkdirAll(name, perm)
}

func (f *faulty) Remove(name string) error {
	if err := f.check(OpRemove, name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *faulty) RemoveAll(name string) error {
	if err := f.check(OpRemove, name); err != nil {
		return err
	}
	return f.FS.RemoveAll(name)
}

func (f *faulty) Rename(from, to string) error {
	if err := f.check(OpRename, from); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *faulty) Stat(name string) (fs.FileInfo, error) {
	if err := f.check(OpStat, name); err != nil {
		return nil, err
	}
	return f.FS.Stat(name)
}

func (f *faulty) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.check(OpReadDir, name); err != nil {
		return nil, err
	}
	return f.FS.ReadDir(name)
}

func (f *faulty) SyncDir(name string) error {
	if err := f.check(OpSyncDir, name); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

func (f *faulty) SyncAll(dir string) error {
	if err := f.check(OpSync, dir); err != nil {
		return err
	}
	return f.FS.SyncAll(dir)
}

func (f *faulty) Lock(name string) (io.Closer, error) {
	if err := f.check(OpLock, name); err != nil {
		return nil, err
	}
	return f.FS.Lock(name)
}

type faultyFile struct {
	File
	fs *faulty
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.check(OpRead, f.Name()); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.fs.hook(OpWrite, f.Name(), len(p))
	if err == nil {
		return f.File.WriteAt(p, off)
	}
	n := 0
	if short, ok := err.(*ShortWrite); ok {
		n, _ = f.File.WriteAt(p[:min(short.Written, len(p))], off)
		err = short.Err
	}
	return n, &fs.PathError{Op: string(OpWrite), Path: f.Name(), Err: err}
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.fs.check(OpTruncate, f.Name()); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Reserve(off, size int64) error {
	if err := f.fs.check(OpReserve, f.Name()); err != nil {
		return err
	}
	return f.File.Reserve(off, size)
}

func (f *faultyFile) Sync() error {
	if err := f.fs.check(OpSync, f.Name()); err != nil {
		return err
	}
	return f.File.Sync()
}
