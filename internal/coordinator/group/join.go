package group

import (
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// joining is a JoinGroup request under way.
type joining struct {
	*kmsg.JoinGroupRequest
	from             coordinator.Caller
	clientID, host   string
	protocols        []protocol
	rebalanceTimeout int64
	now              time.Time
	out              *coordinator.Effects
}

// Join handles a JoinGroup request (GroupCoordinator.handleJoinGroup). The
// answer is a *kmsg.JoinGroupResponse.
func (m *Machine) Join(r *kmsg.JoinGroupRequest, clientID, host string, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	j := &joining{JoinGroupRequest: r, from: from, clientID: clientID, host: host, now: now, out: out, rebalanceTimeout: int64(r.RebalanceTimeoutMillis)}
	if r.Version == 0 {
		j.rebalanceTimeout = int64(r.SessionTimeoutMillis)
	}
	for _, p := range r.Protocols {
		if !hasProtocol(j.protocols, p.Name) {
			j.protocols = append(j.protocols, protocol{p.Name, append([]byte{}, p.Metadata...)})
		}
	}
	session := time.Duration(r.SessionTimeoutMillis) * time.Millisecond
	if r.Group == "" {
		j.refuse(wire.InvalidGroupID)
		return
	}
	if session < m.c.MinSession || session > m.c.MaxSession {
		j.refuse(wire.InvalidSessionTimeout)
		return
	}
	g := m.groups[r.Group]
	if g == nil {
		if r.MemberID != "" {
			j.refuse(wire.UnknownMemberID)
			return
		}
		g = m.groupOrNew(r.Group, now)
	}
	if c := g.consumer; c != nil {
		if len(c.members) > 0 {
			m.joinConsumers(g, j)
			return
		}
		g.dropConsumers(out) // it is empty: a classic one takes its place
		g.consumer = nil
	}
	if code := m.room(g, j); code != wire.None {
		j.refuse(code)
		m.dropBare(g)
		return
	}
	switch {
	case !m.hasRoom(g, r.MemberID):
		g.remove(r.MemberID)
		out.Stop(pendingOf(g, r.MemberID))
		j.refuse(wire.GroupMaxSizeReached)
	case r.MemberID == "":
		m.joinNew(g, j)
	default:
		m.joinKnown(g, j)
	}
	m.maybeCompleteJoin(g, now, out)
	m.dropBare(g)
}

func hasProtocol(all []protocol, name string) bool {
	for _, p := range all {
		if p.name == name {
			return true
		}
	}
	return false
}

// hasRoom judges group.max.size (acceptJoiningMember): while members gather, it
// is the first ones that get in.
func (m *Machine) hasRoom(g *group, id string) bool {
	known := g.members[id]
	switch g.state {
	case empty:
		return true
	case preparing:
		return known != nil && known.join != nil || g.awaiting < m.c.MaxSize
	default:
		return known != nil || len(g.members) < m.c.MaxSize
	}
}

func (j *joining) refuse(code wire.Code) { j.refuseAs(j.MemberID, code) }

func (j *joining) refuseAs(id string, code wire.Code) {
	j.out.ReplyNow(j.from, JoinError(id, code))
}

// JoinError is the answer to a JoinGroup request that failed.
func JoinError(memberID string, code wire.Code) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	r.ErrorCode, r.Generation, r.MemberID = int16(code), -1, memberID
	return r
}

func (m *Machine) joinNew(g *group, j *joining) {
	if !g.supports(j.ProtocolType, j.protocols) {
		j.refuse(wire.InconsistentGroupProtocol)
		return
	}
	if j.InstanceID != nil {
		id := *j.InstanceID + "-" + m.c.NewID()
		if old, ok := g.static[*j.InstanceID]; ok {
			m.replaceStatic(g, g.members[old], id, j)
			return
		}
		m.addMember(g, id, j)
		return
	}
	id := j.clientID + "-" + m.c.NewID()
	if j.Version < 4 {
		m.addMember(g, id, j)
		return
	}
	// KIP-394: whoever retries without having read the answer leaves no member behind.
	g.pending[id] = struct{}{}
	j.out.Set(pendingOf(g, id), j.now.Add(time.Duration(j.SessionTimeoutMillis)*time.Millisecond))
	j.refuseAs(id, wire.MemberIDRequired)
}

func (m *Machine) joinKnown(g *group, j *joining) {
	if !g.supports(j.ProtocolType, j.protocols) {
		j.refuse(wire.InconsistentGroupProtocol)
		return
	}
	if _, ok := g.pending[j.MemberID]; ok {
		j.out.Stop(pendingOf(g, j.MemberID))
		m.addMember(g, j.MemberID, j)
		return
	}
	if code := g.checkMember(j.MemberID, j.InstanceID); code != wire.None {
		j.refuse(code)
		return
	}
	member := g.members[j.MemberID]
	same := member.matches(j.protocols)
	switch {
	case g.state == completing && same, g.state == stable && same && g.leader != member.id:
		// It may have missed the answer; nothing has changed.
		j.out.ReplyNow(j.from, g.joined(member, g.state == completing))
	default:
		m.updateMember(g, member, j)
		if g.state != preparing {
			m.rebalance(g, j.now, j.out)
		}
	}
}

// checkMember judges who a request says it is from (validateCurrentMember).
func (g *group) checkMember(id string, instance *string) wire.Code {
	if instance != nil {
		current, ok := g.static[*instance]
		if !ok {
			return wire.UnknownMemberID
		}
		if current != id {
			return wire.FencedInstanceID
		}
	}
	if g.members[id] == nil {
		return wire.UnknownMemberID
	}
	return wire.None
}

// addMember makes a new member and has the group rebalance.
func (m *Machine) addMember(g *group, id string, j *joining) {
	member := &member{
		id: id, clientID: j.clientID, host: j.host, instance: j.InstanceID, rebalanceTimeout: j.rebalanceTimeout,
		sessionTimeout: int64(j.SessionTimeoutMillis), protocols: j.protocols, isNew: true, join: j.from, joinVersion: j.Version,
	}
	if g.state == preparing && g.generation == 0 {
		g.newcomer = true
	}
	if len(g.members) == 0 {
		g.protocolType = j.ProtocolType
	}
	g.add(member)
	j.out.Set(sessionOf(g, id), j.now.Add(newMemberTimeout))
	if g.state != preparing {
		m.rebalance(g, j.now, j.out)
	}
}

// updateMember takes a member's new JoinGroup request in place of an older one.
func (m *Machine) updateMember(g *group, member *member, j *joining) {
	g.setProtocols(member, j.protocols)
	member.rebalanceTimeout, member.sessionTimeout = j.rebalanceTimeout, int64(j.SessionTimeoutMillis)
	if member.join != nil && member.join != j.from { // a retry; Kafka leaves the first try without an answer
		j.out.ReplyNow(member.join, JoinError(member.id, wire.RebalanceInProgress))
	}
	member.joinVersion = j.Version
	g.await(member, j.from)
}

// replaceStatic gives a static member that has started again a new member id
// (updateStaticMemberAndRebalance). In a stable group whose protocol stays the
// same nothing else changes: that is what static members are for (KIP-345).
func (m *Machine) replaceStatic(g *group, member *member, id string, j *joining) {
	old, oldLeader := member.id, g.leader
	if member.join != nil {
		j.out.ReplyNow(member.join, JoinError(old, wire.FencedInstanceID))
		g.await(member, nil)
	}
	if member.sync != nil {
		j.out.ReplyNow(member.sync, SyncError(wire.FencedInstanceID))
		member.sync = nil
	}
	delete(g.members, old)
	member.id = id
	g.members[id] = member
	g.static[*j.InstanceID] = id
	if g.leader == old {
		g.leader = id
	}
	if _, ok := g.toSync[old]; ok {
		delete(g.toSync, old)
		g.toSync[id] = struct{}{}
	}
	j.out.Stop(sessionOf(g, old))
	m.updateMember(g, member, j)
	member.clientID, member.host = j.clientID, j.host
	m.heard(g, member, j.now, j.out)
	switch {
	case g.state == stable && g.choose() == g.protocol:
		g.await(member, nil)
		g.resubscribe()
		j.out.Append(groupKey(g.id), groupValue(g, g.stateTime, nil))
		r := g.joined(member, false)
		if j.Version >= 9 {
			// KIP-814: a leader learns that it is one, and that it has nothing to assign.
			r.SkipAssignment = g.leader == id
			if r.SkipAssignment {
				r.Members = g.memberMetadata()
			}
		} else {
			// Older leaders would assign again.
			r.LeaderID = oldLeader
		}
		j.out.Reply(j.from, r)
	case g.state != preparing:
		// The leader may have seen the old member id already.
		m.rebalance(g, j.now, j.out)
	}
}

// joined is the answer to a JoinGroup request that succeeded.
func (g *group) joined(member *member, completing bool) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	r.Generation, r.LeaderID, r.MemberID = g.generation, g.leader, member.id
	protocolType, protocol := g.protocolType, g.protocol
	r.ProtocolType, r.Protocol = &protocolType, &protocol
	if completing && g.leader == member.id {
		r.Members = g.memberMetadata()
	}
	return r
}

// memberMetadata is what the leader assigns by.
func (g *group) memberMetadata() []kmsg.JoinGroupResponseMember {
	all := make([]kmsg.JoinGroupResponseMember, 0, len(g.order))
	for _, m := range g.order {
		all = append(all, kmsg.JoinGroupResponseMember{MemberID: m.id, InstanceID: m.instance, ProtocolMetadata: notNil(m.metadata(g.protocol))})
	}
	return all
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
