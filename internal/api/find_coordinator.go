package api

import (
	"context"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 10, Name: "FindCoordinator", Min: 0, Max: 6, MaxFrame: 1 << 20, Expansion: 16,
	Versions: []string{
		"the coordinator of a group (then called ConsumerMetadata)",
		"transactional ids; throttle time and error message",
		"throttled after the answer (KIP-219)",
		"flexible",
		"many keys in one request (KIP-699)",
		"TRANSACTION_ABORTABLE (KIP-890)",
		"share groups (KIP-932), which are refused",
	},
	Handle: handleFindCoordinator,
})

// The kinds of coordinators (FindCoordinatorRequest.CoordinatorType).
const (
	groupCoordinator       = 0
	transactionCoordinator = 1
	shareCoordinator       = 2
)

// coordinatorAnswer is where the coordinator of a key is.
type coordinatorAnswer struct {
	code    wire.Code
	message string
	id      int32
	host    string
	port    int32
}

func noCoordinator(c wire.Code, message string) coordinatorAnswer {
	return coordinatorAnswer{code: c, message: message, id: -1, port: -1}
}

// handleFindCoordinator makes the coordinator's topic when it is asked for the
// first time, and says "not available" until the partition has a leader.
func handleFindCoordinator(b *Broker, q *Request) {
	var in kmsg.FindCoordinatorRequest
	in.Default()
	if !q.Decode(&in) {
		return
	}
	keys := in.CoordinatorKeys
	if q.Version < 4 {
		keys = []string{in.CoordinatorKey}
	}
	var answers []coordinatorAnswer
	create := false
	for _, key := range keys {
		a, missing := b.findCoordinator(q, in.CoordinatorType, key)
		answers = append(answers, a)
		create = create || missing
	}
	if !create {
		replyCoordinators(q, keys, answers)
		return
	}
	b.background(q, func(ctx context.Context) {
		name := OffsetsTopic
		if in.CoordinatorType == transactionCoordinator {
			name = TransactionsTopic
		}
		b.createAutomatically(ctx, []string{name})
		replyCoordinators(q, keys, answers)
	})
}

// findCoordinator returns the answer for one key, and whether the topic behind
// it has to be made.
func (b *Broker) findCoordinator(q *Request, kind int8, key string) (a coordinatorAnswer, missing bool) {
	name := OffsetsTopic
	switch kind {
	case groupCoordinator:
	case transactionCoordinator:
		name = TransactionsTopic
	case shareCoordinator:
		if q.Version < 6 {
			return noCoordinator(wire.InvalidRequest, ""), false
		}
		return noCoordinator(wire.CoordinatorNotAvailable, ""), false
	default:
		return noCoordinator(wire.InvalidRequest, explain(wire.InvalidRequest)), false
	}
	topic := b.Metadata.Topic(name)
	if topic == nil {
		return noCoordinator(wire.CoordinatorNotAvailable, ""), true
	}
	p := topic.Partition(coordinator.PartitionOf(key, len(topic.Partitions)))
	if p == nil || p.Leader < 0 {
		return noCoordinator(wire.CoordinatorNotAvailable, ""), false
	}
	e := b.Metadata.Cluster().Endpoint(p.Leader, q.Conn.Listener)
	if e == nil {
		return noCoordinator(wire.CoordinatorNotAvailable, ""), false
	}
	return coordinatorAnswer{id: p.Leader, host: e.Host, port: e.Port}, false
}

func replyCoordinators(q *Request, keys []string, answers []coordinatorAnswer) {
	r := kmsg.NewPtrFindCoordinatorResponse()
	for i, a := range answers {
		message := a.message
		if q.Version < 4 {
			if message == "" {
				message = explain(a.code) // "NONE" too: so it is in Kafka
			}
			r.ErrorCode, r.ErrorMessage, r.NodeID, r.Host, r.Port = int16(a.code), &message, a.id, a.host, a.port
			break
		}
		r.Coordinators = append(r.Coordinators, kmsg.FindCoordinatorResponseCoordinator{
			Key: keys[i], ErrorCode: int16(a.code), ErrorMessage: &message, NodeID: a.id, Host: a.host, Port: a.port,
		})
	}
	q.Reply(r)
}
