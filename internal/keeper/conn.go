package keeper

import (
	"bufio"
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

// conn is one connection: a goroutine that reads and one that writes.
type conn struct {
	s      *Server
	nc     net.Conn
	addr   string
	direct *directWriter // nil: only the writer writes

	// Guarded by s.mu.
	client  *client
	sending bool   // somebody has taken output and has not sent it yet
	behind  bool   // more requests have come than were read
	spare   []byte // for the next output

	wake chan struct{} // the writer has something to do; capacity 1
	room chan struct{} // the reader may go on; capacity 1
	over chan struct{} // the reader has ended
	// flushed is closed by the writer when it will send no more.
	flushed chan struct{}
}

// errMalformed is a frame that ends its connection.
var errMalformed = errors.New("keeper: malformed frame")

func (c *conn) readLoop() {
	err := c.read()
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
	case errors.Is(err, errMalformed):
		c.s.o.Logger.Warn("keeper: connection closed", "from", c.addr, "err", err)
	default:
		c.s.o.Logger.Debug("keeper: connection ended", "from", c.addr, "err", err)
	}
	_ = c.nc.Close()
	c.s.detach(c)
	close(c.over)
}

// read handles the connection's frames until it ends.
func (c *conn) read() error {
	_ = c.nc.SetReadDeadline(time.Now().Add(c.s.o.HandshakeTimeout))
	in := bufio.NewReaderSize(c.nc, 4096)
	var buf []byte
	length, err := c.readLength(in)
	if err != nil {
		return err
	}
	if word := wordOf(length); word != "" {
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.s.o.HandshakeTimeout))
		argument := int64(0)
		if word == "stmk" {
			p, err := in.Peek(8)
			if err != nil {
				return err
			}
			argument = int64(binary.BigEndian.Uint64(p))
		}
		_, err := io.WriteString(c.nc, c.s.word(word, argument))
		return err
	}
	if buf, err = c.readBody(in, buf, length); err != nil {
		return err
	}
	var hello jute.ConnectRequest
	if err := jute.Unmarshal(buf, &hello); err != nil {
		return fmt.Errorf("%w: connect request of %d bytes", errMalformed, length)
	}
	_ = c.nc.SetReadDeadline(time.Time{})
	c.s.step(func(core *core, now time.Time) { core.connect(c.client, &hello, now) })
	notify(c.s.timer)
	for {
		if length, err = c.readLength(in); err != nil {
			return err
		}
		if buf, err = c.readBody(in, buf, length); err != nil {
			return err
		}
		if err := c.handle(buf, in.Buffered() > 0); err != nil {
			return err
		}
		if cap(buf) > firstChunk { // a large frame's buffer is not kept
			buf = nil
		}
	}
}

func (c *conn) readLength(in *bufio.Reader) (uint32, error) {
	p, err := in.Peek(4)
	if err != nil {
		return 0, err
	}
	length := binary.BigEndian.Uint32(p)
	_, _ = in.Discard(4)
	return length, nil
}

// readBody reads a frame into buf, growing it as the bytes arrive.
func (c *conn) readBody(in *bufio.Reader, buf []byte, length uint32) ([]byte, error) {
	if length > uint32(c.s.o.MaxBuffer) {
		return nil, fmt.Errorf("%w: length %d, the limit is %d", errMalformed, int32(length), c.s.o.MaxBuffer)
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

// handle gives one request to the core, and returns when there is room for the
// next. behind says that the next has begun to come.
func (c *conn) handle(frame []byte, behind bool) error {
	in, err := decodeRequest(frame)
	if err != nil {
		return err
	}
	full, ended := false, false
	c.s.step(func(core *core, now time.Time) {
		c.behind = behind
		core.request(c.client, in, now)
		full, ended = core.full(c.client), c.client.closed
	})
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
