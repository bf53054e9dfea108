package group

import (
	"slices"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"
)

// memberState is where a member of a consumer group stands, by its number in
// the log (Kafka's MemberState).
type memberState int8

const (
	reconciled memberState = 0 // STABLE: it has its target, or has not heard of a newer one
	unrevoked  memberState = 1 // UNREVOKED_PARTITIONS: it must give partitions up first
	unreleased memberState = 2 // UNRELEASED_PARTITIONS: others must give partitions up first
)

// The member epochs that are no epochs.
const (
	joinEpoch        = 0
	leaveEpoch       = -1
	staticLeaveEpoch = -2
)

// consumerGroup is a group of the protocol of KIP-848: members tell what they
// want and what they have, and the coordinator assigns.
type consumerGroup struct {
	epoch    int32 // grows with each change of members, subscriptions or topics
	assigned int32 // the epoch that the target is for
	members  map[string]*consumerMember
	order    []string // the members by id
	static   map[string]string
	// subscribers counts, for each topic, the members that subscribed to it.
	subscribers map[string]int
	topics      []topicShape // the subscribed topics, as they were when the epoch grew, by name
	// patterns are the topics, in order, that each regular expression of the
	// members matches.
	patterns map[string][]string
	looked   look
	target   map[string]assignment
	owners   map[owned]string // the member that has a partition, or must give it up
}

// owned is a partition by its topic's id.
type owned struct {
	topic wire.UUID
	index int32
}

// topicShape is a topic as far as its partitions can be assigned.
type topicShape struct {
	name       string
	id         wire.UUID
	partitions int32
}

// consumerMember is a member of a consumer group. It is never changed: replay
// puts another in its place.
type consumerMember struct {
	id, clientID, host string
	instance, rack     *string
	topics             []string // sorted
	regex              *string  // "": none
	rebalanceTimeout   int32    // ms
	assignor           *string
	classic            *classicMember // it speaks the classic protocol

	epoch, previous int32
	state           memberState
	partitions      assignment // it has them
	revoking        assignment // it must give them up
}

// classicMember is what a consumer group's member told in JoinGroup.
type classicMember struct {
	sessionTimeout int32 // ms
	protocols      []protocol
}

func newConsumerGroup() *consumerGroup {
	return &consumerGroup{
		assigned: -1, members: map[string]*consumerMember{}, static: map[string]string{}, subscribers: map[string]int{},
		patterns: map[string][]string{}, target: map[string]assignment{}, owners: map[owned]string{},
	}
}

// String returns the name that ConsumerGroupDescribe and ListGroups tell.
func (c *consumerGroup) state() string {
	switch {
	case len(c.members) == 0:
		return "Empty"
	case c.epoch > c.assigned:
		return "Assigning"
	}
	for _, m := range c.members {
		if m.state != reconciled || m.epoch != c.assigned {
			return "Reconciling"
		}
	}
	return "Stable"
}

// put makes m a member, in place of the one of the same id.
func (c *consumerGroup) put(m *consumerMember) {
	if old := c.members[m.id]; old != nil {
		c.unlink(old)
	} else {
		at, _ := slices.BinarySearch(c.order, m.id)
		c.order = slices.Insert(c.order, at, m.id)
	}
	c.members[m.id] = m
	if m.instance != nil {
		c.static[*m.instance] = m.id
	}
	for _, t := range m.topics {
		c.subscribers[t]++
	}
	for _, a := range []assignment{m.partitions, m.revoking} {
		a.each(func(p owned) { c.owners[p] = m.id })
	}
}

func (c *consumerGroup) unlink(m *consumerMember) {
	if m.instance != nil && c.static[*m.instance] == m.id {
		delete(c.static, *m.instance)
	}
	for _, t := range m.topics {
		if c.subscribers[t]--; c.subscribers[t] == 0 {
			delete(c.subscribers, t)
		}
	}
	for _, a := range []assignment{m.partitions, m.revoking} {
		a.each(func(p owned) {
			if c.owners[p] == m.id {
				delete(c.owners, p)
			}
		})
	}
}

func (c *consumerGroup) remove(id string) {
	m := c.members[id]
	if m == nil {
		return
	}
	c.unlink(m)
	delete(c.members, id)
	if at, ok := slices.BinarySearch(c.order, id); ok {
		c.order = slices.Delete(c.order, at, at+1)
	}
}

// staticMember returns the member of an instance id, or nil.
func (c *consumerGroup) staticMember(instance *string) *consumerMember {
	if instance == nil {
		return nil
	}
	return c.members[c.static[*instance]]
}

// classicProtocols counts, for each protocol, the classic members that have it.
func (c *consumerGroup) classicProtocols() (supported map[string]int, members int) {
	supported = map[string]int{}
	for _, m := range c.members {
		if m.classic == nil {
			continue
		}
		members++
		for _, p := range m.classic.protocols {
			supported[p.name]++
		}
	}
	return supported, members
}

// replayConsumer applies a record of a consumer group.
func (m *Machine) replayConsumer(k key, e coordinator.Entry) error {
	g := m.groups[k.group]
	if e.Value == nil {
		if g != nil && g.consumer != nil {
			m.replayConsumerTombstone(g, k)
		}
		return nil
	}
	v, err := decodeConsumer(k.version, e.Value)
	if err != nil {
		return err
	}
	if g == nil {
		g = newGroup(k.group, -1)
		m.groups[k.group] = g
	}
	if g.consumer == nil {
		g.consumer = newConsumerGroup()
	}
	c := g.consumer
	known := c.members[k.member]
	if known == nil {
		known = &consumerMember{id: k.member, epoch: leaveEpoch, previous: leaveEpoch}
	}
	changed := *known
	switch k.version {
	case consumerGroupKey:
		c.epoch = v.epoch
	case subscriptionKey:
		c.topics = v.topics
	case memberKey:
		r := v.member
		r.epoch, r.previous, r.state, r.partitions, r.revoking = known.epoch, known.previous, known.state, known.partitions, known.revoking
		r.id = k.member
		c.put(&r)
	case targetEpochKey:
		c.assigned = v.epoch
	case targetKey:
		c.target[k.member] = v.member.partitions
	case currentKey:
		changed.epoch, changed.previous, changed.state = v.member.epoch, v.member.previous, v.member.state
		changed.partitions, changed.revoking = v.member.partitions, v.member.revoking
		c.put(&changed)
	case patternKey:
		c.patterns[k.member] = v.matches
	}
	return nil
}

func (m *Machine) replayConsumerTombstone(g *group, k key) {
	c := g.consumer
	switch k.version {
	case consumerGroupKey:
		g.consumer = nil
		if !g.hasOffsets() && len(g.members) == 0 {
			delete(m.groups, g.id)
		}
	case subscriptionKey:
		c.topics = nil
	case memberKey:
		c.remove(k.member)
		delete(g.rejoining, k.member)
	case targetEpochKey:
		c.assigned = -1
	case targetKey:
		delete(c.target, k.member)
	case currentKey:
		if known := c.members[k.member]; known != nil {
			changed := *known
			changed.epoch, changed.previous, changed.state, changed.partitions, changed.revoking = leaveEpoch, leaveEpoch, reconciled, nil, nil
			c.put(&changed)
		}
	case patternKey:
		delete(c.patterns, k.member)
	}
}
