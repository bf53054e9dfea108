package zookeeper

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"barnabas/internal/jute"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the server's end of one connection, driven by a test line by line.
type peer struct {
	t  *testing.T
	nc net.Conn
}

// fake is a server whose connections a test answers by hand.
type fake struct {
	t     *testing.T
	conns chan net.Conn
}

func newFake(t *testing.T) *fake { return &fake{t, make(chan net.Conn)} }

func (f *fake) dial(ctx context.Context, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case f.conns <- ours:
		return theirs, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// accept takes the next connection of the client.
func (f *fake) accept() *peer {
	f.t.Helper()
	select {
	case nc := <-f.conns:
		f.t.Cleanup(func() { nc.Close() })
		nc.SetDeadline(time.Now().Add(20 * time.Second))
		return &peer{f.t, nc}
	case <-time.After(20 * time.Second):
		f.t.Fatal("the client does not connect")
		return nil
	}
}

// welcome reads the connect request and grants a session of 30 s.
func (f *fake) welcome() (*peer, jute.ConnectRequest) {
	f.t.Helper()
	p := f.accept()
	var request jute.ConnectRequest
	p.receive(&request)
	p.send(&jute.ConnectResponse{Timeout: 30000, SessionID: 7, Password: []byte("0123456789abcdef")})
	return p, request
}

func (p *peer) frame() []byte {
	p.t.Helper()
	var prefix [4]byte
	if _, err := io.ReadFull(p.nc, prefix[:]); err != nil {
		p.t.Fatal(err)
	}
	frame := make([]byte, binary.BigEndian.Uint32(prefix[:]))
	if _, err := io.ReadFull(p.nc, frame); err != nil {
		p.t.Fatal(err)
	}
	return frame
}

func (p *peer) receive(records ...jute.Record) {
	p.t.Helper()
	if err := jute.Unmarshal(p.frame(), records...); err != nil {
		p.t.Fatal(err)
	}
}

// request reads the next request's header.
func (p *peer) request(want jute.Op) int32 {
	p.t.Helper()
	var h jute.RequestHeader
	p.receive(&h)
	if h.Op != want {
		p.t.Fatalf("request %v, want %v", h.Op, want)
	}
	return h.Xid
}

func (p *peer) send(records ...jute.Record) {
	p.t.Helper()
	body := jute.Marshal(records...)
	p.raw(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
}

func (p *peer) raw(b []byte) {
	p.t.Helper()
	if _, err := p.nc.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

func (f *fake) client(connect string, change ...func(*Options)) *Client {
	f.t.Helper()
	o := Options{Connect: connect, Dial: f.dial}
	for _, c := range change {
		c(&o)
	}
	c, err := New(o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Detach)
	return c
}

// started is a client on its first connection.
func (f *fake) started(change ...func(*Options)) (*Client, *peer) {
	f.t.Helper()
	c := f.client("x:1", change...)
	started := make(chan error, 1)
	go func() { started <- c.Start(f.t.Context()) }()
	p, _ := f.welcome()
	if err := <-started; err != nil {
		f.t.Fatal(err)
	}
	nextEvent(f.t, c, Event{jute.EventNone, jute.StateSyncConnected, ""})
	return c, p
}

func nextEvent(t *testing.T, c *Client, want Event) {
	t.Helper()
	select {
	case got := <-c.Events():
		if got != want {
			t.Fatalf("event %+v, want %+v", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("no event; want %+v", want)
	}
}
