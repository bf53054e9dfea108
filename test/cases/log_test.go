package cases

import (
	"math"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestIdempotentRetries is case 9.
func TestIdempotentRetries(t *testing.T) {
	onBoth(t, func(t *testing.T, to target) {
		topic, _ := newTopic(t, to)
		c := raw.Dial(t, to.addr)
		next := int64(0)
		send := func(what string, pid int64, epoch int16, sequence int32, n int, code int16, offset int64) {
			t.Helper()
			got := produce(t, c, 9, topic, stamped(t, longAgo, n, record.BatchOptions{Producer: &record.Producer{ID: pid, Epoch: epoch, Sequence: sequence}}))
			if code == 0 && offset < 0 {
				offset = next
				next += int64(n)
			}
			if code != 0 {
				offset = -1
			}
			if got.ErrorCode != code || got.BaseOffset != offset {
				t.Errorf("%s: error %d, offset %d, expected %d and %d", what, got.ErrorCode, got.BaseOffset, code, offset)
			}
			if retried := code == 0 && offset >= 0 && offset < next-int64(n); retried && got.LogAppendTime != longAgo+int64(n)-1 {
				t.Errorf("%s: log append time %d", what, got.LogAppendTime)
			}
		}
		const pid = 4000
		for i := range int32(7) {
			send("the first time", pid, 0, i, 1, 0, -1)
		}
		for i := int32(6); i >= 2; i-- {
			send("a retry", pid, 0, i, 1, 0, int64(i))
		}
		send("a retry of a batch that is forgotten", pid, 0, 1, 1, 45, -1)
		send("a retry of a batch that is forgotten", pid, 0, 0, 1, 45, -1)
		send("a gap", pid, 0, 9, 1, 45, -1)
		send("a retry with another record", pid, 0, 6, 2, 45, -1)
		send("an unknown producer that starts in the middle", pid+1, 0, 5, 1, 0, -1)
		send("near the last sequence", pid+2, 0, math.MaxInt32-1, 2, 0, -1)
		send("after the last sequence", pid+2, 0, 0, 1, 0, -1)
		send("across the last sequence", pid+3, 0, math.MaxInt32, 3, 0, -1)
		send("after that", pid+3, 0, 2, 1, 0, -1)
		send("a new epoch that goes on", pid, 1, 7, 1, 45, -1)
		send("a new epoch that starts anew", pid, 1, 0, 1, 0, -1)
		send("the old epoch", pid, 0, 7, 1, 47, -1)
	})
}

// A producer that got no answers when the broker ended repeats its last five
// batches. Apache Kafka knows the last of them only, after a stop or a roll.
func TestIdempotentRetriesAfterARestart(t *testing.T) {
	broker := real.Barnabas(t, 1)
	topic, _ := newTopic(t, target{addr: broker.Addr, zk: broker.Keeper}, "segment.bytes=200") // some two batches
	c := raw.Dial(t, broker.Addr)
	send := func(sequence int32, code int16, offset int64) {
		t.Helper()
		got := produce(t, c, 9, topic, stamped(t, longAgo, 1, record.BatchOptions{Producer: &record.Producer{ID: 4000, Sequence: sequence}}))
		if got.ErrorCode != code || got.BaseOffset != offset {
			t.Errorf("sequence %d: error %d, offset %d, expected %d and %d", sequence, got.ErrorCode, got.BaseOffset, code, offset)
		}
	}
	next := int32(0)
	for _, end := range []func(){broker.Kill, func() { broker.Stop() }, broker.Kill} {
		for range 7 {
			send(next, 0, int64(next))
			next++
		}
		end()
		broker.Restart(t)
		c = raw.Dial(t, broker.Addr)
		for back := int32(5); back >= 1; back-- {
			send(next-back, 0, int64(next-back))
		}
		send(next-6, 45, -1)
		send(next+1, 45, -1)
	}
}

// TestDeleteRecords is case 11.
func TestDeleteRecords(t *testing.T) {
	ask := func(c *raw.Conn, version int16, topic string, partition int32, offset int64) (low int64, code int16) {
		r := kmsg.NewPtrDeleteRecordsRequest()
		r.Version, r.TimeoutMillis = version, 10000
		r.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}}}}
		p := raw.Do[*kmsg.DeleteRecordsResponse](c, r).Topics[0].Partitions[0]
		return p.LowWatermark, p.ErrorCode
	}
	onBoth(t, func(t *testing.T, to target) {
		c := raw.Dial(t, to.addr)
		newTopicNamed(t, to, "__transaction_state")
		for v := int16(0); v <= 2; v++ {
			topic, id := newTopic(t, to)
			if code := produce(t, c, 9, topic, stamped(t, longAgo, 5, record.BatchOptions{})).ErrorCode; code != 0 {
				t.Fatal(code)
			}
			compacted, _ := newTopic(t, to, "cleanup.policy", "compact")
			both, _ := newTopic(t, to, "cleanup.policy", "compact,delete")
			offsetAt := func(timestamp int64) int64 {
				t.Helper()
				p := kmsg.NewListOffsetsRequestTopicPartition()
				p.Timestamp = timestamp
				r := kmsg.NewPtrListOffsetsRequest()
				r.Version, r.ReplicaID = 5, -1
				r.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
				return raw.Do[*kmsg.ListOffsetsResponse](c, r).Topics[0].Partitions[0].Offset
			}
			for _, x := range []struct {
				topic     string
				partition int32
				offset    int64
				low       int64
				code      int16
			}{
				{topic, 0, 2, 2, 0}, {topic, 0, 1, 2, 0}, {topic, 0, 99, -1, 1}, {topic, 0, -2, -1, 1}, {topic, 0, math.MinInt64, -1, 1}, {topic, 0, 6, -1, 1},
				{topic, 7, 0, -1, 3}, {topic, -1, 0, -1, 3}, {compacted, 0, 0, -1, 44}, {compacted, 0, -1, -1, 44}, {both, 0, 0, 0, 0}, {"nobody", 0, 0, -1, 3}, {"bad name!", 0, 0, -1, 3},
				{"__consumer_offsets", 0, 0, -1, 3}, {"__transaction_state", 0, 0, -1, 17},
			} {
				if low, code := ask(c, v, x.topic, x.partition, x.offset); low != x.low || code != x.code {
					t.Errorf("v%d: %s-%d to %d: low watermark %d, error %d; expected %d and %d", v, x.topic, x.partition, x.offset, low, code, x.low, x.code)
				}
			}
			if f := fetch(t, c, fetchRequest(12, topic, id, 0, 0)); f.ErrorCode != 1 {
				t.Errorf("v%d: fetch at 0: error %d", v, f.ErrorCode)
			}
			if at := offsetAt(-2); at != 2 {
				t.Errorf("v%d: earliest %d", v, at)
			}
			if at := offsetAt(0); at != 2 {
				t.Errorf("v%d: offset at time 0: %d", v, at)
			}
			if low, code := ask(c, v, topic, 0, -1); low != 5 || code != 0 {
				t.Errorf("v%d: delete all: %d, error %d", v, low, code)
			}
			if first, last := offsetAt(-2), offsetAt(-1); first != 5 || last != 5 {
				t.Errorf("v%d: [%d, %d)", v, first, last)
			}
		}
	})
}

// What DeleteRecords did survives a kill at once; Apache Kafka writes it within
// log.flush.start.offset.checkpoint.interval.ms.
func TestDeletedRecordsStayDeletedAfterAKill(t *testing.T) {
	b := real.Barnabas(t, 1)
	topic, _ := newTopic(t, target{addr: b.Addr, zk: b.Keeper})
	c := raw.Dial(t, b.Addr)
	produce(t, c, 9, topic, stamped(t, longAgo, 5, record.BatchOptions{}))
	r := kmsg.NewPtrDeleteRecordsRequest()
	r.Version, r.TimeoutMillis = 2, 10000
	r.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: 3}}}}
	if p := raw.Do[*kmsg.DeleteRecordsResponse](c, r).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.LowWatermark != 3 {
		t.Fatalf("%+v", p)
	}
	b.Kill()
	b.Restart(t)
	c = raw.Dial(t, b.Addr)
	l := kmsg.NewPtrListOffsetsRequest()
	l.Version, l.ReplicaID = 5, -1
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -2
	l.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	real.Until(t, 20*time.Second, "the topic is led", func() bool {
		return raw.Do[*kmsg.ListOffsetsResponse](c, l).Topics[0].Partitions[0].ErrorCode == 0
	})
	if at := raw.Do[*kmsg.ListOffsetsResponse](c, l).Topics[0].Partitions[0].Offset; at != 3 {
		t.Fatal("the log starts at", at)
	}
}
