package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"barnabas/internal/controller"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 37, Name: "CreatePartitions", Min: 0, Max: 3, MaxFrame: 64 << 20, Expansion: 24,
	Versions: []string{
		"grow a topic to a number of partitions (KIP-195)",
		"throttled after the answer (KIP-219)",
		"flexible",
		"THROTTLING_QUOTA_EXCEEDED (KIP-599)",
	},
	Handle: handleCreatePartitions,
})

func handleCreatePartitions(b *Broker, q *Request) {
	in := new(kmsg.CreatePartitionsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	if !b.Controller.IsActive() {
		r := kmsg.NewPtrCreatePartitionsResponse()
		for _, t := range in.Topics {
			r.Topics = append(r.Topics, partitionsResult(t.Topic, refuse(wire.NotController, "")))
		}
		q.Reply(r)
		return
	}
	b.patience(q, func(ctx, waiting context.Context) { q.Reply(b.growTopics(b.reach(ctx, in.TimeoutMillis), waiting, in)) })
}

func partitionsResult(topic string, e *Error) kmsg.CreatePartitionsResponseTopic {
	t := kmsg.NewCreatePartitionsResponseTopic()
	t.Topic = topic
	if e != nil {
		t.ErrorCode, t.ErrorMessage = int16(e.Code), text(e.Message)
	}
	return t
}

func (b *Broker) growTopics(ctx, waiting context.Context, in *kmsg.CreatePartitionsRequest) *kmsg.CreatePartitionsResponse {
	times := map[string]int{}
	for _, t := range in.Topics {
		times[t.Topic]++
	}
	failed := map[string]*Error{}
	grown := map[string]int{}
	for _, t := range in.Topics {
		if times[t.Topic] > 1 {
			continue
		}
		if err := b.growTopic(ctx, t, in.ValidateOnly); err != nil {
			failed[t.Topic] = b.refusal("adding partitions to topic "+t.Topic, err)
		} else if !in.ValidateOnly {
			grown[t.Topic] = int(t.Count)
		}
	}
	done := map[string]bool{}
	if in.TimeoutMillis > 0 {
		done = b.waitForLeaders(waiting, time.Duration(in.TimeoutMillis)*time.Millisecond, grown)
	}
	r := kmsg.NewPtrCreatePartitionsResponse()
	var twice []kmsg.CreatePartitionsResponseTopic
	for _, t := range in.Topics {
		switch _, waited := grown[t.Topic]; {
		case times[t.Topic] > 1:
			twice = append(twice, partitionsResult(t.Topic, refuse(wire.InvalidRequest, "Duplicate topic in request.")))
			times[t.Topic] = -1 // said once
		case times[t.Topic] < 0:
		case waited && !done[t.Topic]:
			r.Topics = append(r.Topics, partitionsResult(t.Topic, refuse(wire.RequestTimedOut, "")))
		default:
			r.Topics = append(r.Topics, partitionsResult(t.Topic, failed[t.Topic]))
		}
	}
	r.Topics = append(r.Topics, twice...)
	return r
}

// growTopic adds partitions, checked as in ZkAdminManager.createPartitions.
func (b *Broker) growTopic(ctx context.Context, t kmsg.CreatePartitionsRequestTopic, validateOnly bool) error {
	unknown := refuse(wire.UnknownTopicOrPartition, "The topic '"+t.Topic+"' does not exist.")
	if badTopicName(t.Topic) != "" {
		return unknown
	}
	if _, deleting, err := b.ZooKeeper.Exists(ctx, znode.DeleteTopicPath(t.Topic)); err != nil {
		return err
	} else if deleting {
		return refuse(wire.InvalidTopicException, "The topic is queued for deletion.")
	}
	data, _, err := b.ZooKeeper.Get(ctx, znode.TopicPath(t.Topic))
	if errors.Is(err, jute.ErrNoNode) {
		return unknown
	}
	if err != nil {
		return err
	}
	topic, err := znode.DecodeTopic(data)
	if err != nil {
		return fmt.Errorf("%s: %w", znode.TopicPath(t.Topic), err)
	}
	if len(topic.Partitions) == 0 {
		return unknown
	}
	for _, a := range topic.Partitions {
		if len(a.Adding)+len(a.Removing) > 0 {
			return refuse(wire.ReassignmentInProgress, "A partition reassignment is in progress for the topic '"+t.Topic+"'.")
		}
	}
	added, err := b.planGrowth(t, topic)
	if err != nil || validateOnly {
		return err
	}
	if err := b.Controller.CreatePartitions(ctx, t.Topic, len(topic.Partitions), added); err != nil {
		return err
	}
	b.Log.Info("added partitions", "topic", t.Topic, "partitions", t.Count)
	return nil
}

func (b *Broker) planGrowth(t kmsg.CreatePartitionsRequestTopic, topic znode.Topic) ([][]int32, error) {
	old := len(topic.Partitions)
	grow := int(t.Count) - old
	switch {
	case grow < 0:
		return nil, refuse(wire.InvalidPartitions, fmt.Sprintf("Topic currently has %d partitions, which is higher than the requested %d.", old, t.Count))
	case grow == 0:
		return nil, refuse(wire.InvalidPartitions, fmt.Sprintf("Topic already has %d partitions.", old))
	case t.Count > maxPartitions:
		return nil, refuse(wire.InvalidPartitions, fmt.Sprintf("Number of partitions must not be larger than %d.", maxPartitions))
	}
	first, ok := topic.Partitions[0]
	if !ok || len(first.Replicas) == 0 {
		return nil, refuse(wire.UnknownServerError, "Unexpected existing replica assignment for topic '"+t.Topic+"', partition id 0 is missing.")
	}
	brokers := b.liveBrokers()
	if t.Assignment == nil {
		start := controller.StartForGrowth(brokers, first.Replicas[0])
		return controller.AssignReplicas(brokers, controller.Placement{
			Partitions: grow, ReplicationFactor: len(first.Replicas), FirstPartition: old, Start: start, Shift: start,
		})
	}
	return checkGrowth(t.Assignment, brokers, old, grow, len(first.Replicas))
}

func checkGrowth(list []kmsg.CreatePartitionsRequestTopicAssignment, brokers []controller.BrokerRack, old, grow, factor int) ([][]int32, error) {
	bad := func(format string, args ...any) ([][]int32, error) {
		return nil, refuse(wire.InvalidReplicaAssignment, fmt.Sprintf(format, args...))
	}
	var unknown []int32
	for _, a := range list {
		for _, id := range a.Replicas {
			known := slices.ContainsFunc(brokers, func(b controller.BrokerRack) bool { return b.ID == id })
			if !known && !slices.Contains(unknown, id) {
				unknown = append(unknown, id)
			}
		}
	}
	if len(unknown) > 0 {
		return bad("Unknown broker(s) in replica assignment: %s.", joinIDs(unknown))
	}
	if len(list) != grow {
		return bad("Increasing the number of partitions by %d but %d assignments provided.", grow, len(list))
	}
	added := make([][]int32, len(list))
	for i, a := range list {
		switch {
		case len(a.Replicas) == 0:
			return bad("Cannot have replication factor of 0 for partition id %d.", old+i)
		case duplicates(a.Replicas):
			return bad("Duplicate brokers not allowed in replica assignment: %s for partition id %d.", joinIDs(a.Replicas), old+i)
		}
		added[i] = a.Replicas
	}
	for i, replicas := range added {
		if len(replicas) != factor {
			return bad("Inconsistent replication factor between partitions, partition 0 has %d while partition %d has %d.", factor, old+i, len(replicas))
		}
	}
	return added, nil
}
