package keeper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"time"

	"barnabas/internal/poll"
)

// A plain TCP connection with a session needs no goroutine: a poller reads its
// requests, and whoever queued its answers sends them. One whose client doesn't
// take its answers, or has too much under way, gets goroutines of its own.

// readAtOnce is how much is read of a connection before others have their turn.
const readAtOnce = 64 << 10

// poller is a goroutine that serves connections.
type poller struct {
	*poll.Poller
	buf []byte // what was read last; of the poller's goroutine
}

// poller returns that of the next connection, or nil where there is none.
func (s *Server) poller() *poller {
	s.polling.Do(func() {
		for range runtime.GOMAXPROCS(0) {
			p, err := poll.New()
			if err != nil {
				if !errors.Is(err, errors.ErrUnsupported) {
					s.o.Logger.Warn("keeper: connections need goroutines of their own", "err", err)
				}
				return
			}
			s.pollers = append(s.pollers, &poller{p, make([]byte, readAtOnce)})
		}
	})
	if len(s.pollers) == 0 {
		return nil
	}
	return s.pollers[s.turn.Add(1)%uint32(len(s.pollers))]
}

// polled is what a connection has that a poller serves.
type polled struct {
	// Guarded by s.mu. p and fd don't change while sending is set.
	p      *poller // nil: the connection has goroutines
	fd     int
	leaves bool // it is to get goroutines
	ends   bool // it is over

	// Of the poller's goroutine.
	watched bool
	part    []byte // what came last of a request that is not whole yet
}

// poll gives the connection to a poller, which calls first before it reads. It
// says false if the connection has to have goroutines.
func (c *conn) poll(first func()) bool {
	nc, ok := c.nc.(*net.TCPConn)
	if !ok {
		return false
	}
	p := c.s.poller()
	if p == nil {
		return false
	}
	fd, err := poll.Take(nc)
	if err != nil {
		return false
	}
	c.s.wg.Add(1) // until it ends or leaves
	c.s.mu.Lock()
	c.p, c.fd, c.nc, c.ends = p, fd, nil, c.s.mu.closed
	c.s.mu.Unlock()
	p.Post(func() {
		c.s.mu.Lock()
		_, on := c.s.mu.conns[c] // Close may have come first and had it ended: the descriptor may be another's
		c.s.mu.Unlock()
		if !on {
			return
		}
		first()
		c.watched = p.Add(fd, c.ready) == nil
		if !c.watched {
			c.stop(&c.ends)
		}
		c.settle()
	})
	return true
}

// ready reads what has come, and handles the requests in it. As the rest of
// this file, it is called by the poller.
func (c *conn) ready() {
	n, err := poll.Read(c.fd, c.p.buf)
	if errors.Is(err, poll.ErrAgain) {
		return
	}
	if err == nil {
		err = c.requests(c.p.buf[:n])
	}
	switch {
	case err == nil && !c.behind: // of this goroutine, while it is set
	case err == nil:
		c.catchUp()
	case errors.Is(err, errFull):
		c.stop(&c.leaves)
	case errors.Is(err, net.ErrClosed): // the last answers go out first
		c.stop(nil)
	default:
		c.logEnd(err)
		c.stop(&c.ends)
	}
}

// errFull says that the next request has to wait.
var errFull = errors.New("keeper: too much under way")

// requests handles those that are whole with what has come.
func (c *conn) requests(in []byte) error {
	if c.part != nil {
		c.part = append(c.part, in...)
		in = c.part
	}
	all, behind := len(in), false
	for {
		frame, rest, err := c.cut(in)
		if err != nil {
			return err
		}
		if frame == nil {
			break
		}
		in = rest
		behind = behind || len(in) > 0 // the answers are collected
		full, ended, err := c.request(frame, behind)
		switch {
		case err != nil:
			return err
		case ended:
			return net.ErrClosed
		case full && c.fullAfterAll():
			c.part = bytes.Clone(in)
			return errFull
		}
	}
	switch {
	case len(in) == 0:
		c.part = nil
	case len(in) < all || c.part == nil:
		c.part = bytes.Clone(in)
	}
	return nil
}

// cut returns the first frame of in, nil if it is not whole, and what follows.
func (c *conn) cut(in []byte) (frame, rest []byte, err error) {
	if len(in) < 4 {
		return nil, in, nil
	}
	n := binary.BigEndian.Uint32(in)
	if err := c.checkLength(n); err != nil {
		return nil, in, err
	}
	if uint32(len(in)-4) < n {
		return nil, in, nil
	}
	return in[4 : 4+n], in[4+n:], nil
}

// fullAfterAll sends what was collected and says whether there is still no room.
func (c *conn) fullAfterAll() bool {
	c.s.mu.Lock()
	if c.sending || c.leaves || c.ends || len(c.client.out) == 0 {
		defer c.s.mu.Unlock()
		return c.s.mu.core.full(c.client)
	}
	out := c.takeLocked()
	c.s.mu.Unlock()
	c.transmit(out)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.mu.core.full(c.client)
}

// catchUp has what was collected sent.
func (c *conn) catchUp() {
	c.s.mu.Lock()
	c.behind = false
	c.s.mu.Unlock()
	c.settle()
}

// stop ends the reading, and sets what is to become of the connection.
func (c *conn) stop(fate *bool) {
	if c.watched {
		c.watched = false
		c.p.Remove(c.fd)
	}
	c.s.mu.Lock()
	if fate != nil {
		*fate = true
	}
	c.s.mu.Unlock()
	c.catchUp()
}

// settle does what has to be done now: it ends the connection, or has it leave,
// or sends. While somebody else is sending it does nothing: he calls it later.
func (c *conn) settle() {
	c.s.mu.Lock()
	if c.p == nil || c.sending {
		c.s.mu.Unlock()
		return
	}
	switch {
	case c.ends || c.client.closed && len(c.client.out) == 0:
		c.sending = true // for good: the descriptor is used no more
		c.s.detachLocked(c)
		c.s.mu.Unlock()
		if c.watched {
			c.p.Remove(c.fd)
		}
		poll.Close(c.fd)
		c.s.wg.Done()
	case c.leaves:
		c.sending = true
		c.s.mu.Unlock()
		c.leave()
	case len(c.client.out) > 0:
		out := c.takeLocked()
		c.s.mu.Unlock()
		c.transmit(out)
	default:
		c.s.mu.Unlock()
	}
}

// leave gives the connection goroutines, while sending is set.
func (c *conn) leave() {
	defer c.s.wg.Done()
	if c.watched {
		c.watched = false
		c.p.Remove(c.fd)
	}
	nc, err := poll.Give(c.fd)
	in := c.part
	c.part = nil
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if err != nil {
		c.s.o.Logger.Warn("keeper: connection closed", "from", c.addr, "err", err)
		c.s.detachLocked(c)
		return
	}
	c.p, c.nc, c.sending = nil, nc, false
	if c.client.closed {
		_ = nc.SetWriteDeadline(time.Now().Add(c.s.o.HandshakeTimeout))
	}
	if c.ends || c.s.mu.closed {
		_ = nc.Close()
	}
	c.startLocked(in)
}
