package group

import (
	"errors"
	"maps"
	"slices"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"
)

// Config are the broker's properties that groups go by.
type Config struct {
	MinSession, MaxSession time.Duration // group.min.session.timeout.ms, group.max.session.timeout.ms
	InitialDelay           time.Duration // group.initial.rebalance.delay.ms
	MaxSize                int           // group.max.size
	MaxMetadata            int           // offset.metadata.max.bytes, of one offset
	Retention              time.Duration // offsets.retention.minutes
	CheckInterval          time.Duration // offsets.retention.check.interval.ms
	MaxRecord              int           // bytes of a group's record

	// Of groups of the consumer protocol (KIP-848).
	ConsumerSession    time.Duration // group.consumer.session.timeout.ms
	ConsumerHeartbeat  time.Duration // group.consumer.heartbeat.interval.ms
	ConsumerMaxSize    int           // group.consumer.max.size
	Upgrade, Downgrade bool          // group.consumer.migration.policy
	// Topic returns a topic's id and how many partitions it has, 0 for none.
	Topic func(name string) (id wire.UUID, partitions int32)
	// TopicName returns the name of the topic with an id.
	TopicName func(id wire.UUID) (name string, ok bool)
	// Topics calls f with each topic's name, in no order, until it returns false.
	Topics func(f func(name string) bool)
	// TopicsCame counts the topics that have come, so that they are looked
	// through again only if there may be a new one.
	TopicsCame func() uint64

	// NewID returns what makes a member id unique: a random UUID.
	NewID func() string
}

// Machine is the groups of one partition of __consumer_offsets.
type Machine struct {
	c      Config
	groups map[string]*group
	// producers are the groups with offsets of a producer's open transaction.
	producers map[int64]map[string]struct{}
	// unstored are the groups that JoinGroup made, and perhaps some that were
	// stored since.
	unstored map[string]struct{}
}

// New returns a Machine without groups.
func New(c Config) *Machine {
	return &Machine{c: c, groups: map[string]*group{}, producers: map[int64]map[string]struct{}{}, unstored: map[string]struct{}{}}
}

// The timers of a machine. A is the group, B the member.
const (
	sessionTimer uint8 = iota // a member has not been heard of
	pendingTimer              // a member id was given out and not used
	joinTimer                 // the join phase ends
	syncTimer                 // the sync phase ends
	expiryTimer               // look for expired offsets

	consumerSessionTimer   // a consumer group's member has not been heard of
	consumerRebalanceTimer // it has not given partitions up
	consumerJoinTimer      // being classic, it has not joined again
	consumerSyncTimer      // being classic, it has not sent SyncGroup
	downgradedTimer        // the group has become a classic one: rebalance
)

func sessionOf(g *group, member string) coordinator.Timer {
	return coordinator.Timer{Kind: sessionTimer, A: g.id, B: member}
}

func pendingOf(g *group, member string) coordinator.Timer {
	return coordinator.Timer{Kind: pendingTimer, A: g.id, B: member}
}

func consumerSessionOf(group, member string) coordinator.Timer {
	return coordinator.Timer{Kind: consumerSessionTimer, A: group, B: member}
}

func consumerRebalanceOf(group, member string) coordinator.Timer {
	return coordinator.Timer{Kind: consumerRebalanceTimer, A: group, B: member}
}

func joinOf(g *group) coordinator.Timer { return coordinator.Timer{Kind: joinTimer, A: g.id} }
func syncOf(g *group) coordinator.Timer { return coordinator.Timer{Kind: syncTimer, A: g.id} }

// newMemberTimeout is how long a member may wait for its first JoinGroup
// answer: nobody would see it go (Kafka's NewMemberJoinTimeoutMs, KAFKA-7610).
const newMemberTimeout = 5 * time.Minute

func (m *Machine) groupOrNew(id string, now time.Time) *group {
	g := m.groups[id]
	if g == nil {
		g = newGroup(id, now.UnixMilli())
		m.groups[id] = g
	}
	return g
}

var errInTransaction = errors.New("a group's members in a transaction")

// Replay applies a record.
func (m *Machine) Replay(e coordinator.Entry) error {
	k, err := decodeKey(e.Key)
	if err != nil {
		return err
	}
	switch {
	case isConsumerKey(k.version):
		if e.Transactional {
			return errInTransaction
		}
		return m.replayConsumer(k, e)
	case k.offset && e.Value == nil:
		m.replayOffset(k, e, nil)
	case k.offset:
		o, err := decodeOffset(e.Value)
		if err != nil {
			return err
		}
		o.position = e.Position
		m.replayOffset(k, e, &o)
	case e.Transactional:
		return errInTransaction
	case e.Value == nil:
		if g := m.groups[k.group]; g != nil {
			m.forget(g)
		}
	default:
		s, err := decodeGroup(e.Value)
		if err != nil {
			return err
		}
		m.replayGroup(k.group, &s)
	}
	return nil
}

func (m *Machine) replayOffset(k key, e coordinator.Entry, o *offset) {
	g := m.groups[k.group]
	if g == nil {
		if o == nil {
			return
		}
		g = newGroup(k.group, -1)
		m.groups[k.group] = g
	}
	switch {
	case e.Transactional && o != nil:
		id := e.Producer.ID
		if g.uncertain == nil {
			g.uncertain = map[int64]map[partition]offset{}
		}
		if g.uncertain[id] == nil {
			g.uncertain[id] = map[partition]offset{}
		}
		g.uncertain[id][k.partition] = *o
		if m.producers[id] == nil {
			m.producers[id] = map[string]struct{}{}
		}
		m.producers[id][g.id] = struct{}{}
	case e.Transactional: // nobody deletes offsets in a transaction
	case o != nil:
		g.setOffset(k.topic, k.index, *o)
	default:
		g.removeOffset(k.topic, k.index)
	}
}

// End applies the marker of a transaction: what was uncertain counts, unless a
// later commit has overtaken it, or is forgotten.
func (m *Machine) End(marker coordinator.Marker, _ int64) {
	for id := range m.producers[marker.ID] {
		g := m.groups[id]
		if g == nil {
			continue
		}
		if marker.Commit {
			for p, o := range g.uncertain[marker.ID] {
				if old, ok := g.offset(p.topic, p.index); !ok || old.position < o.position {
					g.setOffset(p.topic, p.index, o)
				}
			}
		}
		if delete(g.uncertain, marker.ID); len(g.uncertain) == 0 {
			g.uncertain = nil
		}
	}
	delete(m.producers, marker.ID)
}

// forget takes a group out, all but offsets that it still has: while a
// partition is loaded, tombstones of its offsets may follow.
func (m *Machine) forget(g *group) {
	delete(m.groups, g.id)
	if g.hasOffsets() {
		left := newGroup(g.id, -1)
		left.offsets, left.uncertain = g.offsets, g.uncertain
		m.groups[g.id] = left
	}
}

// replayGroup makes a group's members those of a record. Members that are there
// already keep what a record does not have.
func (m *Machine) replayGroup(id string, s *stored) {
	g := m.groups[id]
	if g == nil {
		g = newGroup(id, -1)
		m.groups[id] = g
	}
	g.consumer, g.stored = nil, true
	kept := map[string]struct{}{}
	for i := range s.members {
		kept[s.members[i].id] = struct{}{}
	}
	for _, gone := range slices.Clone(g.order) {
		if _, ok := kept[gone.id]; !ok {
			g.remove(gone.id)
		}
	}
	g.protocolType, g.protocol, g.generation = s.protocolType, s.protocol, s.generation
	for i := range s.members {
		r := &s.members[i]
		known := g.members[r.id]
		if known == nil {
			known = &member{
				id: r.id, clientID: r.clientID, host: r.host, instance: r.instance,
				rebalanceTimeout: int64(r.rebalanceTimeout), sessionTimeout: int64(r.sessionTimeout),
			}
			g.add(known)
		}
		if !slices.Equal(known.metadata(s.protocol), r.subscription) || len(known.protocols) == 0 {
			g.setProtocols(known, []protocol{{s.protocol, r.subscription}})
		}
		known.assignment = r.assignment
	}
	g.leader, g.stateTime = s.leader, s.stateTime
	g.state = empty
	if len(g.members) > 0 {
		g.state = stable
	}
	g.resubscribe()
}

// Loaded sets the timers of the members that were loaded.
func (m *Machine) Loaded(now time.Time, out *coordinator.Effects) {
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[id]
		if c := g.consumer; c != nil {
			for _, id := range c.order {
				member, session := c.members[id], m.c.ConsumerSession
				if member.classic != nil {
					session = time.Duration(member.classic.sessionTimeout) * time.Millisecond
				}
				out.Set(consumerSessionOf(g.id, id), now.Add(session))
				if member.state == unrevoked && member.classic == nil {
					out.Set(consumerRebalanceOf(g.id, id), now.Add(time.Duration(member.rebalanceTimeout)*time.Millisecond))
				}
			}
			continue
		}
		if g.generation == 0 && len(g.members) == 0 && !g.hasOffsets() {
			delete(m.groups, id) // its offsets were deleted
			continue
		}
		for _, member := range g.order {
			m.heard(g, member, now, out)
		}
		if len(g.members) > m.c.MaxSize {
			m.rebalance(g, now, out)
		}
	}
	out.Set(coordinator.Timer{Kind: expiryTimer}, now.Add(m.c.CheckInterval))
}

// Expired handles a timer.
func (m *Machine) Expired(t coordinator.Timer, now time.Time, out *coordinator.Effects) {
	if t.Kind == expiryTimer {
		m.removeExpired(now, out)
		out.Set(t, now.Add(m.c.CheckInterval))
		return
	}
	g := m.groups[t.A]
	if g == nil {
		return
	}
	switch t.Kind {
	case sessionTimer:
		if member := g.members[t.B]; member != nil && (member.isNew || member.join == nil && member.sync == nil) {
			m.removeMember(g, member, now, out)
		}
	case pendingTimer:
		if _, ok := g.pending[t.B]; ok {
			g.remove(t.B)
			m.maybeCompleteJoin(g, now, out)
			m.dropBare(g)
		}
	case joinTimer:
		m.joinPhaseOver(g, now, out)
	case syncTimer:
		m.syncPhaseOver(g, now, out)
	case downgradedTimer:
		if g.state == stable {
			m.rebalance(g, now, out)
		}
	default:
		m.consumerExpired(t, g, now, out)
	}
}
