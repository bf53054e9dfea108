package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
)

func TestConnectStrings(t *testing.T) {
	for connect, want := range map[string]string{
		"h":                     "h:2181 ",
		"h:1":                   "h:1 ",
		" h:1 , ,/":             "h:1 ",
		"h:1/a/b":               "h:1 /a/b",
		"[::1]:5":               "[::1]:5 ",
		"[::1]/k":               "[::1]:2181 /k",
		"zk1.example.com:2/k-x": "zk1.example.com:2 /k-x",
	} {
		servers, chroot, err := parseConnect(connect)
		if got := strings.Join(servers, ",") + " " + chroot; err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", connect, got, err, want)
		}
	}
	servers, _, _ := parseConnect("a:1,b:2,c:3")
	if len(servers) != 3 {
		t.Error(servers)
	}
	for _, bad := range []string{"", "/", ",", "h:", ":1", "h:1/a/", "h:1/a//b", "h:1/../x", "a:b:c"} {
		if _, err := New(Options{Connect: bad}); !errors.Is(err, ErrConnect) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestPathsAreCheckedAsZooKeeperDoes(t *testing.T) {
	for path, ok := range map[string]bool{
		"/": true, "/a": true, "/a/b.c": true, "/...": true, "/a/.b": true, "/\u00e9\U0001F600 <x>": true,
		"": false, "a": false, "/a/": false, "//a": false, "/a//b": false, "/.": false, "/a/..": false, "/a/./b": false,
		"/a\x00": false, "/a\n": false, "/\u007f": false, "/\u009f": false, "/\ue000": false, "/\ufff0": false, "/\xff": false,
	} {
		if err := ValidatePath(path); (err == nil) != ok || err != nil && !errors.Is(err, jute.ErrBadArguments) {
			t.Errorf("%q: %v", path, err)
		}
	}
	f := newFake(t)
	c, _ := f.started()
	for _, op := range []Op{GetOp("x", false), {}, CheckOp("/a", 1), MultiOp(GetOp("/a", false)), MultiReadOp(GetOp("/a", true)),
		MultiReadOp(DeleteOp("/a", 0)), MultiOp(CreateOp("/a/", nil, Persistent)), CreateOp("/a/", nil, Ephemeral)} {
		if _, err := c.Do(t.Context(), op); !errors.Is(err, jute.ErrBadArguments) {
			t.Errorf("%+v: %v", op, err)
		}
	}
}

func TestBytesThatAreNoReplyEndTheConnection(t *testing.T) {
	header := func(xid int32, body ...jute.Record) []byte {
		b := jute.Marshal(append([]jute.Record{&jute.ReplyHeader{Xid: xid, Zxid: 1}}, body...)...)
		return append([]byte{0, 0, 0, byte(len(b))}, b...)
	}
	for name, answer := range map[string]func(xid int32) []byte{
		"negative length": func(int32) []byte { return []byte{0xff, 0xff, 0xff, 0xff} },
		"2 GiB":           func(int32) []byte { return []byte{0x7f, 0xff, 0xff, 0xff} },
		"above MaxFrame":  func(int32) []byte { return []byte{0, 0x40, 0, 1} },
		"empty frame":     func(int32) []byte { return []byte{0, 0, 0, 0} },
		"cut header":      func(int32) []byte { return []byte{0, 0, 0, 4, 0, 0, 0, 1} },
		"other xid":       func(xid int32) []byte { return header(xid + 1) },
		"no body":         func(xid int32) []byte { return header(xid) },
		"data too long": func(xid int32) []byte {
			return append(header(xid)[:3], append([]byte{20}, append(header(xid)[4:], 0x7f, 0xff, 0xff, 0xff)...)...)
		},
		"text":          func(int32) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") },
		"event without": func(int32) []byte { return header(jute.XidNotification) },
		"unasked-for auth": func(int32) []byte {
			return []byte{0, 0, 0, 20, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			c, p := f.started()
			call := c.Go(GetOp("/a", false))
			xid := p.request(jute.OpGetData)
			p.raw(answer(xid))
			if _, err := call.Wait(t.Context()); !errors.Is(err, jute.ErrConnectionLoss) {
				t.Error(err)
			}
			nextEvent(t, c, Event{jute.EventNone, jute.StateDisconnected, ""})
			// And it comes back, in its session.
			_, request := f.welcome()
			if request.SessionID != 7 || string(request.Password) != "0123456789abcdef" {
				t.Errorf("%+v", request)
			}
			nextEvent(t, c, Event{jute.EventNone, jute.StateSyncConnected, ""})
		})
	}
}

func TestAFrameCutShortFailsTheCallsBehindIt(t *testing.T) {
	f := newFake(t)
	c, p := f.started()
	calls := c.GoAll([]Op{ExistsOp("/a", false), DeleteOp("/a", 3), DeleteOp("/b", 3)})
	xid := p.request(jute.OpExists)
	p.send(&jute.ReplyHeader{Xid: xid, Zxid: 12}, &jute.Stat{Version: 3})
	if r, err := calls[0].Wait(t.Context()); err != nil || r.Stat.Version != 3 {
		t.Fatal(r, err)
	}
	p.request(jute.OpDelete)
	p.request(jute.OpDelete)
	p.raw([]byte{0, 0, 0, 16, 0, 0})
	p.nc.Close()
	for _, call := range calls[1:] {
		if _, err := call.Wait(t.Context()); !errors.Is(err, jute.ErrConnectionLoss) {
			t.Error(err)
		}
	}
	// What the client saw goes into the next connect request.
	if _, request := f.welcome(); request.LastZxidSeen != 12 {
		t.Errorf("%+v", request)
	}
}

func TestCallsWithoutAConnectionFailAtOnce(t *testing.T) {
	f := newFake(t)
	c := f.client("x:1")
	if _, _, err := c.Get(t.Context(), "/a"); !errors.Is(err, jute.ErrConnectionLoss) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestStartSaysWhyItCouldNotConnect(t *testing.T) {
	refused := errors.New("refused")
	c, err := New(Options{Connect: "x:1", Dial: func(context.Context, string) (net.Conn, error) { return nil, refused }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.Start(ctx); !errors.Is(err, refused) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestAllServersAreTriedInTurn(t *testing.T) {
	f := newFake(t)
	asked := make(chan string, 100)
	c := f.client("a:1,b:2,c:3", func(o *Options) {
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			select {
			case asked <- addr:
			default:
			}
			if addr != "b:2" {
				return nil, errors.New("refused")
			}
			return f.dial(ctx, addr)
		}
	})
	started := make(chan error, 1)
	go func() { started <- c.Start(t.Context()) }()
	p, _ := f.welcome()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	p.nc.Close()
	f.welcome()
	seen := map[string]int{}
	for len(asked) > 0 {
		seen[<-asked]++
	}
	if seen["a:1"] == 0 || seen["c:3"] == 0 || seen["b:2"] != 2 {
		t.Error(seen)
	}
}

func TestACancelledCallKeepsTheOrderOfTheOthers(t *testing.T) {
	f := newFake(t)
	c, p := f.started()
	ctx, cancel := context.WithCancel(t.Context())
	first, second := c.Go(GetOp("/1", false)), c.Go(GetOp("/2", false))
	cancel()
	if _, err := first.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := c.Get(ctx, "/3"); !errors.Is(err, context.Canceled) { // never sent
		t.Error(err)
	}
	p.send(&jute.ReplyHeader{Xid: p.request(jute.OpGetData)}, &jute.GetDataResponse{Data: []byte("1")})
	p.send(&jute.ReplyHeader{Xid: p.request(jute.OpGetData)}, &jute.GetDataResponse{Data: []byte("2")})
	if r, err := second.Wait(t.Context()); err != nil || string(r.Data) != "2" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestAnExpiredSessionFailsAllAndSendsNothingUntilRenewed(t *testing.T) {
	f := newFake(t)
	c, p := f.started()
	call := c.Go(GetOp("/a", true))
	p.send(&jute.ReplyHeader{Xid: p.request(jute.OpGetData), Zxid: 5}, &jute.GetDataResponse{})
	if _, err := call.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost := c.Go(GetOp("/b", false))
	p.request(jute.OpGetData)
	p.nc.Close()
	if _, err := lost.Wait(t.Context()); !errors.Is(err, jute.ErrConnectionLoss) {
		t.Error(err)
	}
	p = f.accept()
	p.receive(&jute.ConnectRequest{})
	p.send(&jute.ConnectResponse{})
	nextEvent(t, c, Event{jute.EventNone, jute.StateDisconnected, ""})
	nextEvent(t, c, Event{jute.EventNone, jute.StateExpired, ""})
	if _, _, err := c.Get(t.Context(), "/a"); !errors.Is(err, jute.ErrSessionExpired) {
		t.Error(err)
	}
	if err := c.Retry(t.Context(), func() error { return jute.ErrConnectionLoss }); !errors.Is(err, jute.ErrSessionExpired) {
		t.Error(err)
	}
	renewed := make(chan error, 1)
	go func() { renewed <- c.Renew(t.Context()) }()
	p, request := f.welcome()
	if request.SessionID != 0 || request.LastZxidSeen != 0 || strings.Trim(string(request.Password), "\x00") != "" {
		t.Errorf("%+v", request)
	}
	if err := <-renewed; err != nil {
		t.Fatal(err)
	}
	nextEvent(t, c, Event{jute.EventNone, jute.StateSyncConnected, ""})
	c.Go(DeleteOp("/z", 1))
	p.request(jute.OpDelete) // the first request: no watch of the old session
}

func TestAReplyThatSaysExpiredEndsTheSession(t *testing.T) {
	f := newFake(t)
	c, p := f.started()
	calls := c.GoAll([]Op{GetOp("/a", false), GetOp("/b", false)})
	p.send(&jute.ReplyHeader{Xid: p.request(jute.OpGetData), Err: jute.ErrSessionExpired})
	for _, call := range calls {
		if _, err := call.Wait(t.Context()); !errors.Is(err, jute.ErrSessionExpired) {
			t.Error(err)
		}
	}
	nextEvent(t, c, Event{jute.EventNone, jute.StateExpired, ""})
	go c.Renew(t.Context())
	f.welcome()
}

func TestWatchesAreSetAgainInFramesBelow128KiB(t *testing.T) {
	f := newFake(t)
	c, p := f.started()
	name := strings.Repeat("x", 1000)
	want := map[string]string{}
	var ops []Op
	for i := range 100 {
		path := fmt.Sprintf("/%03d%s", i, name)
		ops = append(ops, GetOp("/d"+path, true), ExistsOp("/e"+path, true), ChildrenOp("/c"+path, true))
		want["/d"+path], want["/e"+path], want["/c"+path] = "data", "exist", "child"
	}
	ops = append(ops, GetOp("/gone", true), GetOp("/fired", true))
	calls := c.GoAll(ops)
	for range 100 {
		p.send(&jute.ReplyHeader{Xid: p.request(jute.OpGetData), Zxid: 9}, &jute.GetDataResponse{})
		p.send(&jute.ReplyHeader{Xid: p.request(jute.OpExists), Zxid: 9, Err: jute.ErrNoNode})
		p.send(&jute.ReplyHeader{Xid: p.request(jute.OpGetChildren2), Zxid: 9}, &jute.GetChildren2Response{})
	}
	p.send(&jute.ReplyHeader{Xid: p.request(jute.OpGetData), Zxid: 9, Err: jute.ErrNoNode})
	p.send(&jute.ReplyHeader{Xid: p.request(jute.OpGetData), Zxid: 9}, &jute.GetDataResponse{})
	p.send(&jute.ReplyHeader{Xid: jute.XidNotification, Zxid: -1}, &jute.WatcherEvent{Type: jute.EventNodeDeleted, State: jute.StateSyncConnected, Path: "/fired"})
	nextEvent(t, c, Event{jute.EventNodeDeleted, jute.StateSyncConnected, "/fired"})
	<-calls[len(calls)-1].Done()
	p.nc.Close()
	p, request := f.welcome()
	if request.LastZxidSeen != 9 {
		t.Errorf("%+v", request)
	}
	got, frames := map[string]string{}, 0
	for ; len(got) < len(want); frames++ {
		frame := p.frame()
		if len(frame) > 129<<10 {
			t.Errorf("a frame of %d bytes", len(frame))
		}
		var h jute.RequestHeader
		var m jute.SetWatchesRequest
		if err := jute.Unmarshal(frame, &h, &m); err != nil || h.Op != jute.OpSetWatches || h.Xid != jute.XidSetWatches || m.RelativeZxid != 9 {
			t.Fatal(h, m.RelativeZxid, err)
		}
		for kind, paths := range map[string][]string{"data": m.Data, "exist": m.Exist, "child": m.Child} {
			for _, path := range paths {
				got[path] = kind
			}
		}
		p.send(&jute.ReplyHeader{Xid: jute.XidSetWatches, Zxid: 10})
	}
	for path, kind := range want {
		if got[path] != kind {
			t.Errorf("%s: %q, want %q", path, got[path], kind)
		}
	}
	if frames < 3 || len(got) != len(want) {
		t.Error(frames, len(got))
	}
}

func TestAuthGoesFirstAndItsFailureEndsTheSession(t *testing.T) {
	f := newFake(t)
	c := f.client("x:1/k", func(o *Options) { o.Auth = []Auth{DigestAuth("u", "p")} })
	go c.Start(t.Context())
	p, _ := f.welcome()
	var h jute.RequestHeader
	var auth jute.AuthPacket
	if p.receive(&h, &auth); h.Xid != jute.XidAuth || auth.Scheme != "digest" || string(auth.Auth) != "u:p" {
		t.Fatal(h, auth)
	}
	p.request(jute.OpExists) // of the chroot
	p.send(&jute.ReplyHeader{Xid: jute.XidAuth, Err: jute.ErrAuthFailed})
	nextEvent(t, c, Event{jute.EventNone, jute.StateAuthFailed, ""})
	if _, _, err := c.Get(t.Context(), "/a"); !errors.Is(err, jute.ErrAuthFailed) {
		t.Error(err)
	}
}

func TestARequestTooLargeIsNotSent(t *testing.T) {
	f := newFake(t)
	c, p := f.started(func(o *Options) { o.MaxRequest = 1000 })
	if _, err := c.Set(t.Context(), "/a", make([]byte, 1000), 0); !errors.Is(err, ErrRequestTooLarge) {
		t.Error(err)
	}
	call := c.Go(SetOp("/a", make([]byte, 900), 0))
	p.send(&jute.ReplyHeader{Xid: p.request(jute.OpSetData)}, &jute.Stat{})
	if _, err := call.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEventsAreNeverDroppedAndComeInOrder(t *testing.T) {
	f := newFake(t)
	c, p := f.started()
	const n = 5 * eventBuffer
	for i := range n {
		p.send(&jute.ReplyHeader{Xid: jute.XidNotification, Zxid: -1},
			&jute.WatcherEvent{Type: jute.EventNodeCreated, State: jute.StateSyncConnected, Path: fmt.Sprintf("/%d", i)})
	}
	for i := range n {
		nextEvent(t, c, Event{jute.EventNodeCreated, jute.StateSyncConnected, fmt.Sprintf("/%d", i)})
	}
}

func TestGoWaitsWhileTooMuchIsUnsent(t *testing.T) {
	f := newFake(t)
	c, p := f.started()
	data := make([]byte, 1<<20-200)
	sent := make(chan int)
	const n = 12
	go func() {
		for i := range n {
			c.Go(SetOp("/a", data, AnyVersion))
			sent <- i
		}
		close(sent)
	}()
	// The server reads nothing: one batch is in the writer's hands, a bounded
	// rest waits, and then Go does.
	count := 0
	for waiting := false; !waiting; {
		select {
		case <-sent:
			count++
		default:
			c.mu.Lock()
			waiting = c.mu.waiting > 0
			c.mu.Unlock()
		}
	}
	if count == n {
		t.Fatal("Go never waited")
	}
	all := make(chan struct{})
	go func() {
		defer close(all)
		for range sent {
		}
	}()
	for range n {
		p.send(&jute.ReplyHeader{Xid: p.request(jute.OpSetData)}, &jute.Stat{})
	}
	<-all
}

func TestCloseEndsTheSessionAfterWhatWasAsked(t *testing.T) {
	f := newFake(t)
	c, p := f.started()
	call := c.Go(DeleteOp("/a", 1))
	closed := make(chan struct{})
	go func() { c.Close(); close(closed) }()
	p.send(&jute.ReplyHeader{Xid: p.request(jute.OpDelete)})
	xid := p.request(jute.OpCloseSession)
	if _, err := call.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Get(t.Context(), "/a"); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	p.send(&jute.ReplyHeader{Xid: xid})
	p.nc.Close()
	<-closed
	if _, open := <-c.Events(); open {
		t.Error("an event after Close")
	}
	if err := c.Start(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestCloseOfAClientThatNeverStarted(t *testing.T) {
	c, err := New(Options{Connect: "x:1"})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	c.Detach()
}

func TestPathsAboveComeFirstAndOnce(t *testing.T) {
	got := strings.Join(withParents([]string{"/a/b/c", "/a/d", "/", "/a"}), " ")
	if got != "/a /a/b /a/b/c /a/d" {
		t.Error(got)
	}
}
