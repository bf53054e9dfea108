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
	if g == nil {
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

// classicType is the type of all these groups as ListGroups v5 names it.
const classicType = "classic"

// List answers a ListGroups request with the groups of this machine. The answer
// is a []kmsg.ListGroupsResponseGroup.
func (m *Machine) List(states, types []string, from coordinator.Caller, out *coordinator.Effects) {
	var all []kmsg.ListGroupsResponseGroup
	match := func(filter []string, s string) bool {
		return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, s) })
	}
	if match(types, classicType) {
		for _, id := range slices.Sorted(maps.Keys(m.groups)) {
			g := m.groups[id]
			if match(states, g.state.String()) {
				all = append(all, kmsg.ListGroupsResponseGroup{Group: id, ProtocolType: g.protocolType, GroupState: g.state.String(), GroupType: classicType})
			}
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
	case g.state != empty:
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
