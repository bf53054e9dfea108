package api

import (
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// While ZooKeeper is away what the broker knows is answered at once; what can't
// be done is refused while the client still listens, with codes that make it ask
// again, and is not done later behind its back.
func TestRequestsWithoutZooKeeper(t *testing.T) {
	zk := real.StartZooKeeper(t)
	b := real.Barnabas(t, 1, "zookeeper.connect="+zk.Addr)
	conn := raw.Dial(t, b.Addr)
	make := func(name string) int16 {
		return raw.Do[*kmsg.CreateTopicsResponse](conn, create(7, 1000, false, topic(name, 1, 1)).req).Topics[0].ErrorCode
	}
	if code := make("known"); code != 0 {
		t.Fatalf("code %d", code)
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
	const timedOut = 7
	if code := make("late"); code != timedOut {
		t.Errorf("CreateTopics: code %d", code)
	}
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.Version, remove.TimeoutMillis, remove.TopicNames = 4, 1000, []string{"known"}
	if r := raw.Do[*kmsg.DeleteTopicsResponse](conn, remove); r.Topics[0].ErrorCode != timedOut {
		t.Errorf("DeleteTopics: code %d", r.Topics[0].ErrorCode)
	}
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.TimeoutMillis = 1000
	grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "known", Count: 2}}
	if r := raw.Do[*kmsg.CreatePartitionsResponse](conn, grow); r.Topics[0].ErrorCode != timedOut {
		t.Errorf("CreatePartitions: code %d", r.Topics[0].ErrorCode)
	}
	id := kmsg.NewPtrInitProducerIDRequest()
	id.Version, id.ProducerID, id.ProducerEpoch = 4, -1, -1
	if r := raw.Do[*kmsg.InitProducerIDResponse](conn, id); r.ErrorCode != 14 {
		t.Errorf("InitProducerId: %+v", r)
	}
	zk.Restart(t)
	real.Until(t, time.Minute, "topics can be made again", func() bool { return make("after") == 0 })
	real.Until(t, 30*time.Second, "the topic can be made by asking for it", func() bool {
		return raw.Do[*kmsg.MetadataResponse](conn, metadata(4, true, "unknown").req).Topics[0].ErrorCode == 0
	})
	for name, want := range map[string]int16{"late": 3, "known": 0, "after": 0} {
		r := raw.Do[*kmsg.MetadataResponse](conn, metadata(4, false, name).req).Topics[0]
		if r.ErrorCode != want || want == 0 && len(r.Partitions) != 1 {
			t.Errorf("%s: code %d, %d partitions", name, r.ErrorCode, len(r.Partitions))
		}
	}
	if r := raw.Do[*kmsg.InitProducerIDResponse](conn, id); r.ErrorCode != 0 {
		t.Errorf("InitProducerId afterwards: %+v", r)
	}
}
