package api

import (
	"context"
	"time"

	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 20, Name: "DeleteTopics", Min: 0, Max: 6, MaxFrame: 16 << 20, Expansion: 24,
	Versions: []string{
		"topics by name",
		"throttle time",
		"throttled after the answer (KIP-219)",
		"TOPIC_DELETION_DISABLED",
		"flexible",
		"error messages, THROTTLING_QUOTA_EXCEEDED (KIP-599)",
		"topics by id (KIP-516)",
	},
	Handle: handleDeleteTopics,
})

func handleDeleteTopics(b *Broker, q *Request) {
	in := new(kmsg.DeleteTopicsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrDeleteTopicsResponse()
	for _, name := range in.TopicNames {
		r.Topics = append(r.Topics, kmsg.DeleteTopicsResponseTopic{Topic: &name})
	}
	both := false
	for _, t := range in.Topics {
		if q.Version < 6 {
			break
		}
		r.Topics = append(r.Topics, kmsg.DeleteTopicsResponseTopic{Topic: t.Topic, TopicID: t.TopicID})
		both = both || (t.Topic != nil) == (t.TopicID != wire.UUID{})
	}
	failAll := func(c wire.Code) {
		for i := range r.Topics {
			r.Topics[i].ErrorCode = int16(c)
		}
		q.Reply(r)
	}
	switch {
	case !b.Controller.IsActive():
		failAll(wire.NotController)
	case !b.Config.Load().Bool("delete.topic.enable") && q.Version < 3:
		failAll(wire.InvalidRequest)
	case !b.Config.Load().Bool("delete.topic.enable"):
		failAll(wire.TopicDeletionDisabled)
	case both: // a name and an id, or neither
		failAll(wire.InvalidRequest)
	default:
		b.patience(q, func(ctx, waiting context.Context) {
			b.deleteTopics(b.reach(ctx, in.TimeoutMillis), waiting, r.Topics, time.Duration(in.TimeoutMillis)*time.Millisecond)
			q.Reply(r)
		})
	}
}

// deleteTopics queues the topics for deletion, fills in the codes, and waits
// until this broker's metadata has lost them.
func (b *Broker) deleteTopics(ctx, waiting context.Context, topics []kmsg.DeleteTopicsResponseTopic, timeout time.Duration) {
	var names []string
	codes := map[string]wire.Code{}
	for i := range topics {
		t := &topics[i]
		if t.Topic == nil {
			known := b.Metadata.TopicByID(t.TopicID)
			if known == nil {
				t.ErrorCode = int16(wire.UnknownTopicID)
				continue
			}
			t.Topic = &known.Name
		}
		if _, seen := codes[*t.Topic]; seen {
			continue
		}
		code := b.deletable(ctx, *t.Topic)
		codes[*t.Topic] = code
		if code == wire.None {
			names = append(names, *t.Topic)
		}
	}
	if len(names) > 0 {
		for i, err := range b.Controller.DeleteTopics(ctx, names) {
			if e := b.refusal("deleting topic "+names[i], err); e != nil && e.Code != wire.None {
				codes[names[i]] = e.Code
			}
		}
		b.waitForDeletion(waiting, timeout, codes)
	}
	for i := range topics {
		if t := &topics[i]; t.ErrorCode == 0 {
			t.ErrorCode = int16(codes[*t.Topic])
		}
	}
}

// deletable looks at ZooKeeper for a topic that no broker has been told of: it
// can be deleted all the same.
func (b *Broker) deletable(ctx context.Context, name string) wire.Code {
	if b.Metadata.Topic(name) != nil {
		return wire.None
	}
	if badTopicName(name) != "" {
		return wire.UnknownTopicOrPartition
	}
	_, there, err := b.ZooKeeper.Exists(ctx, znode.TopicPath(name))
	switch {
	case err != nil:
		return b.refusal("looking for topic "+name, err).Code
	case !there:
		return wire.UnknownTopicOrPartition
	}
	return wire.None
}

func (b *Broker) waitForDeletion(ctx context.Context, timeout time.Duration, codes map[string]wire.Code) {
	gone := func() bool {
		for name, code := range codes {
			if code == wire.None && b.Metadata.Topic(name) != nil {
				return false
			}
		}
		return true
	}
	if timeout > 0 {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		b.Metadata.WaitFor(gone, ctx.Done())
	}
	for name, code := range codes {
		if code == wire.None && (timeout <= 0 || b.Metadata.Topic(name) != nil) {
			codes[name] = wire.RequestTimedOut
		}
	}
}
