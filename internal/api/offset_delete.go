package api

import (
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 47, Name: "OffsetDelete", Min: 0, Max: 0, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{"committed offsets of topics that no member subscribes to are deleted (KIP-496)"},
	Handle:   handleOffsetDelete,
})

func handleOffsetDelete(b *Broker, q *Request) {
	in := new(kmsg.OffsetDeleteRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	unknown := map[wire.TopicPartition]bool{}
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			if b.Metadata.Partition(t.Topic, p.Partition) == nil {
				unknown[wire.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = true
			}
		}
	}
	skip := func(topic string, index int32) wire.Code {
		if unknown[wire.TopicPartition{Topic: topic, Partition: index}] {
			return wire.UnknownTopicOrPartition
		}
		return wire.None
	}
	b.askGroup(q, in.Group,
		func(r any) { q.Reply(r.(*kmsg.OffsetDeleteResponse)) },
		func(code wire.Code) {
			r := kmsg.NewPtrOffsetDeleteResponse()
			r.ErrorCode = int16(late(code, wire.CoordinatorNotAvailable))
			q.Reply(r)
		},
		func(m *groups.Machine, c coordinator.Caller, _ time.Time, out *coordinator.Effects) {
			m.DeleteOffsets(in, skip, c, out)
		})
}
