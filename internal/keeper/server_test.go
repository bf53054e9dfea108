package keeper

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
)

// gateStore holds each commit until the test lets it go, with an error or not.
type gateStore struct {
	memoryStore
	came chan *batch
	let  chan error
}

func (g gateStore) commit(b *batch) error {
	g.came <- b
	return <-g.let
}

func newGate() gateStore { return gateStore{came: make(chan *batch), let: make(chan error)} }

func TestNothingOfAHeldCommitShows(t *testing.T) {
	o := quiet()
	gate := newGate()
	o.store = gate
	s := open(t, o)
	pass := func() {
		<-gate.came
		gate.let <- nil
	}
	go pass()
	a := connect(t, s)
	go pass()
	b := connect(t, s)
	call(t, b, jute.OpExists, &jute.PathWatchRequest{Path: "/x", Watch: true}, jute.ErrNoNode)
	for _, op := range []jute.Op{jute.OpCreate, jute.OpGetData} {
		var body jute.Record = create("/x", "1", jute.Persistent)
		if op == jute.OpGetData {
			body = &jute.PathWatchRequest{Path: "/x"}
		}
		if _, err := a.Send(op, body); err != nil {
			t.Fatal(err)
		}
	}
	<-gate.came // the commit of /x is under way
	for range 3 {
		if f, events, err := b.Call(jute.OpExists, &jute.PathWatchRequest{Path: "/x"}); err != nil || len(events) > 0 || f.Err != jute.ErrNoNode {
			t.Fatal(f, events, err)
		}
	}
	gate.let <- nil
	for _, want := range []jute.Op{jute.OpCreate, jute.OpGetData} {
		if f, err := a.Recv(); err != nil || f.Err != jute.OK {
			t.Fatal(want, f, err)
		}
	}
	f, events, err := b.Call(jute.OpExists, &jute.PathWatchRequest{Path: "/x"})
	if err != nil || f.Err != jute.OK || len(events) != 1 || events[0].Type != jute.EventNodeCreated {
		t.Fatal(f, events, err)
	}
	// The reply to a write means that its commit is over: end these sessions' too.
	a.Close()
	b.Close()
}

func TestWritesThatComeDuringACommitShareTheNext(t *testing.T) {
	o := quiet()
	gate := newGate()
	o.store = gate
	s := open(t, o)
	go func() {
		<-gate.came
		gate.let <- nil
	}()
	c := connect(t, s)
	const n = 900
	go func() {
		for i := range n {
			if _, err := c.Send(jute.OpCreate, create(fmt.Sprint("/n", i), "", jute.Persistent)); err != nil {
				t.Error(err)
			}
		}
	}()
	first := <-gate.came
	for waiting := 0; waiting < n-len(first.txns); runtime.Gosched() {
		s.mu.Lock()
		waiting = len(s.mu.core.pending)
		s.mu.Unlock()
	}
	gate.let <- nil
	if second := <-gate.came; len(second.txns) != n-len(first.txns) {
		t.Errorf("%d and then %d of %d writes", len(first.txns), len(second.txns), n)
	}
	gate.let <- nil
	for range n {
		if _, err := c.ReadFrame(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAfterAFailedCommitWritesAreRefusedAndReadsServed(t *testing.T) {
	o := quiet()
	var log lockedBuffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	gate := newGate()
	o.store = gate
	s := open(t, o)
	go func() {
		for range 2 {
			<-gate.came
			gate.let <- nil
		}
		<-gate.came
		gate.let <- errors.New("no space left on device")
	}()
	a, b := connect(t, s), connect(t, s)
	if f, _, err := a.Call(jute.OpCreate, create("/x", "", jute.Persistent)); err == nil {
		t.Fatal("answered", f)
	}
	call(t, b, jute.OpExists, &jute.PathWatchRequest{Path: "/x"}, jute.ErrNoNode)
	call(t, b, jute.OpCreate, create("/y", "", jute.Persistent), jute.ErrSystemError)
	if !strings.Contains(log.String(), "no space left on device") {
		t.Error("the log says nothing:", log.String())
	}
	attach(t, s, jute.ConnectRequest{Timeout: 10000, SessionID: a.Resp.SessionID, Password: a.Resp.Password})
}

type lockedBuffer struct {
	sync.Mutex
	b bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.Lock()
	defer l.Unlock()
	return l.b.String()
}

func TestASilentSessionExpiresAndAPingingOneLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(quiet())
		if err != nil {
			t.Fatal(err)
		}
		silent, alive := attach(t, s, jute.ConnectRequest{Timeout: 4000}), attach(t, s, jute.ConnectRequest{Timeout: 4000})
		call(t, silent, jute.OpCreate, create("/e", "", jute.Ephemeral), jute.OK)
		call(t, alive, jute.OpExists, &jute.PathWatchRequest{Path: "/e", Watch: true}, jute.OK)
		start := time.Now()
		var events []jute.WatcherEvent
		for len(events) == 0 && time.Since(start) < time.Minute {
			<-time.After(time.Second)
			var err error
			if _, events, err = alive.Call(jute.OpPing, nil); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d < 4*time.Second || d > 7*time.Second || events[0].Type != jute.EventNodeDeleted {
			t.Fatal(d, events)
		}
		if f, err := silent.ReadFrame(); err == nil {
			t.Fatalf("%x", f)
		}
		if _, err := keepertest.Connect(dial(t, s), jute.ConnectRequest{SessionID: silent.Resp.SessionID, Password: silent.Resp.Password}); !errors.Is(err, jute.ErrSessionExpired) {
			t.Fatal(err)
		}
		silent.Close()
		alive.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAConnectionThatSaysNothingIsClosed(t *testing.T) {
	for _, said := range []string{"", "\x00", "\x00\x00\x00\x2d", "\x00\x00\x00\x2d\x00\x00\x00\x00"} {
		synctest.Test(t, func(t *testing.T) {
			s, err := Open(quiet())
			if err != nil {
				t.Fatal(err)
			}
			nc := dial(t, s)
			if _, err := io.WriteString(nc, said); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if _, err := nc.Read(make([]byte, 1)); err == nil || time.Since(start) > 11*time.Second {
				t.Fatal(err, time.Since(start))
			}
			if err := errors.Join(nc.Close(), s.Close()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A client that sends and never reads is held back, then loses its session,
// and nobody else notices.
func TestAClientThatNeverReadsHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(quiet())
		if err != nil {
			t.Fatal(err)
		}
		deaf, other := attach(t, s, jute.ConnectRequest{Timeout: 4000}), attach(t, s, jute.ConnectRequest{Timeout: 40000})
		call(t, other, jute.OpCreate, create("/big", strings.Repeat("x", 100_000), jute.Persistent), jute.OK)
		sent := make(chan int)
		go func() {
			n := 0
			for {
				if _, err := deaf.Send(jute.OpGetData, &jute.PathWatchRequest{Path: "/big"}); err != nil {
					sent <- n
					return
				}
				n++
			}
		}()
		call(t, other, jute.OpExists, &jute.PathWatchRequest{Path: "/big"}, jute.OK)
		if n := <-sent; n > 50 { // some MiB were queued, no more
			t.Errorf("%d requests were taken", n)
		}
		call(t, other, jute.OpExists, &jute.PathWatchRequest{Path: "/big"}, jute.OK)
		deaf.Close()
		other.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestManyRequestsOfOneClientAreAnsweredInOrder(t *testing.T) {
	c := connect(t, open(t, quiet()))
	const n = 5 * maxOutstanding
	go func() {
		for i := range n {
			var err error
			if i%3 == 0 {
				_, err = c.Send(jute.OpCreate, create(fmt.Sprint("/n", i), "", jute.Persistent))
			} else {
				_, err = c.Send(jute.OpExists, &jute.PathWatchRequest{Path: fmt.Sprint("/n", i-i%3)})
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for i := range n {
		b, err := c.ReadFrame()
		var h jute.ReplyHeader
		if err == nil {
			err = jute.Unmarshal(b, &h)
		}
		if err != nil || h.Xid != int32(i+1) || h.Err != jute.OK {
			t.Fatal(i, h, err)
		}
	}
}

func TestHostileBytesEndTheirConnectionOnly(t *testing.T) {
	s := open(t, quiet())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	good := connect(t, s)
	hello := jute.Marshal(&jute.ConnectRequest{Timeout: 10000, Password: make([]byte, 16)})
	frame := func(b []byte) []byte { return append([]byte{0, 0, byte(len(b) >> 8), byte(len(b))}, b...) }
	started := string(frame(hello))
	for name, bad := range map[string]string{
		"length -1":                    "\xff\xff\xff\xff",
		"length 2^31-1":                "\x7f\xff\xff\xff",
		"length 0":                     "\x00\x00\x00\x00",
		"an HTTP request":              "GET / HTTP/1.1\r\n\r\n",
		"a TLS hello":                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"a short hello":                string(frame(hello[:10])),
		"a password of 2^31-1":         string(frame(append(hello[:24:24], "\x7f\xff\xff\xff"...))),
		"length -1 in a session":       started + "\xff\xff\xff\xff",
		"length 0 in a session":        started + "\x00\x00\x00\x00",
		"too long in a session":        started + "\x00\x40\x00\x01",
		"a header cut short":           started + string(frame(make([]byte, 7))),
		"an operation that is unknown": started + string(frame([]byte("\x00\x00\x00\x01\x00\x00\x03\xe7"))),
		"auth without a body":          started + string(frame([]byte("\xff\xff\xff\xfc\x00\x00\x00\x64"))),
		"auth with an unknown scheme":  started + string(frame(jute.Marshal(&jute.RequestHeader{Xid: -4, Op: 100}, &jute.AuthPacket{Scheme: "kerberos"}))),
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			_ = nc.SetDeadline(time.Now().Add(keepertest.Patience))
			if _, err := io.WriteString(nc, bad); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("still open")
			}
			call(t, good, jute.OpExists, &jute.PathWatchRequest{Path: "/"}, jute.OK)
		})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

// A body that makes no sense is answered with MarshallingError, as ZooKeeper does.
func TestABodyThatIsCutAnywhereIsAMarshallingError(t *testing.T) {
	c := connect(t, open(t, quiet()))
	for op, body := range map[jute.Op]jute.Record{
		jute.OpCreate: create("/x", "data", jute.Persistent), jute.OpSetData: &jute.SetDataRequest{Path: "/x"},
		jute.OpDelete: &jute.PathVersionRequest{Path: "/x"}, jute.OpExists: &jute.PathWatchRequest{Path: "/x"},
		jute.OpSetWatches: &jute.SetWatchesRequest{Data: []string{"/x"}}, jute.OpSync: &jute.PathRequest{Path: "/x"},
		jute.OpMulti: &jute.MultiRequest{Ops: []jute.MultiOp{{Op: jute.OpCreate, Request: create("/y", "", jute.Persistent)}}},
	} {
		b := jute.Marshal(body)
		for cut := range b {
			call(t, c, op, raw(b[:cut]), jute.ErrMarshallingError)
		}
	}
	for _, claim := range []string{"\x7f\xff\xff\xff", "\xff\xff\xff\xfe", "\x80\x00\x00\x00"} {
		call(t, c, jute.OpCreate, raw(claim), jute.ErrMarshallingError)
		call(t, c, jute.OpCreate, raw("\x00\x00\x00\x02/x\x00\x00\x00\x00"+claim), jute.ErrMarshallingError)
		call(t, c, jute.OpSetWatches, raw("\x00\x00\x00\x00\x00\x00\x00\x00"+claim), jute.ErrMarshallingError)
	}
	call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/x"}, jute.ErrNoNode)
}

type raw []byte

func (r raw) Encode(e *jute.Encoder) { e.B = append(e.B, r...) }
func (r raw) Decode(*jute.Decoder)   {}

func TestFourLetterWords(t *testing.T) {
	s := open(t, quiet())
	c := connect(t, s)
	call(t, c, jute.OpCreate, create("/x", "", jute.Ephemeral), jute.OK)
	ask := func(word string) string {
		nc := dial(t, s)
		defer nc.Close()
		_ = nc.SetDeadline(time.Now().Add(keepertest.Patience))
		if _, err := io.WriteString(nc, word); err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(nc)
		return string(b)
	}
	if got := ask("ruok"); got != "imok" {
		t.Error(got)
	}
	if got := ask("wchs"); got != "wchs is not executed because it is not in the whitelist.\n" {
		t.Error(got)
	}
	if got := ask("abcd"); got != "" {
		t.Error(got)
	}
	for word, want := range map[string][]string{
		"srvr": {"Zookeeper version: 3.8.4-", "\nLatency min/avg/max: ", "\nZxid: 0x2\nMode: standalone\nNode count: 6\n"},
		"mntr": {"zk_version\t3.8.4-", "zk_server_state\tstandalone\n", "zk_znode_count\t6\n", "zk_ephemerals_count\t1\n", "zk_watch_count\t0\n", "zk_global_sessions\t1\n"},
	} {
		got := ask(word)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %q:\n%s", word, w, got)
			}
		}
	}
	o := quiet()
	o.Words = []string{}
	s = open(t, o)
	if got := ask("ruok"); got != "ruok is not executed because it is not in the whitelist.\n" {
		t.Error(got)
	}
	if got := ask("srvr"); !strings.HasPrefix(got, "Zookeeper version") {
		t.Error(got)
	}
}

// conf tells the ports of both kinds.
func TestConfTellsThePorts(t *testing.T) {
	o := quiet()
	o.Words = []string{"conf"}
	s := open(t, o)
	ports := func(want string) {
		t.Helper()
		if got := s.word("conf", 0); !strings.HasPrefix(got, want) {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	ports("clientPort=0\nsecureClientPort=-1\n")
	served := make(chan error)
	var port [2]int
	for i, serve := range []func(net.Listener) error{s.Serve, func(l net.Listener) error { return s.ServeTLS(l, &tls.Config{}) }} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port[i] = l.Addr().(*net.TCPAddr).Port
		go func() { served <- serve(l) }()
		for n := 0; n <= i; runtime.Gosched() {
			s.mu.Lock()
			n = len(s.mu.listeners)
			s.mu.Unlock()
		}
	}
	ports(fmt.Sprintf("clientPort=%d\nsecureClientPort=%d\n", port[0], port[1]))
	if err := errors.Join(s.Close(), <-served, <-served); err != nil {
		t.Fatal(err)
	}
}

func TestTooManyConnectionsOfOneAddressAreRefused(t *testing.T) {
	o := quiet()
	o.MaxClientConnections = 2
	s := open(t, o)
	a := connect(t, s)
	connect(t, s)
	if nc, err := s.Dial(t.Context()); err == nil {
		t.Fatal("accepted", nc.Close())
	}
	call(t, a, jute.OpCloseSession, nil, jute.OK)
	if _, err := a.ReadFrame(); err == nil {
		t.Fatal("still open")
	}
	a.Close()
	for { // until the server has noticed
		nc, err := s.Dial(t.Context())
		if err == nil {
			_ = nc.Close()
			break
		}
	}
}

func TestConnectionsFromOutsideTheProcessAreLimited(t *testing.T) {
	o := quiet()
	o.MaxConnections = 2
	s := open(t, o)
	connect(t, s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	outside := func() (*keepertest.Client, error) {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return keepertest.Connect(nc, jute.ConnectRequest{Timeout: 10000})
	}
	c, err := outside()
	if err != nil {
		t.Fatal(err)
	}
	if other, err := outside(); err == nil {
		other.Close()
		t.Error("a third connection is served")
	}
	connect(t, s) // the broker's own always is
	c.Close()
	if err := errors.Join(s.Close(), <-served); err != nil {
		t.Fatal(err)
	}
}

func TestAClosedServerRefuses(t *testing.T) {
	s := open(t, quiet())
	c := connect(t, s)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Call(jute.OpPing, nil); err == nil {
		t.Error("answered")
	}
	if _, err := s.Dial(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// Many clients at once: for the race detector, and for the order that each
// session sees.
func TestConcurrentClientsCountTogether(t *testing.T) {
	o := quiet()
	o.Dir = t.TempDir()
	s := open(t, o)
	first := connect(t, s)
	call(t, first, jute.OpCreate, create("/counter", "", jute.Persistent), jute.OK)
	var wg sync.WaitGroup
	for range 8 {
		c := connect(t, s)
		wg.Go(func() {
			for done := 0; done < 20; {
				f, _, err := c.Call(jute.OpGetData, &jute.PathWatchRequest{Path: "/counter", Watch: rand.IntN(2) == 0})
				if err != nil {
					t.Error(err)
					return
				}
				version := f.Body.(*jute.GetDataResponse).Stat.Version
				f, _, err = c.Call(jute.OpSetData, &jute.SetDataRequest{Path: "/counter", Version: version})
				if err != nil || f.Err != jute.OK && f.Err != jute.ErrBadVersion {
					t.Error(f, err)
					return
				}
				if f.Err == jute.OK {
					done++
				}
			}
		})
	}
	wg.Wait()
	f := call(t, first, jute.OpExists, &jute.PathWatchRequest{Path: "/counter"}, jute.OK)
	if got := f.Body.(*jute.Stat).Version; got != 160 {
		t.Errorf("%d increments, expected 160", got)
	}
}

// While a commit hangs, a client can't fill the memory with what it sends.
func TestUnansweredRequestsAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		gate := newGate()
		o.store = gate
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-gate.came
			gate.let <- nil
		}()
		c := attach(t, s, jute.ConnectRequest{Timeout: 40000})
		data, sent := make([]byte, 100_000), 0
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for ; ; sent++ {
				if _, err := c.Send(jute.OpSetData, &jute.SetDataRequest{Path: "/", Data: data, Version: -1}); err != nil {
					return
				}
			}
		}()
		synctest.Wait() // the commit hangs, and so does the sender
		if sent < 20 || sent > maxUnanswered/len(data)+2 {
			t.Errorf("%d requests of %d bytes were taken", sent, len(data))
		}
		c.Close()
		<-stopped
		<-gate.came
		gate.let <- nil
		go func() {
			<-gate.came
			gate.let <- nil
		}()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
