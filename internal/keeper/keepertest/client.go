// Package keepertest is a raw ZooKeeper client for tests: it sends exactly what
// it is told, keeps no watches, retries nothing and reconnects never. It drives
// our server and Apache ZooKeeper alike.
//
// It owns its connection and starts no goroutine. A Client is for one goroutine,
// or for one that sends and one that receives.
package keepertest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"barnabas/internal/jute"
)

// Patience is how long a Client waits for a frame.
const Patience = time.Minute

// Client is one connection.
type Client struct {
	nc   net.Conn
	in   *bufio.Reader
	mu   sync.Mutex        // over ops
	ops  map[int32]jute.Op // of the requests without a reply
	xid  int32
	Resp jute.ConnectResponse
}

// Frame is one frame from the server: an event, or a reply.
type Frame struct {
	jute.ReplyHeader
	Event *jute.WatcherEvent
	Body  jute.Record // nil when the reply has none
	Raw   []byte      // what follows the header
}

// New makes a client of a connection, without a handshake.
func New(nc net.Conn) *Client {
	return &Client{nc: nc, in: bufio.NewReader(nc), ops: map[int32]jute.Op{}}
}

// Connect makes the handshake. A session that is gone gives jute.ErrSessionExpired.
func Connect(nc net.Conn, req jute.ConnectRequest) (*Client, error) {
	c := New(nc)
	if req.Password == nil {
		req.Password = make([]byte, jute.PasswordSize)
	}
	if err := c.Write(&req); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	b, err := c.ReadFrame()
	if err == nil {
		err = jute.Unmarshal(b, &c.Resp)
	}
	if err == nil && c.Resp.SessionID == 0 {
		err = jute.ErrSessionExpired
	}
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return c, nil
}

// Close drops the connection. The session lives on.
func (c *Client) Close() { _ = c.nc.Close() }

// Write sends records as one frame.
func (c *Client) Write(records ...jute.Record) error {
	var e jute.Encoder
	start := e.BeginFrame()
	for _, r := range records {
		if r != nil {
			r.Encode(&e)
		}
	}
	e.EndFrame(start)
	return c.WriteRaw(e.B)
}

// WriteRaw sends bytes.
func (c *Client) WriteRaw(b []byte) error {
	_ = c.nc.SetWriteDeadline(time.Now().Add(Patience))
	_, err := c.nc.Write(b)
	return err
}

// Send sends a request and returns its xid.
func (c *Client) Send(op jute.Op, body jute.Record) (int32, error) {
	var xid int32
	switch op {
	case jute.OpPing:
		xid = jute.XidPing
	case jute.OpAuth:
		xid = jute.XidAuth
	case jute.OpSetWatches, jute.OpSetWatches2:
		xid = jute.XidSetWatches
	default:
		c.xid++
		xid = c.xid
	}
	c.mu.Lock()
	c.ops[xid] = op
	c.mu.Unlock()
	return xid, c.Write(&jute.RequestHeader{Xid: xid, Op: op}, body)
}

// ReadFrame returns the next frame.
func (c *Client) ReadFrame() ([]byte, error) {
	_ = c.nc.SetReadDeadline(time.Now().Add(Patience))
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, err
	}
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || n > 16<<20 {
		return nil, fmt.Errorf("frame of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c.in, b)
	return b, err
}

// sent returns the operation that a reply is to.
func (c *Client) sent(xid int32) (jute.Op, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	op, ok := c.ops[xid]
	delete(c.ops, xid)
	return op, ok
}

// Recv returns the next event or reply.
func (c *Client) Recv() (Frame, error) {
	b, err := c.ReadFrame()
	if err != nil {
		return Frame{}, err
	}
	var f Frame
	d := jute.NewDecoder(b)
	f.Decode(d)
	f.Raw = d.Rest()
	if f.Xid == jute.XidNotification {
		f.Event = new(jute.WatcherEvent)
		f.Event.Decode(d)
	} else if op, ok := c.sent(f.Xid); !ok {
		return f, fmt.Errorf("reply to xid %d, which was not sent", f.Xid)
	} else {
		if len(f.Raw) > 0 {
			if f.Body = jute.NewResponse(op); f.Body == nil {
				return f, fmt.Errorf("%v has a body of %d bytes", op, len(f.Raw))
			}
			f.Body.Decode(d)
		}
	}
	if d.Err() != nil || len(d.Rest()) > 0 {
		return f, fmt.Errorf("frame of %d bytes: %v, %d left", len(b), d.Err(), len(d.Rest()))
	}
	return f, nil
}

// Call sends a request and returns its reply, and the events before it.
func (c *Client) Call(op jute.Op, body jute.Record) (Frame, []jute.WatcherEvent, error) {
	xid, err := c.Send(op, body)
	if err != nil {
		return Frame{}, nil, err
	}
	var events []jute.WatcherEvent
	for {
		f, err := c.Recv()
		switch {
		case err != nil:
			return f, events, err
		case f.Event != nil:
			events = append(events, *f.Event)
		case f.Xid == xid:
			return f, events, nil
		default:
			return f, events, fmt.Errorf("reply to xid %d, expected %d", f.Xid, xid)
		}
	}
}
