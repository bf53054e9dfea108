package api

import (
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 68, Name: "ConsumerGroupHeartbeat", Min: 0, Max: 0, MaxFrame: 16 << 20, Expansion: 16, Reuse: true,
	Versions: []string{"membership of a group whose assignment the coordinator makes (KIP-848)"},
	Handle:   handleConsumerGroupHeartbeat,
})

// handleConsumerGroupHeartbeat refuses, as Kafka does with ZooKeeper
// (KafkaApis.isConsumerGroupProtocolEnabled).
func handleConsumerGroupHeartbeat(_ *Broker, q *Request) {
	in := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	r.ErrorCode = int16(wire.UnsupportedVersion)
	q.Reply(r)
}
