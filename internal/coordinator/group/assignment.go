package group

import (
	"bytes"
	"maps"
	"slices"

	"barnabas/internal/wire"
)

// assignment is partitions of topics, in order; no topic has none. It is never
// changed once it is made.
type assignment map[wire.UUID][]int32

func (a assignment) each(f func(owned)) {
	for topic, parts := range a {
		for _, p := range parts {
			f(owned{topic, p})
		}
	}
}

func (a assignment) has(p owned) bool {
	_, ok := slices.BinarySearch(a[p.topic], p.index)
	return ok
}

func (a assignment) count() (n int) {
	for _, parts := range a {
		n += len(parts)
	}
	return n
}

// where returns the partitions that keep returns true for.
func (a assignment) where(keep func(owned) bool) assignment {
	var b assignmentBuilder
	a.each(func(p owned) {
		if keep(p) {
			b.add(p)
		}
	})
	return b.done()
}

// with returns the partitions of both.
func (a assignment) with(o assignment) assignment {
	var b assignmentBuilder
	a.each(b.add)
	o.each(func(p owned) {
		if !a.has(p) {
			b.add(p)
		}
	})
	return b.done()
}

func (a assignment) equal(o assignment) bool {
	return maps.EqualFunc(a, o, func(x, y []int32) bool { return slices.Equal(x, y) })
}

// topics returns the ids of the topics, in order.
func (a assignment) topics() []wire.UUID {
	return slices.SortedFunc(maps.Keys(a), func(x, y wire.UUID) int { return bytes.Compare(x[:], y[:]) })
}

// assignmentBuilder gathers an assignment; each partition is added once.
type assignmentBuilder struct{ a assignment }

func (b *assignmentBuilder) add(p owned) {
	if b.a == nil {
		b.a = assignment{}
	}
	b.a[p.topic] = append(b.a[p.topic], p.index)
}

func (b *assignmentBuilder) done() assignment {
	for _, parts := range b.a {
		slices.Sort(parts)
	}
	return b.a
}
