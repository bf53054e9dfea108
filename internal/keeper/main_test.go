package keeper

import (
	"log/slog"
	"net"
	"testing"

	"go.uber.org/goleak"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet returns options for a server in memory that logs to nobody.
func quiet() Options { return Options{Logger: slog.New(slog.DiscardHandler)} }

func open(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func dial(t testing.TB, s *Server) net.Conn {
	t.Helper()
	nc, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

// connect returns a client with a new session.
func connect(t testing.TB, s *Server) *keepertest.Client {
	t.Helper()
	return attach(t, s, jute.ConnectRequest{Timeout: 40000})
}

func attach(t testing.TB, s *Server, r jute.ConnectRequest) *keepertest.Client {
	t.Helper()
	c, err := keepertest.Connect(dial(t, s), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// call sends a request and fails the test unless it is answered with want.
func call(t testing.TB, c *keepertest.Client, op jute.Op, body jute.Record, want jute.Error) keepertest.Frame {
	t.Helper()
	f, _, err := c.Call(op, body)
	if err != nil {
		t.Fatal(err)
	}
	if f.Err != want {
		t.Fatalf("%v %+v: %v, expected %v", op, body, f.Err, want)
	}
	return f
}

func create(path, data string, mode jute.CreateMode) *jute.CreateRequest {
	return &jute.CreateRequest{Path: path, Data: []byte(data), ACL: jute.WorldACL(), Mode: mode}
}
