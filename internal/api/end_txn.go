package api

import (
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 26, Name: "EndTxn", Min: 0, Max: 4, MaxFrame: 64 << 10, Expansion: 4,
	Versions: []string{
		"a transaction is committed or aborted (KIP-98)",
		"throttled after the answer, not before it (KIP-219)",
		"PRODUCER_FENCED (KIP-588)",
		"flexible",
		"TRANSACTION_ABORTABLE (KIP-890)",
	},
	Handle: handleEndTxn,
})

// handleEndTxn answers when the decision is stored; the markers follow.
func handleEndTxn(b *Broker, q *Request) {
	in := new(kmsg.EndTxnRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	reply := func(code wire.Code) {
		r := kmsg.NewPtrEndTxnResponse()
		r.ErrorCode = transactionCode(code, q.Version >= 2)
		q.Reply(r)
	}
	c := laterCall(q, func(answer any) { reply(answer.(wire.Code)) }, reply)
	b.atTransaction(in.TransactionalID, c, func(m *txn.Machine, now time.Time, out *coordinator.Effects) {
		m.EndTxn(in.TransactionalID, coordinator.Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch}, in.Commit, c, now, out)
	})
}
