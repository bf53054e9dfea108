package api

import (
	"context"
	"errors"
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 9, Name: "OffsetFetch", Min: 0, Max: 9, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{
		"offsets from ZooKeeper, under /consumers, for consumers of 0.8",
		"offsets from __consumer_offsets",
		"all topics of a group; an error for the whole",
		"throttle time",
		"throttled after the answer, not before it (KIP-219)",
		"leader epochs (KIP-320)",
		"flexible",
		"only offsets that no open transaction may change (KIP-447)",
		"several groups at once (KIP-709)",
		"member ids and epochs of the newer group protocol (KIP-848)",
	},
	Handle: handleOffsetFetch,
})

// handleOffsetFetch asks the coordinators of the groups.
func handleOffsetFetch(b *Broker, q *Request) {
	in := new(kmsg.OffsetFetchRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	if q.Version == 0 {
		b.fetchFromZooKeeper(q, in)
		return
	}
	asked := in.Groups
	if q.Version < 8 {
		asked = []kmsg.OffsetFetchRequestGroup{{Group: in.Group, MemberEpoch: -1}}
		if in.Topics != nil { // nil is all
			asked[0].Topics = make([]kmsg.OffsetFetchRequestGroupTopic, 0, len(in.Topics))
		}
		for i := range in.Topics {
			asked[0].Topics = append(asked[0].Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: in.Topics[i].Topic, Partitions: in.Topics[i].Partitions})
		}
	}
	answers := make([]*kmsg.OffsetFetchResponseGroup, len(asked))
	all := gatherOf(q, len(asked), func() { replyOffsets(q, asked, answers) })
	for i := range asked {
		g := &asked[i]
		c := all.call(
			func(answer any) { answers[i] = answer.(*kmsg.OffsetFetchResponseGroup) },
			func(code wire.Code) {
				answers[i] = &kmsg.OffsetFetchResponseGroup{Group: g.Group, ErrorCode: int16(code)}
			})
		b.atGroup(g.Group, c, func(m *groups.Machine, _ time.Time, out *coordinator.Effects) {
			m.Fetch(g, in.RequireStable, c, out)
		})
	}
}

func replyOffsets(q *Request, asked []kmsg.OffsetFetchRequestGroup, answers []*kmsg.OffsetFetchResponseGroup) {
	r := kmsg.NewPtrOffsetFetchResponse()
	if q.Version >= 8 {
		for _, g := range answers {
			r.Groups = append(r.Groups, *g)
		}
		q.Reply(r)
		return
	}
	g := answers[0]
	r.ErrorCode = g.ErrorCode
	if q.Version < 2 && g.ErrorCode != 0 { // the error has no other place
		none := ""
		for _, t := range asked[0].Topics {
			topic := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition{
					Partition: p, Offset: -1, LeaderEpoch: -1, Metadata: &none, ErrorCode: g.ErrorCode})
			}
			g.Topics = append(g.Topics, topic)
		}
	}
	for _, t := range g.Topics {
		topic := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode})
		}
		r.Topics = append(r.Topics, topic)
	}
	q.Reply(r)
}

// fetchFromZooKeeper reads the offsets of version 0 from ZooKeeper. One that was
// never committed is -1 with UNKNOWN_TOPIC_OR_PARTITION: later versions say no
// error.
func (b *Broker) fetchFromZooKeeper(q *Request, in *kmsg.OffsetFetchRequest) {
	b.background(q, func(ctx context.Context) {
		r := kmsg.NewPtrOffsetFetchResponse()
		none := ""
		for _, t := range in.Topics {
			answer := kmsg.NewOffsetFetchResponseTopic()
			answer.Topic = t.Topic
			for _, p := range t.Partitions {
				result := kmsg.NewOffsetFetchResponseTopicPartition()
				result.Partition, result.Metadata = p, &none
				offset, err := b.committedOffset(ctx, in.Group, t.Topic, p)
				result.Offset, result.ErrorCode = offset, int16(b.oldClientCode("fetching an offset", err))
				answer.Partitions = append(answer.Partitions, result)
			}
			r.Topics = append(r.Topics, answer)
		}
		q.Reply(r)
	})
}

func (b *Broker) committedOffset(ctx context.Context, group, topic string, partition int32) (int64, error) {
	if b.Metadata.Partition(topic, partition) == nil {
		return -1, refuse(wire.UnknownTopicOrPartition, "")
	}
	if !groupInPath(group) {
		return -1, refuse(wire.UnknownServerError, "")
	}
	data, _, err := b.ZooKeeper.Get(ctx, znode.ConsumerOffsetPath(group, topic, partition))
	if errors.Is(err, jute.ErrNoNode) || err == nil && len(data) == 0 {
		return -1, refuse(wire.UnknownTopicOrPartition, "")
	}
	if err != nil {
		return -1, err
	}
	offset, err := znode.DecodeConsumerOffset(data)
	if err != nil {
		return -1, err
	}
	return offset, nil
}
