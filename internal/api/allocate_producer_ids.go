package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 67, Name: "AllocateProducerIds", Min: 0, Max: 0, MaxFrame: 64 << 10, Expansion: 4,
	Versions: []string{"a block of producer ids for a broker (KIP-730)"},
	Handle:   handleAllocateProducerIDs,
})

func handleAllocateProducerIDs(b *Broker, q *Request) {
	in := kmsg.NewPtrAllocateProducerIDsRequest()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) {
		r := kmsg.NewPtrAllocateProducerIDsResponse()
		start, count, err := b.Services.AllocateProducerIDs(ctx, in.BrokerID, in.BrokerEpoch)
		if refused := b.refusal("allocating producer ids", err); refused != nil {
			r.ErrorCode = int16(refused.Code)
		} else {
			r.ProducerIDStart, r.ProducerIDLen = start, count
		}
		q.Reply(r)
	})
}
