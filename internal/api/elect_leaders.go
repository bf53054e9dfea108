package api

import (
	"context"
	"errors"

	"barnabas/internal/controller"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 43, Name: "ElectLeaders", Min: 0, Max: 2, Expansion: 24,
	Versions: []string{
		"preferred leaders (KIP-183)",
		"unclean elections (KIP-460); an error of the whole answer",
		"flexible",
	},
	Handle: handleElectLeaders,
})

// handleElectLeaders elects leaders and answers once this broker's metadata
// shows them, or when the request's timeout is over (ReplicaManager.electLeaders).
func handleElectLeaders(b *Broker, q *Request) {
	in := kmsg.NewPtrElectLeadersRequest()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) { q.Reply(b.electLeaders(ctx, in)) })
}

func (b *Broker) electLeaders(ctx context.Context, in *kmsg.ElectLeadersRequest) *kmsg.ElectLeadersResponse {
	kind, all := controller.ElectPreferred, in.Topics == nil
	if in.Version >= 1 {
		kind = controller.ElectionType(in.ElectionType)
	}
	r := kmsg.NewPtrElectLeadersResponse()
	r.Topics = []kmsg.ElectLeadersResponseTopic{}
	if kind != controller.ElectPreferred && kind != controller.ElectUnclean {
		return unknownElection(in)
	}
	var parts []wire.TopicPartition
	if all {
		for _, t := range b.Metadata.Topics() {
			for _, p := range t.Partitions {
				parts = append(parts, wire.TopicPartition{Topic: t.Name, Partition: p.Index})
			}
		}
	}
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			parts = append(parts, wire.TopicPartition{Topic: t.Topic, Partition: p})
		}
	}
	outcomes, err := b.Services.ElectLeaders(ctx, kind, parts)
	if err != nil {
		outcomes = outcomes[:0]
		for _, tp := range parts {
			outcomes = append(outcomes, controller.PartitionError{TopicPartition: tp, Err: err})
		}
	}
	b.waitForElected(ctx, in.TimeoutMillis, outcomes)
	var by group[kmsg.ElectLeadersResponseTopicPartition]
	for _, o := range outcomes {
		if all && errors.Is(o.Err, wire.ElectionNotNeeded) {
			continue // only those that something was done about
		}
		p := kmsg.NewElectLeadersResponseTopicPartition()
		p.Partition = o.Partition
		if refused := b.refusal("electing a leader", o.Err); refused != nil {
			p.ErrorCode, p.ErrorMessage = int16(refused.Code), text(refused.Message)
		}
		by.add(o.Topic, p)
	}
	for i, name := range by.names {
		t := kmsg.NewElectLeadersResponseTopic()
		t.Topic, t.Partitions = name, by.topics[i]
		r.Topics = append(r.Topics, t)
	}
	return r
}

// unknownElection answers as Kafka does when it fails to read the request's
// election type: with an unexpected error for the whole and for each partition.
func unknownElection(in *kmsg.ElectLeadersRequest) *kmsg.ElectLeadersResponse {
	r := kmsg.NewPtrElectLeadersResponse()
	r.ErrorCode = int16(wire.UnknownServerError)
	r.Topics = []kmsg.ElectLeadersResponseTopic{}
	for _, t := range in.Topics {
		to := kmsg.NewElectLeadersResponseTopic()
		to.Topic = t.Topic
		for _, index := range t.Partitions {
			p := kmsg.NewElectLeadersResponseTopicPartition()
			p.Partition, p.ErrorCode = index, int16(wire.UnknownServerError)
			to.Partitions = append(to.Partitions, p)
		}
		r.Topics = append(r.Topics, to)
	}
	return r
}

// waitForElected waits until the metadata shows a live leader wherever one was
// elected; where it does not in time, that becomes REQUEST_TIMED_OUT.
func (b *Broker) waitForElected(ctx context.Context, timeoutMillis int32, outcomes []controller.PartitionError) {
	ctx, cancel := context.WithTimeout(ctx, timeoutOf(timeoutMillis))
	defer cancel()
	led := func(tp wire.TopicPartition) bool {
		p := b.Metadata.Partition(tp.Topic, tp.Partition)
		return p != nil && p.Leader >= 0
	}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Err == nil && !b.Metadata.WaitFor(func() bool { return led(o.TopicPartition) }, ctx.Done()) {
			o.Err = &Error{Code: wire.RequestTimedOut}
		}
	}
}
