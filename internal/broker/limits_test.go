package broker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/config"
)

// limited starts a broker by itself and returns what dials it, each time with a
// connection that stays until the test ends.
func limited(t *testing.T, set map[string]string) (*Broker, func() net.Conn) {
	t.Helper()
	all := map[string]string{"log.dirs": t.TempDir(), "listeners": "PLAINTEXT://127.0.0.1:0", "keeper.dir": t.TempDir(), "keeper.listen": ""}
	for name, value := range set {
		all[name] = value
	}
	c, err := config.NewBroker(all)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Start(t.Context(), Options{Config: c, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, "its own connections are gone", func() bool { return b.server.Connections() == 0 })
	return b, func() net.Conn {
		t.Helper()
		nc, err := net.Dial("tcp", b.sockets[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("never: %s", what)
		}
	}
}

func TestConnectionsOfAnAddressHaveItsOwnLimit(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "localhost"} {
		t.Run(host, func(t *testing.T) {
			b, dial := limited(t, map[string]string{"max.connections.per.ip": "0", "max.connections.per.ip.overrides": host + ":2"})
			dial()
			dial()
			waitFor(t, "two are let in", func() bool { return b.server.Connections() == 2 })
			nc := dial()
			nc.SetReadDeadline(time.Now().Add(30 * time.Second))
			if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
				t.Fatalf("the third: %v", err)
			}
			if err := b.config.Update(nil, map[string]string{"max.connections.per.ip.overrides": "192.0.2.1:1," + host + ":3"}); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "three are let in", func() bool { dial(); return b.server.Connections() == 3 })
		})
	}
}

func TestAListenersLimitChangesWhileItRuns(t *testing.T) {
	for name, raised := range map[string]string{"max.connections": "2", "listener.name.plaintext.max.connections": "2"} {
		t.Run(name, func(t *testing.T) {
			b, dial := limited(t, map[string]string{name: "1"})
			dial()
			waitFor(t, "one is let in", func() bool { return b.server.Connections() == 1 })
			dial() // waits for a place
			if err := b.config.Update(nil, map[string]string{name: raised}); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the second is let in", func() bool { return b.server.Connections() == 2 })
		})
	}
}

// A name server that is away takes no limit away, and is asked again.
func TestAHostThatIsNotFoundKeepsItsLimitAndIsLookedUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, err := config.NewBroker(map[string]string{"zookeeper.connect": "unused:1", "max.connections.per.ip.overrides": "a:1,192.0.2.9:9"})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex // of the next three
		hosts := map[string]string{"a": "192.0.2.1"}
		asked := 0
		var inForce map[string]int
		var said logged
		of := &addressLimits{
			log: slog.New(slog.NewTextHandler(&said, nil)),
			resolve: func(_ context.Context, _, host string) ([]netip.Addr, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				if text, ok := hosts[host]; ok {
					return []netip.Addr{netip.MustParseAddr(text)}, nil
				}
				return nil, errors.New("no such host")
			},
		}
		dynamic := config.NewDynamic(first)
		of.refresh(t.Context(), first)
		changed := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			of.keep(ctx, dynamic, changed, func(*config.Broker) {
				mu.Lock()
				defer mu.Unlock()
				inForce = of.limit
			})
		}()
		find := func(host, address string) {
			mu.Lock()
			defer mu.Unlock()
			if hosts[host] = address; address == "" {
				delete(hosts, host)
			}
		}
		check := func(what string, lookups, warnings int, want map[string]int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			text := said.take()
			if !maps.Equal(inForce, want) {
				t.Errorf("%s: limits %v, want %v", what, inForce, want)
			}
			if asked != lookups {
				t.Errorf("%s: %d lookups, want %d", what, asked, lookups)
			}
			if n := strings.Count(text, "level=WARN"); n != warnings {
				t.Errorf("%s: %d warnings, want %d:\n%s", what, n, warnings, text)
			}
			asked = 0
		}
		alter := func(set map[string]string) {
			t.Helper()
			if err := dynamic.Update(nil, set); err != nil {
				t.Fatal(err)
			}
			changed <- struct{}{}
		}
		pass := func() { <-time.After(lookupPause) } // the bubble's time

		changed <- struct{}{}
		check("it is found at the start", 1, 0, map[string]int{"192.0.2.1": 1, "192.0.2.9": 9})
		find("a", "")
		alter(map[string]string{"max.connections.per.ip.overrides": "a:2,b:3,192.0.2.9:9"})
		check("neither is found", 2, 2, map[string]int{"192.0.2.1": 2, "192.0.2.9": 9})
		pass()
		check("nor a while later", 2, 0, map[string]int{"192.0.2.1": 2, "192.0.2.9": 9})
		find("b", "192.0.2.2")
		pass()
		check("one is", 2, 0, map[string]int{"192.0.2.1": 2, "192.0.2.2": 3, "192.0.2.9": 9})
		find("a", "192.0.2.3")
		find("b", "") // which is not asked for
		pass()
		check("the other is, elsewhere", 1, 0, map[string]int{"192.0.2.3": 2, "192.0.2.2": 3, "192.0.2.9": 9})
		pass()
		check("both were", 0, 0, map[string]int{"192.0.2.3": 2, "192.0.2.2": 3, "192.0.2.9": 9})
		alter(map[string]string{"max.connections.per.ip.overrides": "b:3"})
		check("again it is not", 1, 1, map[string]int{"192.0.2.2": 3})
		cancel()
		<-ended
	})
}
