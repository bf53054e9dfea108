package txn

import (
	"maps"
	"slices"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Describe answers one id of a DescribeTransactions request. The answer is a
// *kmsg.DescribeTransactionsResponseTransactionState.
func (m *Machine) Describe(id string, from coordinator.Caller, out *coordinator.Effects) {
	r := kmsg.NewDescribeTransactionsResponseTransactionState()
	r.TransactionalID = id
	t := m.ids[id]
	switch {
	case id == "":
		r.ErrorCode = int16(wire.InvalidRequest)
	case t == nil:
		r.ErrorCode = int16(wire.TransactionalIDNotFound)
	default:
		r.State, r.TimeoutMillis, r.StartTimestamp = t.state.String(), t.timeout, t.start
		r.ProducerID, r.ProducerEpoch = t.producer, t.epoch
		for _, p := range t.partitions {
			if n := len(r.Topics); n == 0 || r.Topics[n-1].Topic != p.Topic {
				r.Topics = append(r.Topics, kmsg.DescribeTransactionsResponseTransactionStateTopic{Topic: p.Topic})
			}
			last := &r.Topics[len(r.Topics)-1]
			last.Partitions = append(last.Partitions, p.Partition)
		}
	}
	out.Reply(from, &r)
}

// List answers a ListTransactions request with the ids of this machine:
// states, producers and the least age in ms of the transaction (-1: any) filter
// them. The answer is a []kmsg.ListTransactionsResponseTransactionState.
func (m *Machine) List(states []State, producers []int64, age int64, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	var all []kmsg.ListTransactionsResponseTransactionState
	for _, id := range slices.Sorted(maps.Keys(m.ids)) {
		t := m.ids[id]
		switch {
		case len(states) > 0 && !slices.Contains(states, t.state), len(producers) > 0 && !slices.Contains(producers, t.producer):
			continue
		case age >= 0 && (t.start < 0 || now.UnixMilli()-t.start <= age):
			continue
		}
		all = append(all, kmsg.ListTransactionsResponseTransactionState{TransactionalID: id, ProducerID: t.producer, TransactionState: t.state.String()})
	}
	out.Reply(from, all)
}

// ParseState returns the state with this name.
func ParseState(name string) (State, bool) {
	i := slices.Index(stateNames[:], name)
	return State(i), i >= 0
}
