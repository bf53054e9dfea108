package transactions

import (
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func initProducer(c *raw.Conn, id string, timeout int32, known int64, epoch int16) *kmsg.InitProducerIDResponse {
	r := kmsg.NewPtrInitProducerIDRequest()
	r.Version, r.TransactionalID, r.TransactionTimeoutMillis, r.ProducerID, r.ProducerEpoch = 4, &id, timeout, known, epoch
	for {
		// Kafka answers COORDINATOR_LOAD_IN_PROGRESS while it fetches producer ids.
		if a := raw.Do[*kmsg.InitProducerIDResponse](c, r); a.ErrorCode != 14 {
			return a
		}
	}
}

// settledInit is InitProducerId that waits out CONCURRENT_TRANSACTIONS.
func settledInit(t *testing.T, c *raw.Conn, id string) (producer int64, epoch int16) {
	t.Helper()
	var r *kmsg.InitProducerIDResponse
	real.Until(t, 30*time.Second, "InitProducerId of "+id, func() bool {
		r = initProducer(c, id, 60000, -1, -1)
		return r.ErrorCode != 51
	})
	if r.ErrorCode != 0 {
		t.Fatalf("InitProducerId: %d", r.ErrorCode)
	}
	return r.ProducerID, r.ProducerEpoch
}

func addPartition(c *raw.Conn, version int16, id string, producer int64, epoch int16, topic string, partition int32) int16 {
	r := kmsg.NewPtrAddPartitionsToTxnRequest()
	r.Version, r.TransactionalID, r.ProducerID, r.ProducerEpoch = version, id, producer, epoch
	r.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
	return raw.Do[*kmsg.AddPartitionsToTxnResponse](c, r).Topics[0].Partitions[0].ErrorCode
}

func endTxn(c *raw.Conn, version int16, id string, producer int64, epoch int16, commit bool) int16 {
	r := kmsg.NewPtrEndTxnRequest()
	r.Version, r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit = version, id, producer, epoch, commit
	return raw.Do[*kmsg.EndTxnResponse](c, r).ErrorCode
}

func produce(t *testing.T, c *raw.Conn, id, topic string, producer int64, epoch int16, sequence int32) kmsg.ProduceResponseTopicPartition {
	t.Helper()
	return produceTo(t, c, 9, id, topic, 0, producer, epoch, sequence)
}

func produceTo(t *testing.T, c *raw.Conn, version int16, id, topic string, partition int32, producer int64, epoch int16, sequence int32) kmsg.ProduceResponseTopicPartition {
	t.Helper()
	b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1, Transactional: true, Producer: &record.Producer{ID: producer, Epoch: epoch, Sequence: sequence}})
	b.Append(time.Now().UnixMilli(), []byte("k"), []byte("v"))
	set, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis, r.TransactionID = version, -1, 10000, &id
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, set
	top := kmsg.NewProduceRequestTopic()
	top.Topic, top.Partitions = topic, append(top.Partitions, p)
	r.Topics = append(r.Topics, top)
	return raw.Do[*kmsg.ProduceResponse](c, r).Topics[0].Partitions[0]
}

func fetch(c *raw.Conn, topic string, isolation int8) kmsg.FetchResponseTopicPartition {
	r := kmsg.NewPtrFetchRequest()
	r.Version, r.ReplicaID, r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.SessionEpoch, r.IsolationLevel = 11, -1, 100, 1, 50<<20, -1, isolation
	p := kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes, p.CurrentLeaderEpoch = 1<<20, -1
	top := kmsg.NewFetchRequestTopic()
	top.Topic, top.Partitions = topic, append(top.Partitions, p)
	r.Topics = append(r.Topics, top)
	return raw.Do[*kmsg.FetchResponse](c, r).Topics[0].Partitions[0]
}

func latest(c *raw.Conn, topic string, isolation int8) int64 {
	r := kmsg.NewPtrListOffsetsRequest()
	r.Version, r.ReplicaID, r.IsolationLevel = 5, -1, isolation
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.CurrentLeaderEpoch = -1, -1
	top := kmsg.NewListOffsetsRequestTopic()
	top.Topic, top.Partitions = topic, append(top.Partitions, p)
	r.Topics = append(r.Topics, top)
	return raw.Do[*kmsg.ListOffsetsResponse](c, r).Topics[0].Partitions[0].Offset
}
