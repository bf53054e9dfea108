package api

import (
	"sync/atomic"
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/coordinator/markers"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/replica"
	"barnabas/internal/wire"
)

// Transactions runs the transactional ids of this broker.
type Transactions = coordinator.Runtime[*txn.Machine]

// transactionPartition returns the partition of __transaction_state that a
// transactional id belongs to; ok is false while there is no such topic.
func (b *Broker) transactionPartition(id string) (partition int32, ok bool) {
	topic := b.Metadata.Topic(TransactionsTopic)
	if topic == nil || len(topic.Partitions) == 0 {
		return 0, false
	}
	return coordinator.PartitionOf(id, len(topic.Partitions)), true
}

// atTransaction has a transactional id's coordinator decide. Exactly one of c's
// functions is called, perhaps before it returns.
func (b *Broker) atTransaction(id string, c coordinator.Caller, decide func(m *txn.Machine, now time.Time, out *coordinator.Effects)) {
	partition, ok := b.transactionPartition(id)
	if !ok {
		c.Fail(wire.NotCoordinator)
		return
	}
	b.Transactions.Do(partition, c, decide)
}

// laterCall is a question whose one function that is called runs on the
// connection's writing goroutine.
func laterCall(q *Request, answer func(response any), fail func(code wire.Code)) *question {
	return &question{
		answer: func(r any) { q.Later(func(*Request) { answer(r) }) },
		fail:   func(code wire.Code) { q.Later(func(*Request) { fail(code) }) },
	}
}

// transactionCode is a transaction's code as its producer is told it
// (TransactionStateManager.appendTransactionToLog): known is whether it knows
// PRODUCER_FENCED.
func transactionCode(code wire.Code, known bool) int16 {
	if code == wire.ProducerFenced && !known {
		code = wire.InvalidProducerEpoch
	}
	return int16(late(code, wire.CoordinatorNotAvailable))
}

// WriteMarkers appends the ends of transactions to partitions that this broker
// leads, and tells for each partition of each what became of it. done is called
// once, from any goroutine, perhaps before WriteMarkers returns.
func (b *Broker) WriteMarkers(ends []markers.End, done func(codes [][]wire.Code)) {
	codes := make([][]wire.Code, len(ends))
	var left atomic.Int32
	left.Store(1)
	finish := func() {
		if left.Add(-1) == 0 {
			done(codes)
		}
	}
	for i := range ends {
		codes[i] = make([]wire.Code, len(ends[i].Partitions))
		for j, p := range ends[i].Partitions {
			left.Add(1)
			at := &codes[i][j]
			b.writeMarker(ends[i].Marker, p, func(code wire.Code) {
				*at = code
				finish()
			})
		}
	}
	finish()
}

func (b *Broker) writeMarker(m coordinator.Marker, p wire.TopicPartition, done func(wire.Code)) {
	if p.Topic == OffsetsTopic { // the groups' coordinator has to know, and is the only one who writes there
		c := &question{answer: func(any) { done(wire.None) }, fail: func(code wire.Code) {
			if code == wire.CoordinatorLoadInProgress || code == wire.CoordinatorNotAvailable || code == wire.NotCoordinator {
				code = wire.NotLeaderOrFollower // what the other coordinator tries again after
			}
			done(code)
		}}
		b.Groups.Do(p.Partition, c, func(g *groups.Machine, _ time.Time, out *coordinator.Effects) { g.WriteMarker(m, c, out) })
		return
	}
	part := b.Replicas.Partition(p)
	if part == nil {
		done(b.missing([]byte(p.Topic), p.Partition))
		return
	}
	end, err := coordinator.AppendMarker(part, m, b.Now())
	if err != wire.None {
		done(err)
		return
	}
	w := &markerWait{done: done}
	if code, over := part.Await(end, w, 0); over {
		done(code)
	}
}

// markerWait waits until a marker is replicated.
type markerWait struct{ done func(wire.Code) }

func (w *markerWait) Acked(_ int, code wire.Code) { w.done(code) }

var _ replica.AckWaiter = (*markerWait)(nil)
