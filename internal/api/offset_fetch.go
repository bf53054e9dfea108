package api

import (
	"context"
	"errors"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 9, Name: "OffsetFetch", Min: 0, Max: 0, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{"offsets from ZooKeeper, under /consumers, for consumers of 0.8"},
	Handle:   handleOffsetFetch,
})

// handleOffsetFetch reads version 0 from ZooKeeper. An offset that was never
// committed is -1 with UNKNOWN_TOPIC_OR_PARTITION: later versions say no error.
func handleOffsetFetch(b *Broker, q *Request) {
	in := new(kmsg.OffsetFetchRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
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
