package broker

import (
	"io"
	"log/slog"
	"net"
	"testing"
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
