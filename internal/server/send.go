package server

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/poll"
	"barnabas/internal/storage"
)

const (
	// smallPiece and less of a file is read into the answer's buffer; more is
	// worth a sendfile.
	smallPiece = 16 << 10
	// sendPiece is how much one call sends at most, so that deadlines move on.
	sendPiece = 1 << 20
	gatherMax = 64 << 10
)

var errShrunk = errors.New("a segment got shorter while it was sent")

// sender writes answers to a connection. It is used by one goroutine at a time.
type sender struct {
	nc    net.Conn
	raw   syscall.RawConn // nil: not a TCP connection, everything is copied
	idle  *atomic.Int64
	armed time.Time
	file  fileSender

	rests  bool // the connection rests: nc is closed, and the socket is fd
	fd     int
	unsent []byte // what the socket did not take then
}

func (s *sender) init(nc net.Conn, server *Server) {
	*s = sender{nc: nc, idle: &server.maxIdle}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil && canSendfile {
		s.raw = raw
		s.file.init()
	}
}

// bufferSizes sets a socket's buffers; 0 or less leaves them to the system.
func bufferSizes(nc net.Conn, send, receive int) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	if send > 0 {
		tcp.SetWriteBuffer(send)
	}
	if receive > 0 {
		tcp.SetReadBuffer(receive)
	}
}

// arm bounds the time in which a client must take more of an answer. Kafka
// closes such a connection as idle.
func (s *sender) arm() {
	idle := time.Duration(s.idle.Load())
	if idle < 0 {
		return
	}
	if now := time.Now(); now.Sub(s.armed) > idle/4 {
		s.nc.SetWriteDeadline(now.Add(idle))
		s.armed = now
	}
}

// rest is for a connection that begins to rest; init ends it.
func (s *sender) rest(fd int) { s.rests, s.fd = true, fd }

// writeNow writes what the socket takes at once and keeps what is left.
func (s *sender) writeNow(b []byte) error {
	n := 0
	if len(s.unsent) == 0 && len(b) > 0 {
		var err error
		if n, err = poll.Write(s.fd, b); err != nil && !errors.Is(err, poll.ErrAgain) {
			return err
		}
	}
	s.unsent = append(s.unsent, b[n:]...)
	return nil
}

func (s *sender) write(b []byte) error {
	if s.rests {
		return s.writeNow(b)
	}
	for len(b) > 0 {
		s.arm()
		n, err := s.nc.Write(b[:min(len(b), sendPiece)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// send writes b with the file slices in it.
func (s *sender) send(b []byte, inserts []api.Insert) error {
	if len(inserts) == 0 {
		return s.write(b)
	}
	total, large := len(b), false
	for i := range inserts {
		total += inserts[i].Slice.Len
		large = large || s.isLarge(inserts[i].Slice)
	}
	if large {
		s.cork(true)
		defer s.cork(false)
	}
	g := gather{s: s, buf: getBuffer(min(total, gatherMax))}
	defer func() { putBuffer(g.buf) }()
	at := 0
	for i := range inserts {
		ins := &inserts[i]
		if err := g.add(b[at:ins.At]); err != nil {
			return err
		}
		at = ins.At
		if err := g.addFile(ins.Slice); err != nil {
			return err
		}
	}
	if err := g.add(b[at:]); err != nil {
		return err
	}
	return g.flush()
}

func (s *sender) isLarge(f storage.Slice) bool {
	if s.raw == nil || s.rests || f.Len < smallPiece {
		return false
	}
	_, ok := f.File.Fd()
	return ok
}

// gather collects small pieces for one write.
type gather struct {
	s   *sender
	buf *buffer
	n   int
}

func (g *gather) add(b []byte) error {
	for len(b) > 0 {
		n := copy(g.buf.b[g.n:], b)
		g.n += n
		b = b[n:]
		if len(b) > 0 {
			if err := g.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gather) addFile(f storage.Slice) error {
	if g.s.isLarge(f) {
		if err := g.flush(); err != nil {
			return err
		}
		fd, _ := f.File.Fd()
		return g.s.sendfile(fd, f.Pos, f.Len)
	}
	for off := 0; off < f.Len; {
		if g.n == len(g.buf.b) {
			if err := g.flush(); err != nil {
				return err
			}
		}
		n := min(len(g.buf.b)-g.n, f.Len-off)
		if m, err := f.ReadAt(g.buf.b[g.n:g.n+n], int64(off)); m < n {
			return errors.Join(errShrunk, err)
		}
		g.n += n
		off += n
	}
	return nil
}

func (g *gather) flush() error {
	n := g.n
	g.n = 0
	return g.s.write(g.buf.b[:n])
}
