package zookeeper

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"barnabas/internal/keeper"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"
)

// TestMain also looks for goroutines that a client left behind.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// The cases share a server; each has a chroot of its own.
var cases = []struct {
	name string
	run  func(*testing.T, *world)
}{
	{"pipelined calls are answered in order", pipelinedCallsAreAnsweredInOrder},
	{"a neighbour after a lost call is lost too", neighboursAreLostTogether},
	{"the event comes before the reply that shows the change", eventBeforeReply},
	{"watches outlive a cut connection", watchesOutliveACutConnection},
	{"watches that stay, and requests that Kafka makes none of", watchesThatStay},
	{"thousands of reads and watches over a cut", thousandsOfReads},
	{"a session that expired is told once and renewed when asked", expiry},
	{"a session left behind is attached again", reattach},
	{"a session taken over and closed is expired for the first client", takeOver},
	{"the chroot is made and stays hidden", chroot},
	{"a multi does all or nothing and names what failed", multi},
	{"multiRead answers each read by itself", multiRead},
	{"nodes, stats and null data", nodes},
	{"digest identities come back with the connection", digest},
	{"paths are ensured once", ensurePaths},
	{"writes over a connection that is cut again and again", retry},
	{"close takes ephemeral nodes along at once", closing},
	{"wrong password finds no session", wrongPassword},
}

func TestOnApacheZooKeeper(t *testing.T) {
	zk := real.StartZooKeeper(t, "tickTime=300", "minSessionTimeout=600", "maxSessionTimeout=60000")
	runCases(t, zk.Addr)
}

func TestOnTheEmbeddedServer(t *testing.T) {
	runCases(t, embedded(t).addr)
}

type embeddedServer struct {
	*keeper.Server
	addr string
}

func embedded(t testing.TB) embeddedServer {
	t.Helper()
	s, err := keeper.Open(keeper.Options{Dir: t.TempDir(), TickTime: 300 * time.Millisecond,
		MinSessionTimeout: 600 * time.Millisecond, MaxSessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(l)
	}()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		l.Close()
		<-served
	})
	return embeddedServer{s, l.Addr().String()}
}

func runCases(t *testing.T, addr string) {
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, &world{proxy: newProxy(t, addr), addr: addr, chroot: "/case" + string(rune('a'+i))})
		})
	}
}

// world is what a case works with.
type world struct {
	*proxy
	addr   string // of the server itself
	chroot string
}

// client starts a client behind the proxy.
func (w *world) client(t *testing.T, change ...func(*zookeeper.Options)) *zookeeper.Client {
	t.Helper()
	return start(t, w.proxy.addr()+w.chroot, change...)
}

// other starts a client with a way to the server of its own.
func (w *world) other(t *testing.T, change ...func(*zookeeper.Options)) *zookeeper.Client {
	t.Helper()
	return start(t, w.addr+w.chroot, change...)
}

func start(t *testing.T, connect string, change ...func(*zookeeper.Options)) *zookeeper.Client {
	t.Helper()
	o := zookeeper.Options{Connect: connect, SessionTimeout: 20 * time.Second}
	for _, c := range change {
		c(&o)
	}
	c, err := zookeeper.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Start(timeout(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// next returns the next event of a node, and skips those of the session.
func next(t *testing.T, c *zookeeper.Client) zookeeper.Event {
	t.Helper()
	for {
		if e := nextAny(t, c); e.Path != "" {
			return e
		}
	}
}

func nextAny(t *testing.T, c *zookeeper.Client) zookeeper.Event {
	t.Helper()
	select {
	case e := <-c.Events():
		return e
	case <-time.After(30 * time.Second):
		t.Fatal("no event")
		return zookeeper.Event{}
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
