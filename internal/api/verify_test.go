package api

import (
	"testing"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/wire"
)

// A producer whose transaction the coordinator before opened must not be told
// that it has none, only because this one has not taken over yet.
func TestNobodyIsUnknownBeforeAllOpenTransactionsAreTold(t *testing.T) {
	var o OpenTransactions
	p, at := coordinator.Producer{ID: 7, Epoch: 1}, wire.TopicPartition{Topic: "t"}
	if _, known := o.verdict(p, at); known || o.settled(3) {
		t.Error("before anything was told")
	}
	o.Perform(3, txn.Opened{Producer: p, Partitions: []wire.TopicPartition{at}})
	if code, known := o.verdict(p, at); !known || code != wire.None || o.settled(3) {
		t.Error("one was told of:", code, known)
	}
	o.Perform(3, txn.AllTold{})
	if !o.settled(3) || o.settled(4) {
		t.Error("all were told of")
	}
	o.Unloaded(3)
	if _, known := o.verdict(p, at); known || o.settled(3) {
		t.Error("dropped")
	}
}
