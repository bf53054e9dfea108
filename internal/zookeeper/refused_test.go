package zookeeper

import (
	"errors"
	"testing"

	"barnabas/internal/jute"
)

// A server that is throttled answers so to whatever it is asked.

func TestWatchesThatAreNotSetAgainEndTheConnection(t *testing.T) {
	f := newFake(t)
	c, p := f.started()
	call := c.Go(ExistsOp("/a", true))
	p.send(&jute.ReplyHeader{Xid: p.request(jute.OpExists), Err: jute.ErrNoNode, Zxid: 3})
	if _, err := call.Wait(t.Context()); !errors.Is(err, jute.ErrNoNode) {
		t.Fatal(err)
	}
	p.nc.Close()
	nextEvent(t, c, Event{jute.EventNone, jute.StateDisconnected, ""})
	for _, answer := range []jute.Error{jute.ErrThrottledOp, jute.OK} {
		p, _ = f.welcome()
		p.request(jute.OpSetWatches)
		nextEvent(t, c, Event{jute.EventNone, jute.StateSyncConnected, ""})
		p.send(&jute.ReplyHeader{Xid: jute.XidSetWatches, Err: answer, Zxid: 3})
		if answer != jute.OK {
			nextEvent(t, c, Event{jute.EventNone, jute.StateDisconnected, ""})
		}
	}
	p.send(&jute.ReplyHeader{Xid: jute.XidNotification, Zxid: -1}, &jute.WatcherEvent{Type: jute.EventNodeCreated, State: jute.StateSyncConnected, Path: "/a"})
	nextEvent(t, c, Event{jute.EventNodeCreated, jute.StateSyncConnected, "/a"})
}

func TestReadsThatAreRefusedAreNotTakenForMissingNodes(t *testing.T) {
	f := newFake(t)
	c, p := f.started()
	type outcome struct {
		reads []Read
		err   error
	}
	for _, answer := range []jute.Error{jute.ErrNoNode, jute.ErrNoAuth, jute.ErrThrottledOp, jute.ErrSystemError} {
		got := make(chan outcome, 1)
		go func() {
			reads, err := c.GetMany(t.Context(), []string{"/a"}, false)
			got <- outcome{reads, err}
		}()
		p.send(&jute.ReplyHeader{Xid: p.request(jute.OpGetData), Err: answer, Zxid: 3})
		o := <-got
		if own := answer == jute.ErrNoNode || answer == jute.ErrNoAuth; own && (o.err != nil || o.reads[0].Err != answer) || !own && !errors.Is(o.err, answer) {
			t.Errorf("%v: %+v", answer, o)
		}
	}
}
