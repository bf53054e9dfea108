package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/poll"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// maxUnanswered requests and maxUnansweredBytes of frames and answers may be
	// under way on a connection before reading it stops.
	maxUnanswered      = 64
	maxUnansweredBytes = 4 << 20
)

var (
	errUnsupported = errors.New("API key or version is not supported")
	errDone        = errors.New("connection has ended")
	errAskedToStop = errors.New("server is stopping")
)

// conn is one connection.
type conn struct {
	s        *Server
	listener *Listener
	nc       net.Conn // changes, under mu, when the connection wakes up; closed while it rests
	info     api.Conn
	out      sender
	in       frameReader
	clientID string       // of the last request: most clients have one for ever
	active   atomic.Int64 // unix nanoseconds of the last request
	rest     resting

	room chan struct{} // tells the reader that the queue got shorter, or the turn is free
	wake chan struct{} // tells the writer that it has the turn, or to end

	mu struct {
		sync.Mutex
		first, last *request // unanswered requests in order
		n           int
		bytes       int    // of their frames and answers
		tasks       []task // waits that ended, to be continued by whoever writes
		turn        turn   // who may write
		writer      bool   // the writing goroutine exists
		closing     bool   // nothing is written any more
		resting     bool   // a watcher has the socket
		hungUp      bool   // somebody wants it closed
	}
}

// turn is who holds the right to write.
type turn int8

const (
	nobody turn = iota
	reader
	writer
)

type task struct {
	r *request
	f func(*api.Request)
}

func newConn(s *Server, l *Listener, nc net.Conn, host string) *conn {
	c := &conn{s: s, listener: l, nc: nc, room: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	c.info = api.Conn{ID: s.lastID.Add(1), Listener: l.Name, RemoteAddr: nc.RemoteAddr().String(), RemoteHost: host, Done: make(chan struct{})}
	if l.SASL != nil {
		c.info.SASL = l.SASL.Session()
	}
	c.active.Store(time.Now().UnixNano())
	c.rest.enough, c.rest.readable, c.rest.write = calmEnough, c.readRequest, c.writeAnswers
	c.in.c = c
	bufferSizes(nc, s.o.SendBuffer, s.o.ReceiveBuffer)
	if l.TLS != nil {
		c.nc = tls.Server(nc, l.TLS)
	}
	c.in.mark.init(c.nc)
	c.out.init(c.nc, s)
	return c
}

// serve reads and handles requests until the connection ends or rests.
func (c *conn) serve() {
	c.live(func() error {
		if err := c.greet(); err != nil {
			return err
		}
		return c.loop()
	})
}

// live is the life of the reading goroutine.
func (c *conn) live(read func() error) {
	rests := false
	defer func() {
		if p := recover(); p != nil { // our own mistake costs this connection, not the broker
			c.s.log().Error("a connection panicked", "client", c.info.RemoteAddr, "panic", p, "stack", string(debug.Stack()))
			c.shut()
		}
		if !rests {
			c.s.leave(c)
		}
	}()
	err := read()
	if rests = errors.Is(err, errResting); rests {
		return
	}
	// A client may have closed its side only after its last request; what waits
	// is answered with what there is, what runs comes to its end.
	c.complain(err)
	c.finishUp()
	c.shut()
	close(c.info.Done)
	c.cancelWaits()
}

// greet is the TLS handshake, where there is one.
func (c *conn) greet() error {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	t.SetDeadline(time.Now().Add(c.s.o.Stall))
	if c.s.stopping() { // whose deadline may have been the one before
		return errAskedToStop
	}
	err := t.Handshake()
	t.SetDeadline(time.Time{})
	var op *net.OpError
	switch {
	case err == nil || c.s.stopping():
		return err
	case errors.As(err, &op) && op.Op == "remote error":
		return fmt.Errorf("TLS handshake: the client says: %v", op.Err)
	default:
		return fmt.Errorf("TLS handshake: %w", err)
	}
}

func (c *conn) loop() error {
	for {
		if err := c.waitForRoom(); err != nil {
			return err
		}
		if err := c.in.next(); err != nil {
			return err
		}
		f := c.in.frame
		c.in.frame = frame{}
		if err := c.handle(f); err != nil {
			return err
		}
		if c.mayRest(f.api) && c.lieDown() {
			return errResting
		}
	}
}

// complain logs why a connection ends, unless it is what connections do.
func (c *conn) complain(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, errDone) || errors.Is(err, errAskedToStop) || errors.Is(err, errIdle) {
		return
	}
	var op *net.OpError
	if errors.As(err, &op) { // reset by the client, or closed by us
		return
	}
	args := []any{"client", c.info.RemoteAddr, "listener", c.info.Listener, "err", err}
	if c.info.SASL != nil {
		args = append(args, "principal", c.info.SASL.Principal())
	}
	c.s.complaints.add(c.info.RemoteHost, time.Now(), "closing a connection", args...)
}

// waitForRoom stops reading while too much is unanswered.
func (c *conn) waitForRoom() error {
	for {
		c.mu.Lock()
		closing, n, bytes := c.mu.closing, c.mu.n, c.mu.bytes
		c.mu.Unlock()
		if closing {
			return errDone
		}
		refused := c.info.SASL != nil && c.info.SASL.Failed() // its last answer is on the way
		if !refused && n < maxUnanswered && (bytes < maxUnansweredBytes || n == 0) {
			return nil
		}
		select {
		case <-c.room:
		case <-c.s.stop:
			return errAskedToStop
		}
	}
}

// finishUp waits until what is unanswered has been answered: for a while, or
// until Close has no more time.
func (c *conn) finishUp() {
	c.cancelWaits()
	limit := time.NewTimer(c.s.o.Stall)
	defer limit.Stop()
	for {
		c.mu.Lock()
		over := c.mu.closing || c.mu.n == 0 && c.mu.turn == nobody // whose holder may be writing the last one
		c.mu.Unlock()
		if over {
			return
		}
		select {
		case <-c.room:
		case <-limit.C:
			return
		case <-c.s.give:
			return
		}
	}
}

// cancelWaits ends the waits of requests that are parked.
func (c *conn) cancelWaits() {
	var cancels []func()
	c.mu.Lock()
	for r := c.mu.first; r != nil; r = r.next {
		if !r.done && !r.inside && r.Cancel != nil {
			cancels = append(cancels, r.Cancel)
			r.Cancel = nil
		}
	}
	c.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
}

// shut closes the connection and ends the writing goroutine. Requests that end
// later are only tidied up.
func (c *conn) shut() {
	c.mu.Lock()
	was := c.mu.closing
	c.mu.closing = true
	c.mu.Unlock()
	if !was {
		c.nc.Close()
	}
	poke(c.wake)
	poke(c.room)
	c.turnOver(nobody, false)
}

// hangUp closes the connection from any goroutine; its reader sees it.
func (c *conn) hangUp() {
	c.mu.Lock()
	c.mu.hungUp = true
	nc := c.nc
	if c.mu.resting {
		poll.Hangup(c.rest.fd)
	}
	c.mu.Unlock()
	nc.Close()
}

// stopReading has the reader see that the server stops, unless it rests.
func (c *conn) stopReading() {
	c.mu.Lock()
	nc := c.nc
	c.mu.Unlock()
	nc.SetReadDeadline(time.Unix(1, 0))
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// frame is a request as it was read.
type frame struct {
	buf   *buffer
	size  int
	claim claim
	paid  bool // claim has what decoding may expand it to
	api   *api.API
}

// handle decodes the header and runs the handler.
func (c *conn) handle(f frame) error {
	r := c.s.getRequest(c)
	r.frame, r.claim, r.reuse = f.buf, f.claim, f.api.Reuse
	if f.claim.over {
		c.s.budget.moveOverdraft(&r.claim)
	}
	r.Received = time.Now()
	c.active.Store(r.Received.UnixNano())
	if err := c.header(r, f); err != nil {
		r.recycle()
		return err
	}
	if more := int64(f.api.Expansion) * int64(f.size); more > 0 && !f.paid && !c.s.budget.take(&r.claim, more, c.s.stop) {
		r.recycle()
		return errAskedToStop
	}
	r.W.B = append(r.W.B[:0], 0, 0, 0, 0)
	if f.api != api.SASLToken {
		r.W.B = wire.AppendResponseHeader(r.W.B, r.Header)
	}
	c.push(r, f.size)
	c.run(f.api, r)
	return c.settle(r)
}

// header reads the request's header and leaves the body. A bare token has none.
func (c *conn) header(r *request, f frame) error {
	if f.api == api.SASLToken {
		r.Body = f.buf.b[:f.size]
		return nil
	}
	in := wire.NewReader(f.buf.b[:f.size])
	h := wire.Header{Key: in.Int16(), Version: in.Int16(), CorrelationID: in.Int32()}
	first, ok := wire.FirstFlexible(h.Key)
	h.Flexible = ok && h.Version >= first
	if h.Key != int16(kmsg.ControlledShutdown) || h.Version != 0 { // which has no client id
		id := in.NullableString(false)
		if string(id) != c.clientID {
			c.clientID = string(id)
		}
		h.ClientID = c.clientID
		in.Tags(h.Flexible)
	}
	if in.Err() != nil {
		return fmt.Errorf("request header of %s v%d: %w", kmsg.NameForKey(h.Key), h.Version, in.Err())
	}
	r.Header, r.Body = h, in.Rest()
	return nil
}

// judge decides on a request before its body is read.
func (c *conn) judge(key, version int16, size int) (*api.API, error) {
	if c.info.SASL != nil {
		if err := c.info.SASL.Admit(key, time.Now()); err != nil {
			return nil, err
		}
	}
	a := api.Lookup(key)
	switch {
	case a == nil || version < a.Min,
		version > a.Max && key != int16(kmsg.ApiVersions): // whose handler answers in v0
		return nil, fmt.Errorf("%w: key %d version %d", errUnsupported, key, version)
	case a.MaxFrame > 0 && size > a.MaxFrame:
		return nil, fmt.Errorf("%s request of %d bytes is larger than its limit of %d", a.Name, size, a.MaxFrame)
	}
	return a, nil
}

// run calls the handler. A panic costs the client its connection; the request
// is not used again, since somebody may still hold it.
func (c *conn) run(a *api.API, r *request) {
	defer func() {
		if p := recover(); p != nil {
			c.panicked(p, a.Name, r)
		}
	}()
	a.Handle(c.s.o.Broker, &r.Request)
}

func (c *conn) panicked(p any, what string, r *request) {
	c.s.log().Error("a request handler panicked; its connection is closed", "api", what, "version", r.Version,
		"client", c.info.RemoteAddr, "panic", p, "stack", string(debug.Stack()))
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.done {
		r.done, r.Outcome = true, api.CloseConn
	}
	r.lost = true
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
