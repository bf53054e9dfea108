package zookeeper

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"
)

const (
	persistent = zookeeper.Persistent
	ephemeral  = zookeeper.Ephemeral
)

func event(t jute.EventType, path string) zookeeper.Event {
	return zookeeper.Event{Type: t, State: jute.StateSyncConnected, Path: path}
}

func create(t *testing.T, c *zookeeper.Client, path, data string) jute.Stat {
	t.Helper()
	_, stat, err := c.Create(timeout(t), path, []byte(data), persistent)
	ok(t, err)
	return stat
}

func pipelinedCallsAreAnsweredInOrder(t *testing.T, w *world) {
	c, ctx := w.client(t), timeout(t)
	create(t, c, "/a", "")
	const n = 500
	var calls []*zookeeper.Call
	for i := range n {
		// A read that lags behind or runs ahead would show another version.
		calls = append(calls, c.Go(zookeeper.SetOp("/a", fmt.Append(nil, i), int32(i))), c.Go(zookeeper.GetOp("/a", false)))
	}
	for i := range n {
		if r, err := calls[2*i].Wait(ctx); err != nil || r.Stat.Version != int32(i+1) {
			t.Fatalf("set %d: %+v %v", i, r.Stat, err)
		}
		if r, err := calls[2*i+1].Wait(ctx); err != nil || string(r.Data) != fmt.Sprint(i) || r.Stat.Version != int32(i+1) {
			t.Fatalf("get %d: %q %v", i, r.Data, err)
		}
	}
}

func neighboursAreLostTogether(t *testing.T, w *world) {
	c, ctx := w.client(t), timeout(t)
	for round := range 10 {
		ok(t, c.Retry(ctx, func() error {
			_, _, err := c.Create(ctx, fmt.Sprint("/r", round), nil, persistent)
			if errors.Is(err, jute.ErrNodeExists) {
				return nil
			}
			return err
		}))
		var ops []zookeeper.Op
		for i := range 50 {
			ops = append(ops, zookeeper.CreateOp(fmt.Sprintf("/r%d/%d", round, i), nil, persistent))
		}
		calls := c.GoAll(ops)
		if round%2 == 1 {
			<-calls[10].Done()
		}
		w.cut()
		lost := false
		for i, call := range calls {
			_, err := call.Wait(ctx)
			if lost && !errors.Is(err, jute.ErrConnectionLoss) {
				t.Fatalf("call %d: %v after a lost one", i, err)
			}
			lost = lost || errors.Is(err, jute.ErrConnectionLoss)
			if !lost {
				ok(t, err)
			}
		}
		// What was done is a prefix.
		var names []string
		ok(t, c.Retry(ctx, func() (err error) {
			names, _, err = c.Children(ctx, fmt.Sprint("/r", round))
			return err
		}))
		for i := range names {
			if !slices.Contains(names, fmt.Sprint(i)) {
				t.Fatalf("%d nodes, without %d", len(names), i)
			}
		}
	}
}

func eventBeforeReply(t *testing.T, w *world) {
	c, other, ctx := w.client(t), w.other(t), timeout(t)
	nextAny(t, c)
	create(t, c, "/a", "")
	create(t, c, "/p", "")
	for i := range 100 {
		_, stat, err := c.GetW(ctx, "/a")
		ok(t, err)
		_, list, err := c.ChildrenW(ctx, "/p")
		ok(t, err)
		set := other.Go(zookeeper.SetOp("/a", nil, zookeeper.AnyVersion))
		child := other.Go(zookeeper.CreateOp(fmt.Sprint("/p/", i), nil, persistent))
		for got := map[string]bool{}; len(got) < 2; {
			_, now, err := c.Get(ctx, "/a")
			ok(t, err)
			_, nowList, err := c.Children(ctx, "/p")
			ok(t, err)
			for more := true; more; {
				select {
				case e := <-c.Events():
					got[e.Path] = true
				default:
					more = false
				}
			}
			if now.Mzxid != stat.Mzxid && !got["/a"] || nowList.Pzxid != list.Pzxid && !got["/p"] {
				t.Fatalf("round %d: the reply shows a change before its event; events %v", i, got)
			}
		}
		_, err = set.Wait(ctx)
		ok(t, err)
		_, err = child.Wait(ctx)
		ok(t, err)
	}
}

func watchesOutliveACutConnection(t *testing.T, w *world) {
	c, other, ctx := w.client(t), w.other(t), timeout(t)
	for _, path := range []string{"/quiet", "/set", "/deleted", "/parent", "/parent2", "/later"} {
		create(t, c, path, "")
		_, _, err := c.GetW(ctx, path)
		ok(t, err)
	}
	for _, path := range []string{"/parent", "/parent2"} {
		_, _, err := c.ChildrenW(ctx, path)
		ok(t, err)
	}
	for _, path := range []string{"/made", "/absent"} {
		_, exists, err := c.ExistsW(ctx, path)
		if ok(t, err); exists {
			t.Fatal(path)
		}
	}
	_, _, err := c.ExistsW(ctx, "/quiet")
	ok(t, err)
	w.refuse(true)
	_, err = other.Set(ctx, "/set", nil, 0)
	ok(t, err)
	ok(t, other.Delete(ctx, "/deleted", 0))
	create(t, other, "/made", "")
	create(t, other, "/parent/x", "")
	w.refuse(false)
	want := map[zookeeper.Event]bool{
		event(jute.EventNodeDataChanged, "/set"):        true,
		event(jute.EventNodeDeleted, "/deleted"):        true,
		event(jute.EventNodeCreated, "/made"):           true,
		event(jute.EventNodeChildrenChanged, "/parent"): true,
	}
	for len(want) > 0 {
		e := next(t, c)
		if !want[e] {
			t.Fatalf("event %+v; still expected %v", e, want)
		}
		delete(want, e)
	}
	// The others are in force on the new connection, each for one event.
	_, err = other.Set(ctx, "/later", nil, 0)
	ok(t, err)
	create(t, other, "/absent", "")
	create(t, other, "/parent2/x", "")
	for _, want := range []zookeeper.Event{event(jute.EventNodeDataChanged, "/later"), event(jute.EventNodeCreated, "/absent"), event(jute.EventNodeChildrenChanged, "/parent2")} {
		if e := next(t, c); e != want {
			t.Errorf("event %+v, want %+v", e, want)
		}
	}
	// None fires twice, and a cut fires none.
	w.cut()
	ok(t, c.Retry(ctx, func() error { _, _, err := c.Get(ctx, "/set"); return err }))
	_, err = other.Set(ctx, "/set", nil, 1)
	ok(t, err)
	_, err = other.Set(ctx, "/quiet", nil, 0)
	ok(t, err)
	if e := next(t, c); e != event(jute.EventNodeDataChanged, "/quiet") {
		t.Errorf("event %+v", e)
	}
}

func watchesThatStay(t *testing.T, w *world) {
	c, other, ctx := w.client(t), w.other(t), timeout(t)
	for _, path := range []string{"/stays", "/tree", "/tree/a", "/both"} {
		create(t, c, path, "")
	}
	do := func(op zookeeper.Op) {
		t.Helper()
		_, err := c.Do(ctx, op)
		ok(t, err)
	}
	do(zookeeper.AddWatchOp("/stays", jute.WatchPersistent))
	do(zookeeper.AddWatchOp("/tree", jute.WatchPersistentRecursive))
	do(zookeeper.AddWatchOp("/both", jute.WatchPersistent))
	change := func() {
		t.Helper()
		for _, path := range []string{"/stays", "/tree/a"} {
			for range 2 {
				_, err := other.Set(ctx, path, nil, zookeeper.AnyVersion)
				ok(t, err)
				if e := next(t, c); e != event(jute.EventNodeDataChanged, path) {
					t.Errorf("event %+v", e)
				}
			}
		}
	}
	change()
	ok(t, c.AddAuth(zookeeper.DigestAuth("barnabas", "secret")))
	_, _, err := c.Create(ctx, "/mine", nil, persistent, jute.ACL{Perms: jute.PermAll, ID: jute.ID{Scheme: "auth"}})
	ok(t, err)
	w.cut()
	ok(t, c.Retry(ctx, func() error { _, _, err := c.Get(ctx, "/mine"); return err }))
	change()

	// Those that were removed are not set again.
	do(zookeeper.RemoveWatchesOp("/both", jute.WatchTypeAny))
	if _, err := c.Do(ctx, zookeeper.RemoveWatchesOp("/both", jute.WatchTypeAny)); !errors.Is(err, jute.ErrNoWatcher) {
		t.Errorf("removed again: %v", err)
	}
	w.cut()
	ok(t, c.Retry(ctx, func() error { _, _, err := c.Get(ctx, "/mine"); return err }))
	_, err = other.Set(ctx, "/both", nil, 0)
	ok(t, err)
	change()

	var n jute.CountResponse
	do(zookeeper.RawOp(jute.OpGetAllChildrenNumber, &jute.PathRequest{Path: zookeeper.AddChroot(w.chroot, "/tree")}, &n))
	if n.Count != 1 {
		t.Errorf("%d children", n.Count)
	}
	if _, err := c.Do(ctx, zookeeper.RawOp(jute.OpGetAllChildrenNumber, &jute.PathRequest{Path: "/nobody"}, &n)); !errors.Is(err, jute.ErrNoNode) {
		t.Errorf("of no node: %v", err)
	}
}

func thousandsOfReads(t *testing.T, w *world) {
	c, other, ctx := w.client(t), w.other(t), timeout(t)
	const n = 5000
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("/n/%d", i)
	}
	ok(t, c.EnsurePaths(ctx, paths...))
	began := time.Now()
	reads, err := c.GetMany(ctx, append(paths, "/none"), true)
	ok(t, err)
	t.Logf("%d reads in %v", n, time.Since(began))
	for i := range paths {
		if reads[i].Err != nil || reads[i].Stat.Version != 0 {
			t.Fatalf("%s: %+v", paths[i], reads[i])
		}
	}
	if !errors.Is(reads[n].Err, jute.ErrNoNode) {
		t.Errorf("%+v", reads[n])
	}
	// Watches by the thousand are set again, and reading goes on over cuts.
	done := make(chan error, 1)
	go func() {
		for range 5 {
			lists, err := c.ChildrenMany(ctx, paths, false)
			if err != nil || len(lists) != n || lists[n-1].Err != nil {
				done <- fmt.Errorf("%d lists, %w", len(lists), err)
				return
			}
		}
		done <- nil
	}()
	for range 3 {
		ok(t, c.WaitConnected(ctx))
		w.cut()
	}
	ok(t, <-done)
	w.refuse(true)
	for i := 0; i < n; i += 1000 {
		_, err := other.Set(ctx, paths[i], nil, 0)
		ok(t, err)
	}
	w.refuse(false)
	got := map[string]bool{}
	for range n / 1000 {
		got[next(t, c).Path] = true
	}
	for i := 0; i < n; i += 1000 {
		if !got[paths[i]] {
			t.Errorf("no event for %s", paths[i])
		}
	}
}

func expiry(t *testing.T, w *world) {
	c, other, ctx := w.client(t, func(o *zookeeper.Options) { o.SessionTimeout = time.Second }), w.other(t), timeout(t)
	if got := c.SessionTimeout(); got != time.Second {
		t.Errorf("timeout %v", got)
	}
	id := c.SessionID()
	_, _, err := c.Create(ctx, "/e", nil, ephemeral)
	ok(t, err)
	create(t, c, "/a", "")
	_, _, err = c.GetW(ctx, "/a")
	ok(t, err)
	// Pings keep it alive for longer than its timeout.
	began := time.Now()
	real.Until(t, 10*time.Second, "three timeouts", func() bool { return time.Since(began) > 3*time.Second })
	if _, exists, err := other.Exists(ctx, "/e"); err != nil || !exists {
		t.Fatal(exists, err)
	}
	w.refuse(true)
	real.Until(t, 20*time.Second, "the ephemeral node to go", func() bool {
		_, exists, err := other.Exists(ctx, "/e")
		ok(t, err)
		return !exists
	})
	_, err = other.Set(ctx, "/a", nil, 0)
	ok(t, err)
	w.refuse(false)
	var states []jute.KeeperState
	for len(states) < 3 {
		e := nextAny(t, c)
		states = append(states, e.State)
		if e.Type != jute.EventNone {
			t.Errorf("event %+v", e)
		}
	}
	if want := []jute.KeeperState{jute.StateSyncConnected, jute.StateDisconnected, jute.StateExpired}; !slices.Equal(states, want) {
		t.Errorf("states %v", states)
	}
	if _, _, err := c.Create(ctx, "/stale", nil, ephemeral); !errors.Is(err, jute.ErrSessionExpired) {
		t.Error(err)
	}
	ok(t, c.Renew(ctx))
	if c.SessionID() == id || c.SessionID() == 0 {
		t.Errorf("session %x after %x", c.SessionID(), id)
	}
	if e := nextAny(t, c); e.State != jute.StateSyncConnected {
		t.Errorf("event %+v", e)
	}
	if _, exists, err := c.Exists(ctx, "/stale"); err != nil || exists {
		t.Error(exists, err)
	}
	_, stat, err := c.Create(ctx, "/e", nil, ephemeral)
	if ok(t, err); stat.EphemeralOwner != c.SessionID() {
		t.Errorf("owner %x, session %x", stat.EphemeralOwner, c.SessionID())
	}
	// The watch of the old session is gone.
	_, err = other.Set(ctx, "/a", nil, 1)
	ok(t, err)
	ok(t, c.Sync(ctx, "/"))
	select {
	case e := <-c.Events():
		t.Errorf("event %+v", e)
	default:
	}
}

func reattach(t *testing.T, w *world) {
	c, other, ctx := w.client(t), w.other(t), timeout(t)
	_, stat, err := c.Create(ctx, "/e", nil, ephemeral)
	ok(t, err)
	id, password := c.SessionID(), c.Password()
	c.Detach()
	if _, open := <-c.Events(); open {
		for range c.Events() {
		}
	}
	if _, exists, err := other.Exists(ctx, "/e"); err != nil || !exists {
		t.Fatal(exists, err)
	}
	again := w.client(t, func(o *zookeeper.Options) { o.SessionID, o.Password = id, password })
	if again.SessionID() != id || !bytes.Equal(again.Password(), password) {
		t.Errorf("session %x, want %x", again.SessionID(), id)
	}
	now, exists, err := again.Exists(ctx, "/e")
	if err != nil || !exists || now != stat {
		t.Errorf("%+v %v %v, want %+v", now, exists, err, stat)
	}
	again.Close()
	if _, exists, err := other.Exists(ctx, "/e"); err != nil || exists {
		t.Error("the node outlived its session", exists, err)
	}
	late, err := zookeeper.New(zookeeper.Options{Connect: w.addr, SessionID: id, Password: password})
	ok(t, err)
	defer late.Close()
	if err := late.Start(ctx); !errors.Is(err, jute.ErrSessionExpired) {
		t.Error(err)
	}
	ok(t, late.Renew(ctx))
}

func takeOver(t *testing.T, w *world) {
	c, ctx := w.client(t), timeout(t)
	_, _, err := c.Create(ctx, "/e", nil, ephemeral)
	ok(t, err)
	w.refuse(true) // c "died"; nothing closed its session
	heir := w.other(t, func(o *zookeeper.Options) { o.SessionID, o.Password = c.SessionID(), c.Password() })
	if _, exists, err := heir.Exists(ctx, "/e"); err != nil || !exists {
		t.Fatal(exists, err)
	}
	heir.Close()
	w.refuse(false)
	for e := nextAny(t, c); e.State != jute.StateExpired; e = nextAny(t, c) {
	}
	ok(t, c.Renew(ctx))
	if _, exists, err := c.Exists(ctx, "/e"); err != nil || exists {
		t.Error(exists, err)
	}
}

func wrongPassword(t *testing.T, w *world) {
	c, ctx := w.client(t), timeout(t)
	thief, err := zookeeper.New(zookeeper.Options{Connect: w.addr, SessionID: c.SessionID(), Password: make([]byte, jute.PasswordSize)})
	ok(t, err)
	defer thief.Close()
	if err := thief.Start(ctx); !errors.Is(err, jute.ErrSessionExpired) {
		t.Error(err)
	}
	// Apache ZooKeeper closes the owner's connection before it looks at the
	// password; the session is untouched.
	ok(t, c.Retry(ctx, func() error { _, _, err := c.Exists(ctx, "/"); return err }))
	if e := nextAny(t, c); e.State == jute.StateExpired {
		t.Error(e)
	}
}

func chroot(t *testing.T, w *world) {
	outer, ctx := start(t, w.addr+"/"), timeout(t)
	c := start(t, w.proxy.addr()+w.chroot+"/deep/er")
	if _, exists, err := outer.Exists(ctx, w.chroot+"/deep/er"); err != nil || !exists {
		t.Fatal(exists, err)
	}
	path, _, err := c.Create(ctx, "/p", nil, persistent)
	if ok(t, err); path != "/p" {
		t.Error(path)
	}
	path, _, err = c.Create(ctx, "/p/s_", nil, zookeeper.PersistentSequential)
	if ok(t, err); path != "/p/s_0000000000" {
		t.Error(path)
	}
	path, _, err = c.Create(ctx, "/p/", nil, zookeeper.EphemeralSequential)
	if ok(t, err); path != "/p/0000000001" {
		t.Error(path)
	}
	results, err := c.Multi(ctx, zookeeper.CreateOp("/m", nil, persistent))
	if ok(t, err); results[0].Path != "/m" {
		t.Errorf("%+v", results)
	}
	if _, exists, err := outer.Exists(ctx, w.chroot+"/deep/er/p/s_0000000000"); err != nil || !exists {
		t.Error(exists, err)
	}
	_, _, err = c.GetW(ctx, "/p")
	ok(t, err)
	_, _, err = c.ChildrenW(ctx, "/")
	ok(t, err)
	_, err = outer.Set(ctx, w.chroot+"/deep/er/p", nil, 0)
	ok(t, err)
	create(t, outer, w.chroot+"/deep/er/q", "")
	for _, want := range []zookeeper.Event{event(jute.EventNodeDataChanged, "/p"), event(jute.EventNodeChildrenChanged, "/")} {
		if e := next(t, c); e != want {
			t.Errorf("event %+v, want %+v", e, want)
		}
	}
}

func multi(t *testing.T, w *world) {
	c, ctx := w.client(t), timeout(t)
	create(t, c, "/epoch", "1")
	create(t, c, "/old", "")
	results, err := c.Multi(ctx, zookeeper.CheckOp("/epoch", 0), zookeeper.CreateOp("/new", nil, ephemeral),
		zookeeper.SetOp("/new", []byte("x"), 0), zookeeper.DeleteOp("/old", zookeeper.AnyVersion))
	ok(t, err)
	_, stat, err := c.Get(ctx, "/new")
	ok(t, err)
	if len(results) != 4 || results[1].Path != "/new" || results[2].Stat != stat || stat.Version != 1 || stat.Czxid != stat.Mzxid {
		t.Errorf("%+v, node %+v", results, stat)
	}
	for name, c2 := range map[string]struct {
		ops   []zookeeper.Op
		index int
		err   error
		codes []jute.Error
	}{
		"fenced": {[]zookeeper.Op{zookeeper.CheckOp("/epoch", 7), zookeeper.CreateOp("/x", nil, persistent)}, 0, jute.ErrBadVersion,
			[]jute.Error{jute.ErrBadVersion, jute.ErrRuntimeInconsistency}},
		"exists": {[]zookeeper.Op{zookeeper.CheckOp("/epoch", 0), zookeeper.CreateOp("/x", nil, persistent), zookeeper.CreateOp("/new", nil, persistent), zookeeper.DeleteOp("/epoch", 0)}, 2, jute.ErrNodeExists,
			[]jute.Error{jute.OK, jute.OK, jute.ErrNodeExists, jute.ErrRuntimeInconsistency}},
		"no node": {[]zookeeper.Op{zookeeper.SetOp("/none", nil, 0)}, 0, jute.ErrNoNode, []jute.Error{jute.ErrNoNode}},
	} {
		results, err := c.Multi(ctx, c2.ops...)
		var failed *zookeeper.MultiError
		if !errors.As(err, &failed) || !errors.Is(err, c2.err) || failed.Index != c2.index {
			t.Errorf("%s: %v", name, err)
		}
		var codes []jute.Error
		for _, r := range results {
			codes = append(codes, r.Err)
		}
		if !slices.Equal(codes, c2.codes) {
			t.Errorf("%s: %v", name, codes)
		}
	}
	if _, exists, err := c.Exists(ctx, "/x"); err != nil || exists {
		t.Error("a part of a failed multi was done", exists, err)
	}
	if results, err := c.Multi(ctx); err != nil || len(results) != 0 {
		t.Error("empty", results, err)
	}
}

func multiRead(t *testing.T, w *world) {
	c, ctx := w.client(t), timeout(t)
	create(t, c, "/a", "data")
	create(t, c, "/a/b", "")
	results, err := c.MultiRead(ctx, zookeeper.GetOp("/a", false), zookeeper.GetOp("/none", false), zookeeper.ChildrenOp("/a", false))
	ok(t, err)
	if len(results) != 3 || string(results[0].Data) != "data" || results[0].Stat.NumChildren != 1 ||
		results[1].Err != jute.ErrNoNode || !slices.Equal(results[2].Children, []string{"b"}) {
		t.Errorf("%+v", results)
	}
}

func nodes(t *testing.T, w *world) {
	c, ctx := w.client(t), timeout(t)
	_, made, err := c.Create(ctx, "/null", nil, persistent)
	ok(t, err)
	create(t, c, "/empty", "")
	data, stat, err := c.Get(ctx, "/null")
	if ok(t, err); data != nil || stat != made || stat.Czxid == 0 || stat.Ctime == 0 {
		t.Errorf("%q %+v, made %+v", data, stat, made)
	}
	if data, _, err := c.Get(ctx, "/empty"); err != nil || data == nil || len(data) != 0 {
		t.Errorf("%#v %v", data, err)
	}
	if _, err := c.Set(ctx, "/null", []byte("x"), 5); !errors.Is(err, jute.ErrBadVersion) {
		t.Error(err)
	}
	stat, err = c.Set(ctx, "/null", []byte("x"), 0)
	if ok(t, err); stat.Version != 1 || stat.DataLength != 1 {
		t.Errorf("%+v", stat)
	}
	if _, _, err := c.Create(ctx, "/null", nil, persistent); !errors.Is(err, jute.ErrNodeExists) {
		t.Error(err)
	}
	if _, _, err := c.Create(ctx, "/no/node", nil, persistent); !errors.Is(err, jute.ErrNoNode) {
		t.Error(err)
	}
	path, _, err := c.CreateRecursive(ctx, "/no/such/node", []byte("y"), persistent)
	if ok(t, err); path != "/no/such/node" {
		t.Error(path)
	}
	if _, _, err := c.CreateRecursive(ctx, "/no/such/node", nil, persistent); !errors.Is(err, jute.ErrNodeExists) {
		t.Error(err)
	}
	if err := c.Delete(ctx, "/no/such", zookeeper.AnyVersion); !errors.Is(err, jute.ErrNotEmpty) {
		t.Error(err)
	}
	names, stat, err := c.Children(ctx, "/no")
	if ok(t, err); !slices.Equal(names, []string{"such"}) || stat.NumChildren != 1 {
		t.Error(names, stat)
	}
	acl, _, err := c.GetACL(ctx, "/no")
	if ok(t, err); !slices.Equal(acl, jute.WorldACL()) {
		t.Error(acl)
	}
	ok(t, c.Sync(ctx, "/no"))
	big := bytes.Repeat([]byte("z"), 1_000_000)
	_, err = c.Set(ctx, "/null", big, 1)
	ok(t, err)
	if data, _, err := c.Get(ctx, "/null"); err != nil || !bytes.Equal(data, big) {
		t.Error(len(data), err)
	}
}

func digest(t *testing.T, w *world) {
	auth := func(o *zookeeper.Options) { o.Auth = []zookeeper.Auth{zookeeper.DigestAuth("barnabas", "secret")} }
	c, other, ctx := w.client(t, auth), w.other(t), timeout(t)
	mine := jute.ACL{Perms: jute.PermAll, ID: jute.ID{Scheme: "auth"}}
	_, _, err := c.Create(ctx, "/mine", []byte("x"), persistent, mine)
	ok(t, err)
	if _, _, err := other.Get(ctx, "/mine"); !errors.Is(err, jute.ErrNoAuth) {
		t.Error(err)
	}
	w.cut()
	ok(t, c.Retry(ctx, func() error { _, _, err := c.Get(ctx, "/mine"); return err }))
	acl, stat, err := c.GetACL(ctx, "/mine")
	if ok(t, err); len(acl) != 1 || acl[0].ID.Scheme != "digest" || !strings.HasPrefix(acl[0].ID.ID, "barnabas:") {
		t.Error(acl)
	}
	stat, err = c.SetACL(ctx, "/mine", jute.WorldACL(), stat.Aversion)
	if ok(t, err); stat.Aversion != 1 {
		t.Errorf("%+v", stat)
	}
	_, _, err = other.Get(ctx, "/mine")
	ok(t, err)
	// Options.ACL decides for nodes that are given none.
	owner := start(t, w.addr+w.chroot, auth, func(o *zookeeper.Options) {
		o.ACL = func(path string) []jute.ACL {
			if path == "/open" {
				return jute.WorldACL()
			}
			return []jute.ACL{mine}
		}
	})
	ok(t, owner.EnsurePaths(ctx, "/open", "/closed"))
	if _, _, err := other.Get(ctx, "/closed"); !errors.Is(err, jute.ErrNoAuth) {
		t.Error(err)
	}
	_, _, err = other.Get(ctx, "/open")
	ok(t, err)
}

func ensurePaths(t *testing.T, w *world) {
	c, ctx := w.client(t), timeout(t)
	paths := []string{"/consumers", "/brokers/ids", "/brokers/topics", "/config/changes"}
	ok(t, c.EnsurePaths(ctx, paths...))
	var order []int64
	for _, path := range []string{"/consumers", "/brokers", "/brokers/ids", "/brokers/topics", "/config", "/config/changes"} {
		data, stat, err := c.Get(ctx, path)
		if ok(t, err); data != nil {
			t.Errorf("%s: %q", path, data)
		}
		order = append(order, stat.Czxid)
	}
	if !slices.IsSorted(order) {
		t.Error("order of creation", order)
	}
	before := create(t, c, "/before", "")
	ok(t, c.EnsurePaths(ctx, paths...))
	if after := create(t, c, "/after", ""); after.Czxid != before.Czxid+1 {
		t.Errorf("%d transactions to ensure what exists", after.Czxid-before.Czxid-1)
	}
}

func retry(t *testing.T, w *world) {
	c, ctx := w.client(t), timeout(t)
	create(t, c, "/n", "0")
	for i := range int32(300) {
		if i%50 == 7 {
			go w.cut()
		}
		ok(t, c.Retry(ctx, func() error {
			_, err := c.Set(ctx, "/n", fmt.Append(nil, i+1), i)
			if errors.Is(err, jute.ErrBadVersion) { // done by a try whose reply was lost
				return nil
			}
			return err
		}))
	}
	ok(t, c.Retry(ctx, func() error {
		data, stat, err := c.Get(ctx, "/n")
		if err == nil && (string(data) != "300" || stat.Version != 300) {
			t.Errorf("%q, version %d", data, stat.Version)
		}
		return err
	}))
}

func closing(t *testing.T, w *world) {
	c, other, ctx := w.client(t), w.other(t), timeout(t)
	call := c.Go(zookeeper.CreateOp("/e", nil, ephemeral))
	_, _, err := other.ExistsW(ctx, "/e")
	ok(t, err)
	began := time.Now()
	c.Close()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Close took %v", took)
	}
	if _, err := call.Wait(ctx); err != nil {
		t.Error(err)
	}
	if _, exists, err := other.Exists(ctx, "/e"); err != nil || exists {
		t.Error(exists, err)
	}
}
