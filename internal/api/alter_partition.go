package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 56, Name: "AlterPartition", Min: 0, Max: 3, Expansion: 24,
	Versions: []string{
		"a leader asks for another ISR (KIP-497, AlterIsr)",
		"whether the leader has recovered from an unclean election (KIP-704)",
		"topic ids (KIP-841)",
		"the epochs of the brokers in the ISR (KIP-903)",
	},
	Handle: handleAlterPartition,
})

func handleAlterPartition(b *Broker, q *Request) {
	in := kmsg.NewPtrAlterPartitionRequest()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) { q.Reply(b.Services.AlterPartition(ctx, in)) })
}
