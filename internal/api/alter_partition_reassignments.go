package api

import (
	"context"

	"barnabas/internal/controller"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 45, Name: "AlterPartitionReassignments", Min: 0, Max: 0, Expansion: 24,
	Versions: []string{"other replicas for partitions, or null to cancel (KIP-455)"},
	Handle:   handleAlterPartitionReassignments,
})

func handleAlterPartitionReassignments(b *Broker, q *Request) {
	in := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) {
		var wishes []controller.Reassignment
		for _, t := range in.Topics {
			for _, p := range t.Partitions {
				wishes = append(wishes, controller.Reassignment{
					TopicPartition: wire.TopicPartition{Topic: t.Topic, Partition: p.Partition}, Replicas: p.Replicas})
			}
		}
		q.Reply(b.reassign(ctx, wishes))
	})
}

func (b *Broker) reassign(ctx context.Context, wishes []controller.Reassignment) *kmsg.AlterPartitionAssignmentsResponse {
	r := kmsg.NewPtrAlterPartitionAssignmentsResponse()
	r.ErrorMessage = new(string) // Kafka's is empty, not null
	r.Topics = []kmsg.AlterPartitionAssignmentsResponseTopic{}
	outcomes, err := b.Services.Reassign(ctx, wishes)
	if refused := b.refusal("reassigning partitions", err); refused != nil {
		message := refused.Message
		if message == "" {
			message = explain(refused.Code)
		}
		r.ErrorCode, r.ErrorMessage = int16(refused.Code), &message
		outcomes = outcomes[:0]
		for _, w := range wishes {
			outcomes = append(outcomes, controller.PartitionError{TopicPartition: w.TopicPartition, Err: &Error{refused.Code, message}})
		}
	}
	var by group[kmsg.AlterPartitionAssignmentsResponseTopicPartition]
	for _, o := range outcomes {
		p := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
		p.Partition = o.Partition
		if refused := b.refusal("reassigning a partition", o.Err); refused != nil {
			p.ErrorCode, p.ErrorMessage = int16(refused.Code), text(refused.Message)
		}
		by.add(o.Topic, p)
	}
	for i, name := range by.names {
		t := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		t.Topic, t.Partitions = name, by.topics[i]
		r.Topics = append(r.Topics, t)
	}
	return r
}
