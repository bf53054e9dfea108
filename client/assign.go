package client

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// ErrAssignment is the error when the members' subscriptions do not allow the
// strategy.
var ErrAssignment = errors.New("client: the subscriptions of the group do not fit the assignment strategy")

// Strategy says how the partitions of a group are shared out. All members of a
// group must use the same one (partition.assignment.strategy).
type Strategy int8

// The strategies of 0.8.2.
const (
	// Range gives each thread neighbouring partitions, topic by topic.
	Range Strategy = iota
	// RoundRobinAssignment deals the partitions of all topics out in turn. All
	// members must have the same topics with the same number of streams.
	RoundRobinAssignment
)

// member is a consumer of the group as its registration says, its filter
// already turned into topics.
type member struct {
	id     string
	topics map[string]int // number of streams
}

// thread names one stream of a member.
type thread struct {
	consumer string
	index    int
}

func (t thread) String() string { return znode.ConsumerThreadID(t.consumer, t.index) }

// compareThreads orders threads as kafka.consumer.ConsumerThreadId does: as
// text, so that c-10 comes before c-2.
func compareThreads(a, b thread) int { return compareUTF16(a.String(), b.String()) }

// compareUTF16 orders as java.lang.String does, by UTF-16 units. It differs
// from the order of bytes only where one has a character above U+FFFF and the
// other one from U+E000 on.
func compareUTF16(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	for i := range min(len(ra), len(rb)) {
		if x, y := ra[i], rb[i]; x != y {
			if high := x > 0xffff; high != (y > 0xffff) {
				x, y = firstUnit(x), firstUnit(y)
			}
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(ra), len(rb))
}

func firstUnit(r rune) rune {
	if r > 0xffff {
		return 0xd800 + (r-0x10000)>>10
	}
	return r
}

// share returns the partitions of one member, with the stream of each.
// partitions are the partitions of every topic of the group, in order.
func share(strategy Strategy, group []member, partitions map[string][]int32, me string) (map[wire.TopicPartition]int, error) {
	threads := map[string][]thread{}
	for _, m := range group {
		for topic, streams := range m.topics {
			for i := range streams {
				threads[topic] = append(threads[topic], thread{m.id, i})
			}
		}
	}
	for _, list := range threads {
		slices.SortFunc(list, compareThreads)
	}
	if strategy == RoundRobinAssignment {
		return shareRoundRobin(threads, partitions, me)
	}
	return shareRange(threads, partitions, me), nil
}

// shareRange is kafka.consumer.RangeAssignor: of p partitions in order, the
// thread at place i of t takes p/t, beginning at p/t*i+min(i, p%t), and one more
// if i < p%t.
func shareRange(threads map[string][]thread, partitions map[string][]int32, me string) map[wire.TopicPartition]int {
	mine := map[wire.TopicPartition]int{}
	for topic, list := range threads {
		parts := partitions[topic]
		each, more := len(parts)/len(list), len(parts)%len(list)
		for i, t := range list {
			if t.consumer != me {
				continue
			}
			first, n := each*i+min(i, more), each
			if i < more {
				n++
			}
			for _, p := range parts[first : first+n] {
				mine[wire.TopicPartition{Topic: topic, Partition: p}] = t.index
			}
		}
	}
	return mine
}

// shareRoundRobin is kafka.consumer.RoundRobinAssignor: the partitions of all
// topics, in the order of Java's hash code of "[topic,partition]", are dealt out
// to the threads in their order.
func shareRoundRobin(threads map[string][]thread, partitions map[string][]int32, me string) (map[wire.TopicPartition]int, error) {
	var ring []thread
	var first string
	for _, topic := range slices.Sorted(maps.Keys(threads)) {
		switch list := threads[topic]; {
		case ring == nil:
			ring, first = list, topic
		case !slices.Equal(ring, list):
			return nil, fmt.Errorf("%w: roundrobin needs the same streams for every topic, but those of %q and %q differ", ErrAssignment, first, topic)
		}
	}
	type placed struct {
		wire.TopicPartition
		hash int32
	}
	var all []placed
	for _, topic := range slices.Sorted(maps.Keys(threads)) {
		for _, p := range partitions[topic] {
			all = append(all, placed{wire.TopicPartition{Topic: topic, Partition: p}, hashString(fmt.Sprintf("[%s,%d]", topic, p))})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.hash, b.hash) })
	mine := map[wire.TopicPartition]int{}
	for i, p := range all {
		if t := ring[i%len(ring)]; t.consumer == me {
			mine[p.TopicPartition] = t.index
		}
	}
	return mine, nil
}

// expand turns a registration into a member: a filter into the topics that it
// lets pass.
func expand(id string, r znode.ConsumerRegistration, topics []string, hideInternal bool) (member, error) {
	m := member{id, map[string]int{}}
	if r.Pattern == znode.PatternStatic {
		for topic, streams := range r.Subscription {
			m.topics[topic] = int(streams)
		}
		return m, nil
	}
	for expression, streams := range r.Subscription {
		var f TopicFilter
		var err error
		if r.Pattern == znode.PatternBlackList {
			f, err = BlackList(expression)
		} else {
			f, err = WhiteList(expression)
		}
		if err != nil {
			return m, fmt.Errorf("consumer %s: %w", id, err)
		}
		for _, topic := range topics {
			if f.Allows(topic, hideInternal) {
				m.topics[topic] = int(streams)
			}
		}
	}
	return m, nil
}

func isWild(r znode.ConsumerRegistration) bool {
	return strings.EqualFold(r.Pattern, znode.PatternWhiteList) || strings.EqualFold(r.Pattern, znode.PatternBlackList)
}
