package api

import (
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// While ZooKeeper is away what the broker knows is answered at once, and what
// would need it soon, with a code that makes clients ask again.
func TestMetadataWithoutZooKeeper(t *testing.T) {
	zk := real.StartZooKeeper(t)
	b := real.Barnabas(t, 1, "zookeeper.connect="+zk.Addr)
	conn := raw.Dial(t, b.Addr)
	if r := raw.Do[*kmsg.CreateTopicsResponse](conn, create(2, 5000, false, topic("known", 1, 1)).req); r.Topics[0].ErrorCode != 0 {
		t.Fatalf("%+v", r)
	}
	zk.Kill()
	for _, c := range []struct {
		name  string
		code  int16
		limit time.Duration
	}{{"known", 0, 2 * time.Second}, {"unknown", 5, 8 * time.Second}, {"bad name", 17, 2 * time.Second}} {
		began := time.Now()
		r := raw.Do[*kmsg.MetadataResponse](conn, metadata(4, true, c.name).req)
		if took := time.Since(began); r.Topics[0].ErrorCode != c.code || took > c.limit {
			t.Errorf("%s: code %d after %v", c.name, r.Topics[0].ErrorCode, took)
		}
	}
	zk.Restart(t)
	real.Until(t, 30*time.Second, "the topic can be made again", func() bool {
		return raw.Do[*kmsg.MetadataResponse](conn, metadata(4, true, "unknown").req).Topics[0].ErrorCode == 0
	})
}
