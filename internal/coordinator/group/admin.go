package group

import (
	"maps"
	"slices"
	"strings"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Describe answers one group of a DescribeGroups request. The answer is a
// *kmsg.DescribeGroupsResponseGroup; of a group that is not there it says Dead.
func (m *Machine) Describe(id string, from coordinator.Caller, out *coordinator.Effects) {
	r := kmsg.NewDescribeGroupsResponseGroup()
	r.Group = id
	g := m.groups[id]
	if g == nil || g.consumer != nil { // ConsumerGroupDescribe tells of those
		r.State = "Dead"
		out.Reply(from, &r)
		return
	}
	r.State, r.ProtocolType = g.state.String(), g.protocolType
	if g.state == stable {
		r.Protocol = g.protocol
	}
	for _, member := range g.order {
		d := kmsg.DescribeGroupsResponseGroupMember{
			MemberID: member.id, InstanceID: member.instance, ClientID: member.clientID, ClientHost: member.host,
			ProtocolMetadata: []byte{}, MemberAssignment: []byte{},
		}
		if g.state == stable {
			d.ProtocolMetadata, d.MemberAssignment = notNil(member.metadata(g.protocol)), notNil(member.assignment)
		}
		r.Members = append(r.Members, d)
	}
	out.Reply(from, &r)
}

// listed is what ListGroups tells of a group.
func (g *group) listed() kmsg.ListGroupsResponseGroup {
	if g.consumer != nil {
		return kmsg.ListGroupsResponseGroup{Group: g.id, ProtocolType: consumerType, GroupState: g.consumer.state(), GroupType: "consumer"}
	}
	return kmsg.ListGroupsResponseGroup{Group: g.id, ProtocolType: g.protocolType, GroupState: g.state.String(), GroupType: "classic"}
}

// List answers a ListGroups request with the groups of this machine. The answer
// is a []kmsg.ListGroupsResponseGroup.
func (m *Machine) List(states, types []string, from coordinator.Caller, out *coordinator.Effects) {
	var all []kmsg.ListGroupsResponseGroup
	match := func(filter []string, s string) bool {
		return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, s) })
	}
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		if l := m.groups[id].listed(); match(types, l.GroupType) && match(states, l.GroupState) {
			all = append(all, l)
		}
	}
	out.Reply(from, all)
}

// Delete handles one group of a DeleteGroups request. The answer is a wire.Code.
func (m *Machine) Delete(id string, from coordinator.Caller, out *coordinator.Effects) {
	g := m.groups[id]
	switch {
	case g == nil:
		out.ReplyNow(from, wire.GroupIDNotFound)
		return
	case g.hasMembers():
		out.ReplyNow(from, wire.NonEmptyGroup)
		return
	}
	for _, t := range g.topicsWithOffsets() {
		for _, index := range t.Partitions {
			out.Append(offsetKey(id, t.Topic, index), nil)
		}
	}
	m.bury(g, out)
	out.Reply(from, wire.None)
}

// bury takes an empty group out of the table and, if it was ever stored, out of
// the log. Offsets of open transactions stay: their markers will find them.
func (m *Machine) bury(g *group, out *coordinator.Effects) {
	for member := range g.pending {
		out.Stop(pendingOf(g, member))
	}
	if g.consumer != nil {
		g.dropConsumers(out)
		g.consumer = nil
	}
	delete(m.groups, g.id)
	if len(g.uncertain) > 0 {
		left := newGroup(g.id, -1)
		left.uncertain = g.uncertain
		m.groups[g.id] = left
	}
	if g.generation > 0 {
		out.Append(groupKey(g.id), nil)
	}
}

// ConsumerDescribe answers one group of a ConsumerGroupDescribe request. The
// answer is a *kmsg.ConsumerGroupDescribeResponseGroup.
func (m *Machine) ConsumerDescribe(id string, from coordinator.Caller, out *coordinator.Effects) {
	r := kmsg.NewConsumerGroupDescribeResponseGroup()
	r.Group = id
	g := m.groups[id]
	if g == nil || g.consumer == nil {
		text := "Group " + id + " not found."
		if g != nil {
			text = "Group " + id + " is not a consumer group."
		}
		r.ErrorCode, r.ErrorMessage = int16(wire.GroupIDNotFound), &text
		out.Reply(from, &r)
		return
	}
	c := g.consumer
	r.State, r.Epoch, r.AssignmentEpoch, r.AssignorName = c.state(), c.epoch, c.assigned, c.assignor(nil)
	for _, id := range c.order {
		member := c.members[id]
		d := kmsg.ConsumerGroupDescribeResponseGroupMember{
			MemberID: id, InstanceID: member.instance, RackID: member.rack, MemberEpoch: member.epoch, ClientID: member.clientID, ClientHost: member.host,
			SubscribedTopics: member.topics, SubscribedTopicRegex: member.regex,
			Assignment: m.described(member.partitions), TargetAssignment: m.described(c.target[id]),
		}
		r.Members = append(r.Members, d)
	}
	out.Reply(from, &r)
}

// described is an assignment as ConsumerGroupDescribe tells it; topics that are
// gone are left out.
func (m *Machine) described(a assignment) (d kmsg.Assignment) {
	for _, topic := range a.topics() {
		if name, ok := m.c.TopicName(topic); ok {
			d.TopicPartitions = append(d.TopicPartitions, kmsg.AssignmentTopicPartition{TopicID: topic, Topic: name, Partitions: a[topic]})
		}
	}
	return d
}
