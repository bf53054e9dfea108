package api

import (
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 25, Name: "AddOffsetsToTxn", Min: 0, Max: 4, MaxFrame: 1 << 20, Expansion: 4,
	Versions: []string{
		"a group's offsets join a transaction (KIP-98)",
		"throttled after the answer, not before it (KIP-219)",
		"PRODUCER_FENCED (KIP-588)",
		"flexible",
		"TRANSACTION_ABORTABLE (KIP-890)",
	},
	Handle: handleAddOffsetsToTxn,
})

func handleAddOffsetsToTxn(b *Broker, q *Request) {
	in := new(kmsg.AddOffsetsToTxnRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	reply := func(code wire.Code) {
		r := kmsg.NewPtrAddOffsetsToTxnResponse()
		r.ErrorCode = transactionCode(code, q.Version >= 2)
		q.Reply(r)
	}
	partition, ok := b.groupPartition(in.Group)
	if !ok {
		reply(wire.CoordinatorNotAvailable)
		return
	}
	c := laterCall(q, func(answer any) { reply(answer.(wire.Code)) }, reply)
	b.atTransaction(in.TransactionalID, c, func(m *txn.Machine, now time.Time, out *coordinator.Effects) {
		m.Add(in.TransactionalID, coordinator.Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch},
			[]wire.TopicPartition{{Topic: OffsetsTopic, Partition: partition}}, c, now, out)
	})
}
