package keeper

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
)

// 10,000 connections that say nothing cost some memory each, hold nobody up,
// and are closed.
func TestTenThousandConnectionsThatSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(quiet())
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		silent := make([]net.Conn, 10_000)
		for i := range silent {
			silent[i] = dial(t, s)
		}
		c := attach(t, s, jute.ConnectRequest{Timeout: 40000})
		call(t, c, jute.OpCreate, create("/x", "", jute.Persistent), jute.OK)
		synctest.Wait()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if each := (after.HeapAlloc + after.StackInuse - before.HeapAlloc - before.StackInuse) / uint64(len(silent)); each > 24<<10 {
			t.Errorf("%d bytes a connection", each)
		}
		start := time.Now()
		for _, nc := range silent {
			if _, err := nc.Read(make([]byte, 1)); err == nil {
				t.Fatal("answered")
			}
			_ = nc.Close()
		}
		if d := time.Since(start); d > 11*time.Second {
			t.Error(d)
		}
		call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/x"}, jute.OK)
		c.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// 1,000 sessions, one of which has 10,000 watches: a change tells those who
// watch it, at once, and nobody else.
func TestAThousandSessionsAndTenThousandWatches(t *testing.T) {
	s := open(t, quiet())
	watcher, writer := connect(t, s), connect(t, s)
	for range 998 {
		connect(t, s)
	}
	go func() {
		for i := range 10_000 {
			if _, err := watcher.Send(jute.OpExists, &jute.PathWatchRequest{Path: fmt.Sprint("/w", i), Watch: true}); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 10_000 {
		if f, err := watcher.Recv(); err != nil || f.Err != jute.ErrNoNode {
			t.Fatal(f, err)
		}
	}
	go func() {
		for i := range 10_000 {
			if _, err := writer.Send(jute.OpCreate, create(fmt.Sprint("/w", i), "", jute.Persistent)); err != nil {
				t.Error(err)
			}
		}
	}()
	done := make(chan error, 1)
	go func() {
		for range 10_000 {
			if _, err := writer.ReadFrame(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for i := range 10_000 {
		if f, err := watcher.Recv(); err != nil || f.Event == nil || f.Event.Path != fmt.Sprint("/w", i) {
			t.Fatal(f, err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.mu.core.sessions); n != 1000 || s.mu.core.watches[dataWatch].total != 0 || len(s.mu.core.watches[dataWatch].byPath) != 0 {
		t.Errorf("%d sessions, %d watches left", n, s.mu.core.watches[dataWatch].total)
	}
}

// Paths that are no paths, and one of a megabyte.
func TestPathsThatAreNone(t *testing.T) {
	c := connect(t, open(t, quiet()))
	for _, path := range []string{"", "x", "//", "//x", "/x//y", "/.", "/..", "/x/.", "/./x", "/x/../y", "/x/", "/\x00", "/a\x00b", "/\x1f", "/\u0080", "/\ud7ff\ue000", "/\ufff0", "/\U0001f600", "/\xff\xfe", strings.Repeat("/", 1<<20)} {
		f, _, err := c.Call(jute.OpCreate, create(path, "", jute.Persistent))
		if err != nil || f.Err != jute.ErrBadArguments && f.Err != jute.ErrNoNode && f.Err != jute.ErrNodeExists {
			t.Errorf("create %.20q: %v, %v", path, f.Err, err)
		}
		for op, body := range map[jute.Op]jute.Record{
			jute.OpSetData: &jute.SetDataRequest{Path: path, Version: -1}, jute.OpDelete: &jute.PathVersionRequest{Path: path, Version: 7},
			jute.OpExists: &jute.PathWatchRequest{Path: path, Watch: true}, jute.OpGetChildren: &jute.PathWatchRequest{Path: path, Watch: true},
			jute.OpAddWatch: &jute.AddWatchRequest{Path: path, Mode: 1}, jute.OpGetACL: &jute.PathRequest{Path: path}, jute.OpGetAllChildrenNumber: &jute.PathRequest{Path: path},
		} {
			if _, _, err := c.Call(op, body); err != nil {
				t.Fatal(op, path, err)
			}
		}
	}
	long := "/" + strings.Repeat("x", 1<<20-1)
	call(t, c, jute.OpCreate, create(long, "", jute.Persistent), jute.OK)
	call(t, c, jute.OpCreate, create(long+"/"+strings.Repeat("y", 1<<20), "", jute.EphemeralSequential), jute.OK)
	call(t, c, jute.OpDelete, &jute.PathVersionRequest{Path: long, Version: -1}, jute.ErrNotEmpty)
}

// Frames of any size, before and after the handshake, byte by byte or at once.
func TestFramesOfAnySize(t *testing.T) {
	s := open(t, quiet())
	good := connect(t, s)
	for _, size := range []int{0, 1, 7, 8, 43, 44, 45, 100, 4096, 1 << 20, 4 << 20, 4<<20 + 1, 1<<31 - 1} {
		for _, fill := range []byte{0, 1, 0x7f, 0xff} {
			for _, after := range []bool{false, true} {
				nc := dial(t, s)
				_ = nc.SetDeadline(time.Now().Add(keepertest.Patience))
				if after {
					c, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 10000})
					if err != nil {
						t.Fatal(err)
					}
					go func() { _, _ = io.Copy(io.Discard, nc) }()
					_ = c
				} else {
					go func() { _, _ = io.Copy(io.Discard, nc) }()
				}
				head := []byte{byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)}
				_, err := nc.Write(append(head, bytes.Repeat([]byte{fill}, min(size, 4<<20+1))...))
				_ = err // the server may have closed it
				_ = nc.Close()
			}
		}
	}
	call(t, good, jute.OpExists, &jute.PathWatchRequest{Path: "/"}, jute.OK)
}

// A container goes when it loses its last child, a node with a time to live
// when it is over.
func TestContainersAndNodesWithATimeToLiveGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.ContainerNeverUsed = 5 * time.Minute
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		c := attach(t, s, jute.ConnectRequest{Timeout: 40000})
		call(t, c, jute.OpCreateContainer, create("/used", "", jute.Container), jute.OK)
		call(t, c, jute.OpCreate, create("/used/x", "", jute.Persistent), jute.OK)
		call(t, c, jute.OpCreateContainer, create("/unused", "", jute.Container), jute.OK)
		call(t, c, jute.OpCreateTTL, &jute.CreateTTLRequest{CreateRequest: *create("/ttl", "", jute.PersistentTTL), TTL: 90_000}, jute.OK)
		call(t, c, jute.OpCreateTTL, &jute.CreateTTLRequest{CreateRequest: *create("/parent", "", jute.PersistentTTL), TTL: 1}, jute.OK)
		call(t, c, jute.OpCreate, create("/parent/x", "", jute.Persistent), jute.OK)
		call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/ttl", Watch: true}, jute.OK)
		var events []jute.WatcherEvent
		pass := func(d time.Duration) {
			for range d / (10 * time.Second) {
				<-time.After(10 * time.Second)
				_, more, err := c.Call(jute.OpPing, nil)
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, more...)
			}
		}
		there := func(path string, want jute.Error) {
			t.Helper()
			call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: path}, want)
		}
		pass(70 * time.Second)
		there("/used", jute.OK)
		there("/unused", jute.OK)
		there("/ttl", jute.OK)
		call(t, c, jute.OpDelete, &jute.PathVersionRequest{Path: "/used/x", Version: -1}, jute.OK)
		pass(70 * time.Second)
		there("/used", jute.ErrNoNode)
		there("/unused", jute.OK)
		there("/ttl", jute.ErrNoNode)
		there("/parent", jute.OK)
		if len(events) != 1 || events[0].Type != jute.EventNodeDeleted || events[0].Path != "/ttl" {
			t.Error(events)
		}
		pass(5 * time.Minute)
		there("/unused", jute.ErrNoNode)
		c.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
