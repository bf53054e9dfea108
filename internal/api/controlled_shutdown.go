package api

import (
	"context"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 7, Name: "ControlledShutdown", Min: 0, Max: 3, MaxFrame: 64 << 10, Expansion: 4,
	Versions: []string{
		"the broker that is about to stop; without client id in the header",
		"client id in the header",
		"the broker's epoch (KIP-380)",
		"flexible",
	},
	Handle: handleControlledShutdown,
})

// handleControlledShutdown answers with the partitions that the broker still
// leads; it asks again until there is none (KafkaController.doControlledShutdown).
func handleControlledShutdown(b *Broker, q *Request) {
	in := kmsg.NewPtrControlledShutdownRequest()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) {
		r := kmsg.NewPtrControlledShutdownResponse()
		r.PartitionsRemaining = []kmsg.ControlledShutdownResponsePartitionsRemaining{}
		rest, err := b.Services.ControlledShutdown(ctx, in.BrokerID, in.BrokerEpoch)
		if refused := b.refusal("controlled shutdown", err); refused != nil {
			if r.ErrorCode = int16(refused.Code); refused.Code == wire.NotController {
				r.ErrorCode = int16(wire.StaleControllerEpoch) // ControllerMovedException in Kafka
			}
		}
		for _, tp := range rest {
			r.PartitionsRemaining = append(r.PartitionsRemaining, kmsg.ControlledShutdownResponsePartitionsRemaining{Topic: tp.Topic, Partition: tp.Partition})
		}
		q.Reply(r)
	})
}
