package api

import (
	"context"
	"errors"
	"strings"
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 8, Name: "OffsetCommit", Min: 0, Max: 9, MaxFrame: 16 << 20, Expansion: 24, Brief: true,
	Versions: []string{
		"offsets into ZooKeeper, under /consumers, for consumers of 0.8",
		"offsets into __consumer_offsets, by members of a group or from outside, with a time",
		"no time; how long the offsets are kept",
		"throttle time",
		"throttled after the answer, not before it (KIP-219)",
		"offsets are kept as long as the broker says (KIP-211)",
		"leader epochs (KIP-320)",
		"static members (KIP-345)",
		"flexible",
		"errors of the newer group protocol (KIP-848)",
	},
	Handle: handleOffsetCommit,
})

// handleOffsetCommit leaves the decision to the group's coordinator, all but
// for partitions that are not there.
func handleOffsetCommit(b *Broker, q *Request) {
	in := new(kmsg.OffsetCommitRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	if q.Version == 0 {
		b.commitToZooKeeper(q, in)
		return
	}
	c := &groups.Commit{Group: in.Group, Member: in.MemberID, Instance: in.InstanceID, Generation: in.Generation, Version: q.Version}
	now := q.Received.UnixMilli()
	valid := false
	for i := range in.Topics {
		t := &in.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			o := groups.CommitOffset{Topic: t.Topic, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Time: now, Expire: -1}
			if q.Version == 1 && p.Timestamp != -1 {
				o.Time = p.Timestamp
			}
			if q.Version >= 2 && q.Version <= 4 && in.RetentionTimeMillis != -1 {
				o.Expire = now + in.RetentionTimeMillis
			}
			if p.Metadata != nil {
				o.Metadata = *p.Metadata
			}
			if b.Metadata.Partition(t.Topic, p.Partition) == nil {
				o.Code = wire.UnknownTopicOrPartition
			}
			valid = valid || o.Code == wire.None
			c.Offsets = append(c.Offsets, o)
		}
	}
	if !valid {
		replyCommit(q, c)
		return
	}
	b.askGroup(q, in.Group,
		func(any) { replyCommit(q, c) },
		func(code wire.Code) {
			c.Fail(code)
			replyCommit(q, c)
		},
		func(m *groups.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
			m.Commit(c, from, now, out)
		})
}

func replyCommit(q *Request, c *groups.Commit) {
	r := kmsg.NewPtrOffsetCommitResponse()
	index := map[string]int{}
	eachCommitted(c, func(o *groups.CommitOffset) {
		at, ok := index[o.Topic]
		if !ok {
			at = len(r.Topics)
			index[o.Topic] = at
			r.Topics = append(r.Topics, kmsg.OffsetCommitResponseTopic{Topic: o.Topic})
		}
		r.Topics[at].Partitions = append(r.Topics[at].Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: o.Partition, ErrorCode: int16(o.Code)})
	})
	q.Reply(r)
}

// eachCommitted calls f for each offset in the order of Kafka's answers: what
// does not exist comes first.
func eachCommitted(c *groups.Commit, f func(*groups.CommitOffset)) {
	for _, unknown := range []bool{true, false} {
		for i := range c.Offsets {
			if o := &c.Offsets[i]; (o.Code == wire.UnknownTopicOrPartition) == unknown {
				f(o)
			}
		}
	}
}

// commitToZooKeeper writes the offsets of version 0 into ZooKeeper, past every
// coordinator, as each Kafka in ZooKeeper mode does. Errors stay in the range 0
// to 20 that clients of that age know, and -1.
func (b *Broker) commitToZooKeeper(q *Request, in *kmsg.OffsetCommitRequest) {
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
