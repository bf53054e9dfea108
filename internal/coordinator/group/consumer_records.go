package group

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"
)

// The keys of a consumer group (KIP-848) by their version; all values are
// flexible and of version 0:
//
//	3  group string                    epoch int32
//	4  group string                    topics []{id uuid | name string | partitions int32 |
//	                                   []{partition int32 | racks []string}}
//	5  group string | member string    instance string? | rack string? | client id string |
//	                                   host string | topics []string | regex string? |
//	                                   rebalance timeout ms int32 | assignor string? | tag 0:
//	                                   session timeout ms int32 | []{protocol string | metadata bytes}
//	6  group string                    epoch of the target int32
//	7  group string | member string    target []{id uuid | []int32}
//	8  group string | member string    epoch int32 | previous epoch int32 | state int8 |
//	                                   has []{id uuid | []int32} | revokes []{id uuid | []int32}
//	16 group string | regex string     topics []string | version int64 | time int64
//
// Of 16 the version is that of KRaft's metadata, the time when it was looked
// for; neither is read. No racks are written: no assignor looks at them.
const (
	consumerGroupKey = 3
	subscriptionKey  = 4
	memberKey        = 5
	targetEpochKey   = 6
	targetKey        = 7
	currentKey       = 8
	patternKey       = 16
)

func isConsumerKey(version int16) bool {
	return version >= consumerGroupKey && version <= currentKey || version == patternKey
}

// ofMember tells whether a key has a member id, or in its place a regular
// expression.
func ofMember(version int16) bool {
	return version == memberKey || version == targetKey || version == currentKey || version == patternKey
}

func consumerKey(version int16, group, member string) []byte {
	w := wire.Writer{B: make([]byte, 0, 6+len(group)+len(member))}
	w.Int16(version)
	w.String(false, group)
	if ofMember(version) {
		w.String(false, member)
	}
	return w.B
}

// epochValue is the value of keys 3 and 6.
func epochValue(epoch int32) []byte {
	var w wire.Writer
	w.Int16(0)
	w.Int32(epoch)
	w.Tags(true)
	return w.B
}

func subscriptionValue(topics []topicShape) []byte {
	var w wire.Writer
	w.Int16(0)
	w.Length(true, len(topics))
	for _, t := range topics {
		w.UUID(t.id)
		w.String(true, t.name)
		w.Int32(t.partitions)
		w.Length(true, 0)
		w.Tags(true)
	}
	w.Tags(true)
	return w.B
}

func memberValue(m *consumerMember) []byte {
	var w wire.Writer
	w.Int16(0)
	w.NullableString(true, m.instance)
	w.NullableString(true, m.rack)
	w.String(true, m.clientID)
	w.String(true, m.host)
	w.Length(true, len(m.topics))
	for _, t := range m.topics {
		w.String(true, t)
	}
	w.NullableString(true, m.regex)
	w.Int32(m.rebalanceTimeout)
	w.NullableString(true, m.assignor)
	if m.classic == nil {
		w.Tags(true)
		return w.B
	}
	var c wire.Writer
	c.Int32(m.classic.sessionTimeout)
	c.Length(true, len(m.classic.protocols))
	for _, p := range m.classic.protocols {
		c.String(true, p.name)
		c.Length(true, len(p.metadata))
		c.B = append(c.B, p.metadata...)
		c.Tags(true)
	}
	c.Tags(true)
	w.Uvarint(1)
	w.Uvarint(0)
	w.Uvarint(uint32(len(c.B) + 1)) // a nullable structure begins with a byte
	w.Int8(1)
	w.B = append(w.B, c.B...)
	return w.B
}

func writeAssignment(w *wire.Writer, a assignment) {
	w.Length(true, len(a))
	for _, topic := range a.topics() {
		w.UUID(topic)
		w.Length(true, len(a[topic]))
		for _, p := range a[topic] {
			w.Int32(p)
		}
		w.Tags(true)
	}
}

func targetValue(a assignment) []byte {
	var w wire.Writer
	w.Int16(0)
	writeAssignment(&w, a)
	w.Tags(true)
	return w.B
}

func currentValue(m *consumerMember) []byte {
	var w wire.Writer
	w.Int16(0)
	w.Int32(m.epoch)
	w.Int32(m.previous)
	w.Int8(int8(m.state))
	writeAssignment(&w, m.partitions)
	writeAssignment(&w, m.revoking)
	w.Tags(true)
	return w.B
}

func patternValue(topics []string, now time.Time) []byte {
	var w wire.Writer
	w.Int16(0)
	w.Length(true, len(topics))
	for _, t := range topics {
		w.String(true, t)
	}
	w.Int64(0)
	w.Int64(now.UnixMilli())
	w.Tags(true)
	return w.B
}

// consumerValue is a decoded value: what its key's version has.
type consumerValue struct {
	epoch   int32
	topics  []topicShape
	member  consumerMember
	matches []string
}

func decodeConsumer(version int16, b []byte) (v consumerValue, err error) {
	r := wire.NewReader(b)
	if got := r.Int16(); r.Err() == nil && got != 0 {
		return v, fmt.Errorf("%w: value version %d of a key of version %d", errForeign, got, version)
	}
	m := &v.member
	switch version {
	case consumerGroupKey, targetEpochKey:
		v.epoch = r.Int32()
	case subscriptionKey:
		for n := r.Array(true, 19); n > 0 && r.Err() == nil; n-- {
			t := topicShape{id: r.UUID(), name: string(r.String(true)), partitions: r.Int32()}
			for n := r.Array(true, 6); n > 0 && r.Err() == nil; n-- {
				r.Int32()
				for n := r.Array(true, 1); n > 0 && r.Err() == nil; n-- {
					r.String(true)
				}
				r.Tags(true)
			}
			r.Tags(true)
			v.topics = append(v.topics, t)
		}
		slices.SortFunc(v.topics, compareShapes)
	case memberKey:
		readMember(&r, m)
	case targetKey:
		m.partitions = readAssignment(&r)
	case currentKey:
		m.epoch, m.previous, m.state = r.Int32(), r.Int32(), memberState(r.Int8())
		m.partitions, m.revoking = readAssignment(&r), readAssignment(&r)
	case patternKey:
		for n := r.Array(true, 1); n > 0 && r.Err() == nil; n-- {
			v.matches = append(v.matches, string(r.String(true)))
		}
		r.Int64()
		r.Int64()
		v.matches = sortedNames(v.matches)
	}
	if r.Err() != nil {
		return v, fmt.Errorf("%w: a value that is cut short", errForeign)
	}
	return v, nil
}

func optional(b []byte) *string {
	if b == nil {
		return nil
	}
	s := string(b)
	return &s
}

func readMember(r *wire.Reader, m *consumerMember) {
	m.instance, m.rack = optional(r.NullableString(true)), optional(r.NullableString(true))
	m.clientID, m.host = string(r.String(true)), string(r.String(true))
	for n := r.Array(true, 1); n > 0 && r.Err() == nil; n-- {
		m.topics = append(m.topics, string(r.String(true)))
	}
	m.topics = sortedNames(m.topics)
	m.regex = optional(r.NullableString(true))
	m.rebalanceTimeout = r.Int32()
	m.assignor = optional(r.NullableString(true))
	r.EachTag(func(tag uint32, value []byte) {
		if tag != 0 || len(value) == 0 || int8(value[0]) < 0 {
			return
		}
		t := wire.NewReader(value[1:])
		c := &classicMember{sessionTimeout: t.Int32()}
		for n := t.Array(true, 3); n > 0 && t.Err() == nil; n-- {
			p := protocol{name: string(t.String(true))}
			p.metadata = append([]byte{}, t.NullableBytes(true)...)
			t.Tags(true)
			c.protocols = append(c.protocols, p)
		}
		if t.Err() != nil {
			r.Fail()
			return
		}
		m.classic = c
	})
}

func readAssignment(r *wire.Reader) assignment {
	var b assignmentBuilder
	for n := r.Array(true, 18); n > 0 && r.Err() == nil; n-- {
		topic := r.UUID()
		for n := r.Array(true, 4); n > 0 && r.Err() == nil; n-- {
			b.add(owned{topic, r.Int32()})
		}
		r.Tags(true)
	}
	return b.done()
}

// sortedNames returns names in order, each once.
func sortedNames(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// The records of consumer groups.

func (g *group) putEpoch(epoch int32, out *coordinator.Effects) {
	out.Append(consumerKey(consumerGroupKey, g.id, ""), epochValue(epoch))
}

func (g *group) putMember(m *consumerMember, out *coordinator.Effects) {
	out.Append(consumerKey(memberKey, g.id, m.id), memberValue(m))
}

func (g *group) putCurrent(m *consumerMember, out *coordinator.Effects) {
	out.Append(consumerKey(currentKey, g.id, m.id), currentValue(m))
}

func (g *group) putTarget(id string, a assignment, out *coordinator.Effects) {
	out.Append(consumerKey(targetKey, g.id, id), targetValue(a))
}

// dropMember deletes a member's records.
func (g *group) dropMember(id string, out *coordinator.Effects) {
	for _, version := range []int16{currentKey, targetKey, memberKey} {
		out.Append(consumerKey(version, g.id, id), nil)
	}
}

// dropConsumers deletes a consumer group's records.
func (g *group) dropConsumers(out *coordinator.Effects) {
	for _, id := range g.consumer.order {
		g.dropMember(id, out)
	}
	for _, expression := range slices.Sorted(maps.Keys(g.consumer.patterns)) {
		out.Append(consumerKey(patternKey, g.id, expression), nil)
	}
	for _, version := range []int16{targetEpochKey, subscriptionKey, consumerGroupKey} {
		out.Append(consumerKey(version, g.id, ""), nil)
	}
}
