package api

import (
	"context"
	"time"

	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 21, Name: "DeleteRecords", Min: 0, Max: 2, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{
		"records below an offset are deleted (KIP-107)",
		"throttled after the answer, not before it (KIP-219)",
		"flexible",
	},
	Handle: handleDeleteRecords,
})

// handleDeleteRecords raises log start offsets, and answers once the followers
// have followed or the request's timeout is over (ReplicaManager.deleteRecords,
// DelayedDeleteRecords).
func handleDeleteRecords(b *Broker, q *Request) {
	in := new(kmsg.DeleteRecordsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	b.patience(q, func(_, waiting context.Context) { q.Reply(b.deleteRecords(waiting, in)) })
}

// deletion is a partition whose followers have not followed yet.
type deletion struct {
	part   *replica.Partition
	target int64
	answer *kmsg.DeleteRecordsResponseTopicPartition
}

func (b *Broker) deleteRecords(waiting context.Context, in *kmsg.DeleteRecordsRequest) *kmsg.DeleteRecordsResponse {
	r := kmsg.NewPtrDeleteRecordsResponse()
	r.Topics = make([]kmsg.DeleteRecordsResponseTopic, len(in.Topics))
	var waits []deletion
	for i, t := range in.Topics {
		at := &r.Topics[i]
		at.Topic = t.Topic
		at.Partitions = make([]kmsg.DeleteRecordsResponseTopicPartition, len(t.Partitions))
		for j, p := range t.Partitions {
			answer := &at.Partitions[j]
			answer.Partition, answer.LowWatermark = p.Partition, -1
			part, target, code := b.deleteBelow(t.Topic, p.Partition, p.Offset)
			if code != wire.None {
				answer.ErrorCode = int16(code)
				continue
			}
			waits = append(waits, deletion{part, target, answer})
		}
	}
	b.waitForLowWatermarks(waiting, timeoutOf(in.TimeoutMillis), waits)
	return r
}

// deleteBelow raises the start on this leader and returns what the followers are
// to reach.
func (b *Broker) deleteBelow(topic string, index int32, offset int64) (*replica.Partition, int64, wire.Code) {
	if b.Metadata.Partition(topic, index) == nil {
		return nil, -1, wire.UnknownTopicOrPartition
	}
	if internalTopic(topic) {
		return nil, -1, wire.InvalidTopicException
	}
	p := b.Replicas.Partition(wire.TopicPartition{Topic: topic, Partition: index})
	if p == nil {
		return nil, -1, b.missing([]byte(topic), index)
	}
	log, code := p.Leading(-1)
	if code != wire.None {
		return nil, -1, code
	}
	if offset == -1 {
		offset = p.HighWatermark()
	}
	if offset < 0 {
		return nil, -1, wire.OffsetOutOfRange
	}
	if _, err := log.DeleteRecordsTo(offset); err != nil {
		return nil, -1, storage.Code(err)
	}
	p.StartMoved()
	return p, offset, wire.None
}

// waitForLowWatermarks looks every few milliseconds: the request is rare, and what it
// waits for comes with the followers' next fetches.
func (b *Broker) waitForLowWatermarks(ctx context.Context, timeout time.Duration, waits []deletion) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		left := waits[:0]
		for _, w := range waits {
			low, known := w.part.LowWatermark(b.brokerAlive)
			switch _, code := w.part.Leading(-1); {
			case code != wire.None:
				w.answer.ErrorCode = int16(code)
			case known && low >= w.target:
				w.answer.LowWatermark = low
			default:
				w.answer.ErrorCode = int16(wire.RequestTimedOut)
				left = append(left, w)
				continue
			}
			if w.answer.LowWatermark >= 0 {
				w.answer.ErrorCode = 0
			}
		}
		if waits = left; len(waits) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *Broker) brokerAlive(id int32) bool { return b.Metadata.Cluster().Broker(id) != nil }
