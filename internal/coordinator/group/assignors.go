package group

import (
	"cmp"
	"slices"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"
)

// defaultAssignor is used when no member names one.
const defaultAssignor = "uniform"

// assignors are the server-side assignors by name, as members ask for them.
var assignors = map[string]func(topics map[string]topicShape, members []subscriber) map[string]assignment{
	"uniform": assignUniformly,
	"range":   assignRanges,
}

// subscriber is a member as an assignor sees it.
type subscriber struct {
	id     string
	topics []string
	had    assignment // by the target before
}

// retarget computes the target of every member, stores those that change and
// then the target's epoch. It returns that of one member, which is new or has
// changed (TargetAssignmentBuilder).
func (m *Machine) retarget(g *group, c *consumerGroup, changed *consumerMember, replaces string, topics []topicShape, patterns map[string][]string, epoch int32, out *coordinator.Effects) assignment {
	members := []*consumerMember{changed}
	for _, id := range c.order {
		if id != changed.id && id != replaces {
			members = append(members, c.members[id])
		}
	}
	// Static members keep their place whatever their ids are.
	place := func(m *consumerMember) string {
		if m.instance != nil {
			return *m.instance
		}
		return m.id
	}
	slices.SortFunc(members, func(a, b *consumerMember) int { return cmp.Compare(place(a), place(b)) })
	var all []subscriber
	for _, member := range members {
		had := c.target[member.id]
		if member == changed && replaces != "" {
			had = c.target[replaces]
		}
		all = append(all, subscriber{member.id, member.wants(patterns), had})
	}
	shapes := make(map[string]topicShape, len(topics))
	for _, t := range topics {
		shapes[t.name] = t
	}
	target := assignors[c.assignor(changed)](shapes, all)
	for _, s := range all {
		if known, ok := c.target[s.id]; !ok || !known.equal(target[s.id]) {
			g.putTarget(s.id, target[s.id], out)
		}
	}
	out.Append(consumerKey(targetEpochKey, g.id, ""), epochValue(epoch))
	return target[changed.id]
}

// assignor returns the one that most members ask for; changed is in place of
// what the group has of that member.
func (c *consumerGroup) assignor(changed *consumerMember) string {
	votes, best := map[string]int{}, defaultAssignor
	vote := func(m *consumerMember) {
		if name := m.assignor; name != nil && assignors[*name] != nil {
			if votes[*name]++; votes[*name] > votes[best] {
				best = *name
			}
		}
	}
	for _, id := range c.order {
		if changed == nil || id != changed.id {
			vote(c.members[id])
		}
	}
	if changed != nil {
		vote(changed)
	}
	return best
}

// shapes returns the topics of a member that there are.
func (s *subscriber) shapes(topics map[string]topicShape) (all []topicShape) {
	for _, name := range s.topics {
		if t, ok := topics[name]; ok {
			all = append(all, t)
		}
	}
	return all
}

// assignRanges gives each member a run of each topic's partitions, so that
// members get the same numbers of topics that have as many (RangeAssignor).
func assignRanges(topics map[string]topicShape, members []subscriber) map[string]assignment {
	bySubscriber := map[string][]string{}
	for _, m := range members {
		for _, t := range m.shapes(topics) {
			bySubscriber[t.name] = append(bySubscriber[t.name], m.id)
		}
	}
	builders := map[string]*assignmentBuilder{}
	for _, m := range members {
		builders[m.id] = &assignmentBuilder{}
	}
	for name, ids := range bySubscriber {
		t := topics[name]
		each, more := int(t.partitions)/len(ids), int(t.partitions)%len(ids)
		next := int32(0)
		for i, id := range ids {
			n := each
			if i < more {
				n++
			}
			for range n {
				builders[id].add(owned{t.id, next})
				next++
			}
		}
	}
	target := make(map[string]assignment, len(members))
	for id, b := range builders {
		target[id] = b.done()
	}
	return target
}

// share is what a member gets while partitions are being spread.
type share struct {
	topics map[wire.UUID]bool // that it subscribes to
	parts  []owned
}

// assignUniformly spreads the partitions so that no member has more than one
// above another that could take it, and moves as few as it can (UniformAssignor).
func assignUniformly(topics map[string]topicShape, members []subscriber) map[string]assignment {
	shares := make([]*share, len(members))
	subscribers := map[wire.UUID][]int{}
	for i := range members {
		shares[i] = &share{topics: map[wire.UUID]bool{}}
		for _, t := range members[i].shapes(topics) {
			shares[i].topics[t.id] = true
			subscribers[t.id] = append(subscribers[t.id], i)
		}
	}
	var all []topicShape
	for _, t := range topics {
		if len(subscribers[t.id]) > 0 {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b topicShape) int {
		return cmp.Or(cmp.Compare(len(subscribers[a.id]), len(subscribers[b.id])), compareShapes(a, b))
	})
	taken := keep(members, shares, all)
	for _, t := range all { // those that the fewest can take come first
		for p := range t.partitions {
			if at := (owned{t.id, p}); !taken[at] {
				i := least(shares, subscribers[t.id])
				shares[i].parts = append(shares[i].parts, at)
			}
		}
	}
	for level(shares, subscribers) {
	}
	target := make(map[string]assignment, len(members))
	for i, s := range shares {
		var b assignmentBuilder
		for _, p := range s.parts {
			b.add(p)
		}
		target[members[i].id] = b.done()
	}
	return target
}

// keep leaves members what they had, as far as it is there and nobody else has it.
func keep(members []subscriber, shares []*share, topics []topicShape) map[owned]bool {
	partitions := map[wire.UUID]int32{}
	for _, t := range topics {
		partitions[t.id] = t.partitions
	}
	taken := map[owned]bool{}
	for i, m := range members {
		for _, topic := range m.had.topics() {
			for _, p := range m.had[topic] {
				if at := (owned{topic, p}); shares[i].topics[topic] && p < partitions[topic] && !taken[at] {
					taken[at] = true
					shares[i].parts = append(shares[i].parts, at)
				}
			}
		}
	}
	return taken
}

// least returns which of some members has the fewest partitions, the first of equals.
func least(shares []*share, among []int) int {
	best := among[0]
	for _, i := range among {
		if len(shares[i].parts) < len(shares[best].parts) {
			best = i
		}
	}
	return best
}

// level moves partitions from members that have at least two more than one that
// could take them. It returns false when there is nothing to move.
func level(shares []*share, subscribers map[wire.UUID][]int) (moved bool) {
	for _, from := range shares {
		for i := len(from.parts) - 1; i >= 0; i-- {
			p := from.parts[i]
			to := shares[least(shares, subscribers[p.topic])]
			if len(to.parts)+1 < len(from.parts) {
				from.parts = slices.Delete(from.parts, i, i+1)
				to.parts = append(to.parts, p)
				moved = true
			}
		}
	}
	return moved
}
