package group

import (
	"barnabas/internal/wire"
)

// What a group holds beyond its record lives in memory only, and costs whoever
// makes it nothing: so it is bounded.
const (
	// maxHeldRecords bounds what the members of a group tell, in records of the
	// largest size: the record itself has one protocol of each member.
	maxHeldRecords = 16
	// maxUnstored and maxUnstoredRecords bound the groups that were never stored.
	maxUnstored        = 1000
	maxUnstoredRecords = 64
	// memberCost is roughly what a member takes besides what it tells.
	memberCost = 256
)

func protocolBytes(all []protocol) (n int) {
	for i := range all {
		n += len(all[i].name) + len(all[i].metadata)
	}
	return n
}

// bytes is roughly what the members and the member ids that were given out take.
func (g *group) bytes() int { return g.told + memberCost*(len(g.members)+len(g.pending)) }

// isBare tells whether nothing would be lost with the group.
func (g *group) isBare() bool {
	return !g.stored && g.state == empty && g.consumer == nil && len(g.members)+len(g.pending) == 0 && !g.hasOffsets()
}

// dropBare takes a group out that was never more than a member id given out.
func (m *Machine) dropBare(g *group) {
	if g.isBare() {
		delete(m.groups, g.id)
		delete(m.unstored, g.id)
	}
}

// room judges whether there is memory for a JoinGroup request.
func (m *Machine) room(g *group, j *joining) wire.Code {
	size := protocolBytes(j.protocols) + memberCost
	if g.bytes()+size > maxHeldRecords*m.c.MaxRecord {
		return wire.GroupMaxSizeReached
	}
	if g.stored || g.hasOffsets() {
		return wire.None
	}
	groups, held := 1, size
	for id := range m.unstored {
		other := m.groups[id]
		if other == nil || other.stored || other.hasOffsets() || other.consumer != nil {
			delete(m.unstored, id)
			continue
		}
		if other != g {
			groups++
		}
		held += other.bytes()
	}
	if groups > maxUnstored || held > maxUnstoredRecords*m.c.MaxRecord {
		return wire.CoordinatorNotAvailable // the client asks again
	}
	m.unstored[g.id] = struct{}{}
	return wire.None
}
