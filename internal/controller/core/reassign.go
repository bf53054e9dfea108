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

// move is a partition on the way to another assignment. ok tells that this is
// written down.
type move struct {
	p  *partition
	to assignment
	ok bool
}

// onward are moves that carry on what is in progress.
func onward(parts []*partition) []*move {
	moves := make([]*move, len(parts))
	for i, p := range parts {
		moves[i] = &move{p: p, to: p.assignment()}
	}
	return moves
}

// reassign starts, supersedes or carries on the reassignments of different
// partitions, together (KafkaController.onPartitionReassignment does one after
// the other).
func (m *Machine) reassign(moves []*move, then func()) {
	m.takeAssignments(moves, func() {
		var taken []*partition
		for _, v := range moves {
			if v.ok {
				m.reassigning[v.p] = struct{}{}
				taken = append(taken, v.p)
			}
		}
		m.refreshISRs(taken, func() {
			through := func(p *partition) bool { return subset(p.target(), p.lead.ISR) || !p.moving() }
			ready := filter(taken, through)
			waiting := filter(taken, func(p *partition) bool { return !through(p) })
			m.finishReassignments(ready, func() { m.addReplicas(waiting, then) })
		})
	})
}

// takeAssignments writes the topic nodes with the new assignments, each node
// once, and stops the replicas that an assignment before had added and this one
// does not want.
func (m *Machine) takeAssignments(moves []*move, then func()) {
	before := map[*partition]assignment{}
	var changed []*move
	for _, v := range moves {
		if had := v.p.assignment(); had.equal(v.to) {
			v.ok = true
		} else {
			before[v.p] = had
			changed = append(changed, v)
			m.setAssignment(v.p, v.to.replicas, v.to.adding, v.to.removing)
		}
	}
	m.writeTopics(topicsOf(changed, func(v *move) *topic { return v.p.topic }), func(ok map[*topic]bool) {
		var gone []replica
		var parts []*partition
		for _, v := range changed {
			had := before[v.p]
			if v.ok = ok[v.p.topic]; !v.ok {
				m.setAssignment(v.p, had.replicas, had.adding, had.removing)
				continue
			}
			parts = append(parts, v.p)
			gone = append(gone, replicasOf(v.p, without(had.replicas, v.to.replicas))...)
		}
		m.removeReplicas(gone, func() {
			// A replica that was being added may have become the leader.
			m.electUnled(filter(parts, func(p *partition) bool { return p.state == partitionOffline }), then)
		})
	})
}

// topicsOf returns the topics of a list, each once, in order of appearance.
func topicsOf[T any](list []T, of func(T) *topic) (topics []*topic) {
	seen := map[*topic]bool{}
	for _, v := range list {
		if t := of(v); !seen[t] {
			seen[t] = true
			topics = append(topics, t)
		}
	}
	return topics
}

func replicasOf(p *partition, ids []int32) []replica {
	list := make([]replica, len(ids))
	for i, id := range ids {
		list[i] = replica{p, id}
	}
	return list
}

// refreshISRs reads the states where leaders write them, and watches them.
func (m *Machine) refreshISRs(parts []*partition, then func()) {
	if !m.lowISR() {
		then()
		return
	}
	reads := make([]Read, len(parts))
	for i, p := range parts {
		reads[i] = Read{Kind: ReadData, Path: znode.StatePath(p.topic.name, p.id), Watch: true}
	}
	m.read(reads, func([]ReadResult) {
		m.readStates(parts, func([]bool) { then() })
	})
}

// addReplicas raises the leader epochs and tells all replicas of those to come
// (phase A).
func (m *Machine) addReplicas(parts []*partition, then func()) {
	m.raiseEpochs(parts, func(raised []*partition) {
		for _, p := range raised {
			m.tellLeaders(p.origin(), p, false)
			m.tellLeaders(p.adding, p, true)
		}
		for _, p := range parts {
			for _, id := range p.adding {
				if s := p.replicaStates[id]; s == replicaAbsent {
					p.replicaStates[id] = replicaNew
				}
			}
			m.infof("%s is being reassigned to %v: %s", p, p.target(), m.whyMoving(p))
		}
		m.flush()
		then()
	})
}

func (m *Machine) raiseEpochs(parts []*partition, then func(raised []*partition)) {
	raise := func(p *partition) (znode.PartitionState, bool) {
		s := p.lead
		s.LeaderEpoch++
		return s, p.led
	}
	m.updateStates(parts, raise, then)
}

// finishReassignments makes the targets the assignments (phase B).
func (m *Machine) finishReassignments(parts []*partition, then func()) {
	if len(parts) == 0 {
		then()
		return
	}
	var gone []replica
	for _, p := range parts {
		gone = append(gone, replicasOf(p, p.removing)...)
		for _, id := range p.adding {
			if s := p.replicaStates[id]; s == replicaNew || s == replicaAbsent {
				p.replicaStates[id] = replicaOnline
			}
		}
		m.setAssignment(p, p.target(), nil, nil)
	}
	m.leadersWithin(parts, func() {
		m.removeReplicas(gone, func() {
			m.writeTopics(topicsOf(parts, func(p *partition) *topic { return p.topic }), func(map[*topic]bool) {
				for _, p := range parts {
					delete(m.reassigning, p)
				}
				m.trimReassignNode(func() {
					m.tellAll(parts...)
					m.flush()
					m.resumeDeletions(then)
				})
			})
		})
	})
}

// leadersWithin elects leaders in the new replicas, or tells them of the leader
// that stays.
func (m *Machine) leadersWithin(parts []*partition, then func()) {
	stays := func(p *partition) bool {
		return slices.Contains(p.replicas, p.lead.Leader) && m.online(p.lead.Leader, p)
	}
	staying := filter(parts, stays)
	moving := filter(parts, func(p *partition) bool { return !stays(p) })
	m.raiseEpochs(staying, func(raised []*partition) {
		for _, p := range raised {
			m.tellLeaders(p.replicas, p, false)
		}
		m.flush()
		m.partitionsOnline(moving, electReassigned, func(elected []*partition) {
			led := map[*partition]bool{}
			for _, p := range elected {
				led[p] = true
			}
			for _, p := range moving {
				if !led[p] && p.state == partitionOnline {
					m.setPartitionState(p, partitionOffline)
				}
			}
			then()
		})
	})
}

// resumeReassignments carries on the reassignments that pick accepts.
func (m *Machine) resumeReassignments(pick func(*partition) bool, then func()) {
	m.reassign(onward(filter(inOrder(m.reassigning), func(p *partition) bool {
		return pick(p) && p.moving() && m.topics[p.topic.name] == p.topic
	})), then)
}

// checkReassigned finishes the reassignments whose new replicas are in sync.
func (m *Machine) checkReassigned(parts []*partition, then func()) {
	m.reassign(onward(filter(parts, func(p *partition) bool {
		_, moving := m.reassigning[p]
		return moving && subset(p.target(), p.lead.ISR)
	})), then)
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
	m.refreshISRs([]*partition{p}, func() {})
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

// reassignAll follows the wishes, those for different partitions together; then
// gets the answers in order.
func (m *Machine) reassignAll(wishes []Reassignment, then func([]PartitionRefusal)) {
	m.reassignRest(wishes, make([]PartitionRefusal, 0, len(wishes)), then)
}

func (m *Machine) reassignRest(wishes []Reassignment, answers []PartitionRefusal, then func([]PartitionRefusal)) {
	if len(wishes) == 0 {
		then(answers)
		return
	}
	seen := map[wire.TopicPartition]bool{}
	moves := map[int]*move{} // by place in answers
	var list []*move
	for len(wishes) > 0 && !seen[wishes[0].TopicPartition] {
		w := wishes[0]
		wishes, seen[w.TopicPartition] = wishes[1:], true
		refusal := m.refuseReassignment(w)
		if refusal.Code == wire.None {
			p := m.partition(w.TopicPartition)
			v := &move{p: p, to: p.reassignTo(w.target(p))}
			moves[len(answers)], list = v, append(list, v)
		}
		answers = append(answers, PartitionRefusal{w.TopicPartition, refusal})
	}
	m.reassign(list, func() {
		for i, v := range moves {
			if !v.ok {
				answers[i].Refusal = Refusal{wire.UnknownServerError, "The topic's znode could not be written."}
			}
		}
		m.reassignRest(wishes, answers, then)
	})
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
