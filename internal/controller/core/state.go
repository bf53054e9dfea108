package core

import (
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/znode"
)

// maxRounds bounds how often a state that others keep writing is tried again.
const maxRounds = 10

// change is a wanted new state of a partition. A change function returns false
// when it wants none.
type change func(p *partition) (znode.PartitionState, bool)

// updateStates writes the changes to the state nodes, each expecting the data
// version in memory. A node that a leader wrote in between (inter-broker
// protocol below 2.7-IV2) is read again and the change made anew. then gets the
// partitions whose change is written, in order.
func (m *Machine) updateStates(parts []*partition, c change, then func(updated []*partition)) {
	m.updateRound(parts, c, nil, 0, then)
}

func (m *Machine) updateRound(parts []*partition, c change, updated []*partition, round int, then func([]*partition)) {
	var changed []*partition
	var wanted []znode.PartitionState
	var units []Unit
	for _, p := range parts {
		s, ok := c(p)
		if !ok {
			continue
		}
		s.ControllerEpoch = m.epoch
		changed, wanted = append(changed, p), append(wanted, s)
		units = append(units, Unit{{Kind: OpSet, Path: znode.StatePath(p.topic.name, p.id), Data: s.Encode(), Version: p.version}})
	}
	m.write(units, func(results []UnitResult) {
		var stale []*partition
		var staleWanted []znode.PartitionState
		for i, r := range results {
			p := changed[i]
			switch {
			case r.Err == jute.OK:
				m.setState(p, wanted[i], r.Version)
				updated = append(updated, p)
			case r.Err == jute.ErrBadVersion && round < maxRounds:
				stale, staleWanted = append(stale, p), append(staleWanted, wanted[i])
			default:
				m.warnf("could not write the state of %s: %v", p, r.Err)
			}
		}
		m.rereadStates(stale, staleWanted, func(again, done []*partition) {
			updated = append(updated, done...)
			if len(again) > 0 {
				m.updateRound(again, c, updated, round+1, then)
				return
			}
			slices.SortFunc(updated, comparePartitions)
			then(updated)
		})
	})
}

// rereadStates reads states that changed under us. A state that is the wanted
// one is our own write, whose answer was lost.
func (m *Machine) rereadStates(parts []*partition, wanted []znode.PartitionState, then func(again, done []*partition)) {
	m.readStates(parts, func(ok []bool) {
		var again, done []*partition
		for i, p := range parts {
			switch {
			case !ok[i]:
			case sameState(p.lead, wanted[i]):
				done = append(done, p)
			default:
				again = append(again, p)
			}
		}
		then(again, done)
	})
}

// setState takes a state that was written or read.
func (m *Machine) setState(p *partition, s znode.PartitionState, version int32) {
	p.led, p.hasNode, p.lead, p.version = true, true, s, version
	if _, moving := m.reassigning[p]; moving {
		m.isrMoved[p] = struct{}{}
	}
}

func sameState(a, b znode.PartitionState) bool {
	return a.Leader == b.Leader && a.LeaderEpoch == b.LeaderEpoch && a.ControllerEpoch == b.ControllerEpoch &&
		a.RecoveryState == b.RecoveryState && sameSet(a.ISR, b.ISR)
}

// readStates reads state nodes into memory. ok tells, partition by partition,
// whether there is a usable state; one that another controller of a later term
// wrote ends this term.
func (m *Machine) readStates(parts []*partition, then func(ok []bool)) {
	reads := make([]Read, len(parts))
	for i, p := range parts {
		reads[i] = Read{Kind: ReadData, Path: znode.StatePath(p.topic.name, p.id)}
	}
	m.read(reads, func(results []ReadResult) {
		ok := make([]bool, len(parts))
		for i, r := range results {
			p := parts[i]
			switch {
			case r.Err == jute.ErrNoNode:
			case r.Err != jute.OK:
				m.warnf("could not read the state of %s: %v", p, r.Err)
			default:
				s, err := znode.DecodePartitionState(r.Data)
				if err != nil {
					m.warnf("%s is left as it is: %v", znode.StatePath(p.topic.name, p.id), err)
					continue
				}
				if s.ControllerEpoch > m.epoch {
					m.resign("the controller has moved: " + p.String() + " was written in a later term")
					return
				}
				if len(s.ISR) == 0 {
					m.warnf("%s is left as it is: the ISR is empty", znode.StatePath(p.topic.name, p.id))
					continue
				}
				m.setState(p, s, r.Stat.Version)
				ok[i] = true
			}
		}
		then(ok)
	})
}

// createStates makes the first state of partitions that have none: their
// nodes, and their topics' partitions nodes where these are missing. A state
// that is there already is taken as it is. then gets those that now have the
// wanted state, and those that were found with another.
func (m *Machine) createStates(parts []*partition, wanted map[*partition]znode.PartitionState, then func(created, found []*partition)) {
	var units []Unit
	var of []*partition // nil: the unit of a partitions node
	for _, p := range parts {
		if !p.topic.hasParts {
			p.topic.hasParts = true
			units, of = append(units, Unit{{Kind: OpCreate, Path: znode.PartitionsPath(p.topic.name)}}), append(of, nil)
		}
		units, of = append(units, stateUnit(p, wanted[p])), append(of, p)
	}
	m.write(units, func(results []UnitResult) {
		var created, exists, bare []*partition
		for i, r := range results {
			p := of[i]
			switch {
			case p == nil && (r.Err == jute.OK || r.Err == jute.ErrNodeExists):
			case p == nil:
				m.warnf("could not create %s: %v", units[i][0].Path, r.Err)
			case r.Err == jute.OK:
				m.setState(p, wanted[p], 0)
				created = append(created, p)
			case r.Err == jute.ErrNodeExists && !p.hasNode && r.Op == 0:
				p.hasNode = true
				bare = append(bare, p)
			case r.Err == jute.ErrNodeExists:
				exists = append(exists, p)
			default:
				m.warnf("could not create the state of %s: %v", p, r.Err)
			}
		}
		m.createBare(bare, wanted, func(more, found []*partition) {
			m.readStates(exists, func(ok []bool) {
				created = append(created, more...)
				for i, p := range exists {
					switch {
					case !ok[i]:
						p.unready = "its state znode cannot be used"
					case sameState(p.lead, wanted[p]):
						created = append(created, p)
					default:
						found = append(found, p)
					}
				}
				slices.SortFunc(created, comparePartitions)
				then(created, found)
			})
		})
	})
}

// createBare makes states below partition nodes that turned out to be there.
func (m *Machine) createBare(parts []*partition, wanted map[*partition]znode.PartitionState, then func(created, found []*partition)) {
	if len(parts) == 0 {
		then(nil, nil)
		return
	}
	m.createStates(parts, wanted, then)
}

func stateUnit(p *partition, s znode.PartitionState) Unit {
	state := Op{Kind: OpCreate, Path: znode.StatePath(p.topic.name, p.id), Data: s.Encode()}
	if p.hasNode {
		return Unit{state}
	}
	return Unit{{Kind: OpCreate, Path: znode.PartitionPath(p.topic.name, p.id)}, state}
}
