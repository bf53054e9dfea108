package api

import (
	"context"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 22, Name: "InitProducerId", Min: 0, Max: 5, MaxFrame: 64 << 10, Expansion: 8,
	Versions: []string{
		"a producer id for idempotence (KIP-98)",
		"throttled after the answer (KIP-219)",
		"flexible",
		"the producer's current id and epoch, to raise the epoch (KIP-360)",
		"PRODUCER_FENCED (KIP-588)",
		"TRANSACTION_ABORTABLE (KIP-890)",
	},
	Handle: handleInitProducerID,
})

// handleInitProducerID answers idempotent producers. Transactional ones are told
// that the coordinator is not available: there is none yet.
func handleInitProducerID(b *Broker, q *Request) {
	var in kmsg.InitProducerIDRequest
	in.Default()
	if !q.Decode(&in) {
		return
	}
	fail := func(c wire.Code) {
		r := kmsg.NewPtrInitProducerIDResponse()
		r.ErrorCode, r.ProducerID, r.ProducerEpoch = int16(c), -1, -1
		q.Reply(r)
	}
	if (in.ProducerID == -1) != (in.ProducerEpoch == -1) {
		fail(wire.InvalidRequest)
		return
	}
	if in.TransactionalID != nil {
		max := b.Config.Load().Int32("transaction.max.timeout.ms")
		switch {
		case *in.TransactionalID == "":
			fail(wire.InvalidRequest)
		case in.TransactionTimeoutMillis <= 0 || in.TransactionTimeoutMillis > max:
			fail(wire.InvalidTransactionTimeout)
		default:
			fail(wire.CoordinatorNotAvailable)
		}
		return
	}
	succeed := func(id int64) {
		r := kmsg.NewPtrInitProducerIDResponse()
		r.ProducerID, r.ProducerEpoch = id, 0
		q.Reply(r)
	}
	if id, ok, _ := b.nextProducerID(); ok {
		succeed(id)
		return
	}
	b.background(q, func(ctx context.Context) {
		id, err := b.waitProducerID(ctx)
		if err != nil {
			fail(wire.CoordinatorLoadInProgress) // what Kafka says: come again
			return
		}
		succeed(id)
	})
}
