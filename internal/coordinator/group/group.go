package group

import (
	"slices"
	"time"

	"barnabas/internal/coordinator"
)

// state is where a group of the classic protocol stands. A group that is not in
// the machine's table is what Kafka calls Dead.
type state int8

const (
	empty      state = iota // no members; perhaps offsets
	preparing               // waits for members to join
	completing              // waits for the leader's assignment
	stable
)

// String returns the name that DescribeGroups and ListGroups tell.
func (s state) String() string {
	switch s {
	case empty:
		return "Empty"
	case preparing:
		return "PreparingRebalance"
	case completing:
		return "CompletingRebalance"
	default:
		return "Stable"
	}
}

// consumerType is the protocol type of consumers, whose metadata the
// coordinator reads: which topics they subscribed to.
const consumerType = "consumer"

// group is one group: its members, as the classic protocol has them, and its
// committed offsets.
type group struct {
	id           string
	state        state
	stateTime    int64  // ms; when the state was entered; -1: not known
	protocolType string // "": none yet
	protocol     string // chosen for this generation; "": none
	leader       string // a member id, or ""
	generation   int32

	members map[string]*member
	order   []*member         // in the order of joining
	static  map[string]string // instance id to member id
	pending map[string]struct{}
	told    int  // bytes of the members' protocols
	stored  bool // there is a record of the group
	// supported counts, for each protocol, the members that have it.
	supported map[string]int
	awaiting  int // members that wait for the end of the join phase
	// toSync are the members that have not sent SyncGroup in this generation.
	toSync map[string]struct{}

	// The join phase of a group that was empty is prolonged while new members
	// come, at most by remaining.
	initial   bool
	newcomer  bool
	remaining time.Duration

	// subscribed are the topics of the members, if they are consumers and all
	// their metadata could be read; nil else.
	subscribed map[string]struct{}

	// consumer is set while the group is of the consumer protocol (KIP-848): then
	// the fields above are those of a group without members.
	consumer *consumerGroup
	// rejoining are classic members of consumer that were told to join again.
	rejoining map[string]struct{}

	offsets map[string]map[int32]offset // by topic
	// uncertain are offsets of transactions that are not decided, by producer id.
	uncertain map[int64]map[partition]offset
}

// member is a member of a group.
type member struct {
	id, clientID, host               string
	instance                         *string
	rebalanceTimeout, sessionTimeout int64 // ms
	protocols                        []protocol
	assignment                       []byte
	isNew                            bool // has not got its first JoinGroup answer
	join                             coordinator.Caller
	joinVersion                      int16
	sync                             coordinator.Caller
}

type protocol struct {
	name     string
	metadata []byte
}

func newGroup(id string, now int64) *group {
	return &group{
		id: id, stateTime: now, members: map[string]*member{}, static: map[string]string{}, pending: map[string]struct{}{},
		supported: map[string]int{}, toSync: map[string]struct{}{}, offsets: map[string]map[int32]offset{},
	}
}

func (m *member) metadata(name string) []byte {
	for i := range m.protocols {
		if m.protocols[i].name == name {
			return m.protocols[i].metadata
		}
	}
	return nil
}

func (m *member) matches(protocols []protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b protocol) bool {
		return a.name == b.name && slices.Equal(a.metadata, b.metadata)
	})
}

func (g *group) setState(s state, now time.Time) { g.state, g.stateTime = s, now.UnixMilli() }

func (g *group) add(m *member) {
	if g.leader == "" {
		g.leader = m.id
	}
	g.members[m.id] = m
	g.order = append(g.order, m)
	if m.instance != nil {
		g.static[*m.instance] = m.id
	}
	g.count(m, 1)
	if m.join != nil {
		g.awaiting++
	}
	delete(g.pending, m.id)
}

func (g *group) count(m *member, by int) {
	g.told += by * protocolBytes(m.protocols)
	for _, p := range m.protocols {
		if g.supported[p.name] += by; g.supported[p.name] == 0 {
			delete(g.supported, p.name)
		}
	}
}

// remove takes out a member, or a pending member id.
func (g *group) remove(id string) {
	delete(g.pending, id)
	delete(g.toSync, id)
	m := g.members[id]
	if m == nil {
		return
	}
	delete(g.members, id)
	g.order = slices.DeleteFunc(g.order, func(o *member) bool { return o == m })
	if m.instance != nil && g.static[*m.instance] == id {
		delete(g.static, *m.instance)
	}
	g.count(m, -1)
	if m.join != nil {
		g.awaiting--
	}
	if g.leader == id {
		g.leader = ""
		if len(g.order) > 0 {
			g.leader = g.order[0].id
		}
	}
}

// setProtocols replaces what a member supports; names are told once each.
func (g *group) setProtocols(m *member, protocols []protocol) {
	g.count(m, -1)
	m.protocols = protocols
	g.count(m, 1)
}

// await parks a member's JoinGroup, or ends that when c is nil.
func (g *group) await(m *member, c coordinator.Caller) {
	switch {
	case m.join == nil && c != nil:
		g.awaiting++
	case m.join != nil && c == nil:
		g.awaiting--
	}
	m.join = c
}

func (g *group) allJoined() bool {
	return g.awaiting == len(g.members) && len(g.pending) == 0
}

// supports tells whether a member with these protocols can join.
func (g *group) supports(protocolType string, protocols []protocol) bool {
	if g.state == empty {
		return protocolType != "" && len(protocols) > 0
	}
	return g.protocolType == protocolType && slices.ContainsFunc(protocols, func(p protocol) bool {
		return g.supported[p.name] == len(g.members)
	})
}

// choose returns the protocol that most members like best among those that all
// have; of equals the one that was voted for first.
func (g *group) choose() string {
	votes := map[string]int{}
	var best string
	for _, m := range g.order {
		for _, p := range m.protocols {
			if g.supported[p.name] == len(g.members) {
				votes[p.name]++
				break
			}
		}
	}
	for _, m := range g.order {
		for _, p := range m.protocols {
			if votes[p.name] > votes[best] {
				best = p.name
			}
		}
	}
	return best
}

// rebalanceTimeout is how long the slowest member may take.
func (g *group) rebalanceTimeout() time.Duration {
	var most int64
	for _, m := range g.order {
		most = max(most, m.rebalanceTimeout)
	}
	return time.Duration(most) * time.Millisecond
}

// resubscribe finds out the topics of the members.
func (g *group) resubscribe() {
	g.subscribed = nil
	if g.protocolType == "" {
		return
	}
	if len(g.members) == 0 {
		g.subscribed = map[string]struct{}{}
		return
	}
	if g.protocolType != consumerType || g.protocol == "" {
		return
	}
	topics := map[string]struct{}{}
	for _, m := range g.order {
		if !eachTopic(m.metadata(g.protocol), func(t string) { topics[t] = struct{}{} }) {
			return
		}
	}
	g.subscribed = topics
}

// isSubscribed tells whether a topic may be in use: if the subscriptions are
// not known, any is.
func (g *group) isSubscribed(topic string) bool {
	if g.consumer != nil {
		return g.consumer.subscribers[topic] > 0
	}
	if g.subscribed == nil {
		return true
	}
	_, ok := g.subscribed[topic]
	return ok
}

// hasMembers tells whether the group is not empty.
func (g *group) hasMembers() bool {
	return g.state != empty || g.consumer != nil && len(g.consumer.members) > 0
}

func (g *group) hasOffsets() bool { return len(g.offsets) > 0 || len(g.uncertain) > 0 }

func (g *group) offset(topic string, index int32) (offset, bool) {
	o, ok := g.offsets[topic][index]
	return o, ok
}

func (g *group) setOffset(topic string, index int32, o offset) {
	parts := g.offsets[topic]
	if parts == nil {
		parts = make(map[int32]offset, 1)
		g.offsets[topic] = parts
	}
	parts[index] = o
}

func (g *group) removeOffset(topic string, index int32) {
	parts := g.offsets[topic]
	delete(parts, index)
	if len(parts) == 0 {
		delete(g.offsets, topic)
	}
}

// isUncertain tells whether a transaction that is not decided commits this
// partition's offset.
func (g *group) isUncertain(topic string, index int32) bool {
	for _, offsets := range g.uncertain {
		if _, ok := offsets[partition{topic, index}]; ok {
			return true
		}
	}
	return false
}
