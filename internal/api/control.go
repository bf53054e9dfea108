package api

import (
	"context"
	"errors"
	"time"

	"barnabas/internal/controller"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Controlled is what the active controller tells this broker, over the network
// or, when it runs in this broker, without one.
type Controlled interface {
	LeaderAndISR(context.Context, *kmsg.LeaderAndISRRequest) (*kmsg.LeaderAndISRResponse, error)
	UpdateMetadata(context.Context, *kmsg.UpdateMetadataRequest) (*kmsg.UpdateMetadataResponse, error)
	StopReplica(context.Context, *kmsg.StopReplicaRequest) (*kmsg.StopReplicaResponse, error)
}

// ControllerServices is what other brokers and administrators ask of the active
// controller (*controller.Controller).
type ControllerServices interface {
	ControlledShutdown(ctx context.Context, brokerID int32, epoch int64) ([]wire.TopicPartition, error)
	AlterPartition(context.Context, *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse
	AllocateProducerIDs(ctx context.Context, brokerID int32, epoch int64) (start int64, count int32, err error)
	ElectLeaders(context.Context, controller.ElectionType, []wire.TopicPartition) ([]controller.PartitionError, error)
	Reassign(context.Context, []controller.Reassignment) ([]controller.PartitionError, error)
	ListReassignments(context.Context, []wire.TopicPartition) ([]controller.OngoingReassignment, error)
	Why(ctx context.Context, topic string) ([]string, error)
}

// errNotDone closes the connection of a controller's request that could not be
// carried out; the controller sends it again.
var errNotDone = errors.New("a request of the controller could not be carried out")

// carryOut answers a controller's request with what do returns.
func carryOut[Q kmsg.Request, R kmsg.Response](b *Broker, q *Request, in Q, do func(context.Context, Q) (R, error)) {
	b.background(q, func(ctx context.Context) {
		r, err := do(ctx, in)
		if err != nil {
			q.Fail(errors.Join(errNotDone, err))
			return
		}
		q.Reply(r)
	})
}

// group collects what is said of partitions by topic, topics in the order of
// their first appearance.
type group[P any] struct {
	at     map[string]int
	names  []string
	topics [][]P
}

func (g *group[P]) add(topic string, p P) {
	if g.at == nil {
		g.at = map[string]int{}
	}
	i, ok := g.at[topic]
	if !ok {
		i = len(g.names)
		g.at[topic] = i
		g.names, g.topics = append(g.names, topic), append(g.topics, nil)
	}
	g.topics[i] = append(g.topics[i], p)
}

// timeoutOf is a request's own timeout as a duration, none below zero.
func timeoutOf(millis int32) time.Duration { return time.Duration(max(millis, 0)) * time.Millisecond }
