package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// osFile works on a bare descriptor: package os would add a lock and a poller
// check to each call, and regular files are never pollable.
type osFile struct {
	fd     int
	name   string
	closed atomic.Bool
}

func openFile(name string, flag int, perm fs.FileMode) (File, error) {
	for {
		fd, err := unix.Open(name, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &osFile{fd: fd, name: name}, nil
	}
}

func (f *osFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Pread(f.fd, p[done:], off+int64(done))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, f.fail("read", err)
		}
		if n == 0 {
			return done, io.EOF
		}
		done += n
	}
	return done, nil
}

func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Pwrite(f.fd, p[done:], off+int64(done))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, f.fail("write", err)
		}
		if n == 0 {
			return done, f.fail("write", io.ErrShortWrite)
		}
		done += n
	}
	return done, nil
}

func (f *osFile) Size() (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return 0, f.fail("stat", err)
	}
	return st.Size, nil
}

func (f *osFile) Truncate(size int64) error {
	if err := retry(func() error { return unix.Ftruncate(f.fd, size) }); err != nil {
		return f.fail("truncate", err)
	}
	return nil
}

func (f *osFile) Sync() error {
	if err := retry(func() error { return unix.Fdatasync(f.fd) }); err != nil {
		return f.fail("sync", err)
	}
	return nil
}

func (f *osFile) Reserve(off, size int64) error {
	err := retry(func() error { return unix.Fallocate(f.fd, unix.FALLOC_FL_KEEP_SIZE, off, size) })
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return f.fail("reserve", err)
	}
	return nil
}

func (f *osFile) Fd() (uintptr, bool) { return uintptr(f.fd), true }
func (f *osFile) Name() string        { return f.name }

func (f *osFile) Close() error {
	if f.closed.Swap(true) {
		return f.fail("close", fs.ErrClosed)
	}
	if err := unix.Close(f.fd); err != nil {
		return f.fail("close", err)
	}
	return nil
}

func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// syncAll reports failed writes of the whole file system since Linux 5.8.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := retry(func() error { return unix.Syncfs(int(f.Fd())) }); err != nil {
		return &fs.PathError{Op: "syncfs", Path: dir, Err: err}
	}
	return nil
}

// lockFile takes an "open file description" lock: unlike a plain POSIX record
// lock it also excludes others within this process, and the record lock that
// Java takes conflicts with it.
func lockFile(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err = retry(func() error { return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk) })
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if err == unix.EAGAIN || err == unix.EACCES {
		err = ErrLocked
	}
	return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
}
