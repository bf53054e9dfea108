package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	// ErrNoAddress: nobody knows where the broker listens: it is not registered.
	ErrNoAddress = errors.New("the broker's address is not known")
	// ErrClosed: the connection was closed for good.
	ErrClosed = errors.New("connection is closed")
	// ErrBadAnswer: what came is too large, cut short, or no answer to what was asked.
	ErrBadAnswer = errors.New("bad answer")
	// ErrUnsafe: the broker does not take this one's credentials or certificate,
	// or the other way round.
	ErrUnsafe = errors.New("no secure connection")
	// ErrVersion: the broker serves no version of the request that this one knows.
	ErrVersion = errors.New("the broker does not serve this request")
)

const (
	firstPause = 10 * time.Millisecond // after the first failure; then it doubles
	keptBuffer = 1 << 20               // a larger buffer goes after a few small answers
	smallOnes  = 16
)

// Options are the arguments of [New].
type Options struct {
	// Address returns the host:port of the broker as it is now; it is asked at
	// each connection. False: not known.
	Address func() (string, bool)
	// ClientID names this broker in the request headers.
	ClientID string
	// Negotiate asks for the broker's ApiVersions at each connection.
	Negotiate bool
	// Timeout bounds connecting, and the time to an answer. 0: 30 s.
	Timeout time.Duration
	// MaxAnswer bounds an answer's size in bytes. 0: 100 MiB, as
	// socket.request.max.bytes.
	MaxAnswer int
	// MaxPause bounds the pause before another connection after failures. 0: 1 s.
	MaxPause time.Duration
	Dialer   Dialer // nil: Plaintext{}
}

// Conn is one connection for one purpose. Its methods may be called from any
// goroutine; calls take turns.
type Conn struct {
	o    Options
	turn chan struct{} // holds one token; who has taken it owns what follows

	nc        net.Conn
	used      bool // nc has brought an answer
	lastID    int32
	out, in   []byte
	small     int // answers in a row that needed little of in
	versions  *Versions
	failures  int
	notBefore time.Time

	mu struct {
		sync.Mutex
		closed bool
		nc     net.Conn // what Close has to close
	}
}

// New returns a connection that is not made yet.
func New(o Options) *Conn {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = 100 << 20
	}
	if o.MaxPause <= 0 {
		o.MaxPause = time.Second
	}
	if o.Dialer == nil {
		o.Dialer = Plaintext{}
	}
	c := &Conn{o: o, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

// Close closes the connection for good; a call in progress fails.
func (c *Conn) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	if c.mu.nc != nil {
		c.mu.nc.Close()
	}
}

// Request sends a request at its version and returns the answer. The request is
// read only. An error means that no answer came; whether the request was
// carried out is then not known.
func (c *Conn) Request(ctx context.Context, r kmsg.Request) (kmsg.Response, error) {
	return c.RequestFor(ctx, func(*Versions) (kmsg.Request, error) { return r, nil })
}

// RequestFor is Request for a request that depends on what the broker serves:
// build is called with the versions of the connection it goes out on (nil
// without Options.Negotiate), perhaps twice.
func (c *Conn) RequestFor(ctx context.Context, build func(*Versions) (kmsg.Request, error)) (kmsg.Response, error) {
	var response kmsg.Response
	err := c.exchange(ctx, func(versions *Versions) (header wire.Header, appendBody func([]byte) []byte, err error) {
		r, err := build(versions)
		if err != nil {
			return header, nil, err
		}
		response = r.ResponseKind()
		response.SetVersion(r.GetVersion())
		return wire.Header{Key: r.Key(), Version: r.GetVersion(), Flexible: r.IsFlexible()}, r.AppendTo, nil
	}, func(body []byte) error {
		return response.ReadFrom(body)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// Versions connects, if there is no connection, and returns what the broker
// serves; nil without Options.Negotiate.
func (c *Conn) Versions(ctx context.Context) (*Versions, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { c.turn <- struct{}{} }()
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c.versions, nil
}

// RoundTrip sends a request whose body appendBody writes, and hands the body of
// the answer to read, which must keep nothing of it. An error of read closes
// the connection. appendBody may be called twice.
func (c *Conn) RoundTrip(ctx context.Context, key, version int16, appendBody func([]byte) []byte, read func(body []byte) error) error {
	first, ok := wire.FirstFlexible(key)
	h := wire.Header{Key: key, Version: version, Flexible: ok && version >= first}
	return c.exchange(ctx, func(*Versions) (wire.Header, func([]byte) []byte, error) { return h, appendBody, nil }, read)
}

type builder func(*Versions) (wire.Header, func([]byte) []byte, error)

func (c *Conn) exchange(ctx context.Context, build builder, read func([]byte) error) error {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.turn <- struct{}{} }()
	for {
		stale := c.nc != nil && c.used
		if err := c.connect(ctx); err != nil {
			return err
		}
		h, appendBody, err := build(c.versions)
		if err != nil {
			return err
		}
		body, err := c.ask(ctx, h, appendBody)
		if err == nil {
			if err = read(body); err != nil {
				err = fmt.Errorf("%w: %w", ErrBadAnswer, err)
			}
		}
		if err == nil {
			c.used, c.failures = true, 0
			c.trim(len(body))
			return nil
		}
		c.drop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if stale && gone(err) {
			continue // the peer closed an idle connection, or was restarted
		}
		c.failed()
		return err
	}
}

// gone tells whether the other side closed the connection, a socket or a net.Pipe.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// failed puts the next attempt off.
func (c *Conn) failed() {
	pause := c.o.MaxPause
	if c.failures < 16 {
		pause = min(pause, firstPause<<c.failures)
	}
	c.failures++
	c.notBefore = time.Now().Add(pause - rand.N(pause/4+1))
}

// Eager forgets the pause after a failure: there is news of the broker.
func (c *Conn) Eager() {
	select {
	case <-c.turn:
		c.failures, c.notBefore = 0, time.Time{}
		c.turn <- struct{}{}
	default: // a call is under way
	}
}

// drop closes the connection.
func (c *Conn) drop() {
	if c.nc == nil {
		return
	}
	c.nc.Close()
	c.mu.Lock()
	c.mu.nc = nil
	c.mu.Unlock()
	c.nc, c.used, c.versions = nil, false, nil
}

// connect makes the connection, if there is none, once the pause is over.
func (c *Conn) connect(ctx context.Context) error {
	c.mu.Lock()
	closed := c.mu.closed
	c.mu.Unlock()
	if closed {
		c.drop()
		return ErrClosed
	}
	if l, ok := c.nc.(limited); ok && time.Now().After(l.renew) {
		c.drop()
	}
	if c.nc != nil {
		return nil
	}
	if pause := time.Until(c.notBefore); pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	address, ok := c.o.Address()
	if !ok {
		c.failed()
		return ErrNoAddress
	}
	within, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	nc, err := c.o.Dialer.Dial(within, address)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.failed()
		return err
	}
	c.mu.Lock()
	if closed = c.mu.closed; !closed {
		c.mu.nc = nc
	}
	c.mu.Unlock()
	if closed {
		nc.Close()
		return ErrClosed
	}
	c.nc, c.used = nc, false
	if !c.o.Negotiate {
		return nil
	}
	if err := c.negotiate(ctx); err != nil {
		c.drop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.failed()
		return err
	}
	return nil
}

// ask writes a request and reads the answer, whose body it returns; it lies in
// c.in.
func (c *Conn) ask(ctx context.Context, h wire.Header, appendBody func([]byte) []byte) ([]byte, error) {
	c.lastID++
	w := wire.Writer{B: append(c.out[:0], 0, 0, 0, 0)}
	w.Int16(h.Key)
	w.Int16(h.Version)
	w.Int32(c.lastID)
	if h.Key != int16(kmsg.ControlledShutdown) || h.Version > 0 { // which has no client id
		w.String(false, c.o.ClientID)
		w.Tags(h.Flexible)
	}
	c.out = appendBody(w.B)
	binary.BigEndian.PutUint32(c.out, uint32(len(c.out)-4))

	// The deadline first: what ends the context then moves it.
	if err := c.nc.SetDeadline(time.Now().Add(c.o.Timeout)); err != nil {
		return nil, err
	}
	nc := c.nc
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	body, err := c.transfer(h)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if cap(c.out) > keptBuffer {
		c.out = nil
	}
	return body, err
}

func (c *Conn) transfer(h wire.Header) ([]byte, error) {
	if _, err := c.nc.Write(c.out); err != nil {
		return nil, err
	}
	frame, err := c.readFrame()
	if err != nil {
		return nil, err
	}
	r := wire.NewReader(frame)
	id := r.Int32()
	r.Tags(h.Flexible && h.Key != int16(kmsg.ApiVersions)) // its header has none (KIP-511)
	if r.Err() != nil || id != c.lastID {
		return nil, fmt.Errorf("%w: its header is that of request %d, not %d", ErrBadAnswer, id, c.lastID)
	}
	return r.Rest(), nil
}

// readFrame reads one answer into c.in. Nothing can follow it, as one request
// is in flight; memory grows as bytes arrive.
func (c *Conn) readFrame() ([]byte, error) {
	if cap(c.in) == 0 {
		c.in = make([]byte, 0, 4096)
	}
	c.in = c.in[:0]
	size := 4
	for len(c.in) < size {
		if len(c.in) == cap(c.in) {
			grown := make([]byte, len(c.in), min(size, 2*cap(c.in)))
			copy(grown, c.in)
			c.in = grown
		}
		n, err := c.nc.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		if err != nil && len(c.in) < size {
			if err == io.EOF && len(c.in) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if size == 4 && len(c.in) >= 4 {
			length := int32(binary.BigEndian.Uint32(c.in))
			if length < 4 || int(length) > c.o.MaxAnswer {
				return nil, fmt.Errorf("%w: a length of %d bytes, at most %d are taken", ErrBadAnswer, length, c.o.MaxAnswer)
			}
			size = 4 + int(length)
		}
	}
	if len(c.in) > size {
		return nil, fmt.Errorf("%w: more than was asked for", ErrBadAnswer)
	}
	return c.in[4:], nil
}

// trim gives a large buffer back once it is no longer needed.
func (c *Conn) trim(size int) {
	if cap(c.in) <= keptBuffer || size > cap(c.in)/4 {
		c.small = 0
		return
	}
	if c.small++; c.small >= smallOnes {
		c.in, c.small = nil, 0
	}
}
