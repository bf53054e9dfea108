package core

import (
	"fmt"
	"slices"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// assignment is a partition's replicas in the middle of a reassignment, or not.
type assignment struct{ replicas, adding, removing []int32 }

func (p *partition) assignment() assignment { return assignment{p.replicas, p.adding, p.removing} }

// reassignTo is the assignment on the way to target (ReplicaAssignment.reassignTo).
func (p *partition) reassignTo(target []int32) assignment {
	origin := p.origin()
	full := slices.Concat(target, without(origin, target))
	return assignment{full, without(full, origin), without(full, target)}
}

func (a assignment) equal(b assignment) bool {
	return slices.Equal(a.replicas, b.replicas) && slices.Equal(a.adding, b.adding) && slices.Equal(a.removing, b.removing)
}

// lowISR tells whether leaders write ISRs themselves (inter-broker protocol
// below 2.7-IV2), so that what is in memory may be old.
func (m *Machine) lowISR() bool { return m.cfg.IBP < config.V2_7IV2 }

// reassign starts, supersedes or carries on the reassignment of a partition
// (KafkaController.onPartitionReassignment).
func (m *Machine) reassign(p *partition, to assignment, then func(ok bool)) {
	m.takeAssignment(p, to, func(ok bool) {
		if !ok {
			then(false)
			return
		}
		m.reassigning[p] = struct{}{}
		m.refreshISR(p, func() {
			if subset(p.target(), p.lead.ISR) || !p.moving() {
				m.finishReassignment(p, func() { then(true) })
				return
			}
			m.addReplicas(p, func() { then(true) })
		})
	})
}

// takeAssignment writes the topic node with a new assignment and stops the
// replicas that an assignment before had added and this one does not want.
func (m *Machine) takeAssignment(p *partition, to assignment, then func(ok bool)) {
	before := p.assignment()
	if before.equal(to) {
		then(true)
		return
	}
	m.setAssignment(p, to.replicas, to.adding, to.removing)
	m.writeTopic(p.topic, func(ok bool) {
		if !ok {
			m.setAssignment(p, before.replicas, before.adding, before.removing)
			then(false)
			return
		}
		m.removeReplicas(p, without(before.replicas, to.replicas), func() {
			// A replica that was being added may have become the leader.
			leaderless := filter([]*partition{p}, func(p *partition) bool { return p.state == partitionOffline })
			m.electUnled(leaderless, func() { then(true) })
		})
	})
}

// refreshISR reads the state where leaders write it, and watches it.
func (m *Machine) refreshISR(p *partition, then func()) {
	if !m.lowISR() {
		then()
		return
	}
	m.read([]Read{{Kind: ReadData, Path: znode.StatePath(p.topic.name, p.id), Watch: true}}, func([]ReadResult) {
		m.readStates([]*partition{p}, func([]bool) { then() })
	})
}

// addReplicas raises the leader epoch and tells all replicas of those to come
// (phase A).
func (m *Machine) addReplicas(p *partition, then func()) {
	m.raiseEpoch(p, func(ok bool) {
		if ok {
			m.tellLeaders(p.origin(), p, false)
			m.tellLeaders(p.adding, p, true)
		}
		for _, id := range p.adding {
			if s := p.replicaStates[id]; s == replicaAbsent {
				p.replicaStates[id] = replicaNew
			}
		}
		m.infof("%s is being reassigned to %v: %s", p, p.target(), m.whyMoving(p))
		m.flush()
		then()
	})
}

func (m *Machine) raiseEpoch(p *partition, then func(ok bool)) {
	if !p.led {
		then(false)
		return
	}
	raise := func(p *partition) (znode.PartitionState, bool) {
		s := p.lead
		s.LeaderEpoch++
		return s, true
	}
	m.updateStates([]*partition{p}, raise, func(updated []*partition) { then(len(updated) == 1) })
}

// finishReassignment makes the target the assignment (phase B).
func (m *Machine) finishReassignment(p *partition, then func()) {
	removing := p.removing
	for _, id := range p.adding {
		if s := p.replicaStates[id]; s == replicaNew || s == replicaAbsent {
			p.replicaStates[id] = replicaOnline
		}
	}
	m.setAssignment(p, p.target(), nil, nil)
	m.leaderWithin(p, func() {
		m.removeReplicas(p, removing, func() {
			m.writeTopic(p.topic, func(bool) {
				delete(m.reassigning, p)
				m.trimReassignNode(func() {
					m.tellAll(p)
					m.flush()
					m.resumeDeletions(then)
				})
			})
		})
	})
}

// leaderWithin elects a leader in the new replicas, or tells them of the leader
// that stays.
func (m *Machine) leaderWithin(p *partition, then func()) {
	if slices.Contains(p.replicas, p.lead.Leader) && m.online(p.lead.Leader, p) {
		m.raiseEpoch(p, func(ok bool) {
			if ok {
				m.tellLeaders(p.replicas, p, false)
			}
			m.flush()
			then()
		})
		return
	}
	m.partitionsOnline([]*partition{p}, electReassigned, func(elected []*partition) {
		if len(elected) == 0 && p.state == partitionOnline {
			m.setPartitionState(p, partitionOffline)
		}
		then()
	})
}

// resumeReassignments carries on the reassignments that pick accepts.
func (m *Machine) resumeReassignments(pick func(*partition) bool, then func()) {
	m.eachPartition(filter(inOrder(m.reassigning), pick), func(p *partition, next func()) {
		if !p.moving() || m.topics[p.topic.name] != p.topic {
			next()
			return
		}
		m.reassign(p, p.assignment(), func(bool) { next() })
	}, then)
}

// eachPartition does f to one partition after the other.
func (m *Machine) eachPartition(parts []*partition, f func(p *partition, next func()), then func()) {
	if len(parts) == 0 {
		then()
		return
	}
	f(parts[0], func() { m.eachPartition(parts[1:], f, then) })
}

// checkReassigned finishes the reassignments whose new replicas are in sync.
func (m *Machine) checkReassigned(parts []*partition, then func()) {
	ready := filter(parts, func(p *partition) bool {
		_, moving := m.reassigning[p]
		return moving && subset(p.target(), p.lead.ISR)
	})
	m.eachPartition(ready, func(p *partition, next func()) {
		m.reassign(p, p.assignment(), func(bool) { next() })
	}, then)
}

// stateChanged handles the watch on the state of a partition that is being
// reassigned.
func (m *Machine) stateChanged(tp wire.TopicPartition) {
	p := m.partition(tp)
	if p == nil {
		return
	}
	if _, moving := m.reassigning[p]; !moving {
		return
	}
	m.refreshISR(p, func() {})
}

// refuseReassignment tells why a wish cannot be followed.
func (m *Machine) refuseReassignment(w Reassignment) Refusal {
	p := m.partition(w.TopicPartition)
	if refusal := m.refuseTarget(p, w); refusal.Code != wire.None {
		return refusal
	}
	// Only a reassignment in progress can leave replicas in sync that neither
	// the origin nor the new target has. Kafka deletes them, and their data.
	if p.led && len(without(p.lead.ISR, p.reassignTo(w.target(p)).replicas)) == len(p.lead.ISR) {
		return Refusal{wire.InvalidReplicaAssignment,
			fmt.Sprintf("This would delete every replica that is in sync: %v.", p.lead.ISR)}
	}
	return Refusal{}
}

// target is where a wish leads: back, when it cancels.
func (w Reassignment) target(p *partition) []int32 {
	if w.Replicas == nil {
		return p.origin()
	}
	return w.Replicas
}

func (m *Machine) refuseTarget(p *partition, w Reassignment) Refusal {
	switch {
	case p == nil && w.Replicas == nil: // as Kafka says it
		return Refusal{wire.NoReassignmentInProgress, wire.NoReassignmentInProgress.Error()}
	case p == nil || p.topic.started || p.topic.deletion && w.Replicas != nil:
		return Refusal{wire.UnknownTopicOrPartition, "The partition does not exist."}
	case w.Replicas == nil && !p.moving():
		return Refusal{wire.NoReassignmentInProgress, wire.NoReassignmentInProgress.Error()}
	case w.Replicas == nil:
		return Refusal{}
	case len(w.Replicas) == 0:
		return Refusal{wire.InvalidReplicaAssignment, "Empty replica list specified in partition reassignment."}
	case !possibleReplicas(w.Replicas):
		return Refusal{wire.InvalidReplicaAssignment, fmt.Sprintf("Invalid replica list in partition reassignment: %s.", short(w.Replicas))}
	}
	for _, id := range p.reassignTo(w.Replicas).adding {
		if b := m.brokers[id]; b == nil || b.shuttingDown {
			return Refusal{wire.InvalidReplicaAssignment,
				fmt.Sprintf("Replica assignment has brokers that are not alive. Replica list: %s, the first of them: %d", short(w.Replicas), id)}
		}
	}
	return Refusal{}
}

// short prints a list that may be huge.
func short(list []int32) string {
	if len(list) > 20 {
		return fmt.Sprintf("%v... (%d)", list[:20], len(list))
	}
	return fmt.Sprint(list)
}

// reassignAll follows the wishes one by one; refused gets the answers in order.
func (m *Machine) reassignAll(wishes []Reassignment, then func([]PartitionRefusal)) {
	answers := make([]PartitionRefusal, 0, len(wishes))
	var next func(int)
	next = func(i int) {
		if i == len(wishes) {
			then(answers)
			return
		}
		w := wishes[i]
		refusal := m.refuseReassignment(w)
		if refusal.Code != wire.None {
			answers = append(answers, PartitionRefusal{w.TopicPartition, refusal})
			next(i + 1)
			return
		}
		p := m.partition(w.TopicPartition)
		m.reassign(p, p.reassignTo(w.target(p)), func(ok bool) {
			if !ok {
				refusal = Refusal{wire.UnknownServerError, "The topic's znode could not be written."}
			}
			answers = append(answers, PartitionRefusal{w.TopicPartition, refusal})
			next(i + 1)
		})
	}
	next(0)
}

func (m *Machine) reassignCall(call uint64, wishes []Reassignment) {
	m.reassignAll(wishes, func(answers []PartitionRefusal) {
		m.reply(call, answers)
		m.trimReassignNode(func() {})
	})
}

// reassignNode handles /admin/reassign_partitions.
func (m *Machine) reassignNode() {
	reads := []Read{
		{Kind: ReadExists, Path: znode.ReassignPartitions, Watch: true},
		{Kind: ReadData, Path: znode.ReassignPartitions},
	}
	m.read(reads, func(r []ReadResult) {
		if m.hasReassignNode = r[1].Err == jute.OK; !m.hasReassignNode {
			return
		}
		list, err := znode.DecodeReassignments(r[1].Data)
		if err != nil {
			m.warnf("%s is removed: %v", znode.ReassignPartitions, err)
			m.write([]Unit{{{Kind: OpDelete, Path: znode.ReassignPartitions, Version: -1}}}, func([]UnitResult) {})
			return
		}
		m.reassignAll(m.newWishes(list), func(answers []PartitionRefusal) {
			answers = filter(answers, func(a PartitionRefusal) bool { return a.Code != wire.None })
			if len(answers) > 0 {
				m.warnf("%s: %d of %d partitions are refused; the first is %s: %s",
					znode.ReassignPartitions, len(answers), len(list), answers[0].TopicPartition, answers[0].Message)
			}
			m.trimReassignNode(func() {})
		})
	})
}

// newWishes takes the last wish for each partition, and leaves out those that
// are being followed already.
func (m *Machine) newWishes(list []znode.Reassignment) []Reassignment {
	last := map[wire.TopicPartition]int{}
	for i, w := range list {
		last[w.TopicPartition] = i
	}
	var wishes []Reassignment
	for i, w := range list {
		if last[w.TopicPartition] != i {
			continue
		}
		if p := m.partition(w.TopicPartition); p != nil && m.following(p, w.Replicas) {
			continue
		}
		if w.Replicas == nil {
			w.Replicas = []int32{}
		}
		wishes = append(wishes, Reassignment{w.TopicPartition, w.Replicas})
	}
	return wishes
}

// following tells whether a reassignment to target is in progress.
func (m *Machine) following(p *partition, target []int32) bool {
	_, moving := m.reassigning[p]
	return moving && slices.Equal(p.target(), target)
}

// trimReassignNode takes out of /admin/reassign_partitions what is not (or no
// longer) being followed, and the node when nothing is left.
func (m *Machine) trimReassignNode(then func()) {
	if !m.hasReassignNode {
		then()
		return
	}
	m.read([]Read{{Kind: ReadData, Path: znode.ReassignPartitions}}, func(r []ReadResult) {
		if m.hasReassignNode = r[0].Err == jute.OK; !m.hasReassignNode {
			then()
			return
		}
		list, err := znode.DecodeReassignments(r[0].Data)
		keep := filter(list, func(w znode.Reassignment) bool {
			p := m.partition(w.TopicPartition)
			return p != nil && m.following(p, w.Replicas)
		})
		op := Op{Kind: OpSet, Path: znode.ReassignPartitions, Data: znode.EncodeReassignments(keep), Version: r[0].Stat.Version}
		switch {
		case err == nil && len(keep) == len(list) && len(list) > 0:
			then()
			return
		case len(keep) == 0:
			op = Op{Kind: OpDelete, Path: znode.ReassignPartitions, Version: r[0].Stat.Version}
		}
		// If somebody wrote the node meanwhile, its watch brings us here again.
		m.write([]Unit{{op}}, func(results []UnitResult) {
			if op.Kind == OpDelete && results[0].Err == jute.OK {
				m.hasReassignNode = false
			}
			then()
		})
	})
}

func (m *Machine) listReassignments(wanted []wire.TopicPartition) []Ongoing {
	list := []Ongoing{}
	for _, p := range inOrder(m.reassigning) {
		if p.moving() && (wanted == nil || slices.Contains(wanted, p.tp())) {
			list = append(list, Ongoing{p.tp(), p.replicas, p.adding, p.removing})
		}
	}
	return list
}
