package tool

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"sync"

	"barnabas/internal/jute"
	"barnabas/internal/zookeeper"
)

// extras are the requests of the shell that zookeeper.Client has no call for,
// since Kafka makes none of them. They travel on that client's own connection,
// between its requests, under xids that it never uses; it does not see the
// answers. What the session was given so, identities and watches that stay, is
// given to each further connection before anything else.
type extras struct {
	dial   func(ctx context.Context, addr string) (net.Conn, error)
	chroot string // before the paths of the connect string's client

	mu struct {
		sync.Mutex
		conn    *extraConn // the latest
		xid     int32
		calls   map[int32]chan []byte // answers that are awaited
		auth    []jute.AuthPacket
		watches map[watch]bool
	}
}

// watch is one that the shell has at the server.
type watch struct {
	kind watchKind
	path string // in the server's words
}

type watchKind int

const (
	watchData watchKind = iota // and those for a node that is not there yet
	watchChildren
	watchPersistent
	watchRecursive
)

// firstExtra is the xid before the first; the client counts upwards from 1, and
// -1 to -8 have meanings of their own.
const firstExtra = -1000

// through lets a client connect so that x can send on its connection.
func through(o *zookeeper.Options) *extras {
	x := &extras{dial: o.Dial}
	if x.dial == nil {
		x.dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		}
	}
	x.mu.xid, x.mu.calls, x.mu.watches = firstExtra, map[int32]chan []byte{}, map[watch]bool{}
	o.Dial = x.connect
	return x
}

func (x *extras) connect(ctx context.Context, addr string) (net.Conn, error) {
	nc, err := x.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &extraConn{Conn: nc, x: x, in: bufio.NewReader(nc), gone: make(chan struct{})}
	x.mu.Lock()
	x.mu.conn = c
	x.mu.Unlock()
	return c, nil
}

// call makes one request. response may be nil.
func (x *extras) call(ctx context.Context, op jute.Op, request, response jute.Record) error {
	answer := make(chan []byte, 1)
	x.mu.Lock()
	c := x.mu.conn
	x.mu.xid--
	xid := x.mu.xid
	x.mu.calls[xid] = answer
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		delete(x.mu.calls, xid)
		x.mu.Unlock()
	}()
	if _, err := c.Write(requestFrame(xid, op, request)); err != nil {
		return jute.ErrConnectionLoss
	}
	select {
	case frame := <-answer:
		d := jute.NewDecoder(frame)
		var h jute.ReplyHeader
		h.Decode(d)
		if h.Err == jute.OK && response != nil {
			response.Decode(d)
		}
		if d.Err() != nil {
			return fmt.Errorf("the answer to %v: %w", op, d.Err())
		}
		return h.Err.OrNil()
	case <-c.gone:
		return jute.ErrConnectionLoss
	case <-ctx.Done():
		return ctx.Err()
	}
}

// identify adds an identity. The answer to it goes to the client, which ends the
// session if it is a refusal.
func (x *extras) identify(p jute.AuthPacket) error {
	x.mu.Lock()
	x.mu.auth = append(x.mu.auth, p)
	c := x.mu.conn
	x.mu.Unlock()
	if _, err := c.Write(requestFrame(jute.XidAuth, jute.OpAuth, &p)); err != nil {
		return jute.ErrConnectionLoss
	}
	return nil
}

func requestFrame(xid int32, op jute.Op, request jute.Record) []byte {
	var e jute.Encoder
	start := e.BeginFrame()
	(&jute.RequestHeader{Xid: xid, Op: op}).Encode(&e)
	if request != nil {
		request.Encode(&e)
	}
	e.EndFrame(start)
	return e.B
}

// opening is what a new connection begins with.
func (x *extras) opening() (frames []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.mu.auth {
		frames = append(frames, requestFrame(jute.XidAuth, jute.OpAuth, &x.mu.auth[i])...)
	}
	r := jute.SetWatches2Request{SetWatchesRequest: jute.SetWatchesRequest{Data: []string{}, Exist: []string{}, Child: []string{}}, Persistent: []string{}, PersistentRecursive: []string{}}
	for w := range x.mu.watches {
		switch w.kind {
		case watchPersistent:
			r.Persistent = append(r.Persistent, w.path)
		case watchRecursive:
			r.PersistentRecursive = append(r.PersistentRecursive, w.path)
		}
	}
	if len(r.Persistent)+len(r.PersistentRecursive) > 0 {
		frames = append(frames, requestFrame(jute.XidSetWatches, jute.OpSetWatches2, &r)...)
	}
	return frames
}

// take gives an answer to whom it is for; false: it is the client's.
func (x *extras) take(frame []byte) bool {
	var h jute.ReplyHeader
	d := jute.NewDecoder(frame)
	h.Decode(d)
	if d.Err() != nil || h.Xid >= firstExtra {
		return false
	}
	x.mu.Lock()
	answer := x.mu.calls[h.Xid]
	x.mu.Unlock()
	if answer != nil {
		answer <- frame // the only one to this xid
	}
	return true
}

// watching notes a watch, or that it is gone.
func (x *extras) watching(w watch, there bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if there {
		x.mu.watches[w] = true
	} else {
		delete(x.mu.watches, w)
	}
}

// forget drops all watches, which have gone with their session.
func (x *extras) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.mu.watches)
}

// kept returns those of kinds that the shell has at a node.
func (x *extras) kept(path string, kinds ...watchKind) (all []watch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, kind := range kinds {
		if w := (watch{kind, path}); x.mu.watches[w] {
			all = append(all, w)
		}
	}
	return all
}

// fired tells whether an event is of a watch that the shell has, and forgets
// those that it uses up. The client sets again, after a lost connection, also
// what the shell has removed.
func (x *extras) fired(t jute.EventType, at string) bool {
	var once []watchKind
	switch t {
	case jute.EventNodeChildrenChanged:
		once = []watchKind{watchChildren}
	case jute.EventNodeDeleted:
		once = []watchKind{watchData, watchChildren}
	default:
		once = []watchKind{watchData}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	seen := x.mu.watches[watch{watchPersistent, at}]
	for _, kind := range once {
		w := watch{kind, at}
		seen = seen || x.mu.watches[w]
		delete(x.mu.watches, w)
	}
	for above := at; !seen && t != jute.EventNodeChildrenChanged; above = path.Dir(above) {
		seen = x.mu.watches[watch{watchRecursive, above}]
		if above == "/" {
			break
		}
	}
	return seen
}

// extraConn is a connection of the client's, off which the answers to extras
// are taken.
type extraConn struct {
	net.Conn
	x       *extras
	in      *bufio.Reader
	greeted bool   // the answer to the request for a session has passed
	rest    []byte // of a frame, for the client
	once    sync.Once
	gone    chan struct{} // closed by Close
}

// Read gives the client what is its own.
func (c *extraConn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		frame, err := c.frame()
		switch {
		case err != nil:
			return 0, err
		case !c.greeted:
			c.greeted, c.rest = true, frame
			if opening := c.x.opening(); len(opening) > 0 {
				if _, err := c.Write(opening); err != nil {
					return 0, err
				}
			}
		case !c.x.take(frame[4:]):
			c.rest = frame
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// frame reads one with its length before it.
func (c *extraConn) frame() ([]byte, error) {
	prefix, err := c.in.Peek(4)
	if err != nil {
		return nil, err
	}
	n := int32(binary.BigEndian.Uint32(prefix))
	if n < 0 || n > zookeeper.DefaultMaxFrame {
		return slices.Clone(prefix), nil // the client says what is wrong with it
	}
	frame := make([]byte, 4+n)
	_, err = io.ReadFull(c.in, frame)
	return frame, err
}

// Close ends the connection, and the wait for answers.
func (c *extraConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}
