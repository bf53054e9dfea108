package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
)

// tcpServer is a server with a port.
type tcpServer struct {
	*Server
	addr string
}

// serving starts a server, with pollers or without, that is closed at the end.
func serving(t *testing.T, o Options, pollers bool) *tcpServer {
	t.Helper()
	s := open(t, o)
	if !pollers {
		s.polling.Do(func() {})
	}
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
	return &tcpServer{s, l.Addr().String()}
}

// bothWays runs a test on connections with and without goroutines of their own.
func bothWays(t *testing.T, f func(t *testing.T, pollers bool)) {
	t.Run("pollers", func(t *testing.T) { f(t, true) })
	t.Run("goroutines", func(t *testing.T) { f(t, false) })
}

func (s *tcpServer) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc.(*net.TCPConn)
}

func (s *tcpServer) attach(t testing.TB, nc net.Conn, r jute.ConnectRequest) *keepertest.Client {
	t.Helper()
	c, err := keepertest.Connect(nc, r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *tcpServer) connect(t testing.TB) *keepertest.Client {
	return s.attach(t, s.dial(t), jute.ConnectRequest{Timeout: 40000})
}

// until waits until a condition on the server's state holds.
func (s *tcpServer) until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(keepertest.Patience); ; runtime.Gosched() {
		s.mu.Lock()
		ok := f()
		s.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
	}
}

func (s *tcpServer) untilConnections(t testing.TB, n int) {
	t.Helper()
	s.until(t, fmt.Sprint(n, " connections"), func() bool { return len(s.mu.conns) == n })
}

// of returns the server's side of a session's connection.
func (s *tcpServer) of(c *keepertest.Client) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.byClient[s.mu.core.sessions[c.Resp.SessionID].client]
}

// frames encodes requests one after the other.
func frames(op jute.Op, bodies ...jute.Record) []byte {
	var e jute.Encoder
	for i, body := range bodies {
		start := e.BeginFrame()
		(&jute.RequestHeader{Xid: int32(i + 1), Op: op}).Encode(&e)
		body.Encode(&e)
		e.EndFrame(start)
	}
	return e.B
}

// answered reads the answers to n requests and checks their order.
func answered(t testing.TB, c *keepertest.Client, n int) {
	t.Helper()
	for i := range n {
		b, err := c.ReadFrame()
		var h jute.ReplyHeader
		if err == nil {
			err = jute.Unmarshal(b[:min(16, len(b))], &h)
		}
		if err != nil || h.Xid != int32(i+1) || h.Err != jute.OK {
			t.Fatal(i, h, err)
		}
	}
}

// Requests come cut anywhere, several in one piece, larger than what is read at
// once: they are answered in their order, and no buffer stays.
func TestRequestsComeInPieces(t *testing.T) {
	bothWays(t, func(t *testing.T, pollers bool) {
		s := serving(t, quiet(), pollers)
		nc := s.dial(t)
		c := s.attach(t, nc, jute.ConnectRequest{Timeout: 40000})
		big := bytes.Repeat([]byte("x"), 3*readAtOnce+7)
		all := frames(jute.OpCreate, create("/a", "", jute.Persistent), create("/b", "", jute.Persistent),
			&jute.CreateRequest{Path: "/c", Data: big, ACL: jute.WorldACL()}, create("/d", "", jute.Persistent))
		for _, piece := range []int{1, 3, 5, 1000, readAtOnce - 1, readAtOnce, readAtOnce + 1, len(all)} {
			for rest := all; len(rest) > 0; {
				n := min(piece, len(rest))
				if piece < 1000 { // byte by byte only around the ends of frames
					n = min(n, max(1, len(rest)-300))
					if len(rest) > 300 && len(all)-len(rest) > 300 {
						n = len(rest) - 300
					}
				}
				if err := c.WriteRaw(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			answered(t, c, 4)
			gone := frames(jute.OpDelete, &jute.PathVersionRequest{Path: "/a", Version: -1}, &jute.PathVersionRequest{Path: "/b", Version: -1},
				&jute.PathVersionRequest{Path: "/c", Version: -1}, &jute.PathVersionRequest{Path: "/d", Version: -1})
			if err := c.WriteRaw(gone); err != nil {
				t.Fatal(err)
			}
			answered(t, c, 4)
		}
		if pollers {
			kept := make(chan int)
			served := s.of(c)
			served.p.Post(func() { kept <- cap(served.part) })
			if n := <-kept; n != 0 {
				t.Errorf("%d bytes are kept", n)
			}
		}
	})
}

// What has come with a write is answered although that write's commit is held.
func TestAnAnswerDoesNotWaitForTheRequestBehindIt(t *testing.T) {
	bothWays(t, func(t *testing.T, pollers bool) {
		o, gate := quiet(), newGate()
		o.store = gate
		s := serving(t, o, pollers)
		go func() {
			<-gate.came
			gate.let <- nil
		}()
		c := s.connect(t)
		both := append(frames(jute.OpExists, &jute.PathWatchRequest{Path: "/"}), frames(jute.OpCreate, create("/x", "", jute.Persistent))...)
		if err := c.WriteRaw(both); err != nil {
			t.Fatal(err)
		}
		answered(t, c, 1)
		<-gate.came
		gate.let <- nil
		answered(t, c, 1)
	})
}

// A client that has more writes under way than may be gets goroutines, is read
// no further, and has all its answers in the end.
func TestTooMuchUnderWayIsNotRead(t *testing.T) {
	bothWays(t, func(t *testing.T, pollers bool) {
		o, gate := quiet(), newGate()
		o.store = gate
		s := serving(t, o, pollers)
		pass := func() {
			<-gate.came
			gate.let <- nil
		}
		go pass()
		c := s.connect(t)
		const n = 3 * maxOutstanding
		bodies := make([]jute.Record, n)
		for i := range bodies {
			bodies[i] = create(fmt.Sprint("/n", i), "", jute.Persistent)
		}
		go func() {
			if err := c.WriteRaw(frames(jute.OpCreate, bodies...)); err != nil {
				t.Error(err)
			}
		}()
		<-gate.came
		served := s.of(c)
		s.until(t, "held back", func() bool { return served.client.outstanding == maxOutstanding && served.p == nil })
		gate.let <- nil
		done := make(chan struct{})
		go func() {
			for {
				select {
				case <-gate.came:
					gate.let <- nil
				case <-done:
					return
				}
			}
		}()
		answered(t, c, n)
		close(done)
	})
}

// Ends of connections, from either side: the server forgets each, and what was
// answered before the end comes.
func TestConnectionsEnd(t *testing.T) {
	bothWays(t, func(t *testing.T, pollers bool) {
		s := serving(t, quiet(), pollers)
		ended := func(t *testing.T, nc net.Conn) {
			t.Helper()
			_ = nc.SetReadDeadline(time.Now().Add(keepertest.Patience))
			if b, err := io.ReadAll(nc); len(b) > 0 || err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
				t.Errorf("%q, %v", b, err)
			}
			s.untilConnections(t, 0)
		}
		t.Run("EOF", func(t *testing.T) {
			nc := s.dial(t)
			s.attach(t, nc, jute.ConnectRequest{Timeout: 40000})
			_ = nc.CloseWrite()
			ended(t, nc)
		})
		t.Run("EOF within a request", func(t *testing.T) {
			nc := s.dial(t)
			c := s.attach(t, nc, jute.ConnectRequest{Timeout: 40000})
			_ = c.WriteRaw([]byte{0, 0, 0, 12, 0})
			_ = nc.CloseWrite()
			ended(t, nc)
		})
		t.Run("reset", func(t *testing.T) {
			nc := s.dial(t)
			s.attach(t, nc, jute.ConnectRequest{Timeout: 40000})
			_ = nc.SetLinger(0)
			_ = nc.Close()
			s.untilConnections(t, 0)
		})
		t.Run("reset with answers on their way", func(t *testing.T) {
			nc := s.dial(t)
			c := s.attach(t, nc, jute.ConnectRequest{Timeout: 40000})
			reads := make([]jute.Record, 5000)
			for i := range reads {
				reads[i] = &jute.PathWatchRequest{Path: "/zookeeper"}
			}
			_ = c.WriteRaw(frames(jute.OpGetData, reads...))
			_ = nc.SetLinger(0)
			_ = nc.Close()
			s.untilConnections(t, 0)
		})
		t.Run("closeSession", func(t *testing.T) {
			nc := s.dial(t)
			c := s.attach(t, nc, jute.ConnectRequest{Timeout: 40000})
			call(t, c, jute.OpCloseSession, nil, jute.OK)
			ended(t, nc)
		})
		t.Run("closeSession and more", func(t *testing.T) {
			nc := s.dial(t)
			c := s.attach(t, nc, jute.ConnectRequest{Timeout: 40000})
			exists := frames(jute.OpExists, &jute.PathWatchRequest{Path: "/"})
			if err := c.WriteRaw(append(append(exists, frames(jute.OpCloseSession, raw(nil))...), exists...)); err != nil {
				t.Fatal(err)
			}
			answered(t, c, 1)
			answered(t, c, 1)
			s.untilConnections(t, 0)
		})
		t.Run("an operation that is unknown", func(t *testing.T) {
			nc := s.dial(t)
			c := s.attach(t, nc, jute.ConnectRequest{Timeout: 40000})
			if err := c.WriteRaw(frames(999, raw(nil))); err != nil {
				t.Fatal(err)
			}
			if f, err := c.ReadFrame(); err != nil || len(f) != 16 {
				t.Fatal(f, err)
			}
			ended(t, nc)
		})
		t.Run("moved", func(t *testing.T) {
			nc := s.dial(t)
			c := s.attach(t, nc, jute.ConnectRequest{Timeout: 40000})
			next := s.dial(t)
			d := s.attach(t, next, jute.ConnectRequest{Timeout: 40000, SessionID: c.Resp.SessionID, Password: c.Resp.Password})
			if b, err := io.ReadAll(nc); len(b) > 0 || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			call(t, d, jute.OpCloseSession, nil, jute.OK)
			ended(t, next)
		})
		t.Run("a session that is none", func(t *testing.T) {
			nc := s.dial(t)
			if _, err := keepertest.Connect(nc, jute.ConnectRequest{SessionID: 1}); !errors.Is(err, jute.ErrSessionExpired) {
				t.Error(err)
			}
			s.untilConnections(t, 0)
		})
		t.Run("no first frame", func(t *testing.T) {
			o := quiet()
			o.HandshakeTimeout = 100 * time.Millisecond
			s := serving(t, o, pollers)
			nc := s.dial(t)
			_, _ = nc.Write([]byte{0, 0})
			if b, err := io.ReadAll(nc); len(b) > 0 || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			s.untilConnections(t, 0)
		})
		t.Run("a word", func(t *testing.T) {
			nc := s.dial(t)
			_, _ = nc.Write([]byte("ruok"))
			if b, err := io.ReadAll(nc); string(b) != "imok" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			s.untilConnections(t, 0)
		})
	})
}

// A session that expires ends its connection, also one that takes no answers:
// nobody waits for that longer than for a first frame.
func TestAnExpiredSessionsConnectionEndsWhateverItReads(t *testing.T) {
	bothWays(t, func(t *testing.T, pollers bool) {
		o := quiet()
		o.MinSessionTimeout, o.HandshakeTimeout = 200*time.Millisecond, 2*time.Second
		s := serving(t, o, pollers)
		c := s.connect(t)
		call(t, c, jute.OpCreate, create("/big", strings.Repeat("x", 1<<20), jute.Persistent), jute.OK)
		quick := s.attach(t, s.dial(t), jute.ConnectRequest{Timeout: 200})
		if _, err := quick.ReadFrame(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		deaf := s.attach(t, s.dial(t), jute.ConnectRequest{Timeout: 200})
		for range 100 {
			if _, err := deaf.Send(jute.OpGetData, &jute.PathWatchRequest{Path: "/big"}); err != nil {
				break // it is over already
			}
		}
		s.untilConnections(t, 1)
		call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/"}, jute.OK)
	})
}

// Clients of every kind, while the server is closed or not: whole, cut and
// pipelined requests, answers that nobody reads, sessions that move, connections
// that break. Nobody gets an answer that is not his, and nothing is left.
func TestClientsOfEveryKind(t *testing.T) {
	seed := testSeed(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(6)) // for several pollers
	bothWays(t, func(t *testing.T, pollers bool) {
		for round := range uint64(3) {
			s := serving(t, quiet(), pollers)
			first := s.connect(t)
			call(t, first, jute.OpCreate, create("/big", strings.Repeat("x", 100_000), jute.Persistent), jute.OK)
			var wg sync.WaitGroup
			for i := range uint64(8) {
				r := rand.New(rand.NewPCG(seed, round<<8|i))
				wg.Go(func() { s.wildClient(t, r, fmt.Sprintf("/c%d-", i)) })
			}
			if round == 2 { // in the middle of it
				for range 200 {
					call(t, first, jute.OpExists, &jute.PathWatchRequest{Path: "/big"}, jute.OK)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			wg.Wait()
			first.Close()
			s.untilConnections(t, 0)
		}
	})
}

// wildClient makes some connections one after the other, until the server
// refuses one.
func (s *tcpServer) wildClient(t *testing.T, r *rand.Rand, prefix string) {
	made := 0
	for range 6 {
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			return
		}
		c, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 40000})
		if err != nil {
			_ = nc.Close()
			return
		}
		for range r.IntN(6) {
			var bodies []jute.Record
			op, n := jute.OpCreate, 1+r.IntN(20)
			if r.IntN(2) == 0 {
				op = jute.OpGetData
			}
			for range n {
				if op == jute.OpCreate {
					bodies = append(bodies, create(fmt.Sprint(prefix, made), strings.Repeat("y", r.IntN(5000)), jute.Persistent))
					made++
				} else {
					bodies = append(bodies, &jute.PathWatchRequest{Path: "/big"})
				}
			}
			out := frames(op, bodies...)
			sent := make(chan struct{})
			go func() { // answers may have to be read before all is sent
				defer close(sent)
				for len(out) > 0 {
					k := 1 + r.IntN(len(out))
					if c.WriteRaw(out[:k]) != nil {
						return
					}
					out = out[k:]
				}
			}()
			for i := range n {
				b, err := c.ReadFrame()
				if err != nil {
					break
				}
				var h jute.ReplyHeader
				if err := jute.Unmarshal(b[:min(16, len(b))], &h); err != nil || h.Xid != int32(i+1) || h.Err != jute.OK {
					t.Errorf("%d of %d: %+v, %v", i, n, h, err)
					break
				}
			}
			<-sent
		}
		switch tcp := nc.(*net.TCPConn); r.IntN(4) {
		case 0:
			_ = c.Write(&jute.RequestHeader{Xid: 1, Op: jute.OpCloseSession})
			_, _ = io.Copy(io.Discard, nc)
		case 1: // leaves answers unread
			_ = c.WriteRaw(frames(jute.OpGetData, slicesOf(&jute.PathWatchRequest{Path: "/big"}, 30)...))
			_ = tcp.SetLinger(0)
		case 2: // moves
			if again, err := net.Dial("tcp", s.addr); err == nil {
				if d, err := keepertest.Connect(again, jute.ConnectRequest{SessionID: c.Resp.SessionID, Password: c.Resp.Password, Timeout: 40000}); err == nil {
					_, _ = io.Copy(io.Discard, nc)
					_, _, _ = d.Call(jute.OpPing, nil)
				}
				_ = again.Close()
			}
		}
		_ = nc.Close()
	}
}

func slicesOf(r jute.Record, n int) []jute.Record {
	all := make([]jute.Record, n)
	for i := range all {
		all[i] = r
	}
	return all
}
