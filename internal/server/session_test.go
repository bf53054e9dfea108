package server

import (
	"fmt"
	"testing"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/record"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// incremental is a session's next request; it names nothing.
func incremental(id, epoch int32) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.ReplicaID, r.MinBytes, r.MaxBytes, r.SessionID, r.SessionEpoch = -1, 1, 1<<20, id, epoch
	return r
}

// told lists the partitions that an answer names, with the records' values.
func told(tb testing.TB, r *kmsg.FetchResponse) string {
	tb.Helper()
	out := fmt.Sprint(r.ErrorCode)
	for _, topic := range r.Topics {
		for _, p := range topic.Partitions {
			out += fmt.Sprintf(" %d:%d%v", p.Partition, p.ErrorCode, values(tb, p.RecordBatches))
		}
	}
	return out
}

// open begins a session over these partitions of t from offset 0.
func open(c *client, version int16, id wire.UUID, partitions ...int32) *kmsg.FetchResponse {
	r := fetchRequest("t", id, 0, 0)
	r.SessionEpoch, r.MaxWaitMillis = 0, 0
	r.Topics[0].Partitions = nil
	for _, p := range partitions {
		fp := kmsg.NewFetchRequestTopicPartition()
		fp.Partition, fp.PartitionMaxBytes = p, 1<<20
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, fp)
	}
	return c.fetch(version, r)
}

func name(r *kmsg.FetchRequest, id wire.UUID, partition int32, offset int64) {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	r.Topics = append(r.Topics, kmsg.FetchRequestTopic{Topic: "t", TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{p}})
}

func TestSessionAnswersWithWhatChanged(t *testing.T) {
	for _, version := range []int16{7, 12, 17} {
		h := start(t)
		c := h.dial()
		id := h.topic("t", 4)
		c.produce(9, "t", 2, 1, set(record.None, "a"))
		first := open(c, version, id, 0, 1, 2, 3)
		if first.SessionID == 0 || h.broker.Fetches.Len() != 1 {
			t.Fatalf("no session: %d", first.SessionID)
		}
		equal(t, "full", told(t, first), "0 0:0[] 1:0[] 2:0[0:a] 3:0[]")

		r := incremental(first.SessionID, 1) // has not taken it: it comes again
		equal(t, "again", told(t, c.fetch(version, r)), "0 2:0[0:a]")
		r = incremental(first.SessionID, 2)
		name(r, id, 2, 1)
		equal(t, "nothing new", told(t, c.fetch(version, r)), "0")
		c.produce(9, "t", 0, 1, set(record.None, "b"))
		c.produce(9, "t", 2, 1, set(record.None, "c"))
		equal(t, "two changed", told(t, c.fetch(version, incremental(first.SessionID, 3))), "0 0:0[0:b] 2:0[1:c]")

		r = incremental(first.SessionID, 4) // forget one, add one that is not there
		name(r, id, 2, 2)
		r.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "t", TopicID: id, Partitions: []int32{0}}}
		name(r, id, 9, 0)
		equal(t, "forgotten", told(t, c.fetch(version, r)), "0 9:3[]")
		equal(t, "an error stays told", told(t, c.fetch(version, incremental(first.SessionID, 5))), "0 9:3[]")

		equal(t, "wrong epoch", c.fetch(version, incremental(first.SessionID, 9)).ErrorCode, 71)
		equal(t, "unknown session", c.fetch(version, incremental(first.SessionID+1, 1)).ErrorCode, 70)
		r = fetchRequest("t", id, 1, 0)
		r.SessionID, r.SessionEpoch, r.MaxWaitMillis = first.SessionID, -1, 0
		end := c.fetch(version, r)
		equal(t, "ended", fmt.Sprint(end.SessionID, h.broker.Fetches.Len()), "0 0")
		for p := range int32(4) {
			equal(t, "left behind", subscribers(h, "t", p), 0)
		}
	}
}

func TestSessionIsWokenByItsPartitions(t *testing.T) {
	h := start(t)
	c, producer := h.dial(), h.dial()
	id := h.topic("t", 50)
	all := make([]int32, 50)
	for i := range all {
		all[i] = int32(i)
	}
	first := open(c, 12, id, all...)
	for i := range int32(50) {
		r := incremental(first.SessionID, i+1)
		r.MaxWaitMillis = 20_000
		if i > 0 {
			name(r, id, i-1, 1)
		}
		c.send(r, 12)
		producer.produce(9, "t", i, 1, set(record.None, "v"))
		_, b := c.next()
		equal(t, "woken", told(t, decode(t, r, 12, b).(*kmsg.FetchResponse)), fmt.Sprintf("0 %d:0[0:v]", i))
	}
}

func TestSecondRequestOfASessionWaitsForTheFirst(t *testing.T) {
	h := start(t)
	c, producer := h.dial(), h.dial()
	id := h.topic("t", 1)
	first := open(c, 12, id, 0)
	r1 := incremental(first.SessionID, 1)
	r1.MaxWaitMillis = 20_000
	c.send(r1, 12)
	r2 := incremental(first.SessionID, 2)
	name(r2, id, 0, 1)
	r2.MaxWaitMillis = 20_000
	c.send(r2, 12)
	producer.produce(9, "t", 0, 1, set(record.None, "a"))
	_, b := c.next()
	equal(t, "first", told(t, decode(t, r1, 12, b).(*kmsg.FetchResponse)), "0 0:0[0:a]")
	producer.produce(9, "t", 0, 1, set(record.None, "b"))
	_, b = c.next()
	equal(t, "second", told(t, decode(t, r2, 12, b).(*kmsg.FetchResponse)), "0 0:0[1:b]")
}

func TestSessionOfADeletedTopicTellsSoAndFindsTheNextOne(t *testing.T) {
	h := start(t)
	c := h.dial()
	id := h.topic("t", 1)
	first := open(c, 12, id, 0)
	r := incremental(first.SessionID, 1)
	r.MaxWaitMillis = 20_000
	c.send(r, 12)
	eventually(t, "the fetch waits", func() bool { return subscribers(h, "t", 0) == 1 })
	h.remove("t", 1)
	_, b := c.next()
	equal(t, "gone", told(t, decode(t, r, 12, b).(*kmsg.FetchResponse)), "0 0:3[]")
	h.topic("t", 1)
	c.produce(9, "t", 0, 1, set(record.None, "new"))
	equal(t, "the next one", told(t, c.fetch(12, incremental(first.SessionID, 2))), "0 0:0[0:new]")
}

// remove deletes a topic as the controller does.
func (h *harness) remove(topic string, partitions int32) {
	s := kmsg.NewPtrStopReplicaRequest()
	s.Version, s.ControllerEpoch, s.BrokerEpoch = 4, 1, -1
	u := kmsg.NewPtrUpdateMetadataRequest()
	u.Version, u.ControllerEpoch, u.ControllerID = 8, 1, 1
	st := kmsg.StopReplicaRequestTopic{Topic: topic}
	ut := kmsg.UpdateMetadataRequestTopicState{Topic: topic}
	for i := range partitions {
		st.PartitionStates = append(st.PartitionStates, kmsg.StopReplicaRequestTopicPartitionState{Partition: i, LeaderEpoch: -2, Delete: true})
		ut.PartitionStates = append(ut.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{Partition: i, Leader: -2})
	}
	s.Topics = append(s.Topics, st)
	u.TopicStates = append(u.TopicStates, ut)
	h.broker.Metadata.Update(u)
	for _, p := range h.broker.Replicas.StopReplica(s).Partitions {
		if p.ErrorCode != 0 {
			h.tb.Fatalf("StopReplica of %s-%d: %d", p.Topic, p.Partition, p.ErrorCode)
		}
	}
}

func TestSessionsGiveWayOnlyWhenOldOrSmaller(t *testing.T) {
	h := start(t)
	now := time.Unix(1000, 0)
	h.broker.Fetches = api.NewFetchSessions(2, func() time.Time { return now })
	c := h.dial()
	id := h.topic("t", 3)
	small := open(c, 12, id, 0).SessionID
	open(c, 12, id, 0, 1)
	equal(t, "no room", open(c, 12, id, 0, 1, 2).SessionID, 0)
	now = now.Add(100 * time.Second)
	c.fetch(12, incremental(small, 1))
	now = now.Add(30 * time.Second) // both have lived long, one was not used for long
	if open(c, 12, id, 0).SessionID == 0 {
		t.Fatal("an unused session stays")
	}
	equal(t, "the used one stays", c.fetch(12, incremental(small, 2)).ErrorCode, 0)
	if open(c, 12, id, 0, 1, 2).SessionID == 0 {
		t.Fatal("a larger session does not replace a smaller one")
	}
	equal(t, "the smaller went", c.fetch(12, incremental(small, 3)).ErrorCode, 70)
	equal(t, "sessions", h.broker.Fetches.Len(), 2)
	eventually(t, "its subscriptions went with it", func() bool { return subscribers(h, "t", 1) == 1 })
}

func TestSessionAnswersRespectTheLimitAndTakeTurns(t *testing.T) {
	h := start(t)
	c := h.dial()
	id := h.topic("t", 3)
	for p := range int32(3) {
		c.produce(9, "t", p, 1, set(record.None, "a"))
	}
	r := fetchRequest("t", id, 0, 0)
	r.SessionEpoch, r.MaxBytes = 0, 1
	for p := range int32(2) {
		fp := kmsg.NewFetchRequestTopicPartition()
		fp.Partition, fp.PartitionMaxBytes = p+1, 1<<20
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, fp)
	}
	first := c.fetch(12, r)
	equal(t, "full", told(t, first), "0 0:0[0:a] 1:0[] 2:0[]")
	for i, want := range []string{"0 1:0[0:a]", "0 2:0[0:a]", "0 1:0[0:a]"} {
		r := incremental(first.SessionID, int32(i+1))
		if i == 0 {
			name(r, id, 0, 1)
		}
		r.MaxBytes = 1
		equal(t, fmt.Sprint("turn ", i), told(t, c.fetch(12, r)), want)
	}
}
