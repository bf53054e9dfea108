package keeper

import (
	"errors"
	"io"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"barnabas/internal/keeper"
	"barnabas/test/real"
)

// onBoth runs a case on Apache ZooKeeper 3.8 and on ours.
func onBoth(t *testing.T, f func(t *testing.T, addr string)) {
	for _, side := range []struct {
		name  string
		start func(*testing.T) string
	}{
		{"Apache", func(t *testing.T) string {
			addr := real.StartZooKeeper(t, "extendedTypesEnabled=true", "tickTime=200", "maxSessionTimeout=60000", "-Dznode.container.checkIntervalMs=500").Addr
			super(t, addr) // it listens before it serves
			return addr
		}},
		{"Barnabas", func(t *testing.T) string {
			addr := ours(t, keeper.Options{Dir: t.TempDir(), TickTime: 200 * time.Millisecond, MaxSessionTimeout: time.Minute, Words: []string{"*"},
				ContainerInterval: 500 * time.Millisecond})
			super(t, addr) // for the same zxids
			return addr
		}},
	} {
		t.Run(side.name, func(t *testing.T) { f(t, side.start(t)) })
	}
}

func goClient(t *testing.T, addr string) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, 4*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, events
}

// Burrow's ways: offsets of consumers of 0.8 with their Mtime as time and Mzxid
// as order, watches on data and children, and a lock that one instance holds.
func TestBurrowsWaysWork(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		c, _ := goClient(t, addr)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		all := zk.WorldACL(zk.PermAll)
		_, err := c.Create("/consumers", nil, 0, all)
		must(err)
		for _, p := range []string{"/consumers/g", "/consumers/g/offsets", "/consumers/g/offsets/t", "/consumers/g/offsets/t/0"} {
			_, err = c.Create(p, []byte("7"), 0, all)
			must(err)
		}
		data, stat, changed, err := c.GetW("/consumers/g/offsets/t/0")
		must(err)
		if string(data) != "7" || stat.Mtime == 0 || stat.Mzxid != stat.Czxid {
			t.Errorf("%q %+v", data, stat)
		}
		_, _, grown, err := c.ChildrenW("/consumers/g/offsets/t")
		must(err)
		next, err := c.Set("/consumers/g/offsets/t/0", []byte("8"), stat.Version)
		must(err)
		_, err = c.Create("/consumers/g/offsets/t/1", nil, 0, all)
		must(err)
		if e := <-changed; e.Type != zk.EventNodeDataChanged || next.Mzxid <= stat.Mzxid || next.Version != 1 {
			t.Error(e, next)
		}
		if e := <-grown; e.Type != zk.EventNodeChildrenChanged || e.Path != "/consumers/g/offsets/t" {
			t.Error(e)
		}
		if _, err := c.Set("/consumers/g/offsets/t/0", nil, 0); !errors.Is(err, zk.ErrBadVersion) {
			t.Error(err)
		}
		var held, most int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 5 {
			other, _ := goClient(t, addr)
			wg.Go(func() {
				l := zk.NewLock(other, "/burrow/notifier/lock", all)
				if err := l.Lock(); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				held++
				most = max(most, held)
				held--
				mu.Unlock()
				if err := l.Unlock(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most != 1 {
			t.Errorf("%d held the lock at a time", most)
		}
	})
}

// kafka-kit's and kazoo-go's client (go-zookeeper) with what else it does.
func TestGoZooKeeperWorks(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		c, _ := goClient(t, addr)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		all := zk.WorldACL(zk.PermAll)
		// Containers and a time to live.
		_, err := c.CreateContainer("/container", nil, 4, all)
		must(err)
		_, err = c.Create("/container/x", nil, 0, all)
		must(err)
		must(c.Delete("/container/x", -1))
		_, err = c.CreateTTL("/ttl", nil, 5, all, 100*time.Millisecond)
		must(err)
		real.Until(t, 20*time.Second, "the end of a container and of a node with a time to live", func() bool {
			a, _, err1 := c.Exists("/container")
			b, _, err2 := c.Exists("/ttl")
			return err1 == nil && err2 == nil && !a && !b
		})
		// Transactions and ACLs.
		if r, err := c.Multi(&zk.CreateRequest{Path: "/m", Acl: all}, &zk.CheckVersionRequest{Path: "/zookeeper", Version: 9}); !errors.Is(err, zk.ErrBadVersion) || len(r) != 2 {
			t.Error(r, err)
		}
		must(c.AddAuth("digest", []byte("u:p")))
		_, err = c.Create("/secret", []byte("s"), 0, zk.DigestACL(zk.PermAll, "u", "p"))
		must(err)
		stranger, _ := goClient(t, addr)
		if _, _, err := stranger.Get("/secret"); !errors.Is(err, zk.ErrNoAuth) {
			t.Error(err)
		}
		// An ephemeral node goes with its session.
		gone, _ := goClient(t, addr)
		_, err = gone.Create("/e", nil, zk.FlagEphemeral, all)
		must(err)
		_, _, ended, err := c.ExistsW("/e")
		must(err)
		gone.Close()
		if e := <-ended; e.Type != zk.EventNodeDeleted {
			t.Error(e)
		}
	})
}
