package server

import (
	"golang.org/x/sys/unix"
)

const canSendfile = true

// fileSender is what the system calls below work on. Its functions are made
// once: a closure for each call would be garbage for each answer.
type fileSender struct {
	fd   uintptr
	pos  int64
	n    int // bytes wanted, then bytes sent
	err  error
	cork int
	send func(socket uintptr) bool
	set  func(socket uintptr)
}

func (f *fileSender) init() {
	f.send, f.set = f.trySend, f.setCork
}

// sendfile sends n bytes of a file from pos on. The offset is ours, not the
// descriptor's, so that all readers of a segment share one descriptor.
func (s *sender) sendfile(fd uintptr, pos int64, n int) error {
	f := &s.file
	f.fd, f.pos = fd, pos
	for n > 0 {
		s.arm()
		f.n = min(n, sendPiece)
		if err := s.raw.Write(f.send); err != nil {
			return err
		}
		switch {
		case f.err != nil:
			return f.err
		case f.n == 0:
			return errShrunk
		}
		n -= f.n
	}
	return nil
}

// trySend is called until it returns true; before each call but the first the
// socket takes more. The kernel moves f.pos.
func (f *fileSender) trySend(socket uintptr) bool {
	for {
		sent, err := unix.Sendfile(int(socket), int(f.fd), &f.pos, f.n)
		switch err {
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			f.n, f.err = max(sent, 0), err
			return true
		}
	}
}

// cork holds back packets that are not full, so that an answer's header
// travels with its first records.
func (s *sender) cork(on bool) {
	s.file.cork = 0
	if on {
		s.file.cork = 1
	}
	s.raw.Control(s.file.set)
}

func (f *fileSender) setCork(socket uintptr) {
	_ = unix.SetsockoptInt(int(socket), unix.IPPROTO_TCP, unix.TCP_CORK, f.cork)
}
