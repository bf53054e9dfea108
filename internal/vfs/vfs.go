package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked is what [FS.Lock] answers while somebody else holds the lock.
var ErrLocked = errors.New("locked by another process")

// FS is a file system. Names are host paths; both separators and relative names
// mean what they mean to package os.
type FS interface {
	// OpenFile opens name with the flags of package os (O_RDONLY, O_RDWR,
	// O_CREATE, O_EXCL and O_TRUNC).
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Mkdir makes one folder.
	Mkdir(name string, perm fs.FileMode) error
	// MkdirAll makes a folder and its parents.
	MkdirAll(name string, perm fs.FileMode) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	// RemoveAll removes a tree; a name that does not exist is no error.
	RemoveAll(name string) error
	// Rename moves a file or folder, replacing a file of the new name.
	Rename(from, to string) error
	// SetModTime sets when a file was last changed.
	SetModTime(name string, t time.Time) error
	// Stat describes a file or folder.
	Stat(name string) (fs.FileInfo, error)
	// ReadDir lists a folder in the order of names.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the names in a folder durable.
	SyncDir(name string) error
	// SyncAll makes everything durable that was written to the file system which
	// holds the folder: cheaper than many single syncs. It is
	// errors.ErrUnsupported where there is no such call.
	SyncAll(dir string) error
	// Free returns the bytes that may still be written to the file system which
	// holds the folder, and how many it has in all; errors.ErrUnsupported where
	// that can't be known.
	Free(dir string) (free, total int64, err error)
	// Lock makes the file if need be and takes an exclusive lock on it, one that
	// java.nio.channels.FileLock (Kafka's .lock) respects. It does not wait: the
	// error is ErrLocked when the lock is held, also by this process. Close gives
	// it back; so does the end of the process.
	Lock(name string) (io.Closer, error)
}

// File is an open file. Its methods may be called from several goroutines; only
// Close must come after all others.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Truncate cuts the file, or extends it with zeros.
	Truncate(size int64) error
	// Sync makes the content and the length durable (fdatasync where there is
	// one). After an error the content must be taken for lost: the kernel has
	// dropped the mark that it was dirty.
	Sync() error
	// Reserve asks for room on the disk for size bytes at off; the file's length
	// stays. Truncate gives back what lies behind the end. Where there is no such
	// call it does nothing.
	Reserve(off, size int64) error
	// Fd returns the descriptor for sendfile, or false when there is none.
	Fd() (fd uintptr, ok bool)
	// Name returns the name that the file was opened by.
	Name() string
}

// ReadFile returns the whole of a file, which must not be longer than limit
// bytes.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("file is too long")}
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return b[:n], nil
}

// WriteFile replaces the content of a file, without syncing it.
func WriteFile(fsys FS, name string, data []byte, perm fs.FileMode) error {
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Close())
}

// WriteFileAtomic replaces a file so that a reader finds the old content or the
// new, never a mixture: it writes name.tmp and renames it. With durable set, it
// has reached the disk when the call returns.
func WriteFileAtomic(fsys FS, name string, data []byte, perm fs.FileMode, durable bool) error {
	if err := ReplaceFile(fsys, name, data, perm, durable); err != nil || !durable {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// ReplaceFile is WriteFileAtomic without the sync of the folder: with synced set
// the content is durable when the call returns, and the name after a SyncDir.
func ReplaceFile(fsys FS, name string, data []byte, perm fs.FileMode, synced bool) error {
	tmp := name + ".tmp"
	f, err := fsys.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil && synced {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return fsys.Rename(tmp, name)
}

// Exists tells whether a name exists; errors other than its absence are
// returned.
func Exists(fsys FS, name string) (bool, error) {
	_, err := fsys.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
