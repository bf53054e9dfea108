package api

import (
	"context"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 46, Name: "ListPartitionReassignments", Min: 0, Max: 0, MaxFrame: 64 << 20, Expansion: 24,
	Versions: []string{"the reassignments in progress (KIP-455)"},
	Handle:   handleListPartitionReassignments,
})

func handleListPartitionReassignments(b *Broker, q *Request) {
	in := kmsg.NewPtrListPartitionReassignmentsRequest()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) {
		var parts []wire.TopicPartition // nil: all
		if in.Topics != nil {
			parts = []wire.TopicPartition{}
		}
		for _, t := range in.Topics {
			for _, p := range t.Partitions {
				parts = append(parts, wire.TopicPartition{Topic: t.Topic, Partition: p})
			}
		}
		q.Reply(b.listReassignments(ctx, parts))
	})
}

func (b *Broker) listReassignments(ctx context.Context, parts []wire.TopicPartition) *kmsg.ListPartitionReassignmentsResponse {
	r := kmsg.NewPtrListPartitionReassignmentsResponse()
	r.ErrorMessage = new(string) // Kafka's is empty, not null
	r.Topics = []kmsg.ListPartitionReassignmentsResponseTopic{}
	ongoing, err := b.Services.ListReassignments(ctx, parts)
	if refused := b.refusal("listing reassignments", err); refused != nil {
		message := refused.Message
		if message == "" {
			message = explain(refused.Code)
		}
		r.ErrorCode, r.ErrorMessage = int16(refused.Code), &message
		return r
	}
	var by group[kmsg.ListPartitionReassignmentsResponseTopicPartition]
	for _, o := range ongoing {
		p := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
		p.Partition, p.Replicas, p.AddingReplicas, p.RemovingReplicas = o.Partition, o.Replicas, o.Adding, o.Removing
		by.add(o.Topic, p)
	}
	for i, name := range by.names {
		t := kmsg.NewListPartitionReassignmentsResponseTopic()
		t.Topic, t.Partitions = name, by.topics[i]
		r.Topics = append(r.Topics, t)
	}
	return r
}
