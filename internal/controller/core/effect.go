package core

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Effect is something to be done by the caller of Step, in the order given.
type Effect interface {
	fmt.Stringer
	effect()
}

// Tag names a set of reads or writes; its results carry it back.
type Tag uint64

// ReadKind is what a Read asks for.
type ReadKind int8

// The kinds of reads.
const (
	ReadData ReadKind = iota
	ReadChildren
	ReadExists
)

// Read is one read of ZooKeeper. Watch leaves a one-shot watch of the kind that
// ZooKeeper has for it.
type Read struct {
	Kind  ReadKind
	Path  string
	Watch bool
}

// Reads are independent reads, to be pipelined; the answer is one ReadsDone.
type Reads struct {
	Tag Tag
	Ops []Read
}

// OpKind is what an Op does.
type OpKind int8

// The kinds of writes.
const (
	OpCreate OpKind = iota // a persistent node
	OpSet
	OpDelete
)

// Op is one write. Version is the expected data version, -1 for any; for
// OpCreate it has no meaning.
type Op struct {
	Kind    OpKind
	Path    string
	Data    []byte
	Version int32
}

// Unit is a group of writes that happen together or not at all.
type Unit []Op

// Writes are to be carried out in order, in transactions of as many units as
// fit, each with the check of /controller_epoch. A unit that fails must not
// keep the others from being done. The answer is one WritesDone.
type Writes struct {
	Tag   Tag
	Units []Unit
}

// Connect opens the way to a broker, which stays until Disconnect.
type Connect struct {
	Broker    int32
	Epoch     int64
	Endpoints []znode.Endpoint
}

// Disconnect drops the way to a broker and what waits on it.
type Disconnect struct{ Broker int32 }

// Send is a request to a broker, after those sent before: a
// LeaderAndISRRequest, UpdateMetadataRequest or StopReplicaRequest. The answer
// is one Answered, if the broker answers.
type Send struct {
	Broker  int32
	Request kmsg.Request
}

// Reply is the answer to a Call.
type Reply struct {
	Call   uint64
	Result any
}

// Log is a line for the operator.
type Log struct {
	Level slog.Level
	Text  string
}

// Alarm asks for a Tick at a time; it replaces the alarm before.
type Alarm struct{ At time.Time }

// Resign ends the term. The machine is empty from then on; Calls that waited
// have been answered with nil results.
type Resign struct{ Reason string }

func (Reads) effect()      {}
func (Writes) effect()     {}
func (Connect) effect()    {}
func (Disconnect) effect() {}
func (Send) effect()       {}
func (Reply) effect()      {}
func (Log) effect()        {}
func (Alarm) effect()      {}
func (Resign) effect()     {}

// String returns a short form of r, as in traces.
func (r Read) String() string {
	s := [...]string{"data ", "children ", "exists "}[r.Kind] + r.Path
	if r.Watch {
		s += " watch"
	}
	return s
}

func (r Reads) String() string {
	var b strings.Builder
	b.WriteString("read")
	for _, op := range r.Ops {
		b.WriteString("\n  " + op.String())
	}
	return b.String()
}

// String returns a short form of o, as in traces.
func (o Op) String() string {
	switch o.Kind {
	case OpCreate:
		return strings.TrimSpace(fmt.Sprintf("create %s %s", o.Path, o.Data))
	case OpSet:
		return fmt.Sprintf("set %s v%d %s", o.Path, o.Version, o.Data)
	}
	return fmt.Sprintf("delete %s", o.Path)
}

func (w Writes) String() string {
	var b strings.Builder
	b.WriteString("write")
	for _, u := range w.Units {
		for i, op := range u {
			mark := "\n  - "
			if i > 0 {
				mark = "\n    "
			}
			b.WriteString(mark + op.String())
		}
	}
	return b.String()
}

func (c Connect) String() string {
	return fmt.Sprintf("connect %d epoch %d %v", c.Broker, c.Epoch, c.Endpoints)
}
func (d Disconnect) String() string { return fmt.Sprintf("disconnect %d", d.Broker) }
func (s Send) String() string {
	return fmt.Sprintf("send %d %s", s.Broker, requestString(s.Request))
}
func (r Reply) String() string  { return fmt.Sprintf("reply %d %+v", r.Call, r.Result) }
func (l Log) String() string    { return fmt.Sprintf("log %s %s", l.Level, l.Text) }
func (a Alarm) String() string  { return fmt.Sprintf("alarm %s", a.At.UTC().Format("15:04:05")) }
func (r Resign) String() string { return "resign: " + r.Reason }

// requestString is a request in one line for each partition.
func requestString(r kmsg.Request) string {
	var b strings.Builder
	switch r := r.(type) {
	case *kmsg.LeaderAndISRRequest:
		fmt.Fprintf(&b, "LeaderAndIsr v%d epoch %d", r.Version, r.BrokerEpoch)
		for _, t := range r.TopicStates {
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, "\n  %s-%d leader %d epoch %d isr %v version %d replicas %v", t.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.ZKVersion, p.Replicas)
				if len(p.AddingReplicas)+len(p.RemovingReplicas) > 0 {
					fmt.Fprintf(&b, " adding %v removing %v", p.AddingReplicas, p.RemovingReplicas)
				}
				if p.IsNew {
					b.WriteString(" new")
				}
				if p.LeaderRecoveryState != 0 {
					b.WriteString(" recovering")
				}
			}
		}
	case *kmsg.UpdateMetadataRequest:
		fmt.Fprintf(&b, "UpdateMetadata v%d epoch %d brokers", r.Version, r.BrokerEpoch)
		for _, l := range r.LiveBrokers {
			fmt.Fprintf(&b, " %d", l.ID)
		}
		for _, t := range r.TopicStates {
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, "\n  %s-%d leader %d epoch %d isr %v version %d replicas %v offline %v", t.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.ZKVersion, p.Replicas, p.OfflineReplicas)
			}
		}
	case *kmsg.StopReplicaRequest:
		fmt.Fprintf(&b, "StopReplica v%d epoch %d", r.Version, r.BrokerEpoch)
		for _, t := range r.Topics {
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, "\n  %s-%d epoch %d delete %t", t.Topic, p.Partition, p.LeaderEpoch, p.Delete)
			}
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, "\n  %s-%d delete %t", t.Topic, p, r.DeletePartitions)
			}
		}
	}
	return b.String()
}
