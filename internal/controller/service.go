package controller

import (
	"context"
	"errors"

	"barnabas/internal/config"
	"barnabas/internal/controller/core"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Error is a refusal of one of the controller's services: a code of Kafka's
// protocol and the text for the response's message. errors.Is(err,
// wire.NotController) and the like work.
type Error struct {
	Code    wire.Code
	Message string
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the code.
func (e *Error) Unwrap() error { return e.Code }

var (
	errNotController = &Error{wire.NotController, "This is not the correct controller for this cluster."}
	errNoAnswer      = errors.New("controller: the target returned neither an answer nor an error")
)

// NewTopic is a topic to be made. Its name, its configuration and its
// assignment have been checked by the caller.
type NewTopic struct {
	Name       string
	ID         wire.UUID         // zero: one is made, if the inter-broker protocol version has ids (2.8-IV0)
	Config     map[string]string // overrides, written to /config/topics
	Assignment [][]int32         // replicas of partition 0, 1, ...; the first replica is the preferred one
}

// call asks the core and waits for its answer. The error is NOT_CONTROLLER, or
// ctx's; the work is then perhaps still being done.
func call[T any](ctx context.Context, c *Controller, request any) (answer T, err error) {
	if !c.IsActive() {
		return answer, errNotController
	}
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	ch := make(chan any, 1)
	c.mu.Lock()
	c.mu.lastCall++
	id := c.mu.lastCall
	c.mu.waiting[id] = ch
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.mu.waiting, id)
		c.mu.Unlock()
	}()
	if !c.push(core.Call{ID: id, Request: request}) {
		return answer, errNotController
	}
	select {
	case result := <-ch:
		answer, ok := result.(T)
		if !ok {
			return answer, errNotController // the term ended first
		}
		return answer, nil
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

func (c *Controller) answer(id uint64, result any) {
	c.mu.Lock()
	ch := c.mu.waiting[id]
	delete(c.mu.waiting, id)
	c.mu.Unlock()
	if ch != nil {
		ch <- result
	}
}

// answerAll lets go of the callers when the loop has ended.
func (c *Controller) answerAll() {
	c.mu.Lock()
	waiting := c.mu.waiting
	c.mu.waiting = map[uint64]chan<- any{}
	c.mu.Unlock()
	for _, ch := range waiting {
		ch <- nil
	}
}

func refusalError(r core.Refusal) error {
	if r.Code == wire.None {
		return nil
	}
	return &Error{r.Code, r.Message}
}

// refusals are the errors of n items, all err if there is one.
func refusals(list []core.Refusal, n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		if err != nil {
			errs[i] = err
		} else {
			errs[i] = refusalError(list[i])
		}
	}
	return errs
}

func partitionErrors(list []core.PartitionRefusal) []PartitionError {
	out := make([]PartitionError, len(list))
	for i, r := range list {
		out[i] = PartitionError{r.TopicPartition, refusalError(r.Refusal)}
	}
	return out
}

// CreateTopics makes topics: in each, the configuration and the topic node and,
// on the active controller, the partition states too, in one transaction. It
// returns an error per topic, nil where the znodes are written; that brokers
// know of the topic is a matter of their metadata. TOPIC_ALREADY_EXISTS is
// answered from the znode, not from a cache.
//
// If the term ends meanwhile the error is NOT_CONTROLLER, and the topics may
// have been made. A broker that is not the active controller writes the configuration and the
// topic node alone, as Kafka does for automatic creation; the CreateTopics API
// must check IsActive first.
func (c *Controller) CreateTopics(ctx context.Context, topics []NewTopic) []error {
	if !c.IsActive() {
		return c.createNodes(ctx, topics)
	}
	wanted := make([]core.NewTopic, len(topics))
	for i, t := range topics {
		wanted[i] = core.NewTopic(t)
	}
	list, err := call[[]core.Refusal](ctx, c, core.CreateTopics{Topics: wanted})
	return refusals(list, len(topics), err)
}

// createNodes writes configurations and topic nodes; the active controller,
// which watches them, does the rest.
func (c *Controller) createNodes(ctx context.Context, topics []NewTopic) []error {
	errs := make([]error, len(topics))
	for i, t := range topics {
		n := znode.Topic{Version: 3, ID: t.ID, Partitions: map[int32]znode.Assignment{}}
		if n.ID.IsZero() && c.opts.IBP >= config.V2_8IV0 {
			n.ID = c.opts.NewTopicID()
		}
		for p, replicas := range t.Assignment {
			n.Partitions[int32(p)] = znode.Assignment{Replicas: replicas}
		}
		errs[i] = c.createNode(ctx, t.Name, n, znode.EncodeConfig(t.Config))
	}
	return errs
}

// createNode makes a topic's two nodes at once, setting a leftover
// configuration.
func (c *Controller) createNode(ctx context.Context, name string, n znode.Topic, overrides []byte) error {
	zk, path := c.opts.ZooKeeper, znode.TopicConfig(name).Path()
	overriding := zookeeper.CreateOp(path, overrides, zookeeper.Persistent)
	lost := false
	for {
		_, err := zk.Multi(ctx, overriding, zookeeper.CreateOp(znode.TopicPath(name), n.Encode(), zookeeper.Persistent))
		var multi *zookeeper.MultiError
		switch {
		case errors.Is(err, jute.ErrConnectionLoss):
			lost = true
			if err := zk.WaitConnected(ctx); err != nil {
				return err
			}
			continue
		case !errors.As(err, &multi) || multi.Err != jute.ErrNodeExists:
			return err
		case multi.Index == 0:
			overriding = zookeeper.SetOp(path, overrides, zookeeper.AnyVersion)
			continue
		}
		if lost && !n.ID.IsZero() {
			data, _, err := zk.Get(ctx, znode.TopicPath(name))
			if have, bad := znode.DecodeTopic(data); err == nil && bad == nil && have.ID == n.ID {
				return nil
			}
		}
		return &Error{wire.TopicAlreadyExists, "Topic '" + name + "' already exists."}
	}
}

// CreatePartitions adds partitions to a topic: replicas of the first new
// partition, the second, and so on. from is the number of partitions that the
// caller saw; if it is no longer true the error is INVALID_PARTITIONS.
func (c *Controller) CreatePartitions(ctx context.Context, topic string, from int, added [][]int32) error {
	r, err := call[core.Refusal](ctx, c, core.CreatePartitions{Topic: topic, From: from, Added: added})
	if err != nil {
		return err
	}
	return refusalError(r)
}

// DeleteTopics queues topics for deletion (a node under /admin/delete_topics)
// and returns an error per topic. Active controller only.
func (c *Controller) DeleteTopics(ctx context.Context, topics []string) []error {
	list, err := call[[]core.Refusal](ctx, c, core.DeleteTopics{Topics: topics})
	return refusals(list, len(topics), err)
}

// ElectionType is that of ElectLeaders (KIP-460).
type ElectionType int8

// The election types.
const (
	ElectPreferred ElectionType = 0
	ElectUnclean   ElectionType = 1
)

// PartitionError is the outcome for one partition; Err is nil, or an *Error.
type PartitionError struct {
	wire.TopicPartition
	Err error
}

// ElectLeaders elects leaders of the partitions, or of all when parts is nil.
// Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION (queued for
// deletion), ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
// ELIGIBLE_LEADERS_NOT_AVAILABLE. The error is NOT_CONTROLLER.
func (c *Controller) ElectLeaders(ctx context.Context, t ElectionType, parts []wire.TopicPartition) ([]PartitionError, error) {
	list, err := call[[]core.PartitionRefusal](ctx, c, core.ElectLeaders{Unclean: t == ElectUnclean, Partitions: parts})
	return partitionErrors(list), err
}

// Reassignment asks for new replicas of a partition (KIP-455); nil Replicas
// cancel what is in progress.
type Reassignment struct {
	wire.TopicPartition
	Replicas []int32
}

// Reassign starts, supersedes or cancels reassignments. Errors of a partition:
// UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT,
// NO_REASSIGNMENT_IN_PROGRESS.
func (c *Controller) Reassign(ctx context.Context, parts []Reassignment) ([]PartitionError, error) {
	wishes := make([]core.Reassignment, len(parts))
	for i, p := range parts {
		wishes[i] = core.Reassignment(p)
	}
	list, err := call[[]core.PartitionRefusal](ctx, c, core.Reassign{Partitions: wishes})
	return partitionErrors(list), err
}

// OngoingReassignment is a reassignment in progress. Replicas holds the target
// and those being removed.
type OngoingReassignment struct {
	wire.TopicPartition
	Replicas, Adding, Removing []int32
}

// ListReassignments returns what is in progress among parts (nil: everywhere),
// ordered by topic and partition.
func (c *Controller) ListReassignments(ctx context.Context, parts []wire.TopicPartition) ([]OngoingReassignment, error) {
	list, err := call[[]core.Ongoing](ctx, c, core.ListReassignments{Partitions: parts})
	out := make([]OngoingReassignment, len(list))
	for i, o := range list {
		out[i] = OngoingReassignment(o)
	}
	return out, err
}

// ControlledShutdown moves leadership away from a broker and takes it out of
// the ISRs, and returns the partitions that it still leads. epoch is the
// broker's epoch, -1 unchecked. Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH,
// BROKER_NOT_AVAILABLE.
func (c *Controller) ControlledShutdown(ctx context.Context, brokerID int32, epoch int64) ([]wire.TopicPartition, error) {
	r, err := call[core.ShutdownResult](ctx, c, core.ControlledShutdown{Broker: brokerID, Epoch: epoch})
	if err != nil {
		return nil, err
	}
	return r.Remaining, refusalError(r.Refusal)
}

// AlterPartition answers a leader's wish to change an ISR (KIP-497). The
// response has the request's version; errors are inside it.
func (c *Controller) AlterPartition(ctx context.Context, req *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse {
	resp, err := call[*kmsg.AlterPartitionResponse](ctx, c, core.AlterPartition{Request: req})
	if err != nil {
		resp = req.ResponseKind().(*kmsg.AlterPartitionResponse)
		resp.ErrorCode = int16(wire.NotController)
	}
	return resp
}

// AllocateProducerIDs hands out a block of producer ids (KIP-730, inter-broker
// protocol version 3.0 and later): the first and how many. Errors:
// NOT_CONTROLLER, BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH.
func (c *Controller) AllocateProducerIDs(ctx context.Context, brokerID int32, epoch int64) (start int64, count int32, err error) {
	r, err := call[core.ProducerIDs](ctx, c, core.AllocateProducerIDs{Broker: brokerID, Epoch: epoch})
	if err != nil {
		return 0, 0, err
	}
	return r.Start, r.Count, refusalError(r.Refusal)
}

// TopicsQueuedForDeletion returns the topics whose deletion is not complete, in
// order. Active controller only.
func (c *Controller) TopicsQueuedForDeletion(ctx context.Context) ([]string, error) {
	return call[[]string](ctx, c, core.QueuedForDeletion{})
}

// Why says in sentences what keeps a topic from its wanted state: deletion,
// reassignment, election. Empty: nothing does.
func (c *Controller) Why(ctx context.Context, topic string) ([]string, error) {
	return call[[]string](ctx, c, core.Why{Topic: topic})
}

// TopicConfigChanged tells the controller that a topic's overrides changed; it
// tries an unclean election where that became allowed. Harmless when this
// broker is not active.
func (c *Controller) TopicConfigChanged(topic string) { c.push(core.TopicConfigChanged{Topic: topic}) }

// SetUncleanElection sets the broker-wide unclean.leader.election.enable, which
// may change without restart.
func (c *Controller) SetUncleanElection(enable bool) { c.push(core.UncleanElection{Enable: enable}) }
