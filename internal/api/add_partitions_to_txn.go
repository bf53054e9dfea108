package api

import (
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 24, Name: "AddPartitionsToTxn", Min: 0, Max: 5, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{
		"partitions join a transaction (KIP-98)",
		"throttled after the answer, not before it (KIP-219)",
		"PRODUCER_FENCED (KIP-588)",
		"flexible",
		"many transactions at once, from brokers, which also ask only (KIP-890)",
		"TRANSACTION_ABORTABLE (KIP-890)",
	},
	Handle: handleAddPartitionsToTxn,
})

// adding is the part of a request that is about one transaction.
type adding struct {
	id         string
	producer   coordinator.Producer
	verify     bool
	partitions []wire.TopicPartition
	codes      []wire.Code
}

func handleAddPartitionsToTxn(b *Broker, q *Request) {
	in := new(kmsg.AddPartitionsToTxnRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	var all []*adding
	if q.Version < 4 {
		a := &adding{id: in.TransactionalID, producer: coordinator.Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch}}
		for _, t := range in.Topics {
			a.add(t.Topic, t.Partitions)
		}
		all = append(all, a)
	}
	for i := range in.Transactions {
		t := &in.Transactions[i]
		a := &adding{id: t.TransactionalID, producer: coordinator.Producer{ID: t.ProducerID, Epoch: t.ProducerEpoch}, verify: t.VerifyOnly}
		for _, topic := range t.Topics {
			a.add(topic.Topic, topic.Partitions)
		}
		all = append(all, a)
	}
	g := gatherOf(q, len(all), func() { replyAdded(q, all) })
	for _, a := range all {
		b.addPartitions(g, a, q.Version)
	}
}

func (a *adding) add(topic string, partitions []int32) {
	for _, p := range partitions {
		a.partitions = append(a.partitions, wire.TopicPartition{Topic: topic, Partition: p})
	}
	a.codes = make([]wire.Code, len(a.partitions))
}

// addPartitions asks the coordinator. If one partition is not there, none is added.
func (b *Broker) addPartitions(g *gather, a *adding, version int16) {
	setAll := func(code wire.Code) {
		for i := range a.codes {
			a.codes[i] = wire.Code(transactionCode(code, version >= 2))
		}
	}
	c := g.call(func(answer any) {
		switch answer := answer.(type) {
		case wire.Code:
			setAll(answer)
		case []wire.Code:
			a.codes = answer
		}
	}, setAll)
	if a.verify {
		b.atTransaction(a.id, c, func(m *txn.Machine, _ time.Time, out *coordinator.Effects) {
			m.Verify(a.id, a.producer, a.partitions, c, out)
		})
		return
	}
	unknown := false
	for _, p := range a.partitions {
		unknown = unknown || b.Metadata.Partition(p.Topic, p.Partition) == nil
	}
	if unknown {
		codes := make([]wire.Code, len(a.partitions))
		for i, p := range a.partitions {
			codes[i] = wire.OperationNotAttempted
			if b.Metadata.Partition(p.Topic, p.Partition) == nil {
				codes[i] = wire.UnknownTopicOrPartition
			}
		}
		c.Answer(codes)
		return
	}
	b.atTransaction(a.id, c, func(m *txn.Machine, now time.Time, out *coordinator.Effects) {
		m.Add(a.id, a.producer, a.partitions, c, now, out)
	})
}

func replyAdded(q *Request, all []*adding) {
	r := kmsg.NewPtrAddPartitionsToTxnResponse()
	for _, a := range all {
		t := kmsg.AddPartitionsToTxnResponseTransaction{TransactionalID: a.id}
		for i, p := range a.partitions {
			if n := len(t.Topics); n == 0 || t.Topics[n-1].Topic != p.Topic {
				t.Topics = append(t.Topics, kmsg.AddPartitionsToTxnResponseTransactionTopic{Topic: p.Topic})
			}
			last := &t.Topics[len(t.Topics)-1]
			last.Partitions = append(last.Partitions, kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{Partition: p.Partition, ErrorCode: int16(a.codes[i])})
		}
		r.Transactions = append(r.Transactions, t)
	}
	if q.Version < 4 {
		for _, t := range r.Transactions[0].Topics {
			topic := kmsg.AddPartitionsToTxnResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: p.Partition, ErrorCode: p.ErrorCode})
			}
			r.Topics = append(r.Topics, topic)
		}
	}
	q.Reply(r)
}
