package keeper

import (
	"net"
	"slices"
	"syscall"
)

// Whoever queued output for a connection sends it, as far as its socket takes
// it at once: an answer needs no other goroutine then. The rest is the
// connection's writer's, and so is all output of connections that can't be
// asked not to wait (TLS, inside the process) or whose peer has sent several
// requests: their answers are collected.

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

// addLocked takes a connection's output; if it says false the writer has to.
func (o *outputs) addLocked(c *conn) bool {
	if o.n == len(o.list) || c.direct == nil || c.sending || c.behind || c.client.closed {
		return false
	}
	if len(c.client.out) > 0 {
		o.list[o.n] = output{c, c.takeLocked()}
		o.n++
	}
	return true
}

func (o *outputs) send() {
	for _, p := range o.list[:o.n] {
		n := p.c.direct.write(p.out)
		p.c.sent(p.out, p.out[n:])
	}
}

// takeLocked takes what is to be sent. Until sent is called nobody else sends.
func (c *conn) takeLocked() []byte {
	out := c.client.out
	c.client.out, c.spare = c.spare, nil
	c.sending = true
	return out
}

// sent says that out was sent but for the rest.
func (c *conn) sent(out, rest []byte) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.sending = false
	if len(rest) > 0 {
		c.client.out = slices.Concat(rest, c.client.out)
	}
	if cap(out) <= maxUnsent {
		c.spare = out[:0]
	}
	if len(c.client.out) > 0 || c.client.closed {
		notify(c.wake)
	}
	notify(c.room)
}

// writeLoop sends what nobody else did, and closes the connection when the core
// has said so.
func (c *conn) writeLoop() {
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
			if _, err := c.nc.Write(out); err != nil {
				closed = true
			}
		}
		if closed {
			_ = c.nc.Close()
			close(c.flushed)
			c.s.mu.Lock()
			c.client.closed = true // the reader waits for no room any more
			c.s.mu.Unlock()
			notify(c.room)
			<-c.over
			return
		}
		c.sent(out, nil)
	}
}
