package api

import (
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 69, Name: "ConsumerGroupDescribe", Min: 0, Max: 0, MaxFrame: 16 << 20, Expansion: 64, Reuse: true,
	Versions: []string{"groups whose assignment the coordinator makes (KIP-848)"},
	Handle:   handleConsumerGroupDescribe,
})

// handleConsumerGroupDescribe refuses, as Kafka does with ZooKeeper.
func handleConsumerGroupDescribe(_ *Broker, q *Request) {
	in := kmsg.NewPtrConsumerGroupDescribeRequest()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrConsumerGroupDescribeResponse()
	for _, name := range in.Groups {
		g := kmsg.NewConsumerGroupDescribeResponseGroup()
		g.Group, g.ErrorCode = name, int16(wire.UnsupportedVersion)
		r.Groups = append(r.Groups, g)
	}
	q.Reply(r)
}
