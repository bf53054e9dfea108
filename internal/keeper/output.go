package keeper

import (
	"errors"
	"net"
	"slices"
	"syscall"

	"barnabas/internal/poll"
)

// Whoever queued output for a connection sends it, as far as its socket takes
// it at once: an answer needs no other goroutine then. The rest is of the
// connection's poller or writer, and so is all output of connections that can't
// be asked not to wait (TLS, inside the process) or whose peer has sent several
// requests: their answers are collected.

// maxSpare is the largest buffer that a connection keeps for its next output.
const maxSpare = 64 << 10

// directWriter writes to a socket and never waits.
type directWriter struct {
	raw   syscall.RawConn
	once  func(fd uintptr) (done bool)
	out   []byte
	wrote int
}

// newDirectWriter returns nil where there is none.
func newDirectWriter(nc net.Conn) *directWriter {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	w := &directWriter{raw: raw}
	w.once = func(fd uintptr) bool {
		w.wrote, _ = syscall.Write(int(fd), w.out) // an error comes back when the writer tries again
		return true
	}
	return w
}

// write returns how many of the bytes the socket took.
func (w *directWriter) write(b []byte) int {
	w.out, w.wrote = b, 0
	_ = w.raw.Write(w.once)
	w.out = nil
	return max(0, w.wrote)
}

// outputs are what a step leaves to be sent by the goroutine that made it.
type outputs struct {
	list [8]output
	n    int
}

type output struct {
	c   *conn
	out []byte
}

// addLocked takes a connection's output; if it says false somebody else has to
// send it.
func (o *outputs) addLocked(c *conn) bool {
	if o.n == len(o.list) || c.sending || c.behind || c.p == nil && (c.direct == nil || c.client.closed) {
		return false
	}
	if len(c.client.out) > 0 || c.p != nil && c.client.closed {
		o.list[o.n] = output{c, c.takeLocked()}
		o.n++
	}
	return true
}

func (o *outputs) send() {
	for _, p := range o.list[:o.n] {
		p.c.transmit(p.out)
	}
}

// transmit sends what was taken, as far as the socket takes it.
func (c *conn) transmit(out []byte) {
	n, failed := 0, false
	switch {
	case len(out) == 0:
	case c.p == nil:
		n = c.direct.write(out)
	default:
		var err error
		n, err = poll.Write(c.fd, out)
		failed = err != nil && !errors.Is(err, poll.ErrAgain)
	}
	c.sent(out, out[n:], failed)
}

// takeLocked takes what is to be sent. Until sent is called nobody else sends.
func (c *conn) takeLocked() []byte {
	out := c.client.out
	c.client.out, c.spare = c.spare, nil
	c.sending = true
	return out
}

// sent says that out was sent but for the rest, or can't be.
func (c *conn) sent(out, rest []byte, failed bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.sending = false
	if len(rest) > 0 {
		c.client.out = slices.Concat(rest, c.client.out)
		c.leaves = true
	}
	c.ends = c.ends || failed
	if cap(out) <= maxSpare {
		c.spare = out[:0]
	}
	if c.p != nil && c.leaves || c.ends || len(c.client.out) > 0 || c.client.closed {
		c.wakeLocked()
	}
	notify(c.room)
}

// wakeLocked has the connection's poller or writer look after it.
func (c *conn) wakeLocked() {
	switch {
	case c.p == nil:
		notify(c.wake)
	case !c.sending && !c.behind: // or the poller does it after that
		c.p.Post(c.settle)
	}
}

// writeLoop sends what nobody else did, and closes the connection when the core
// has said so.
func (c *conn) writeLoop(nc net.Conn) {
	for {
		select {
		case <-c.wake:
		case <-c.over:
			return
		}
		c.s.mu.Lock()
		if c.sending { // sent wakes this one
			c.s.mu.Unlock()
			continue
		}
		out, closed := c.takeLocked(), c.client.closed
		c.s.mu.Unlock()
		if len(out) > 0 {
			if _, err := nc.Write(out); err != nil {
				closed = true
			}
		}
		if closed {
			_ = nc.Close()
			close(c.flushed)
			c.s.mu.Lock()
			c.client.closed = true // the reader waits for no room any more
			c.s.mu.Unlock()
			notify(c.room)
			<-c.over
			return
		}
		c.sent(out, nil, false)
	}
}
