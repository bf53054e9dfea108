package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"testing"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
)

// overTCP serves s on a port.
func overTCP(t testing.TB, s *Server) (connect func() *keepertest.Client) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return func() *keepertest.Client {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 40000})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
}

// More than a socket takes: answers and events come whole and in their order,
// whoever sends them.
func TestAnswersThatASocketDoesNotTakeComeWhole(t *testing.T) {
	connect := overTCP(t, open(t, quiet()))
	slow, writer := connect(), connect()
	const reads, writes = 60, 2000
	big := bytes.Repeat([]byte("0123456789"), 70_000)
	call(t, writer, jute.OpCreate, &jute.CreateRequest{Path: "/big", Data: big, ACL: jute.WorldACL()}, jute.OK)
	call(t, slow, jute.OpAddWatch, &jute.AddWatchRequest{Path: "/", Mode: jute.WatchPersistentRecursive}, jute.OK)
	for range reads { // some are answered into the socket, the rest waits
		if _, err := slow.Send(jute.OpGetData, &jute.PathWatchRequest{Path: "/big"}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range writes { // each is an event behind that
		call(t, writer, jute.OpCreate, create(fmt.Sprint("/n", i), "", jute.Persistent), jute.OK)
	}
	answers, events, last := 0, 0, int32(1)
	for answers < reads || events < writes {
		f, err := slow.Recv()
		switch {
		case err != nil:
			t.Fatal(answers, events, err)
		case f.Event != nil:
			if want := fmt.Sprint("/n", events); f.Event.Path != want {
				t.Fatalf("event of %s, expected %s", f.Event.Path, want)
			}
			events++
		default:
			if last++; f.Xid != last || !bytes.Equal(f.Body.(*jute.GetDataResponse).Data, big) {
				t.Fatalf("answer %d has xid %d", answers, f.Xid)
			}
			answers++
		}
	}
}

// Requests one by one, several at once, and changes by others that are watched:
// nothing is left unsent.
func TestAllOutputIsSentOverTCP(t *testing.T) {
	connect := overTCP(t, open(t, quiet()))
	a, b := connect(), connect()
	for i := range 300 {
		path := fmt.Sprint("/n", i)
		call(t, a, jute.OpExists, &jute.PathWatchRequest{Path: path, Watch: true}, jute.ErrNoNode)
		for j := range i % 4 {
			if _, err := b.Send(jute.OpExists, &jute.PathWatchRequest{Path: fmt.Sprint("/none", j)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Send(jute.OpCreate, create(path, "", jute.Persistent)); err != nil {
			t.Fatal(err)
		}
		for range i%4 + 1 {
			if _, err := b.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		if f, err := a.Recv(); err != nil || f.Event == nil || f.Event.Path != path {
			t.Fatal(f, err)
		}
	}
}
