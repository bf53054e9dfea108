package groups

import (
	"fmt"
	"testing"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchOffsets returns the committed offsets of partitions of a topic.
func fetchOffsets(t *testing.T, addr, group, topic string, partitions ...int32) []int64 {
	t.Helper()
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Version, r.Group = 5, group
	r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: partitions}}
	answer := raw.Ask[*kmsg.OffsetFetchResponse](t, addr, r)
	if answer.ErrorCode != 0 {
		t.Fatalf("fetching the offsets of %s: error %d", group, answer.ErrorCode)
	}
	var offsets []int64
	for _, p := range answer.Topics[0].Partitions {
		offsets = append(offsets, p.Offset)
	}
	return offsets
}

// TestCoordinatorMovesBetweenKafkaAndBarnabas has one broker id, one ZooKeeper
// and one log dir be served by Kafka, by Barnabas and by Kafka again: groups keep
// their members and offsets, and go on.
func TestCoordinatorMovesBetweenKafkaAndBarnabas(t *testing.T) {
	t.Parallel()
	zk := real.ZooKeeper(t)
	k := real.Kafka(t, "3.9.1", 1, zk, "inter.broker.protocol.version=3.9", "zookeeper.session.timeout.ms=6000")
	topic := raw.NewTopic(t, k.Addr, 4)
	raw.Coordinated(t, k.Addr, "mover")
	outside := func(addr string, offset int64) {
		t.Helper()
		c := raw.Dial(t, addr)
		for i := range int32(4) {
			if code := commit(c, commitRequest(6, fmt.Sprint("outside-", i), topic, i, offset+int64(i), "")); code != 0 {
				t.Fatalf("commit: %d", code)
			}
		}
	}
	check := func(addr, who string, offset int64) {
		t.Helper()
		for i := range int32(4) {
			id := fmt.Sprint("outside-", i)
			raw.Coordinated(t, addr, id)
			if got := fetchOffsets(t, addr, id, topic, i); got[0] != offset+int64(i) {
				t.Errorf("%s: offset of %s is %d, want %d", who, id, got[0], offset+int64(i))
			}
		}
	}
	records := 0
	more := func(addr string) {
		produce(t, addr, topic, records, records+40)
		records += 40
	}
	// A static member with a long session is found by each coordinator in turn.
	join := joinRequest(5, "static", "", 600000, 600000, "range")
	instance := "one"
	join.InstanceID = &instance
	raw.Coordinated(t, k.Addr, "static")
	c := raw.Dial(t, k.Addr)
	joined := raw.Do[*kmsg.JoinGroupResponse](c, join)
	sync := syncRequest("static", joined.MemberID, joined.Generation)
	sync.InstanceID = &instance
	if r := raw.Do[*kmsg.SyncGroupResponse](c, sync); r.ErrorCode != 0 {
		t.Fatalf("sync: %d", r.ErrorCode)
	}
	alive := func(addr, who string) {
		t.Helper()
		raw.Coordinated(t, addr, "static")
		if code := heartbeat(raw.Dial(t, addr), "static", joined.MemberID, joined.Generation); code != 0 {
			t.Errorf("%s: heartbeat of a member that has not changed: %d", who, code)
		}
	}

	more(k.Addr)
	m := kcat(t, k.Addr, "mover", topic)
	real.Until(t, patience, "Kafka's member to read", func() bool { return missing([]func() string{m.output}, records) == 0 })
	m.leave()
	outside(k.Addr, 100)
	k.Stop()

	b := real.Barnabas(t, 1, "zookeeper.connect="+zk, "log.dirs="+k.Dir, "group.initial.rebalance.delay.ms=0",
		"offsets.topic.replication.factor=1", "zookeeper.session.timeout.ms=6000")
	check(b.Addr, "Barnabas after Kafka", 100)
	alive(b.Addr, "Barnabas after Kafka")
	raw.Coordinated(t, b.Addr, "mover")
	more(b.Addr)
	m = kcat(t, b.Addr, "mover", topic)
	real.Until(t, patience, "Barnabas's member to read the rest", func() bool { return missing([]func() string{m.output}, records) == 40 })
	m.leave()
	outside(b.Addr, 200)
	b.Stop()

	again := real.Kafka(t, "3.9.1", 1, zk, "inter.broker.protocol.version=3.9", "log.dirs="+k.Dir)
	check(again.Addr, "Kafka after Barnabas", 200)
	alive(again.Addr, "Kafka after Barnabas")
	raw.Coordinated(t, again.Addr, "mover")
	more(again.Addr)
	m = kcat(t, again.Addr, "mover", topic)
	real.Until(t, patience, "Kafka's member to read the rest", func() bool { return missing([]func() string{m.output}, records) == 80 })
}
