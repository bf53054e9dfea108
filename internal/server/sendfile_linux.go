package server

import (
	"golang.org/x/sys/unix"
)

const canSendfile = true

// sendfile sends n bytes of a file from pos on. The offset is ours, not the
// descriptor's, so that all readers of a segment share one descriptor.
func (s *sender) sendfile(fd uintptr, pos int64, n int) error {
	for n > 0 {
		s.arm()
		sent, err := s.sendfilePiece(fd, pos, min(n, sendPiece))
		if err != nil {
			return err
		}
		pos += int64(sent)
		n -= sent
	}
	return nil
}

func (s *sender) sendfilePiece(fd uintptr, pos int64, n int) (sent int, err error) {
	waited := s.raw.Write(func(socket uintptr) bool {
		for {
			sent, err = unix.Sendfile(int(socket), int(fd), &pos, n)
			switch err {
			case unix.EINTR:
			case unix.EAGAIN:
				return false // wait until the socket takes more
			default:
				return true
			}
		}
	})
	switch {
	case waited != nil:
		return 0, waited
	case err == nil && sent == 0:
		return 0, errShrunk
	}
	return sent, err
}

// cork holds back packets that are not full, so that an answer's header
// travels with its first records.
func (s *sender) cork(on bool) {
	v := 0
	if on {
		v = 1
	}
	s.raw.Control(func(socket uintptr) {
		_ = unix.SetsockoptInt(int(socket), unix.IPPROTO_TCP, unix.TCP_CORK, v)
	})
}
