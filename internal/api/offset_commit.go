package api

import (
	"context"
	"errors"
	"strings"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 8, Name: "OffsetCommit", Min: 0, Max: 0, MaxFrame: 16 << 20, Expansion: 24,
	Versions: []string{"offsets into ZooKeeper, under /consumers, for consumers of 0.8"},
	Handle:   handleOffsetCommit,
})

// handleOffsetCommit writes version 0 into ZooKeeper, past every coordinator,
// as each Kafka in ZooKeeper mode does. Errors stay in the range 0 to 20 that
// clients of that age know, and -1.
func handleOffsetCommit(b *Broker, q *Request) {
	in := new(kmsg.OffsetCommitRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) {
		r := kmsg.NewPtrOffsetCommitResponse()
		maxMetadata := b.Config.Load().Int("offset.metadata.max.bytes")
		for _, t := range in.Topics {
			answer := kmsg.NewOffsetCommitResponseTopic()
			answer.Topic = t.Topic
			for _, p := range t.Partitions {
				code := wire.None
				switch {
				case b.Metadata.Partition(t.Topic, p.Partition) == nil:
					code = wire.UnknownTopicOrPartition
				case p.Metadata != nil && len(*p.Metadata) > maxMetadata:
					code = wire.OffsetMetadataTooLarge
				default:
					code = b.oldClientCode("committing an offset", b.commitOffset(ctx, in.Group, t.Topic, p.Partition, p.Offset))
				}
				answer.Partitions = append(answer.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
			}
			r.Topics = append(r.Topics, answer)
		}
		q.Reply(r)
	})
}

func (b *Broker) commitOffset(ctx context.Context, group, topic string, partition int32, offset int64) error {
	if !groupInPath(group) {
		return refuse(wire.UnknownServerError, "")
	}
	path, data := znode.ConsumerOffsetPath(group, topic, partition), znode.EncodeConsumerOffset(offset)
	_, err := b.ZooKeeper.Set(ctx, path, data, -1)
	if errors.Is(err, jute.ErrNoNode) {
		if err = b.ZooKeeper.CreateRecursive(ctx, path, data); errors.Is(err, jute.ErrNodeExists) {
			_, err = b.ZooKeeper.Set(ctx, path, data, -1)
		}
	}
	return err
}

// groupInPath tells whether ZooKeeper takes the group's name as part of a path;
// as in Kafka it may hold slashes.
func groupInPath(group string) bool {
	for _, part := range strings.Split(group, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	for _, r := range group {
		if r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff {
			return false
		}
	}
	return true
}

// oldClientCode is the code for a client that knows none above 20.
func (b *Broker) oldClientCode(what string, err error) wire.Code {
	e := b.refusal(what, err)
	switch {
	case e == nil:
		return wire.None
	case e.Code >= 0 && e.Code <= 20:
		return e.Code
	}
	return wire.UnknownServerError
}
