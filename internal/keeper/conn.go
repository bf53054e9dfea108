package keeper

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"barnabas/internal/jute"
)

// firstChunk is what a frame gets before its bytes arrive.
const firstChunk = 16 << 10

// conn is one connection. Until its first frame has come it is of a goroutine
// that waits for that; then a poller serves it, or a goroutine that reads and
// one that writes.
type conn struct {
	s    *Server
	addr string
	polled

	// Guarded by s.mu.
	nc      net.Conn // nil: a poller has it
	client  *client
	sending bool          // somebody has taken output and has not sent it yet
	behind  bool          // more requests have come than were read
	spare   []byte        // for the next output
	direct  *directWriter // nil: only the writer writes

	// Of a connection with goroutines.
	wake chan struct{} // the writer has something to do; capacity 1
	room chan struct{} // the reader may go on; capacity 1
	over chan struct{} // the reader has ended
	// flushed is closed by the writer when it will send no more.
	flushed chan struct{}
}

// errMalformed is a frame that ends its connection.
var errMalformed = errors.New("keeper: malformed frame")

// begin reads the first frame.
func (c *conn) begin() {
	nc := c.nc
	hello, err := c.hello(nc)
	if err != nil || hello == nil {
		c.logEnd(err)
		_ = nc.Close()
		c.s.detach(c)
		return
	}
	first := func() {
		c.s.step(func(core *core, now time.Time) { core.connect(c.client, hello, now) })
		notify(c.s.timer)
	}
	if c.poll(first) {
		return
	}
	first()
	c.s.mu.Lock()
	c.startLocked(nil)
	c.s.mu.Unlock()
}

// hello returns the first frame, or nil if it was a word, which it answers.
func (c *conn) hello(nc net.Conn) (*jute.ConnectRequest, error) {
	_ = nc.SetReadDeadline(time.Now().Add(c.s.o.HandshakeTimeout))
	var head [4]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if word := wordOf(length); word != "" {
		_ = nc.SetWriteDeadline(time.Now().Add(c.s.o.HandshakeTimeout))
		var argument [8]byte
		if word == "stmk" {
			if _, err := io.ReadFull(nc, argument[:]); err != nil {
				return nil, err
			}
		}
		_, err := io.WriteString(nc, c.s.word(word, int64(binary.BigEndian.Uint64(argument[:]))))
		return nil, err
	}
	frame, err := c.readBody(nc, nil, length)
	if err != nil {
		return nil, err
	}
	r := new(jute.ConnectRequest)
	if err := jute.Unmarshal(frame, r); err != nil {
		return nil, fmt.Errorf("%w: connect request of %d bytes", errMalformed, length)
	}
	_ = nc.SetReadDeadline(time.Time{})
	return r, nil
}

// startLocked starts the goroutines. in is what has come and is not read yet.
func (c *conn) startLocked(in []byte) {
	c.direct = newDirectWriter(c.nc)
	c.wake, c.room, c.over, c.flushed = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	notify(c.wake)
	notify(c.room)
	nc := c.nc
	c.s.wg.Go(func() { c.readLoop(nc, in) })
	c.s.wg.Go(func() { c.writeLoop(nc) })
}

func (c *conn) readLoop(nc net.Conn, in []byte) {
	err := c.read(bufio.NewReader(io.MultiReader(bytes.NewReader(in), nc)))
	c.logEnd(err)
	_ = nc.Close()
	c.s.detach(c)
	close(c.over)
}

func (c *conn) logEnd(err error) {
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
	case errors.Is(err, errMalformed):
		c.s.o.Logger.Warn("keeper: connection closed", "from", c.addr, "err", err)
	default:
		c.s.o.Logger.Debug("keeper: connection ended", "from", c.addr, "err", err)
	}
}

// read handles the connection's requests until it ends, each when there is room
// for it.
func (c *conn) read(in *bufio.Reader) error {
	var buf []byte
	for full, ended := true, false; ; {
		if err := c.wait(full, ended); err != nil {
			return err
		}
		head, err := in.Peek(4)
		if err != nil {
			return err
		}
		length := binary.BigEndian.Uint32(head)
		_, _ = in.Discard(len(head))
		if buf, err = c.readBody(in, buf, length); err != nil {
			return err
		}
		if full, ended, err = c.request(buf, in.Buffered() > 0); err != nil {
			return err
		}
		if cap(buf) > firstChunk { // a large frame's buffer is not kept
			buf = nil
		}
	}
}

func (c *conn) checkLength(n uint32) error {
	if n > uint32(c.s.o.MaxBuffer) {
		return fmt.Errorf("%w: length %d, the limit is %d", errMalformed, int32(n), c.s.o.MaxBuffer)
	}
	return nil
}

// readBody reads a frame into buf, growing it as the bytes arrive.
func (c *conn) readBody(in io.Reader, buf []byte, length uint32) ([]byte, error) {
	if err := c.checkLength(length); err != nil {
		return nil, err
	}
	buf = buf[:0]
	for n := int(length); len(buf) < n; {
		have := len(buf)
		want := min(n, max(cap(buf), firstChunk, 2*have))
		if want > cap(buf) {
			buf = append(make([]byte, 0, want), buf...)
		}
		buf = buf[:want]
		if _, err := io.ReadFull(in, buf[have:]); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

// decodeRequest reads a request's frame. A body that makes no sense is answered,
// a header that makes none is an error.
func decodeRequest(frame []byte) (incoming, error) {
	d := jute.NewDecoder(frame)
	in := incoming{size: len(frame)}
	if in.Decode(d); d.Err() != nil {
		return in, fmt.Errorf("%w: request header in %d bytes", errMalformed, len(frame))
	}
	if in.body = jute.NewRequest(in.Op); in.body != nil {
		in.body.Decode(d)
	}
	in.bad = d.Err() != nil
	return in, nil
}

// request gives one request to the core. behind says that more has come than
// that.
func (c *conn) request(frame []byte, behind bool) (full, ended bool, err error) {
	in, err := decodeRequest(frame)
	if err != nil {
		return false, false, err
	}
	c.s.step(func(core *core, now time.Time) {
		c.behind = behind
		core.request(c.client, in, now)
		full, ended = core.full(c.client), c.client.closed
	})
	return full, ended, nil
}

// wait returns when there is room for the next request.
func (c *conn) wait(full, ended bool) error {
	for full && !ended {
		select {
		case <-c.room:
		case <-c.s.done:
			return ErrClosed
		}
		c.s.mu.Lock()
		full, ended = c.s.mu.core.full(c.client), c.client.closed
		c.s.mu.Unlock()
	}
	if ended { // nothing more is read; the last answers go out first
		select {
		case <-c.flushed:
		case <-c.s.done:
		}
		return net.ErrClosed
	}
	return nil
}
