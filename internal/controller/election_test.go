package controller

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// stop holds whoever comes first until it is let on.
type stop struct {
	first    atomic.Bool
	come, on chan struct{}
}

func newStop() *stop { return &stop{come: make(chan struct{}), on: make(chan struct{})} }

func (s *stop) here() {
	if s.first.CompareAndSwap(false, true) {
		close(s.come)
		<-s.on
	}
}

// stopAt is a log whose writer is held at a message.
type stopAt struct {
	slog.Handler
	message string
	stop    *stop
}

func (h stopAt) Enabled(context.Context, slog.Level) bool { return true }

func (h stopAt) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		h.stop.here()
	}
	return nil
}

// expire ends a client's session and waits until the client knows.
func expire(t *testing.T, c *zookeeper.Client, server zookeeper.Options) {
	t.Helper()
	server.SessionID, server.Password = c.SessionID(), c.Password()
	clientOf(t, server).Close()
	for e := range c.Events() {
		if e.State == jute.StateExpired {
			return
		}
	}
}

// Nothing of the election outlives the session: the broker is not registered in
// the next one until it calls Elect.
func TestNobodyIsElectedBetweenTheExpiryAndElect(t *testing.T) {
	const deleted = "/controller was deleted: no controller stood behind it"
	closed := []jute.ACL{{Perms: jute.PermAll &^ jute.PermCreate, ID: jute.ID{Scheme: "world", ID: "anyone"}}}
	open := []jute.ACL{{Perms: jute.PermAll, ID: jute.ID{Scheme: "world", ID: "anyone"}}}
	for name, prepare := range map[string]func(*testing.T, *zookeeper.Client, *Options, *stop){
		"a look before its second read": func(t *testing.T, c *zookeeper.Client, o *Options, s *stop) {
			if _, _, err := c.Create(t.Context(), znode.ControllerPath, []byte("junk"), zookeeper.Persistent); err != nil {
				t.Fatal(err)
			}
			o.Logger = slog.New(stopAt{message: deleted, stop: s})
		},
		"a look before it creates": func(_ *testing.T, _ *zookeeper.Client, o *Options, s *stop) {
			o.Now = func() time.Time { s.here(); return time.Now() }
		},
		"a look that is put off": func(t *testing.T, c *zookeeper.Client, o *Options, s *stop) {
			if _, err := c.SetACL(t.Context(), "/", closed, zookeeper.AnyVersion); err != nil {
				t.Fatal(err)
			}
			o.Logger = slog.New(stopAt{message: "the election waits", stop: s})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := embedded(t, plain)
				zk := clientOf(t, server)
				if err := zk.EnsurePaths(t.Context(), znode.BootPaths()...); err != nil {
					t.Fatal(err)
				}
				s := newStop()
				o := Options{BrokerID: 1, ZooKeeper: zk}
				prepare(t, zk, &o, s)
				c := New(o)
				defer c.Close()
				c.Start()
				<-s.come
				expire(t, zk, server)
				renewed := make(chan struct{})
				go func() {
					defer close(renewed)
					if err := c.SessionExpired(t.Context()); err != nil {
						t.Error(err)
					}
					if err := zk.Renew(t.Context()); err != nil {
						t.Error(err)
					}
				}()
				wait(2 * lookPause)
				close(s.on)
				<-renewed
				if _, err := zk.SetACL(t.Context(), "/", open, zookeeper.AnyVersion); err != nil {
					t.Fatal(err)
				}
				wait(3 * lookPause)
				if _, exists, err := zk.Exists(t.Context(), znode.ControllerPath); exists || err != nil || c.IsActive() {
					t.Errorf("/controller exists: %v, %v", exists, err)
				}
				c.Elect()
				synctest.Wait()
				if !c.IsActive() {
					t.Error("nobody is elected")
				}
			})
		})
	}
}
