package api

import (
	"sync/atomic"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 66, Name: "ListTransactions", Min: 0, Max: 1, MaxFrame: 1 << 20, Expansion: 8,
	Versions: []string{
		"the transactional ids that this broker coordinates, by state or producer id (KIP-664)",
		"those whose transaction is open for longer than a time (KIP-994)",
	},
	Handle: handleListTransactions,
})

func handleListTransactions(b *Broker, q *Request) {
	in := new(kmsg.ListTransactionsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrListTransactionsResponse()
	var states []txn.State
	for _, name := range in.StateFilters {
		if s, ok := txn.ParseState(name); ok {
			states = append(states, s)
		} else {
			r.UnknownStateFilters = append(r.UnknownStateFilters, name)
		}
	}
	partitions, loading := b.Transactions.Led()
	if loading {
		r.ErrorCode = int16(wire.CoordinatorLoadInProgress)
	}
	if loading || len(in.StateFilters) > 0 && len(states) == 0 {
		q.Reply(r)
		return
	}
	age := int64(-1)
	if q.Version >= 1 {
		age = in.DurationFilterMillis
	}
	found := make([][]kmsg.ListTransactionsResponseTransactionState, len(partitions))
	var failed atomic.Int32 // a code: the list would not be whole
	all := gatherOf(q, len(partitions), func() {
		r.ErrorCode = int16(failed.Load())
		for _, some := range found {
			r.TransactionStates = append(r.TransactionStates, some...)
		}
		q.Reply(r)
	})
	for i, partition := range partitions {
		c := all.call(
			func(answer any) { found[i] = answer.([]kmsg.ListTransactionsResponseTransactionState) },
			func(code wire.Code) {
				if code != wire.NotCoordinator { // then its ids are another broker's now
					failed.Store(int32(code))
				}
			})
		b.Transactions.Do(partition, c, func(m *txn.Machine, now time.Time, out *coordinator.Effects) {
			m.List(states, in.ProducerIDFilters, age, c, now, out)
		})
	}
}
