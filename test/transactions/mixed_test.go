package transactions

import (
	"fmt"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestKafkaAndBarnabasShareTransactions has both in one cluster: whichever of
// them coordinates, its markers reach partitions of both, and offsets too.
func TestKafkaAndBarnabasShareTransactions(t *testing.T) {
	zk := real.ZooKeeper(t)
	k := real.Kafka(t, "3.9.1", 1, zk, "inter.broker.protocol.version=3.9")
	b := real.Barnabas(t, 2, "zookeeper.connect="+zk, "offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1", "group.initial.rebalance.delay.ms=0")
	c := raw.Dial(t, b.Addr)
	real.Until(t, time.Minute, "both brokers to be known", func() bool {
		m := kmsg.NewPtrMetadataRequest()
		m.Version, m.Topics = 4, []kmsg.MetadataRequestTopic{}
		return len(raw.Do[*kmsg.MetadataResponse](c, m).Brokers) == 2
	})
	const topic = "shared"
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version, r.TimeoutMillis = 5, 30000
	shared := kmsg.NewCreateTopicsRequestTopic()
	shared.Topic, shared.NumPartitions, shared.ReplicationFactor = topic, -1, -1
	for p := range int32(2) {
		shared.ReplicaAssignment = append(shared.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: p, Replicas: []int32{p + 1}})
	}
	r.Topics = append(r.Topics, shared)
	if code := raw.Ask[*kmsg.CreateTopicsResponse](t, k.Addr, r).Topics[0].ErrorCode; code != 0 {
		t.Fatalf("create: %d", code)
	}
	coordinators := map[int32]string{} // and one id of each
	const ids = 8
	for i := range ids {
		id := fmt.Sprint("shared-", i)
		f := kmsg.NewPtrFindCoordinatorRequest()
		f.Version, f.CoordinatorKey, f.CoordinatorType = 2, id, 1
		var found *kmsg.FindCoordinatorResponse
		real.Until(t, time.Minute, "a coordinator", func() bool {
			found = raw.Do[*kmsg.FindCoordinatorResponse](c, f)
			return found.ErrorCode == 0
		})
		coordinators[found.NodeID] = id
		transactionsOf(t, k.Addr, topic, id)
	}
	if len(coordinators) != 2 {
		t.Fatalf("coordinators %v: one broker has none", coordinators)
	}
	// 3 of 4 transactions of 2 records each were committed.
	if n, want := countCommitted(t, b.Addr, topic), ids*3*2; n != want {
		t.Errorf("%d records are read, want %d", n, want)
	}
	addrs := map[int32]string{1: k.Addr, 2: b.Addr}
	for coordinator, id := range coordinators {
		leader := 3 - coordinator
		verified(t, addrs[coordinator], addrs[leader], topic, leader-1, id)
	}
}

// verified writes to a partition whose leader is not the transaction's
// coordinator: without the partition in the transaction the leader refuses.
func verified(t *testing.T, coordinator, leader, topic string, partition int32, id string) {
	t.Helper()
	at, to := raw.Dial(t, coordinator), raw.Dial(t, leader)
	producer, epoch := settledInit(t, at, id)
	want := func(what string, got, want int16) {
		t.Helper()
		if got != want {
			t.Errorf("%s, partition %d: %s: error %d, want %d", id, partition, what, got, want)
		}
	}
	want("v9 before AddPartitions", produceTo(t, to, 9, id, topic, partition, producer, epoch, 0).ErrorCode, 48)
	want("v11 before AddPartitions", produceTo(t, to, 11, id, topic, partition, producer, epoch, 0).ErrorCode, 120)
	want("an older epoch", produceTo(t, to, 11, id, topic, partition, producer, epoch-1, 0).ErrorCode, 47)
	want("AddPartitions", addPartition(at, 2, id, producer, epoch, topic, partition), 0)
	want("produce", produceTo(t, to, 11, id, topic, partition, producer, epoch, 0).ErrorCode, 0)
	want("EndTxn", endTxn(at, 2, id, producer, epoch, true), 0)
	real.Until(t, 10*time.Second, "the transaction to be over", func() bool { return endTxn(at, 2, id, producer, epoch, true) == 0 })
	want("after EndTxn", produceTo(t, to, 11, id, topic, partition, producer, epoch, 1).ErrorCode, 120)
}

// transactionsOf writes four transactions, the last of which is aborted, to both
// partitions, and a group's offsets with them.
func transactionsOf(t *testing.T, addr, topic, id string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for n := range 4 {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for p := range int32(2) {
			if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: p, Value: []byte("v")}).FirstErr(); err != nil {
				t.Fatalf("%s: transaction %d, partition %d: %v", id, n, p, err)
			}
		}
		if err := client.EndTransaction(t.Context(), kgo.TransactionEndTry(n < 3)); err != nil {
			t.Fatal(err)
		}
	}
}
