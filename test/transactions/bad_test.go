package transactions

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestForeignBytesInTheTransactionTopicAreSkipped writes to __transaction_state
// what no coordinator knows: when the broker starts again it says so, and the
// transaction that was open is ended.
func TestForeignBytesInTheTransactionTopicAreSkipped(t *testing.T) {
	b := real.Barnabas(t, 1, "transaction.state.log.num.partitions=1")
	raw.TransactionsCoordinated(t, b.Addr, "mine")
	topic := raw.NewTopic(t, b.Addr, 1)
	c := raw.Dial(t, b.Addr)
	r := initProducer(c, "mine", 60000, -1, -1)
	if code := addPartition(c, 2, "mine", r.ProducerID, 0, topic, 0); code != 0 {
		t.Fatal(code)
	}
	if p := produce(t, c, "mine", topic, r.ProducerID, 0, 0); p.ErrorCode != 0 {
		t.Fatal(p.ErrorCode)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.ClientID("__admin_client"), kgo.DefaultProduceTopic("__transaction_state"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	foreign := [][2]string{{"", ""}, {"\x00", "x"}, {"\x00\x63key", "value"}, {"\x00\x00\x7f\xffg", "cut short"}, {"\x00\x00\x00\x01g", "\x00\x00cut short"},
		{"\xff\xff", "x"}, {"\x00\x00\x00\x01g", "\x00\x07"}, {"\x00\x00\x00\x01g", "\x00\x01\xff\xff\xff\xff\x0f"}}
	for _, r := range foreign {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Key: []byte(r[0]), Value: []byte(r[1])}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	b.Stop()
	b.Restart(t)
	raw.TransactionsCoordinated(t, b.Addr, "mine")
	c = raw.Dial(t, b.Addr)
	if code := endTxn(c, 2, "mine", r.ProducerID, 0, true); code != 0 {
		t.Errorf("EndTxn: %d", code)
	}
	real.Until(t, 30*time.Second, "the marker", func() bool { return fetch(c, topic, 1).LastStableOffset == 2 })
	if n := strings.Count(b.Output(), "skipped a foreign record"); n != len(foreign) {
		t.Errorf("%d lines tell of foreign records, there are %d", n, len(foreign))
	}
}

// TestEpochsThatGoBack sends markers and commits with epochs, generations and
// names that are not those of today: both brokers refuse them alike.
func TestEpochsThatGoBack(t *testing.T) {
	answers := map[string][]string{}
	raw.OnBoth(t, func(t *testing.T, addr string) {
		broker := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		told := func(what string, codes ...int16) {
			answers[broker] = append(answers[broker], fmt.Sprintf("%s: %v", what, codes))
		}
		raw.TransactionsCoordinated(t, addr, "back")
		raw.Coordinated(t, addr, "group")
		topic := raw.NewTopic(t, addr, 1)
		c := raw.Dial(t, addr)
		r := initProducer(c, "back", 60000, -1, -1)
		marker := func(epoch int16, coordinator int32) int16 {
			w := kmsg.NewPtrWriteTxnMarkersRequest()
			w.Version = 1
			m := kmsg.NewWriteTxnMarkersRequestMarker()
			m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch = r.ProducerID, epoch, coordinator
			m.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: []int32{0}}}
			w.Markers = append(w.Markers, m)
			return raw.Do[*kmsg.WriteTxnMarkersResponse](c, w).Markers[0].Topics[0].Partitions[0].ErrorCode
		}
		told("AddPartitions", addPartition(c, 2, "back", r.ProducerID, 0, topic, 0))
		told("produce", produce(t, c, "back", topic, r.ProducerID, 0, 0).ErrorCode)
		told("a marker of coordinator epoch 5", marker(0, 5))
		told("one of 3", marker(0, 3))
		told("one of 5 and a newer producer epoch", marker(4, 5))
		told("one of 5 and an older producer epoch", marker(2, 5))
		told("produce of the older epoch", produce(t, c, "back", topic, r.ProducerID, 0, 1).ErrorCode)

		offsets := func(version int16, producer int64, epoch int16, member string, generation int32, topic string, partition int32, offset int64) {
			q := kmsg.NewPtrTxnOffsetCommitRequest()
			q.Version, q.TransactionalID, q.Group, q.ProducerID, q.ProducerEpoch, q.MemberID, q.Generation = version, "back", "group", producer, epoch, member, generation
			p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset, p.LeaderEpoch = partition, offset, -1
			top := kmsg.NewTxnOffsetCommitRequestTopic()
			top.Topic, top.Partitions = topic, append(top.Partitions, p)
			q.Topics = append(q.Topics, top)
			told(fmt.Sprintf("TxnOffsetCommit %+v", q), raw.Do[*kmsg.TxnOffsetCommitResponse](c, q).Topics[0].Partitions[0].ErrorCode)
		}
		add := func(version int16, producer int64, epoch int16, group string) {
			a := kmsg.NewPtrAddOffsetsToTxnRequest()
			a.Version, a.TransactionalID, a.ProducerID, a.ProducerEpoch, a.Group = version, "back", producer, epoch, group
			told(fmt.Sprintf("AddOffsetsToTxn %+v", a), raw.Do[*kmsg.AddOffsetsToTxnResponse](c, a).ErrorCode)
		}
		for version := int16(0); version <= 3; version++ {
			add(version, r.ProducerID+9, 0, "group")
			add(version, r.ProducerID, 7, "group")
			add(version, r.ProducerID, 0, "group")
			offsets(version, r.ProducerID+9, 0, "", -1, "none", 0, 1)
			offsets(version, r.ProducerID, 0, "", -1, topic, 99, 1)
			offsets(version, r.ProducerID, 0, "", -1, topic, 0, -5)
			offsets(version, r.ProducerID, 0, "nobody", 7, topic, 0, 1)
			offsets(version, r.ProducerID, 0, "", 7, topic, 0, 1)
		}
	})
	ours, theirs := answers["barnabas"], answers["kafka-3.9.1"]
	same := func(s string) string { // the producer ids are not those of the other broker
		return s[strings.LastIndex(s, ":"):]
	}
	for i := range min(len(ours), len(theirs)) {
		if same(ours[i]) != same(theirs[i]) {
			t.Errorf("Barnabas: %s\nKafka:    %s", ours[i], theirs[i])
		}
	}
	if len(ours) != len(theirs) || len(ours) == 0 {
		t.Errorf("%d answers, and %d of Kafka", len(ours), len(theirs))
	}
	if !slices.Contains(ours, "one of 3: [52]") {
		t.Errorf("a marker of an older coordinator was taken: %v", ours)
	}
}
