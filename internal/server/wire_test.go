package server

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// set builds a v2 batch of these values.
func set(codec record.Codec, values ...string) []byte {
	b := record.NewBuilder(record.BatchOptions{Codec: codec, LeaderEpoch: -1})
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), nil, []byte(v))
	}
	batch, err := b.Build()
	if err != nil {
		panic(err)
	}
	return batch
}

// values returns the values of all records of a fetched set, with offsets.
func values(tb testing.TB, set []byte) []string {
	tb.Helper()
	var out []string
	if err := record.Each(set, 0, func(_ record.Batch, r *record.Record) error {
		out = append(out, fmt.Sprintf("%d:%s", r.Offset, r.Value))
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	return out
}

func equal(tb testing.TB, what string, got, want any) {
	tb.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		tb.Fatalf("%s: %s, want %s", what, g, w)
	}
}

func TestRecordsComeBackAtEveryVersion(t *testing.T) {
	h := start(t)
	c := h.dial()
	for version := int16(3); version <= 11; version++ {
		name := fmt.Sprintf("produce-v%d", version)
		h.topic(name, 1)
		for i, acks := range []int16{1, -1} {
			p := c.produce(version, name, 0, acks, set(record.None, "a", "b"))
			equal(t, name+" error", p.ErrorCode, 0)
			equal(t, name+" offset", p.BaseOffset, 2*i)
		}
		got := c.fetch(4, fetchRequest(name, wire.UUID{}, 0, 0))
		equal(t, name, values(t, got.Topics[0].Partitions[0].RecordBatches), "[0:a 1:b 2:a 3:b]")
	}
	id := h.topic("all", 1)
	c.produce(11, "all", 0, -1, set(record.Zstd, "x", "y"))
	c.produce(11, "all", 0, -1, set(record.None, strings.Repeat("z", 40<<10)))
	for version := int16(4); version <= 17; version++ {
		got := c.fetch(version, fetchRequest("all", id, 0, 0))
		p := got.Topics[0].Partitions[0]
		equal(t, "error", p.ErrorCode, 0)
		equal(t, "high watermark", p.HighWatermark, 3)
		if v := values(t, p.RecordBatches); len(v) != 3 || v[0] != "0:x" || len(v[2]) != 2+40<<10 {
			t.Fatalf("v%d: %.50q", version, v)
		}
		if version >= 11 && p.PreferredReadReplica != -1 {
			t.Fatalf("v%d: preferred read replica %d", version, p.PreferredReadReplica)
		}
	}
}

func TestOldFetchesGetOldFormats(t *testing.T) {
	h := start(t)
	c := h.dial()
	h.topic("t", 1)
	c.produce(9, "t", 0, -1, set(record.None, "a", "b"))
	c.produce(9, "t", 0, -1, set(record.Gzip, "c", "d"))
	for version := int16(0); version <= 3; version++ {
		p := c.fetch(version, fetchRequest("t", wire.UUID{}, 0, 0)).Topics[0].Partitions[0]
		equal(t, "error", p.ErrorCode, 0)
		equal(t, fmt.Sprintf("v%d", version), values(t, p.RecordBatches), "[0:a 1:b 2:c 3:d]")
		magic := record.Batch(p.RecordBatches).Magic()
		equal(t, "magic", magic, version/2)
	}
}

func TestFetchLimitsAndOffsets(t *testing.T) {
	h := start(t)
	c := h.dial()
	h.topic("t", 1)
	batch := set(record.None, strings.Repeat("v", 20))
	c.produce(9, "t", 0, -1, batch)
	c.produce(9, "t", 0, -1, set(record.None, "x", "y", "z"))
	tiny := func(version int16) kmsg.FetchResponseTopicPartition {
		r := fetchRequest("t", wire.UUID{}, 0, 0)
		r.MaxBytes, r.Topics[0].Partitions[0].PartitionMaxBytes = 1, 1
		return c.fetch(version, r).Topics[0].Partitions[0]
	}
	equal(t, "v4 gets the first batch whole", len(tiny(4).RecordBatches), len(batch))
	equal(t, "v3 gets it converted", values(t, tiny(3).RecordBatches), "[0:"+strings.Repeat("v", 20)+"]")
	equal(t, "v2 gets nothing", len(tiny(2).RecordBatches), 0)
	at := func(offset int64, partition int32) kmsg.FetchResponseTopicPartition {
		r := fetchRequest("t", wire.UUID{}, partition, offset)
		r.MaxWaitMillis = 10
		return c.fetch(11, r).Topics[0].Partitions[0]
	}
	equal(t, "inside a batch", values(t, at(2, 0).RecordBatches), "[1:x 2:y 3:z]")
	p := at(4, 0)
	equal(t, "at the end", fmt.Sprint(p.ErrorCode, p.HighWatermark, len(p.RecordBatches)), "0 4 0")
	for _, offset := range []int64{5, -1} {
		p := at(offset, 0)
		equal(t, fmt.Sprint("at ", offset), fmt.Sprint(p.ErrorCode, p.HighWatermark), "1 -1")
	}
	equal(t, "partition 9", at(0, 9).ErrorCode, 3)
}

func TestFetchWaitsForBytesAndNoLonger(t *testing.T) {
	h := start(t)
	c, producer := h.dial(), h.dial()
	h.topic("t", 2)
	began := time.Now()
	r := fetchRequest("t", wire.UUID{}, 0, 0)
	r.MaxWaitMillis = 200
	p := c.fetch(11, r).Topics[0].Partitions[0]
	if took := time.Since(began); took < 200*time.Millisecond || len(p.RecordBatches) != 0 || p.ErrorCode != 0 {
		t.Fatalf("empty partition answered after %v with %d bytes, error %d", took, len(p.RecordBatches), p.ErrorCode)
	}
	r.MaxWaitMillis = 20_000
	c.send(r, 11)
	eventually(t, "the fetch waits", func() bool { return subscribers(h, "t", 0) == 1 })
	producer.produce(9, "t", 0, 1, set(record.None, "a"))
	_, b := c.next()
	got := decode(t, r, 11, b).(*kmsg.FetchResponse)
	equal(t, "woken", values(t, got.Topics[0].Partitions[0].RecordBatches), "[0:a]")
	equal(t, "left behind", subscribers(h, "t", 0), 0)

	// Two partitions, one idle: at once.
	idle := kmsg.NewFetchRequestTopicPartition()
	idle.Partition, idle.PartitionMaxBytes = 1, 1000
	r.Topics[0].Partitions = append(r.Topics[0].Partitions, idle)
	began = time.Now()
	c.fetch(11, r)
	if took := time.Since(began); took > 5*time.Second {
		t.Fatalf("took %v", took)
	}

	// min_bytes beyond what is there: until enough has come.
	r = fetchRequest("t", wire.UUID{}, 1, 0)
	r.MinBytes, r.MaxWaitMillis = 200, 20_000
	c.send(r, 11)
	eventually(t, "the fetch waits", func() bool { return subscribers(h, "t", 1) == 1 })
	for range 3 {
		producer.produce(9, "t", 1, 1, set(record.None, "abc")) // 71 bytes each
	}
	_, b = c.next()
	got = decode(t, r, 11, b).(*kmsg.FetchResponse)
	if n := len(got.Topics[0].Partitions[0].RecordBatches); n < 200 {
		t.Fatalf("answered with %d bytes, want 200", n)
	}
}

func subscribers(h *harness, topic string, partition int32) int {
	return h.broker.Replicas.Partition(wire.TopicPartition{Topic: topic, Partition: partition}).Subscribers()
}

func TestBadBatchesGetKafkasErrors(t *testing.T) {
	h := start(t)
	c := h.dial()
	h.topic("t", 1)
	h.topic("compacted", 1, "cleanup.policy", "compact")
	good := set(record.None, "a")
	edit := func(f func(b record.Batch)) []byte {
		b := append(record.Batch{}, good...)
		f(b)
		return b
	}
	for _, bad := range []struct {
		name  string
		topic string
		set   []byte
		code  int16
	}{
		{"crc", "t", edit(func(b record.Batch) { b[len(b)-1] ^= 1 }), 2},
		{"two batches", "t", append(append([]byte{}, good...), good...), 87},
		{"empty", "t", []byte{}, 87},
		{"null", "t", nil, 87},
		{"count 2 with 1 record", "t", edit(func(b record.Batch) { binary.BigEndian.PutUint32(b[57:], 2); b.UpdateCRC() }), 87},
		{"count 0", "t", edit(func(b record.Batch) { binary.BigEndian.PutUint32(b[57:], 0); b.UpdateCRC() }), 87},
		{"last offset delta", "t", edit(func(b record.Batch) { binary.BigEndian.PutUint32(b[23:], 5); b.UpdateCRC() }), 87},
		{"null key", "compacted", good, 87},
		{"too large", "t", set(record.None, strings.Repeat("x", 1_100_000)), 10},
		{"unknown partition", "t", good, 3},
		{"unknown topic", "nobody", good, 3},
		{"internal topic", "__consumer_offsets", good, 3},
	} {
		partition := int32(0)
		if bad.name == "unknown partition" {
			partition = 9
		}
		p := c.produce(8, bad.topic, partition, 1, bad.set)
		equal(t, bad.name, fmt.Sprint(p.ErrorCode, p.BaseOffset), fmt.Sprint(bad.code, -1))
		if bad.name == "null key" && (len(p.ErrorRecords) != 1 || p.ErrorMessage == nil) {
			t.Fatalf("null key: rejected records %v, message %v", p.ErrorRecords, p.ErrorMessage)
		}
	}
	equal(t, "acks=5", c.produce(8, "t", 0, 5, good).ErrorCode, 21)
	equal(t, "still good", c.produce(8, "t", 0, 1, good).ErrorCode, 0)
	equal(t, "magic 2 in v2", c.produce(2, "t", 0, 1, good).ErrorCode, 0)
	h.topic("__consumer_offsets", 1)
	equal(t, "internal topic", c.produce(8, "__consumer_offsets", 0, 1, good).ErrorCode, 17)
}

func TestAcksZeroIsSilentAndItsErrorsCloseTheConnection(t *testing.T) {
	h := start(t)
	c := h.dial()
	h.topic("t", 1)
	c.send(produceRequest("t", 0, 0, set(record.None, "a")), 8)
	got := do[*kmsg.ListOffsetsResponse](c, listOffsets("t", -1), 5) // the only answer
	equal(t, "end", got.Topics[0].Partitions[0].Offset, 1)
	c.send(listOffsets("t", -1), 5)
	c.send(produceRequest("t", 9, 0, set(record.None, "a")), 8)
	c.next() // the earlier answer comes out
	if !c.closed() {
		t.Fatal("an error of acks=0 left the connection open")
	}
}

func listOffsets(topic string, timestamp int64) *kmsg.ListOffsetsRequest {
	r := kmsg.NewPtrListOffsetsRequest()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.CurrentLeaderEpoch = timestamp, -1
	r.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return r
}

func TestListOffsetsAtEveryVersion(t *testing.T) {
	h := start(t)
	c := h.dial()
	h.topic("t", 1)
	b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1})
	for i := range int64(5) {
		b.Append(1000+10*i, nil, []byte("v"))
	}
	batch, _ := b.Build()
	c.produce(9, "t", 0, -1, batch)
	for version := int16(0); version <= 9; version++ {
		ask := func(timestamp int64) string {
			r := listOffsets("t", timestamp)
			r.Topics[0].Partitions[0].MaxNumOffsets = 10
			p := do[*kmsg.ListOffsetsResponse](c, r, version).Topics[0].Partitions[0]
			if version == 0 {
				return fmt.Sprint(p.ErrorCode, p.OldStyleOffsets)
			}
			return fmt.Sprint(p.ErrorCode, p.Offset, p.Timestamp)
		}
		if version == 0 {
			equal(t, "v0 latest", ask(-1), "0 [5 0]")
			equal(t, "v0 earliest", ask(-2), "0 [0]")
			continue
		}
		since := func(least int16, answer string) string {
			if version < least {
				return "35 -1 -1"
			}
			return answer
		}
		equal(t, "latest", ask(-1), "0 5 -1")
		equal(t, "earliest", ask(-2), "0 0 -1")
		equal(t, "largest timestamp", ask(-3), since(7, "0 4 1040"))
		equal(t, "earliest local", ask(-4), since(8, "0 0 -1"))
		equal(t, "latest tiered", ask(-5), since(9, "0 -1 -1"))
		equal(t, "by time", ask(1015), "0 2 1020")
		equal(t, "after all", ask(2000), "0 -1 -1")
		equal(t, "nonsense", ask(-6), "35 -1 -1")
	}
	r := listOffsets("t", -1)
	r.Topics = append(r.Topics, r.Topics[0])
	for _, topic := range do[*kmsg.ListOffsetsResponse](c, r, 5).Topics {
		equal(t, "named twice", topic.Partitions[0].ErrorCode, 42)
	}
}

func TestLeaderEpochsAreChecked(t *testing.T) {
	h := start(t)
	c := h.dial()
	id := h.topic("t", 1)
	c.produce(9, "t", 0, -1, set(record.None, "a", "b"))
	h.lead("t", id, 1, 3, []int32{1}, []int32{1})
	c.produce(9, "t", 0, -1, set(record.None, "c"))
	fetchAt := func(epoch int32) int16 {
		r := fetchRequest("t", id, 0, 0)
		r.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
		return c.fetch(12, r).Topics[0].Partitions[0].ErrorCode
	}
	equal(t, "older, newer, own, none", fmt.Sprint(fetchAt(0), fetchAt(4), fetchAt(3), fetchAt(-1)), "74 75 0 0")
	r := fetchRequest("t", id, 0, 3)
	r.Topics[0].Partitions[0].LastFetchedEpoch = 0
	p := c.fetch(12, r).Topics[0].Partitions[0]
	equal(t, "diverging", fmt.Sprint(p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset, len(p.RecordBatches)), "0 2 0")
	for version := int16(0); version <= 4; version++ {
		e := kmsg.NewPtrOffsetForLeaderEpochRequest()
		for _, epoch := range []int32{0, 2, 3, 9} {
			q := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			q.LeaderEpoch = epoch
			e.Topics = append(e.Topics, kmsg.OffsetForLeaderEpochRequestTopic{Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{q}})
		}
		var ends []string
		for _, topic := range do[*kmsg.OffsetForLeaderEpochResponse](c, e, version).Topics {
			p := topic.Partitions[0]
			if version == 0 {
				p.LeaderEpoch = 0
			}
			ends = append(ends, fmt.Sprint(p.ErrorCode, "/", p.LeaderEpoch, "/", p.EndOffset))
		}
		want := "[0/0/2 0/0/2 0/3/3 0/-1/-1]"
		if version == 0 {
			want = "[0/0/2 0/0/2 0/0/3 0/0/-1]"
		}
		equal(t, fmt.Sprintf("v%d", version), ends, want)
	}
}

func TestZstdIsNotForOldFetches(t *testing.T) {
	h := start(t)
	c := h.dial()
	h.topic("t", 1, "compression.type", "zstd")
	equal(t, "produce", c.produce(3, "t", 0, 1, set(record.None, "a", "b")).ErrorCode, 0)
	p := c.fetch(4, fetchRequest("t", wire.UUID{}, 0, 0)).Topics[0].Partitions[0]
	equal(t, "v4", fmt.Sprint(p.ErrorCode, p.HighWatermark), "76 -1")
	p = c.fetch(11, fetchRequest("t", wire.UUID{}, 0, 0)).Topics[0].Partitions[0]
	equal(t, "v11", fmt.Sprint(p.ErrorCode, record.Batch(p.RecordBatches).Attributes()), "0 4")
}

func TestUnknownTopicIDs(t *testing.T) {
	h := start(t)
	c := h.dial()
	id := h.topic("t", 1)
	equal(t, "stranger", c.fetch(13, fetchRequest("", wire.UUID{7}, 0, 0)).Topics[0].Partitions[0].ErrorCode, 100)
	equal(t, "known, no such partition", c.fetch(13, fetchRequest("", id, 5, 0)).Topics[0].Partitions[0].ErrorCode, 3)
}

func TestNotLeaderNamesTheLeader(t *testing.T) {
	h := start(t)
	c := h.dial()
	id := h.topic("t", 1)
	r := kmsg.NewPtrLeaderAndISRRequest()
	r.Version, r.ControllerEpoch, r.BrokerEpoch = 7, 1, -1
	r.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: "t", TopicID: id, PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{
		{Leader: 2, LeaderEpoch: 5, ISR: []int32{2, 1}, Replicas: []int32{2, 1}}}}}
	h.broker.Replicas.ApplyLeaderAndISR(r)
	u := kmsg.NewPtrUpdateMetadataRequest()
	u.Version, u.ControllerEpoch, u.ControllerID = 8, 1, 1
	u.LiveBrokers = []kmsg.UpdateMetadataRequestLiveBroker{{ID: 2, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{{Host: "two", Port: 9, ListenerName: "PLAINTEXT"}}}}
	h.broker.Metadata.Update(u)
	p := do[*kmsg.ProduceResponse](c, produceRequest("t", 0, 1, set(record.None, "a")), 11)
	equal(t, "produce", fmt.Sprint(p.Topics[0].Partitions[0].ErrorCode, p.Topics[0].Partitions[0].CurrentLeader.LeaderID,
		p.Topics[0].Partitions[0].CurrentLeader.LeaderEpoch, p.Brokers[0].NodeID, p.Brokers[0].Host, p.Brokers[0].Port), "6 2 5 2two9")
	old := fetchRequest("t", id, 0, 0)
	old.Topics[0].Partitions[0].CurrentLeaderEpoch = 4
	f := c.fetch(16, old)
	equal(t, "fetch", fmt.Sprint(f.Topics[0].Partitions[0].ErrorCode, f.Topics[0].Partitions[0].CurrentLeader.LeaderID, f.Brokers[0].Host), "74 2two")
	copies := fetchRequest("t", id, 0, 0)
	copies.ReplicaState.ID = 3
	f = c.fetch(16, copies)
	equal(t, "a follower's fetch", fmt.Sprint(f.Topics[0].Partitions[0].ErrorCode, f.Topics[0].Partitions[0].CurrentLeader.LeaderID, f.Brokers[0].Host), "6 2two")
	equal(t, "a consumer that reads from leaders only", c.fetch(10, fetchRequest("t", id, 0, 0)).Topics[0].Partitions[0].ErrorCode, 6)
}

// A follower serves consumers of Fetch 11 and later up to its high watermark
// (KIP-392).
func TestAFollowerServesConsumers(t *testing.T) {
	h := start(t)
	c := h.dial()
	id := h.topic("t", 1)
	for range 3 {
		equal(t, "produce", c.produce(9, "t", 0, 1, set(record.None, "a")).ErrorCode, 0)
	}
	r := kmsg.NewPtrLeaderAndISRRequest()
	r.Version, r.ControllerEpoch, r.BrokerEpoch = 7, 1, -1
	r.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: "t", TopicID: id, PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{
		{Leader: 2, LeaderEpoch: 5, ISR: []int32{2, 1}, Replicas: []int32{2, 1}}}}}
	h.broker.Replicas.ApplyLeaderAndISR(r)
	for _, version := range []int16{11, 12, 16, 17} {
		at := func(offset int64) kmsg.FetchResponseTopicPartition {
			r := fetchRequest("t", id, 0, offset)
			r.MaxWaitMillis = 0
			return c.fetch(version, r).Topics[0].Partitions[0]
		}
		p := at(1)
		equal(t, fmt.Sprint("v", version), fmt.Sprint(p.ErrorCode, p.HighWatermark, len(values(t, p.RecordBatches)), p.PreferredReadReplica), "0 3 2 -1")
		equal(t, "at its end", at(3).ErrorCode, 0)
		equal(t, "beyond its end", at(4).ErrorCode, 1)
	}
}

// A leader that is known from metadata alone, or takes over while acks=all
// waits or is about to, is named as well.
func TestNotLeaderNamesTheLeaderFromMetadataAndAfterAWait(t *testing.T) {
	h := start(t)
	c := h.dial()
	id := h.topic("t", 1)
	roles := func(leader, epoch int32) {
		r := kmsg.NewPtrLeaderAndISRRequest()
		r.Version, r.ControllerEpoch, r.BrokerEpoch = 7, 1, -1
		r.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: "t", TopicID: id, PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{
			{Leader: leader, LeaderEpoch: epoch, ISR: []int32{1, 2}, Replicas: []int32{1, 2}}}}}
		h.broker.Replicas.ApplyLeaderAndISR(r)
	}
	u := kmsg.NewPtrUpdateMetadataRequest()
	u.Version, u.ControllerEpoch, u.ControllerID = 8, 1, 1
	rack := "r2"
	u.LiveBrokers = []kmsg.UpdateMetadataRequestLiveBroker{{ID: 2, Rack: &rack, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{{Host: "two", Port: 9, ListenerName: "PLAINTEXT"}}}}
	elsewhere := wire.UUID{9}
	u.TopicStates = []kmsg.UpdateMetadataRequestTopicState{{Topic: "e", TopicID: elsewhere, PartitionStates: []kmsg.UpdateMetadataRequestTopicPartition{
		{Leader: 2, LeaderEpoch: 7, ISR: []int32{2}, Replicas: []int32{2}}, {Partition: 1, Leader: 3, LeaderEpoch: 8, ISR: []int32{3}, Replicas: []int32{3}}}}}
	h.broker.Metadata.Update(u)
	hint := func(code int16, leader, epoch int32, nodes int) string { return fmt.Sprint(code, leader, epoch, nodes) }

	p := do[*kmsg.ProduceResponse](c, produceRequest("e", 0, 1, set(record.None, "a")), 10)
	at := p.Topics[0].Partitions[0]
	equal(t, "produce", hint(at.ErrorCode, at.CurrentLeader.LeaderID, at.CurrentLeader.LeaderEpoch, len(p.Brokers)), hint(6, 2, 7, 1))
	p = do[*kmsg.ProduceResponse](c, produceRequest("e", 1, 1, set(record.None, "a")), 10)
	at = p.Topics[0].Partitions[0]
	equal(t, "the leader is not live", hint(at.ErrorCode, at.CurrentLeader.LeaderID, at.CurrentLeader.LeaderEpoch, len(p.Brokers)), hint(6, 3, 8, 0))
	p = do[*kmsg.ProduceResponse](c, produceRequest("e", 0, 1, set(record.None, "a")), 9)
	equal(t, "version 9", p.Topics[0].Partitions[0].ErrorCode, 6)
	f := c.fetch(16, fetchRequest("", elsewhere, 0, 0))
	of := f.Topics[0].Partitions[0]
	equal(t, "fetch", hint(of.ErrorCode, of.CurrentLeader.LeaderID, of.CurrentLeader.LeaderEpoch, len(f.Brokers)), hint(6, 2, 7, 1))

	log, _ := h.storage.Log(wire.TopicPartition{Topic: "t"})
	for round := range 150 {
		version, epoch := int16(9+round%3), int32(20+2*round)
		roles(1, epoch)
		r := produceRequest("t", 0, -1, set(record.None, "a"))
		end := log.EndOffset()
		c.send(r, version)
		// As early as can be: between the append and the wait there is a moment too.
		for limit := time.Now().Add(20 * time.Second); log.EndOffset() == end; runtime.Gosched() {
			if time.Now().After(limit) {
				t.Fatal("the record is not appended")
			}
		}
		roles(2, epoch+1)
		_, b := c.next()
		p = decode(t, r, version, b).(*kmsg.ProduceResponse)
		at, want := p.Topics[0].Partitions[0], hint(6, 2, epoch+1, 1)
		if version == 9 {
			want = hint(6, -1, -1, 0)
		}
		equal(t, fmt.Sprintf("after a wait, version %d", version), hint(at.ErrorCode, at.CurrentLeader.LeaderID, at.CurrentLeader.LeaderEpoch, len(p.Brokers)), want)
		if version > 9 && (p.Brokers[0].Host != "two" || *p.Brokers[0].Rack != "r2") {
			t.Errorf("version %d: %+v", version, p.Brokers)
		}
	}
}

func TestApiVersionsFromTheFuture(t *testing.T) {
	h := start(t)
	c := h.dial()
	b, _ := hex.DecodeString("000000160012006300000001000275770004616263" + "04312e3000")
	c.write(b)
	got, err := c.read()
	if err != nil || !bytes.HasPrefix(got, []byte{0, 0, 0, 1, 0, 35}) {
		t.Fatalf("%x %v", got, err)
	}
	do[*kmsg.ApiVersionsResponse](c, kmsg.NewPtrApiVersionsRequest(), 0) // still open
}
