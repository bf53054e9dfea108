package controller

import (
	"context"

	"barnabas/internal/wire"

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

// NewTopic is a topic to be made. Its name, its configuration and its
// assignment have been checked by the caller.
type NewTopic struct {
	Name       string
	ID         wire.UUID         // zero: one is made, if the inter-broker protocol version has ids (2.8-IV0)
	Config     map[string]string // overrides, written to /config/topics
	Assignment [][]int32         // replicas of partition 0, 1, ...; the first replica is the preferred one
}

// CreateTopics makes topics: in each, the configuration and the topic node and,
// on the active controller, the partition states too, in one transaction. It
// returns an error per topic, nil where the znodes are written; that brokers
// know of the topic is a matter of their metadata. TOPIC_ALREADY_EXISTS is
// answered from the znode, not from a cache.
//
// A broker that is not the active controller writes the configuration and the
// topic node alone, as Kafka does for automatic creation; the CreateTopics API
// must check IsActive first.
func (c *Controller) CreateTopics(ctx context.Context, topics []NewTopic) []error { return nil }

// CreatePartitions adds partitions to a topic: replicas of the first new
// partition, the second, and so on. from is the number of partitions that the
// caller saw; if it is no longer true the error is INVALID_PARTITIONS.
func (c *Controller) CreatePartitions(ctx context.Context, topic string, from int, added [][]int32) error {
	return nil
}

// DeleteTopics queues topics for deletion (a node under /admin/delete_topics)
// and returns an error per topic. Active controller only.
func (c *Controller) DeleteTopics(ctx context.Context, topics []string) []error { return nil }

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
	return nil, nil
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
	return nil, nil
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
	return nil, nil
}

// ControlledShutdown moves leadership away from a broker and takes it out of
// the ISRs, and returns the partitions that it still leads. epoch is the
// broker's epoch, -1 unchecked. Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH,
// BROKER_NOT_AVAILABLE.
func (c *Controller) ControlledShutdown(ctx context.Context, brokerID int32, epoch int64) ([]wire.TopicPartition, error) {
	return nil, nil
}

// AlterPartition answers a leader's wish to change an ISR (KIP-497). The
// response has the request's version; errors are inside it.
func (c *Controller) AlterPartition(ctx context.Context, req *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse {
	return nil
}

// AllocateProducerIDs hands out a block of producer ids (KIP-730, inter-broker
// protocol version 3.0 and later): the first and how many. Errors:
// NOT_CONTROLLER, BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH.
func (c *Controller) AllocateProducerIDs(ctx context.Context, brokerID int32, epoch int64) (start int64, count int32, err error) {
	return 0, 0, nil
}

// TopicsQueuedForDeletion returns the topics whose deletion is not complete, in
// order. Active controller only.
func (c *Controller) TopicsQueuedForDeletion(ctx context.Context) ([]string, error) { return nil, nil }

// Why says in sentences what keeps a topic from its wanted state: deletion,
// reassignment, election. Empty: nothing does.
func (c *Controller) Why(ctx context.Context, topic string) ([]string, error) { return nil, nil }

// TopicConfigChanged tells the controller that a topic's overrides changed; it
// tries an unclean election where that became allowed. Harmless when this
// broker is not active.
func (c *Controller) TopicConfigChanged(topic string) {}

// SetUncleanElection sets the broker-wide unclean.leader.election.enable, which
// may change without restart.
func (c *Controller) SetUncleanElection(enable bool) {}
