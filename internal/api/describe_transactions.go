package api

import (
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 65, Name: "DescribeTransactions", Min: 0, Max: 0, MaxFrame: 16 << 20, Expansion: 8,
	Versions: []string{"the state of transactional ids (KIP-664)"},
	Handle:   handleDescribeTransactions,
})

func handleDescribeTransactions(b *Broker, q *Request) {
	in := new(kmsg.DescribeTransactionsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrDescribeTransactionsResponse()
	r.TransactionStates = make([]kmsg.DescribeTransactionsResponseTransactionState, len(in.TransactionalIDs))
	all := gatherOf(q, len(in.TransactionalIDs), func() { q.Reply(r) })
	for i, id := range in.TransactionalIDs {
		at := &r.TransactionStates[i]
		c := all.call(
			func(answer any) { *at = *answer.(*kmsg.DescribeTransactionsResponseTransactionState) },
			func(code wire.Code) {
				*at = kmsg.NewDescribeTransactionsResponseTransactionState()
				at.TransactionalID, at.ErrorCode = id, int16(code)
			})
		b.atTransaction(id, c, func(m *txn.Machine, _ time.Time, out *coordinator.Effects) { m.Describe(id, c, out) })
	}
}
