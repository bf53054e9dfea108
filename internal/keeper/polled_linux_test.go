package keeper

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"barnabas/internal/keeper/keepertest"
)

// A connection that a poller serves has no goroutine, and its descriptor goes
// with it, whoever ends it.
func TestQuietConnectionsCostNoGoroutine(t *testing.T) {
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // the first one of all brings Go's poller
	if err != nil {
		t.Fatal(err)
	}
	before := descriptors() - 1 // the listener goes, too
	s, err := Open(quiet())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	server := &tcpServer{s, l.Addr().String()}
	const n = 200
	first := server.connect(t)
	server.untilPolled(t, 1)
	few := runtime.NumGoroutine()
	clients := []*keepertest.Client{first}
	for range n - 1 {
		clients = append(clients, server.connect(t))
	}
	server.untilPolled(t, n)
	for end := time.Now().Add(keepertest.Patience); runtime.NumGoroutine() > few+n/10; runtime.Gosched() {
		if time.Now().After(end) { // those of the handshakes have ended by then
			t.Fatalf("%d goroutines for a connection, %d for %d", few, runtime.NumGoroutine(), n)
		}
	}
	for i, c := range clients {
		if i%2 == 0 {
			c.Close()
		}
	}
	server.untilConnections(t, n/2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	for _, c := range clients {
		c.Close()
	}
	if after := descriptors(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// untilPolled waits until n connections are with pollers.
func (s *tcpServer) untilPolled(t *testing.T, n int) {
	t.Helper()
	s.until(t, "all with pollers", func() bool {
		polled := 0
		for c := range s.mu.conns {
			if c.p != nil {
				polled++
			}
		}
		return polled == n
	})
}
