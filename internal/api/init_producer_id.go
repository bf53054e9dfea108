package api

import (
	"context"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/txn"
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

// handleInitProducerID answers idempotent producers itself; transactional ones
// get their ids from their coordinator.
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
			b.initTransactional(q, &in)
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

// initTransactional asks a transactional id's coordinator, and once more with a
// fresh producer id if it needs one.
func (b *Broker) initTransactional(q *Request, in *kmsg.InitProducerIDRequest) {
	reply := func(a txn.Initialized) {
		r := kmsg.NewPtrInitProducerIDResponse()
		r.ErrorCode, r.ProducerID, r.ProducerEpoch = transactionCode(a.Code, q.Version >= 4), a.ID, a.Epoch
		q.Reply(r)
	}
	fail := func(code wire.Code) {
		reply(txn.Initialized{Code: code, Producer: coordinator.Producer{ID: -1, Epoch: -1}})
	}
	ask := func(fresh int64, answered func(txn.Initialized)) {
		init := txn.Init{
			TransactionalID: *in.TransactionalID, Timeout: in.TransactionTimeoutMillis,
			Known: coordinator.Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch}, Fresh: fresh,
		}
		c := laterCall(q, func(answer any) { answered(answer.(txn.Initialized)) }, fail)
		b.atTransaction(init.TransactionalID, c, func(m *txn.Machine, now time.Time, out *coordinator.Effects) { m.Init(init, c, now, out) })
	}
	ask(-1, func(a txn.Initialized) {
		if !a.NeedsID {
			reply(a)
			return
		}
		if id, ok, _ := b.nextProducerID(); ok {
			ask(id, reply)
			return
		}
		ok := b.Go(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, zooKeeperTimeout)
			defer cancel()
			id, err := b.waitProducerID(ctx)
			if err != nil {
				fail(wire.CoordinatorLoadInProgress) // come again
				return
			}
			ask(id, reply)
		})
		if !ok {
			q.Fail(ErrClosing)
		}
	})
}
