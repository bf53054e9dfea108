package api

import (
	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 61, Name: "DescribeProducers", Min: 0, Max: 0, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{"the idempotent producers that partitions remember, to find transactions that hang (KIP-664)"},
	Handle:   handleDescribeProducers,
})

func handleDescribeProducers(b *Broker, q *Request) {
	in := new(kmsg.DescribeProducersRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrDescribeProducersResponse()
	for _, t := range in.Topics {
		topic := kmsg.NewDescribeProducersResponseTopic()
		topic.Topic = t.Topic
		for _, index := range t.Partitions {
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.Partition = index
			p.ActiveProducers = b.activeProducers(t.Topic, index, &p)
			topic.Partitions = append(topic.Partitions, p)
		}
		r.Topics = append(r.Topics, topic)
	}
	q.Reply(r)
}

// activeProducers lists the producers of a partition, or sets the error.
func (b *Broker) activeProducers(topic string, index int32, answer *kmsg.DescribeProducersResponseTopicPartition) []kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
	fail := func(code wire.Code) {
		message := explain(code)
		answer.ErrorCode, answer.ErrorMessage = int16(code), &message
	}
	part := b.Replicas.Partition(wire.TopicPartition{Topic: topic, Partition: index})
	if part == nil {
		fail(b.missing([]byte(topic), index))
		return nil
	}
	log, code := part.Leading(-1)
	if code != wire.None {
		fail(code)
		return nil
	}
	producers, err := log.Producers()
	if err != nil {
		fail(storage.Code(err))
		return nil
	}
	var all []kmsg.DescribeProducersResponseTopicPartitionActiveProducer
	for _, p := range producers {
		all = append(all, kmsg.DescribeProducersResponseTopicPartitionActiveProducer{
			ProducerID: p.ID, ProducerEpoch: int32(p.Epoch), LastSequence: p.LastSequence, LastTimestamp: p.LastTimestamp,
			CoordinatorEpoch: p.CoordinatorEpoch, CurrentTxnStartOffset: p.TxnStart,
		})
	}
	return all
}
