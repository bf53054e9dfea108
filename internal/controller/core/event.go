package core

import (
	"barnabas/internal/jute"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Event is something that happened. Events are handled in the order in which
// they are given to Step.
type Event interface{ event() }

// Elected begins a term: /controller names this broker and /controller_epoch
// holds Epoch.
type Elected struct{ Epoch int32 }

// Changed tells that the watch on Path fired.
type Changed struct{ Path string }

// ReadResult answers one Read. Data and Children belong to the machine.
type ReadResult struct {
	Data     []byte
	Children []string
	Stat     jute.Stat
	Err      jute.Error // OK or ErrNoNode and the like; for ReadExists too
}

// ReadsDone answers Reads, result by result.
type ReadsDone struct {
	Tag     Tag
	Results []ReadResult
}

// UnitResult answers one Unit: OK, or the error of the op at index Op. Version
// is the data version after the unit's last set, when there was one.
type UnitResult struct {
	Err     jute.Error
	Op      int
	Version int32
}

// WritesDone answers Writes, unit by unit. Moved tells that the check of
// /controller_epoch failed: the term is over and Results do not count.
type WritesDone struct {
	Tag     Tag
	Results []UnitResult
	Moved   bool
}

// Answered is a broker's answer to a Send.
type Answered struct {
	Broker   int32
	Epoch    int64 // of the broker when the request was made
	Request  kmsg.Request
	Response kmsg.Response
}

// Identified tells that the broker of a Connect is Barnabas, of a release that
// moves logs of older topics aside. Of this broker it is known, others are none
// until then.
type Identified struct {
	Broker int32
	Epoch  int64
}

// Tick tells that the time of the last Alarm has come.
type Tick struct{}

// Call is a request of one of the services; the answer is one Reply with the
// same number. See the types of Request for the types of their results.
type Call struct {
	ID      uint64
	Request any
}

// TopicConfigChanged tells that the overrides of a topic changed.
type TopicConfigChanged struct{ Topic string }

// UncleanElection sets unclean.leader.election.enable of the broker.
type UncleanElection struct{ Enable bool }

func (Elected) event()            {}
func (Changed) event()            {}
func (ReadsDone) event()          {}
func (WritesDone) event()         {}
func (Answered) event()           {}
func (Identified) event()         {}
func (Tick) event()               {}
func (Call) event()               {}
func (TopicConfigChanged) event() {}
func (UncleanElection) event()    {}

// Refusal is why a service did not do something for a topic or a partition. The
// zero Refusal is none.
type Refusal struct {
	Code    wire.Code
	Message string
}

// NewTopic is a topic to be made by CreateTopics.
type NewTopic struct {
	Name       string
	ID         wire.UUID // zero: one is made when the cluster has ids
	Config     map[string]string
	Assignment [][]int32
}

// CreateTopics is a Call; its result is []Refusal, one a topic.
type CreateTopics struct{ Topics []NewTopic }

// CreatePartitions is a Call; its result is a Refusal.
type CreatePartitions struct {
	Topic string
	From  int
	Added [][]int32

	retried bool
}

// DeleteTopics is a Call; its result is []Refusal, one a topic.
type DeleteTopics struct{ Topics []string }

// PartitionRefusal is the outcome for one partition.
type PartitionRefusal struct {
	wire.TopicPartition
	Refusal
}

// ElectLeaders is a Call; its result is []PartitionRefusal. Nil Partitions are
// all.
type ElectLeaders struct {
	Unclean    bool
	Partitions []wire.TopicPartition
}

// Reassignment is a wish for a partition; nil Replicas cancel.
type Reassignment struct {
	wire.TopicPartition
	Replicas []int32
}

// Reassign is a Call; its result is []PartitionRefusal.
type Reassign struct{ Partitions []Reassignment }

// Ongoing is a reassignment in progress.
type Ongoing struct {
	wire.TopicPartition
	Replicas, Adding, Removing []int32
}

// ListReassignments is a Call; its result is []Ongoing. Nil Partitions are all.
type ListReassignments struct{ Partitions []wire.TopicPartition }

// ControlledShutdown is a Call; its result is a ShutdownResult.
type ControlledShutdown struct {
	Broker int32
	Epoch  int64 // -1: not checked
}

// ShutdownResult answers ControlledShutdown with what the broker still leads.
type ShutdownResult struct {
	Refusal
	Remaining []wire.TopicPartition
}

// AlterPartition is a Call; its result is a *kmsg.AlterPartitionResponse.
type AlterPartition struct{ Request *kmsg.AlterPartitionRequest }

// AllocateProducerIDs is a Call; its result is a ProducerIDs.
type AllocateProducerIDs struct {
	Broker int32
	Epoch  int64
}

// ProducerIDs answers AllocateProducerIDs.
type ProducerIDs struct {
	Refusal
	Start int64
	Count int32
}

// QueuedForDeletion is a Call; its result is []string.
type QueuedForDeletion struct{}

// Why is a Call; its result is []string.
type Why struct{ Topic string }
