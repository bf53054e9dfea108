package group

import (
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"
)

// heard notes that a member is alive.
func (m *Machine) heard(g *group, member *member, now time.Time, out *coordinator.Effects) {
	out.Set(sessionOf(g, member.id), now.Add(time.Duration(member.sessionTimeout)*time.Millisecond))
}

// rebalance begins a join phase (prepareRebalance). The group is in another
// state than preparing.
func (m *Machine) rebalance(g *group, now time.Time, out *coordinator.Effects) {
	if g.state == completing {
		for _, member := range g.order {
			member.assignment = nil
			if member.sync != nil {
				out.ReplyNow(member.sync, SyncError(wire.RebalanceInProgress))
				member.sync = nil
				m.heard(g, member, now, out)
			}
		}
	}
	out.Stop(syncOf(g))
	g.initial = g.state == empty
	g.newcomer = false
	g.setState(preparing, now)
	if g.initial {
		g.remaining = max(g.rebalanceTimeout()-m.c.InitialDelay, 0)
		if m.c.InitialDelay <= 0 {
			m.completeJoin(g, now, out)
			return
		}
		out.Set(joinOf(g), now.Add(m.c.InitialDelay))
		return
	}
	out.Set(joinOf(g), now.Add(g.rebalanceTimeout()))
	m.maybeCompleteJoin(g, now, out)
}

// maybeCompleteJoin ends the join phase when there is nobody to wait for.
func (m *Machine) maybeCompleteJoin(g *group, now time.Time, out *coordinator.Effects) {
	if g.state == preparing && !g.initial && g.allJoined() {
		m.completeJoin(g, now, out)
	}
}

// joinPhaseOver handles the end of the time that members have to join. While
// new ones keep coming to a group that was empty, it is prolonged.
func (m *Machine) joinPhaseOver(g *group, now time.Time, out *coordinator.Effects) {
	if g.state != preparing {
		return
	}
	if g.initial && g.newcomer && g.remaining > 0 {
		g.newcomer = false
		delay := min(m.c.InitialDelay, g.remaining)
		g.remaining -= delay
		out.Set(joinOf(g), now.Add(delay))
		return
	}
	m.completeJoin(g, now, out)
}

// completeJoin begins a generation (onCompleteJoin): members that have not
// joined are out, except static ones, which have until their session ends.
func (m *Machine) completeJoin(g *group, now time.Time, out *coordinator.Effects) {
	out.Stop(joinOf(g))
	g.initial = false
	for i := len(g.order) - 1; i >= 0; i-- {
		if member := g.order[i]; member.join == nil && member.instance == nil {
			out.Stop(sessionOf(g, member.id))
			g.remove(member.id)
		}
	}
	if !g.electJoined() && len(g.members) > 0 {
		out.Set(joinOf(g), now.Add(g.rebalanceTimeout())) // nobody could lead
		return
	}
	g.generation++
	clear(g.toSync)
	if len(g.members) == 0 {
		g.protocol, g.leader = "", ""
		g.setState(empty, now)
		g.resubscribe()
		out.Append(groupKey(g.id), groupValue(g, g.stateTime, nil))
		return
	}
	g.protocol = g.choose()
	g.setState(completing, now)
	g.resubscribe()
	for _, member := range g.order {
		if member.join != nil {
			out.ReplyNow(member.join, g.joined(member, true))
			g.await(member, nil)
		}
		m.heard(g, member, now, out)
		member.isNew = false
		g.toSync[member.id] = struct{}{}
	}
	out.Set(syncOf(g), now.Add(g.rebalanceTimeout()))
}

// electJoined makes a member that has joined the leader, if the leader has not.
func (g *group) electJoined() bool {
	leader := g.members[g.leader]
	if leader == nil {
		return false
	}
	if leader.join != nil {
		return true
	}
	for _, member := range g.order {
		if member.join != nil {
			g.leader = member.id
			return true
		}
	}
	return false
}

// syncPhaseOver takes out the members that have joined and then not sent
// SyncGroup within the rebalance timeout (KAFKA-12890).
func (m *Machine) syncPhaseOver(g *group, now time.Time, out *coordinator.Effects) {
	if g.state != completing && g.state != stable || len(g.toSync) == 0 {
		return
	}
	for i := len(g.order) - 1; i >= 0; i-- {
		member := g.order[i]
		if _, ok := g.toSync[member.id]; ok {
			out.Stop(sessionOf(g, member.id))
			g.remove(member.id)
		}
	}
	m.rebalance(g, now, out)
}

// removeMember takes out a member that has left or was not heard of.
func (m *Machine) removeMember(g *group, member *member, now time.Time, out *coordinator.Effects) {
	if member.join != nil {
		out.ReplyNow(member.join, JoinError("", wire.UnknownMemberID))
	}
	out.Stop(sessionOf(g, member.id))
	g.remove(member.id)
	if member.sync != nil {
		out.ReplyNow(member.sync, SyncError(wire.UnknownMemberID))
		member.sync = nil
	}
	switch g.state {
	case stable, completing:
		m.rebalance(g, now, out)
	case preparing:
		m.maybeCompleteJoin(g, now, out)
	}
}
