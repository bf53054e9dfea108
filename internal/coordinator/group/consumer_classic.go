package group

import (
	"slices"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Members of a consumer group may speak the classic protocol: JoinGroup and
// SyncGroup then do what ConsumerGroupHeartbeat does, and the coordinator is the
// leader. That way a group moves from one protocol to the other, member by
// member (group.consumer.migration.policy).

// subscription is what a classic consumer tells in its metadata.
func subscription(protocols []protocol) (s kmsg.ConsumerMemberMetadata, ok bool) {
	if len(protocols) == 0 {
		return s, false
	}
	return s, s.ReadFrom(protocols[0].metadata) == nil
}

// joinConsumers handles a JoinGroup request to a consumer group that has members
// (classicGroupJoinToConsumerGroup).
func (m *Machine) joinConsumers(g *group, j *joining) {
	c := g.consumer
	s, ok := subscription(j.protocols)
	if !ok || !c.supportsClassic(j.ProtocolType, j.protocols) {
		j.refuse(wire.InconsistentGroupProtocol)
		return
	}
	known := j.MemberID != ""
	if len(c.members) >= m.c.ConsumerMaxSize && c.members[j.MemberID] == nil {
		j.refuse(wire.GroupMaxSizeReached)
		return
	}
	if !known && j.InstanceID == nil && j.Version >= 4 {
		j.refuseAs(m.c.NewID(), wire.MemberIDRequired)
		return
	}
	h := &heartbeat{
		group: g.id, member: j.MemberID, epoch: leaveEpoch, instance: j.InstanceID, rack: s.Rack, rebalanceTimeout: int32(j.rebalanceTimeout),
		topics: sortedNames(s.Topics), told: true, has: m.named(s.OwnedPartitions), clientID: j.clientID, host: j.host,
		classic: &classicMember{j.SessionTimeoutMillis, j.protocols}, now: j.now, out: j.out, create: !known || j.InstanceID == nil,
	}
	before, after, refused := m.consumerMember(g, c, h)
	if refused != nil {
		j.refuseAs(j.MemberID, refused.code)
		return
	}
	after = m.assignMember(g, c, before, after, h)
	if m.tooLarge(j.out) {
		j.out.Reset() // nothing has changed yet
		m.lookAgain(g.id)
		j.refuse(wire.UnknownServerError)
		return
	}
	delete(g.rejoining, after.id)
	j.out.Stop(coordinator.Timer{Kind: consumerJoinTimer, A: g.id, B: after.id})
	m.heardClassic(g, after, j.now, j.out)
	j.out.Set(coordinator.Timer{Kind: consumerSyncTimer, A: g.id, B: after.id}, j.now.Add(time.Duration(j.rebalanceTimeout)*time.Millisecond))
	r := kmsg.NewPtrJoinGroupResponse()
	protocolType, name := consumerType, after.classic.protocols[0].name
	r.Generation, r.MemberID, r.ProtocolType, r.Protocol = after.epoch, after.id, &protocolType, &name
	j.out.Reply(j.from, r)
}

// named turns partitions of topics by name into partitions by id.
func (m *Machine) named(topics []kmsg.ConsumerMemberMetadataOwnedPartition) assignment {
	var b assignmentBuilder
	for _, t := range topics {
		id, partitions := m.c.Topic(t.Topic)
		for _, p := range sortedIndexes(t.Partitions) {
			if p >= 0 && p < partitions {
				b.add(owned{id, p})
			}
		}
	}
	return b.done()
}

func sortedIndexes(parts []int32) []int32 {
	parts = slices.Clone(parts)
	slices.Sort(parts)
	return slices.Compact(parts)
}

// supportsClassic tells whether a classic member with these protocols can join.
func (c *consumerGroup) supportsClassic(protocolType string, protocols []protocol) bool {
	supported, members := c.classicProtocols()
	return protocolType == consumerType && slices.ContainsFunc(protocols, func(p protocol) bool { return supported[p.name] == members })
}

func (m *Machine) heardClassic(g *group, member *consumerMember, now time.Time, out *coordinator.Effects) {
	out.Set(consumerSessionOf(g.id, member.id), now.Add(time.Duration(member.classic.sessionTimeout)*time.Millisecond))
}

// checkClassic judges who a request of the classic protocol is from.
func (c *consumerGroup) checkClassic(id string, instance *string, generation int32) (*consumerMember, wire.Code) {
	if instance != nil {
		switch known := c.staticMember(instance); {
		case known == nil:
			return nil, wire.UnknownMemberID
		case known.id != id:
			return nil, wire.FencedInstanceID
		}
	}
	member := c.members[id]
	switch {
	case member == nil || member.classic == nil:
		return nil, wire.UnknownMemberID
	case member.epoch != generation:
		return nil, wire.IllegalGeneration
	}
	return member, wire.None
}

// rejoin has a classic member be out if it does not join again in time.
func (m *Machine) rejoin(g *group, member *consumerMember, now time.Time, out *coordinator.Effects) {
	if _, waits := g.rejoining[member.id]; waits {
		return
	}
	if g.rejoining == nil {
		g.rejoining = map[string]struct{}{}
	}
	g.rejoining[member.id] = struct{}{}
	out.Set(coordinator.Timer{Kind: consumerJoinTimer, A: g.id, B: member.id}, now.Add(time.Duration(member.rebalanceTimeout)*time.Millisecond))
}

// syncConsumers handles a SyncGroup request to a consumer group
// (classicGroupSyncToConsumerGroup).
func (m *Machine) syncConsumers(g *group, r *kmsg.SyncGroupRequest, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	member, code := g.consumer.checkClassic(r.MemberID, r.InstanceID, r.Generation)
	switch {
	case code != wire.None:
	case r.ProtocolType != nil && *r.ProtocolType != consumerType, r.Protocol != nil && *r.Protocol != member.classic.protocols[0].name:
		code = wire.InconsistentGroupProtocol
	case g.consumer.epoch > member.epoch && member.state != unrevoked:
		m.rejoin(g, member, now, out)
		code = wire.RebalanceInProgress
	}
	if code != wire.None {
		out.ReplyNow(from, SyncError(code))
		return
	}
	out.Stop(coordinator.Timer{Kind: consumerSyncTimer, A: g.id, B: member.id})
	m.heardClassic(g, member, now, out)
	answer := kmsg.NewPtrSyncGroupResponse()
	answer.ProtocolType, answer.Protocol, answer.MemberAssignment = r.ProtocolType, r.Protocol, m.classicAssignment(member)
	out.Reply(from, answer)
}

// classicAssignment is what a member has as a classic consumer is told it.
func (m *Machine) classicAssignment(member *consumerMember) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	if s, ok := subscription(member.classic.protocols); ok {
		a.Version = min(s.Version, 3)
	}
	for _, id := range member.partitions.topics() {
		if name, ok := m.c.TopicName(id); ok {
			a.Topics = append(a.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: name, Partitions: member.partitions[id]})
		}
	}
	return a.AppendTo(nil)
}

// heartbeatConsumers handles a Heartbeat request to a consumer group
// (classicGroupHeartbeatToConsumerGroup).
func (m *Machine) heartbeatConsumers(g *group, r *kmsg.HeartbeatRequest, now time.Time, out *coordinator.Effects) wire.Code {
	c := g.consumer
	member, code := c.checkClassic(r.MemberID, r.InstanceID, r.Generation)
	if code != wire.None {
		return code
	}
	m.heardClassic(g, member, now, out)
	if member.epoch < c.epoch || member.state == unrevoked || member.state == unreleased && !c.waits(member) {
		m.rejoin(g, member, now, out)
		return wire.RebalanceInProgress
	}
	return wire.None
}

// waits tells whether others still have partitions of a member's target.
func (c *consumerGroup) waits(member *consumerMember) bool {
	taken := false
	c.target[member.id].each(func(p owned) {
		if _, has := c.owners[p]; has && !member.partitions.has(p) {
			taken = true
		}
	})
	return taken
}

// leaveConsumers handles a LeaveGroup request to a consumer group
// (classicGroupLeaveToConsumerGroup).
func (m *Machine) leaveConsumers(g *group, members []kmsg.LeaveGroupRequestMember, now time.Time, out *coordinator.Effects) (codes []wire.Code) {
	c := g.consumer
	var gone []*consumerMember
	for _, l := range members {
		member, code := c.members[l.MemberID], wire.None
		if l.InstanceID != nil {
			member = c.staticMember(l.InstanceID)
			if member != nil && l.MemberID != "" && member.id != l.MemberID {
				code = wire.FencedInstanceID
			}
		}
		switch {
		case code != wire.None:
		case member == nil || member.classic == nil || slices.Contains(gone, member):
			code = wire.UnknownMemberID
		default:
			gone = append(gone, member)
		}
		codes = append(codes, code)
	}
	if len(gone) > 0 {
		m.fenceConsumers(g, gone, now, out)
	}
	return codes
}

// upgrade makes a consumer group of a classic one that a consumer of KIP-848
// joins, if the broker may (convertToConsumerGroup). Who waits is told to join
// again.
func (m *Machine) upgrade(g *group, out *coordinator.Effects, now time.Time) (*consumerGroup, bool) {
	if !m.c.Upgrade || g.protocolType != consumerType || g.protocol == "" || len(g.members) > m.c.ConsumerMaxSize {
		return nil, false
	}
	c := newConsumerGroup()
	c.epoch, c.assigned = g.generation, g.generation
	for _, old := range g.order {
		protocols := slices.Clone(old.protocols)
		s, ok := subscription(protocols)
		if !ok {
			return nil, false
		}
		var a kmsg.ConsumerMemberAssignment
		var has []kmsg.ConsumerMemberMetadataOwnedPartition
		if len(old.assignment) > 0 && a.ReadFrom(old.assignment) == nil {
			for _, t := range a.Topics {
				has = append(has, kmsg.ConsumerMemberMetadataOwnedPartition(t))
			}
		}
		member := &consumerMember{
			id: old.id, clientID: old.clientID, host: old.host, instance: old.instance, rack: s.Rack, topics: sortedNames(s.Topics),
			rebalanceTimeout: int32(old.rebalanceTimeout), classic: &classicMember{int32(old.sessionTimeout), protocols},
			epoch: g.generation, previous: g.generation, partitions: m.named(has),
		}
		c.put(member)
		c.target[member.id] = member.partitions
	}
	for _, old := range g.order {
		if old.join != nil {
			out.ReplyNow(old.join, JoinError(old.id, wire.RebalanceInProgress))
		}
		if old.sync != nil {
			out.ReplyNow(old.sync, SyncError(wire.RebalanceInProgress))
		}
		out.Stop(sessionOf(g, old.id))
	}
	for id := range g.pending {
		out.Stop(pendingOf(g, id))
	}
	out.Stop(joinOf(g))
	out.Stop(syncOf(g))
	out.Append(groupKey(g.id), nil)
	for _, id := range c.order {
		g.putMember(c.members[id], out)
	}
	g.putEpoch(c.epoch, out)
	for _, id := range c.order {
		g.putTarget(id, c.target[id], out)
	}
	out.Append(consumerKey(targetEpochKey, g.id, ""), epochValue(c.assigned))
	for _, id := range c.order {
		g.putCurrent(c.members[id], out)
		m.heardClassic(g, c.members[id], now, out)
	}
	return c, true
}

// downgrade makes a classic group of a consumer group whose last member that
// speaks the newer protocol leaves, if the broker may (convertToClassicGroup).
// The group then rebalances.
func (m *Machine) downgrade(g *group, leaving string, now time.Time, out *coordinator.Effects) bool {
	c := g.consumer
	if !m.c.Downgrade || len(c.members) < 2 || len(c.members)-1 > m.c.MaxSize {
		return false
	}
	left := newGroup(g.id, now.UnixMilli())
	left.protocolType, left.generation = consumerType, c.epoch
	for _, id := range c.order {
		stays := c.members[id]
		if id == leaving {
			continue
		}
		if stays.classic == nil {
			return false
		}
		left.add(&member{
			id: id, clientID: stays.clientID, host: stays.host, instance: stays.instance, protocols: stays.classic.protocols,
			rebalanceTimeout: int64(stays.rebalanceTimeout), sessionTimeout: int64(stays.classic.sessionTimeout), assignment: m.classicAssignment(stays),
		})
	}
	left.protocol = left.choose()
	g.dropConsumers(out)
	out.Append(groupKey(g.id), groupValue(left, left.stateTime, nil))
	for _, member := range left.order {
		m.stopConsumer(g.id, member.id, out)
		m.heard(left, member, now, out)
	}
	out.Set(coordinator.Timer{Kind: downgradedTimer, A: g.id}, now)
	return true
}
