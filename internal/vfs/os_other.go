//go:build !linux

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// osFile is the portable twin of the Linux one, on package os.
type osFile struct{ *os.File }

func openFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f osFile) Reserve(_, _ int64) error { return nil }

func (f osFile) Fd() (uintptr, bool) { return f.File.Fd(), true }

func syncAll(dir string) error {
	return &fs.PathError{Op: "syncfs", Path: dir, Err: errors.ErrUnsupported}
}

// lockFile takes a record lock, which Java's locks respect, and a flock, which
// excludes others within this process.
func lockFile(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
		err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lk)
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if err == unix.EWOULDBLOCK || err == unix.EACCES {
		err = ErrLocked
	}
	return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
}
