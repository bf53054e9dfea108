package group

import (
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// SyncError is the answer to a SyncGroup request that failed.
func SyncError(code wire.Code) *kmsg.SyncGroupResponse {
	r := kmsg.NewPtrSyncGroupResponse()
	r.ErrorCode, r.MemberAssignment = int16(code), []byte{}
	return r
}

// Sync handles a SyncGroup request (GroupCoordinator.handleSyncGroup). The
// answer is a *kmsg.SyncGroupResponse.
func (m *Machine) Sync(r *kmsg.SyncGroupRequest, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	g := m.groups[r.Group]
	if g != nil && g.consumer != nil {
		m.syncConsumers(g, r, from, now, out)
		return
	}
	if code := g.checkSync(r); code != wire.None {
		out.ReplyNow(from, SyncError(code))
		return
	}
	member := g.members[r.MemberID]
	switch g.state {
	case empty:
		out.ReplyNow(from, SyncError(wire.UnknownMemberID))
	case preparing:
		out.ReplyNow(from, SyncError(wire.RebalanceInProgress))
	case completing:
		if member.sync != nil && member.sync != from { // a retry
			out.ReplyNow(member.sync, SyncError(wire.RebalanceInProgress))
		}
		member.sync = from
		m.synced(g, member, out)
		if g.leader == member.id {
			m.assign(g, r.GroupAssignment, now, out)
		}
	case stable:
		m.synced(g, member, out)
		out.Reply(from, g.synced(member))
		m.heard(g, member, now, out)
	}
}

func (g *group) checkSync(r *kmsg.SyncGroupRequest) wire.Code {
	if r.Group == "" {
		return wire.InvalidGroupID
	}
	if g == nil {
		return wire.UnknownMemberID
	}
	if code := g.checkMember(r.MemberID, r.InstanceID); code != wire.None {
		return code
	}
	switch {
	case r.Generation != g.generation:
		return wire.IllegalGeneration
	case r.ProtocolType != nil && *r.ProtocolType != g.protocolType, r.Protocol != nil && *r.Protocol != g.protocol:
		return wire.InconsistentGroupProtocol
	}
	return wire.None
}

// synced notes that a member has sent SyncGroup in this generation.
func (m *Machine) synced(g *group, member *member, out *coordinator.Effects) {
	if delete(g.toSync, member.id); len(g.toSync) == 0 {
		out.Stop(syncOf(g))
	}
}

func (g *group) synced(member *member) *kmsg.SyncGroupResponse {
	r := kmsg.NewPtrSyncGroupResponse()
	protocolType, protocol := g.protocolType, g.protocol
	r.ProtocolType, r.Protocol, r.MemberAssignment = &protocolType, &protocol, notNil(member.assignment)
	return r
}

// assign stores the leader's assignment: the group is stable once its record is
// replayed, and who waits is answered when that is committed.
func (m *Machine) assign(g *group, given []kmsg.SyncGroupRequestGroupAssignment, now time.Time, out *coordinator.Effects) {
	assignment := make(map[string][]byte, len(given))
	for i := range given {
		if g.members[given[i].MemberID] != nil {
			assignment[given[i].MemberID] = given[i].MemberAssignment
		}
	}
	value := groupValue(g, now.UnixMilli(), assignment)
	key := groupKey(g.id)
	if len(key)+len(value) > m.c.MaxRecord {
		for _, member := range g.order {
			if member.sync != nil {
				out.ReplyNow(member.sync, SyncError(wire.UnknownServerError))
				member.sync = nil
				m.heard(g, member, now, out)
			}
		}
		m.rebalance(g, now, out)
		return
	}
	out.Append(key, value)
	for _, member := range g.order {
		if member.sync == nil {
			continue
		}
		r := g.synced(member)
		r.MemberAssignment = append([]byte{}, assignment[member.id]...)
		out.Reply(member.sync, r)
		member.sync = nil
		m.heard(g, member, now, out)
	}
}

// Heartbeat handles a Heartbeat request (GroupCoordinator.handleHeartbeat). The
// answer is a *kmsg.HeartbeatResponse.
func (m *Machine) Heartbeat(r *kmsg.HeartbeatRequest, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	answer := kmsg.NewPtrHeartbeatResponse()
	answer.ErrorCode = int16(m.heartbeat(r, now, out))
	out.ReplyNow(from, answer)
}

func (m *Machine) heartbeat(r *kmsg.HeartbeatRequest, now time.Time, out *coordinator.Effects) wire.Code {
	g := m.groups[r.Group]
	switch {
	case r.Group == "":
		return wire.InvalidGroupID
	case g == nil:
		return wire.UnknownMemberID
	case g.consumer != nil:
		return m.heartbeatConsumers(g, r, now, out)
	}
	if code := g.checkMember(r.MemberID, r.InstanceID); code != wire.None {
		return code
	}
	if r.Generation != g.generation {
		return wire.IllegalGeneration
	}
	member := g.members[r.MemberID]
	if member.join == nil { // else it is heard of already, and waits
		m.heard(g, member, now, out)
	}
	if g.state == preparing {
		return wire.RebalanceInProgress
	}
	return wire.None
}

// Leave handles a LeaveGroup request (GroupCoordinator.handleLeaveGroup). The
// answer is a *kmsg.LeaveGroupResponse.
func (m *Machine) Leave(r *kmsg.LeaveGroupRequest, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	answer := kmsg.NewPtrLeaveGroupResponse()
	members := r.Members
	if r.Version < 3 {
		members = []kmsg.LeaveGroupRequestMember{{MemberID: r.MemberID}}
	}
	g := m.groups[r.Group]
	if r.Group == "" {
		answer.ErrorCode = int16(wire.InvalidGroupID)
		members = nil
	}
	var codes []wire.Code
	if g != nil && g.consumer != nil {
		codes = m.leaveConsumers(g, members, now, out)
	}
	for i := range members {
		l := &members[i]
		code := wire.UnknownMemberID
		switch {
		case codes != nil:
			code = codes[i]
		case g != nil:
			code = m.leave(g, l, now, out)
		}
		answer.Members = append(answer.Members, kmsg.LeaveGroupResponseMember{MemberID: l.MemberID, InstanceID: l.InstanceID, ErrorCode: int16(code)})
	}
	if r.Version < 3 && len(answer.Members) > 0 {
		answer.ErrorCode = answer.Members[0].ErrorCode
	}
	out.Reply(from, answer)
}

func (m *Machine) leave(g *group, l *kmsg.LeaveGroupRequestMember, now time.Time, out *coordinator.Effects) wire.Code {
	if l.MemberID == "" && l.InstanceID != nil { // an administrator's word
		id, ok := g.static[*l.InstanceID]
		if !ok {
			return wire.UnknownMemberID
		}
		m.removeMember(g, g.members[id], now, out)
		return wire.None
	}
	if _, ok := g.pending[l.MemberID]; ok {
		out.Stop(pendingOf(g, l.MemberID))
		g.remove(l.MemberID)
		m.maybeCompleteJoin(g, now, out)
		m.dropBare(g)
		return wire.None
	}
	if code := g.checkMember(l.MemberID, l.InstanceID); code != wire.None {
		return code
	}
	m.removeMember(g, g.members[l.MemberID], now, out)
	return wire.None
}
