package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// refusal is an error as a member is told it.
type refusal struct {
	code wire.Code
	text string
}

func refuse(code wire.Code, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// heartbeat is a ConsumerGroupHeartbeat request, or a JoinGroup request to a
// consumer group, under way.
type heartbeat struct {
	group, member    string
	epoch            int32
	instance, rack   *string
	rebalanceTimeout int32    // ms; -1: as before
	topics           []string // nil: as before
	regex            *string  // the same; "": none
	assignor         *string
	has              assignment // what the member has
	told             bool       // whether it told
	clientID, host   string
	classic          *classicMember
	now              time.Time
	out              *coordinator.Effects
	create           bool
	replaces         string // the member id that a static member had before
}

// ConsumerHeartbeatError is the answer to a ConsumerGroupHeartbeat request that
// failed.
func ConsumerHeartbeatError(code wire.Code, text string) *kmsg.ConsumerGroupHeartbeatResponse {
	r := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	r.ErrorCode = int16(code)
	if text != "" {
		r.ErrorMessage = &text
	}
	return r
}

// ConsumerHeartbeat handles a ConsumerGroupHeartbeat request
// (GroupMetadataManager.consumerGroupHeartbeat). The answer is a
// *kmsg.ConsumerGroupHeartbeatResponse.
func (m *Machine) ConsumerHeartbeat(r *kmsg.ConsumerGroupHeartbeatRequest, clientID, host string, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	answer, refused := m.consumerHeartbeat(r, clientID, host, now, out)
	if refused == nil && m.tooLarge(out) {
		m.lookAgain(r.Group)
		refused = refuse(wire.UnknownServerError, "The group's records are larger than a record may be.")
	}
	if refused != nil {
		out.Reset() // nothing has changed yet: a group that was to become a consumer group stays
		out.ReplyNow(from, ConsumerHeartbeatError(refused.code, refused.text))
		return
	}
	out.Reply(from, answer)
}

// tooLarge tells whether there is a record that the log would not take.
func (m *Machine) tooLarge(out *coordinator.Effects) bool {
	return slices.ContainsFunc(out.Records, func(r coordinator.Record) bool { return len(r.Key)+len(r.Value) > m.c.MaxRecord })
}

func (m *Machine) consumerHeartbeat(r *kmsg.ConsumerGroupHeartbeatRequest, clientID, host string, now time.Time, out *coordinator.Effects) (*kmsg.ConsumerGroupHeartbeatResponse, *refusal) {
	if refused := checkHeartbeat(r); refused != nil {
		return nil, refused
	}
	if r.MemberEpoch < 0 {
		return m.consumerLeave(r, now, out)
	}
	h := &heartbeat{
		group: r.Group, member: r.MemberID, epoch: r.MemberEpoch, instance: r.InstanceID, rack: r.RackID, rebalanceTimeout: r.RebalanceTimeoutMillis,
		regex: r.SubscribedTopicRegex, assignor: r.ServerAssignor, told: r.Topics != nil, clientID: clientID, host: host, now: now, out: out, create: r.MemberEpoch == joinEpoch,
	}
	if r.SubscribedTopicNames != nil {
		h.topics = sortedNames(r.SubscribedTopicNames)
	}
	var has assignmentBuilder
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			has.add(owned{t.TopicID, p})
		}
	}
	h.has = has.done()
	g, c, refused := m.consumersFor(h)
	if refused != nil {
		return nil, refused
	}
	before, after, refused := m.consumerMember(g, c, h)
	if refused != nil {
		return nil, refused
	}
	after = m.assignMember(g, c, before, after, h)
	out.Set(consumerSessionOf(g.id, after.id), now.Add(m.c.ConsumerSession))
	answer := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	answer.MemberID, answer.MemberEpoch, answer.HeartbeatIntervalMillis = &after.id, after.epoch, int32(m.c.ConsumerHeartbeat.Milliseconds())
	// Who asked for all is told all; else what has changed.
	full := h.create || r.RebalanceTimeoutMillis != -1 && (r.SubscribedTopicNames != nil || r.SubscribedTopicRegex != nil) && r.Topics != nil
	if full || !after.partitions.equal(before.partitions) {
		a := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
		for _, topic := range after.partitions.topics() {
			a.Topics = append(a.Topics, kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{TopicID: topic, Partitions: after.partitions[topic]})
		}
		answer.Assignment = &a
	}
	return answer, nil
}

// checkHeartbeat judges a request by itself
// (throwIfConsumerGroupHeartbeatRequestIsInvalid).
func checkHeartbeat(r *kmsg.ConsumerGroupHeartbeatRequest) *refusal {
	invalid := func(text string) *refusal { return refuse(wire.InvalidRequest, "%s", text) }
	switch {
	case strings.TrimSpace(r.Group) == "":
		return invalid("GroupId can't be empty.")
	case r.InstanceID != nil && strings.TrimSpace(*r.InstanceID) == "":
		return invalid("InstanceId can't be empty.")
	case r.RackID != nil && strings.TrimSpace(*r.RackID) == "":
		return invalid("RackId can't be empty.")
	case r.MemberEpoch < staticLeaveEpoch:
		return invalid("MemberEpoch is invalid.")
	case (r.MemberEpoch != joinEpoch || r.Version >= 1) && strings.TrimSpace(r.MemberID) == "":
		return invalid("MemberId can't be empty.")
	case r.MemberEpoch == staticLeaveEpoch && r.InstanceID == nil:
		return invalid("InstanceId can't be null.")
	case r.MemberEpoch == joinEpoch && r.RebalanceTimeoutMillis == -1:
		return invalid("RebalanceTimeoutMs must be provided in first request.")
	case r.MemberEpoch == joinEpoch && (r.Topics == nil || len(r.Topics) > 0):
		return invalid("TopicPartitions must be empty when (re-)joining.")
	case r.MemberEpoch == joinEpoch && r.SubscribedTopicNames == nil && r.SubscribedTopicRegex == nil:
		return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
	case r.ServerAssignor != nil && assignors[*r.ServerAssignor] == nil:
		return refuse(wire.UnsupportedAssignor, "ServerAssignor %s is not supported. Supported assignors: uniform, range.", *r.ServerAssignor)
	case r.SubscribedTopicRegex != nil:
		if _, err := compilePattern(*r.SubscribedTopicRegex); err != nil {
			return refuse(wire.InvalidRegularExpression, "SubscribedTopicRegex `%s` is not a valid regular expression: %s.", *r.SubscribedTopicRegex, err)
		}
	}
	return nil
}

// consumersFor returns the consumer group of a heartbeat: a new one, or a
// classic one that becomes one, if the member may make it
// (getOrMaybeCreateConsumerGroup).
func (m *Machine) consumersFor(h *heartbeat) (*group, *consumerGroup, *refusal) {
	g := m.groups[h.group]
	switch {
	case g == nil && !h.create:
		return nil, nil, refuse(wire.GroupIDNotFound, "Consumer group %s not found.", h.group)
	case g == nil:
		return newGroup(h.group, h.now.UnixMilli()), newConsumerGroup(), nil
	case g.consumer != nil:
		return g, g.consumer, nil
	case h.create && len(g.members) == 0 && g.state == empty:
		for id := range g.pending {
			h.out.Stop(pendingOf(g, id))
		}
		if g.generation > 0 || g.protocolType != "" {
			h.out.Append(groupKey(g.id), nil)
		}
		return g, newConsumerGroup(), nil
	case h.create:
		c, ok := m.upgrade(g, h.out, h.now)
		if ok {
			return g, c, nil
		}
	}
	return nil, nil, refuse(wire.GroupIDNotFound, "Group %s is not a consumer group.", h.group)
}

// consumerMember returns the member that a heartbeat is from, as it was and with
// what it tells. One that was not there has an epoch below 0.
func (m *Machine) consumerMember(g *group, c *consumerGroup, h *heartbeat) (before, after *consumerMember, refused *refusal) {
	known := c.members[h.member]
	if known == nil && len(c.members) >= m.c.ConsumerMaxSize && c.staticMember(h.instance) == nil {
		return nil, nil, refuse(wire.GroupMaxSizeReached, "The consumer group has reached its maximum capacity of %d members.", m.c.ConsumerMaxSize)
	}
	if h.member == "" {
		h.member = m.c.NewID()
	}
	switch {
	case h.instance != nil:
		known, refused = m.staticConsumer(g, c, h)
	case known == nil && !h.create:
		refused = refuse(wire.UnknownMemberID, "Member %s is not a member of group %s.", h.member, g.id)
	case known != nil:
		refused = h.checkEpoch(known)
	}
	if refused != nil {
		return nil, nil, refused
	}
	if known == nil {
		known = &consumerMember{id: h.member, rebalanceTimeout: -1}
	}
	changed := *known
	changed.clientID, changed.host, changed.classic = h.clientID, h.host, h.classic
	if h.instance != nil {
		changed.instance = h.instance
	}
	if h.rack != nil {
		changed.rack = h.rack
	}
	if h.rebalanceTimeout != -1 {
		changed.rebalanceTimeout = h.rebalanceTimeout
	}
	if h.assignor != nil {
		changed.assignor = h.assignor
	}
	if h.topics != nil {
		changed.topics = h.topics
	}
	if h.regex != nil {
		changed.regex = h.regex
	}
	if h.classic != nil {
		changed.regex = nil
	}
	return known, &changed, nil
}

// staticConsumer finds a static member, or has it take the place of the one
// with its instance id, if that has left or one of the two is of the classic
// protocol, where nobody leaves (KAFKA-17228).
func (m *Machine) staticConsumer(g *group, c *consumerGroup, h *heartbeat) (*consumerMember, *refusal) {
	known := c.staticMember(h.instance)
	switch {
	case known == nil && h.create:
		return c.members[h.member], nil
	case known == nil:
		return nil, refuse(wire.UnknownMemberID, "Instance id %s is unknown.", *h.instance)
	case known.id == h.member && (h.create || known.epoch != staticLeaveEpoch):
		if known.epoch == staticLeaveEpoch {
			back := *known
			back.epoch, back.previous = joinEpoch, joinEpoch
			return &back, nil
		}
		return known, h.checkEpoch(known)
	case !h.create:
		return nil, refuse(wire.FencedInstanceID, "Static member %s with instance id %s was fenced by member %s.", h.member, *h.instance, known.id)
	case h.classic == nil && known.classic == nil && known.epoch != staticLeaveEpoch:
		return nil, refuse(wire.UnreleasedInstanceID, "Static member %s with instance id %s cannot join the group because the instance id is owned by %s member.", h.member, *h.instance, known.id)
	}
	replaced := *known
	replaced.id, replaced.epoch, replaced.previous = h.member, joinEpoch, joinEpoch
	g.dropMember(known.id, h.out)
	m.stopConsumer(g.id, known.id, h.out)
	g.putMember(&replaced, h.out)
	g.putTarget(h.member, c.target[known.id], h.out)
	g.putCurrent(&replaced, h.out)
	h.replaces = known.id
	return &replaced, nil
}

// checkEpoch judges the epoch that a member says it is in. A lost answer may
// leave it one behind; one that was fenced begins anew, with nothing.
func (h *heartbeat) checkEpoch(known *consumerMember) *refusal {
	switch {
	case h.classic != nil, h.epoch == known.epoch, h.epoch == joinEpoch:
		return nil
	case h.epoch > known.epoch:
		return refuse(wire.FencedMemberEpoch, "The consumer group member has a greater member epoch (%d) than the one known by the group coordinator (%d). The member must abandon all its partitions and rejoin.", h.epoch, known.epoch)
	}
	subset := h.told
	h.has.each(func(p owned) { subset = subset && known.partitions.has(p) })
	if h.epoch == known.previous && subset {
		return nil
	}
	return refuse(wire.FencedMemberEpoch, "The consumer group member has a smaller member epoch (%d) than the one known by the group coordinator (%d). The member must abandon all its partitions and rejoin.", h.epoch, known.epoch)
}

// assignMember stores what a member tells, raises the group's epoch and the
// target if that changes anything, and moves the member towards its target.
func (m *Machine) assignMember(g *group, c *consumerGroup, before, after *consumerMember, h *heartbeat) *consumerMember {
	resubscribed := !slices.Equal(before.topics, after.topics) || before.pattern() != after.pattern()
	if !sameMember(before, after) {
		g.putMember(after, h.out)
	}
	patterns, matchesChanged := m.match(g, c, before, after, h)
	topics := m.shapes(c.subscribedWith(after, h.replaces, patterns))
	grown := resubscribed || matchesChanged || h.replaces == "" && c.members[after.id] == nil
	if !slices.Equal(topics, c.topics) {
		h.out.Append(consumerKey(subscriptionKey, g.id, ""), subscriptionValue(topics))
		grown = true
	}
	epoch, target, targetEpoch := c.epoch, c.target[after.id], c.assigned
	if h.replaces != "" {
		target = c.target[h.replaces]
	}
	if grown {
		epoch++
		g.putEpoch(epoch, h.out)
	}
	if epoch > c.assigned {
		target, targetEpoch = m.retarget(g, c, after, h.replaces, topics, patterns, epoch, h.out), epoch
	}
	moved := c.reconcile(after, targetEpoch, target, h.has, h.told, h.replaces)
	if moved != after {
		g.putCurrent(moved, h.out)
		if moved.classic == nil {
			if moved.state == unrevoked {
				h.out.Set(consumerRebalanceOf(g.id, moved.id), h.now.Add(time.Duration(moved.rebalanceTimeout)*time.Millisecond))
			} else {
				h.out.Stop(consumerRebalanceOf(g.id, moved.id))
			}
		}
	}
	return moved
}

// sameMember tells whether two states of a member have the same record.
func sameMember(a, b *consumerMember) bool {
	same := func(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(a.instance, b.instance) && same(a.rack, b.rack) && a.clientID == b.clientID && a.host == b.host && slices.Equal(a.topics, b.topics) &&
		same(a.regex, b.regex) && a.rebalanceTimeout == b.rebalanceTimeout && same(a.assignor, b.assignor) && (a.classic == b.classic || a.classic.equal(b.classic))
}

func (c *classicMember) equal(o *classicMember) bool {
	return c != nil && o != nil && c.sessionTimeout == o.sessionTimeout && slices.EqualFunc(c.protocols, o.protocols, func(a, b protocol) bool {
		return a.name == b.name && slices.Equal(a.metadata, b.metadata)
	})
}

// subscribedWith returns the topics that the members subscribe to once after is
// one of them, in place of the member replaces.
func (c *consumerGroup) subscribedWith(after *consumerMember, replaces string, patterns map[string][]string) []string {
	names := make([]string, 0, len(c.subscribers))
	if known := c.members[after.id]; known != nil && slices.Equal(known.topics, after.topics) {
		names = slices.AppendSeq(names, maps.Keys(c.subscribers))
	} else {
		names = append(names, after.topics...)
		for _, m := range c.members {
			if m.id != after.id && m.id != replaces {
				names = append(names, m.topics...)
			}
		}
	}
	for _, topics := range patterns {
		names = append(names, topics...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// shapes looks up topics; those that are not there are left out.
func (m *Machine) shapes(names []string) []topicShape {
	var all []topicShape
	for _, name := range names {
		if id, partitions := m.c.Topic(name); partitions > 0 && id != (wire.UUID{}) {
			all = append(all, topicShape{name, id, partitions})
		}
	}
	return all
}

func compareShapes(a, b topicShape) int { return strings.Compare(a.name, b.name) }

// consumerLeave handles the heartbeat of a member that leaves.
func (m *Machine) consumerLeave(r *kmsg.ConsumerGroupHeartbeatRequest, now time.Time, out *coordinator.Effects) (*kmsg.ConsumerGroupHeartbeatResponse, *refusal) {
	g := m.groups[r.Group]
	if g == nil || g.consumer == nil {
		return nil, refuse(wire.GroupIDNotFound, "Consumer group %s not found.", r.Group)
	}
	c := g.consumer
	known := c.members[r.MemberID]
	if r.InstanceID != nil {
		known = c.staticMember(r.InstanceID)
		switch {
		case known == nil:
			return nil, refuse(wire.UnknownMemberID, "Instance id %s is unknown.", *r.InstanceID)
		case known.id != r.MemberID:
			return nil, refuse(wire.FencedInstanceID, "Static member %s with instance id %s was fenced by member %s.", r.MemberID, *r.InstanceID, known.id)
		}
	}
	if known == nil {
		return nil, refuse(wire.UnknownMemberID, "Member %s is not a member of group %s.", r.MemberID, g.id)
	}
	answer := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	answer.MemberID, answer.MemberEpoch = &known.id, r.MemberEpoch
	if r.InstanceID != nil && r.MemberEpoch == staticLeaveEpoch {
		away := *known // until its session ends
		away.epoch, away.revoking = staticLeaveEpoch, nil
		g.putCurrent(&away, out)
		return answer, nil
	}
	m.fenceConsumers(g, []*consumerMember{known}, now, out)
	return answer, nil
}

// fenceConsumers takes members out of a consumer group
// (consumerGroupFenceMember). If only classic members are left, the group may
// become a classic one.
func (m *Machine) fenceConsumers(g *group, gone []*consumerMember, now time.Time, out *coordinator.Effects) {
	c := g.consumer
	for _, member := range gone {
		m.stopConsumer(g.id, member.id, out)
	}
	if len(gone) == 1 && m.downgrade(g, gone[0].id, now, out) {
		return
	}
	subscribers := map[string]int{}
	for t, n := range c.subscribers {
		subscribers[t] = n
	}
	for _, member := range gone {
		g.dropMember(member.id, out)
		for _, t := range member.topics {
			subscribers[t]--
		}
	}
	for _, t := range g.dropPatterns(gone, out) {
		subscribers[t]++
	}
	topics := slices.DeleteFunc(slices.Clone(c.topics), func(t topicShape) bool { return subscribers[t.name] <= 0 })
	if len(topics) != len(c.topics) {
		out.Append(consumerKey(subscriptionKey, g.id, ""), subscriptionValue(topics))
	}
	g.putEpoch(c.epoch+1, out)
}

func (m *Machine) stopConsumer(group, member string, out *coordinator.Effects) {
	for _, kind := range []uint8{consumerSessionTimer, consumerRebalanceTimer, consumerJoinTimer, consumerSyncTimer} {
		out.Stop(coordinator.Timer{Kind: kind, A: group, B: member})
	}
}

// consumerExpired handles a timer of a consumer group's member.
func (m *Machine) consumerExpired(t coordinator.Timer, g *group, now time.Time, out *coordinator.Effects) {
	if g.consumer == nil {
		return
	}
	member := g.consumer.members[t.B]
	if member == nil || t.Kind == consumerRebalanceTimer && member.state != unrevoked {
		return
	}
	m.fenceConsumers(g, []*consumerMember{member}, now, out)
}
