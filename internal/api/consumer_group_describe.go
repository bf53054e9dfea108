package api

import (
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 69, Name: "ConsumerGroupDescribe", Min: 0, Max: 0, MaxFrame: 16 << 20, Expansion: 64,
	Versions: []string{"groups whose assignment the coordinator makes (KIP-848)"},
	Handle:   handleConsumerGroupDescribe,
})

// handleConsumerGroupDescribe asks the coordinators; with the protocol off it
// refuses, as Kafka does with ZooKeeper.
func handleConsumerGroupDescribe(b *Broker, q *Request) {
	in := kmsg.NewPtrConsumerGroupDescribeRequest()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrConsumerGroupDescribeResponse()
	r.Groups = make([]kmsg.ConsumerGroupDescribeResponseGroup, len(in.Groups))
	on := b.Config.Load().Consumers()
	all := gatherOf(q, len(in.Groups), func() { q.Reply(r) })
	for i, id := range in.Groups {
		at := &r.Groups[i]
		c := all.call(
			func(answer any) {
				*at = *answer.(*kmsg.ConsumerGroupDescribeResponseGroup)
				at.AuthorizedOperations = noOperations
				if in.IncludeAuthorizedOperations {
					at.AuthorizedOperations = groupOperations
				}
			},
			func(code wire.Code) {
				*at = kmsg.NewConsumerGroupDescribeResponseGroup()
				at.Group, at.ErrorCode = id, int16(code)
			})
		if !on {
			c.Fail(wire.UnsupportedVersion)
			continue
		}
		b.atGroup(id, c, func(m *groups.Machine, _ time.Time, out *coordinator.Effects) { m.ConsumerDescribe(id, c, out) })
	}
}
