package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 6, Name: "UpdateMetadata", Min: 0, Max: 8, Expansion: 24,
	Versions: []string{
		"the live brokers, and leaders and replicas of partitions",
		"an endpoint for each security protocol",
		"racks (KIP-36)",
		"listener names (KIP-103)",
		"offline replicas (KIP-112)",
		"the broker's epoch, partitions by topic (KIP-380)",
		"flexible",
		"topic ids (KIP-516)",
		"whether a KRaft controller sends it (KIP-866)",
	},
	Handle: handleUpdateMetadata,
})

// handleUpdateMetadata needs nothing that waits, and so answers in its turn.
func handleUpdateMetadata(b *Broker, q *Request) {
	in := kmsg.NewPtrUpdateMetadataRequest()
	if !q.Decode(in) {
		return
	}
	r, err := b.Controlled.UpdateMetadata(context.Background(), in)
	if err != nil {
		q.Fail(errors.Join(errNotDone, err))
		return
	}
	q.Reply(r)
}
