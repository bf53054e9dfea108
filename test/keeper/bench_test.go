package keeper

import (
	"fmt"
	"net"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/keeper"
	"barnabas/internal/keeper/keepertest"
	"barnabas/test/real"
)

// BenchmarkBesideApacheZooKeeper measures one client, one request at a time,
// over TCP; both servers sync each write.
func BenchmarkBesideApacheZooKeeper(b *testing.B) {
	for _, side := range []struct {
		name  string
		start func(testing.TB) string
	}{
		{"Apache", func(t testing.TB) string { return real.ZooKeeper(t) }},
		{"Barnabas", func(t testing.TB) string { return ours(t, keeper.Options{Dir: t.TempDir()}) }},
	} {
		b.Run(side.name, func(b *testing.B) {
			addr := side.start(b)
			var c *keepertest.Client
			real.Until(b, 10*time.Second, "a session", func() bool {
				nc, err := net.Dial("tcp", addr)
				if err == nil {
					c, err = keepertest.Connect(nc, jute.ConnectRequest{Timeout: 30000})
				}
				return err == nil
			})
			defer c.Close()
			b.Run("create", func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					path := fmt.Sprintf("/n%d-%d", time.Now().UnixNano(), i)
					if f, _, err := c.Call(jute.OpCreate, &jute.CreateRequest{Path: path, Data: make([]byte, 100), ACL: jute.WorldACL()}); err != nil || f.Err != jute.OK {
						b.Fatal(f, err)
					}
				}
			})
			b.Run("getData", func(b *testing.B) {
				for b.Loop() {
					if f, _, err := c.Call(jute.OpGetData, &jute.PathWatchRequest{Path: "/zookeeper"}); err != nil || f.Err != jute.OK {
						b.Fatal(f, err)
					}
				}
			})
		})
	}
}
