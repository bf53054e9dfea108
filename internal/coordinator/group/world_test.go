package group

import (
	"bytes"
	"fmt"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/script"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// world runs one machine by scripts.
type world struct {
	script.World[*Machine]
	c      Config
	topics map[string]int32 // by name, how many partitions
	came   uint64
}

func newWorld() *world {
	w := &world{c: testConfig(), topics: map[string]int32{"t": 4}, came: 1}
	w.c.Topic, w.c.TopicName = w.topic, w.topicName
	w.c.TopicsCame = func() uint64 { return w.came }
	w.c.Topics = func(f func(string) bool) {
		for name := range w.topics {
			if !f(name) {
				return
			}
		}
	}
	w.Make = func() *Machine { return New(w.c) }
	w.Record, w.Command = showRecord, w.command
	w.Reply = func(r coordinator.Reply) string { return fmt.Sprintf("%v <- %s", r.To, showReply(r.Response)) }
	w.Start()
	return w
}

// client is a Caller by name.
type client string

func (client) Answer(any)     {}
func (client) Fail(wire.Code) {}

func showRecord(r coordinator.Record) string {
	k, err := decodeKey(r.Key)
	if err != nil {
		return err.Error()
	}
	if isConsumerKey(k.version) {
		return showConsumerRecord(k, r)
	}
	name := k.group
	if k.offset {
		name = fmt.Sprintf("%s %s-%d", k.group, k.topic, k.index)
	}
	switch {
	case r.Value == nil:
		return name + " deleted"
	case k.offset:
		o, _ := decodeOffset(r.Value)
		return fmt.Sprintf("%s = %d%q", name, o.offset, o.metadata)
	}
	s, _ := decodeGroup(r.Value)
	text := fmt.Sprintf("%s generation=%d protocol=%q leader=%q", name, s.generation, s.protocol, s.leader)
	for _, m := range s.members {
		text += fmt.Sprintf(" %s=%q", m.id, m.assignment)
	}
	return text
}

func code(c int16) string {
	if c == 0 {
		return "ok"
	}
	return wire.Code(c).String()
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func showReply(response any) string {
	switch r := response.(type) {
	case *kmsg.JoinGroupResponse:
		if r.ErrorCode != 0 {
			return fmt.Sprintf("join %s member=%q", code(r.ErrorCode), r.MemberID)
		}
		text := fmt.Sprintf("join member=%s generation=%d protocol=%s leader=%s", r.MemberID, r.Generation, deref(r.Protocol), r.LeaderID)
		if r.SkipAssignment {
			text += " skip"
		}
		if len(r.Members) > 0 {
			text += " members:"
		}
		for _, m := range r.Members {
			text += " " + m.MemberID
		}
		return text
	case *kmsg.SyncGroupResponse:
		var a kmsg.ConsumerMemberAssignment
		if a.ReadFrom(r.MemberAssignment) == nil && len(a.Topics) > 0 {
			return fmt.Sprintf("sync %s %v", code(r.ErrorCode), a.Topics)
		}
		return fmt.Sprintf("sync %s %q", code(r.ErrorCode), r.MemberAssignment)
	case *kmsg.HeartbeatResponse:
		return "heartbeat " + code(r.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		text := "leave " + code(r.ErrorCode)
		for _, m := range r.Members {
			text += fmt.Sprintf(" %s%s:%s", m.MemberID, deref(m.InstanceID), code(m.ErrorCode))
		}
		return text
	case *Commit:
		text := "commit"
		for _, o := range r.Offsets {
			text += fmt.Sprintf(" %s-%d:%s", o.Topic, o.Partition, code(int16(o.Code)))
		}
		return text
	case *kmsg.OffsetFetchResponseGroup:
		text := "offsets"
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				text += fmt.Sprintf(" %s-%d=%d%q", t.Topic, p.Partition, p.Offset, deref(p.Metadata))
				if p.ErrorCode != 0 {
					text += ":" + code(p.ErrorCode)
				}
			}
		}
		return text
	case *kmsg.OffsetDeleteResponse:
		text := "delete offsets " + code(r.ErrorCode)
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				text += fmt.Sprintf(" %s-%d:%s", t.Topic, p.Partition, code(p.ErrorCode))
			}
		}
		return text
	case *kmsg.DescribeGroupsResponseGroup:
		text := fmt.Sprintf("%s %s type=%q protocol=%q", r.Group, r.State, r.ProtocolType, r.Protocol)
		for _, m := range r.Members {
			text += fmt.Sprintf(" %s(%s %s)=%q", m.MemberID, m.ClientID, m.ClientHost, bytes.ToValidUTF8(m.MemberAssignment, []byte("?")))
		}
		return text
	case []kmsg.ListGroupsResponseGroup:
		text := "groups"
		for _, g := range r {
			text += fmt.Sprintf(" %s/%s/%s/%s", g.Group, g.ProtocolType, g.GroupState, g.GroupType)
		}
		return text
	case *kmsg.ConsumerGroupHeartbeatResponse:
		return showHeartbeat(r)
	case *kmsg.ConsumerGroupDescribeResponseGroup:
		return showConsumers(r)
	case wire.Code:
		return "delete " + code(int16(r))
	default:
		return fmt.Sprintf("%v", response)
	}
}
