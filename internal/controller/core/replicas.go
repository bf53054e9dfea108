package core

import (
	"slices"

	"barnabas/internal/znode"
)

// valid keeps the replicas that may come into a state, and says which may not.
func (m *Machine) valid(replicas []replica, to replicaState) []replica {
	return filter(replicas, func(r replica) bool {
		from := r.replicaStates[r.broker]
		if slices.Contains(replicaFrom[to], from) {
			return true
		}
		m.warnf("replica %d of %s stays %s: it cannot become %s", r.broker, r.partition, from, to)
		return false
	})
}

// replicasOnline tells replicas of live brokers their leaders.
func (m *Machine) replicasOnline(replicas []replica) {
	m.markOnline(replicas)
	m.flush()
}

func (m *Machine) markOnline(replicas []replica) {
	for _, r := range m.valid(replicas, replicaOnline) {
		if r.led && r.replicaStates[r.broker] != replicaNew {
			m.tellLeaders([]int32{r.broker}, r.partition, false)
		}
		r.replicaStates[r.broker] = replicaOnline
	}
}

// replicasOffline stops replicas and takes them out of their ISRs; the last
// member of an ISR stays in it, and a leader that goes leaves none. Replicas of
// topics that are being deleted are stopped only: their states are about to go.
func (m *Machine) replicasOffline(replicas []replica, then func()) {
	replicas = m.valid(replicas, replicaOffline)
	gone := map[*partition][]int32{}
	told := map[*partition]bool{}
	for _, r := range replicas {
		m.tellStop(r.broker, r.partition, false)
		r.replicaStates[r.broker] = replicaOffline
		switch {
		case m.doomed(r.topic):
		case r.led:
			gone[r.partition] = append(gone[r.partition], r.broker)
		default:
			told[r.partition] = true
		}
	}
	for p := range told {
		m.tellAll(p)
	}
	shrink := func(p *partition) (znode.PartitionState, bool) { return withoutReplicas(p.lead, gone[p]) }
	parts := inOrder(gone)
	m.updateStates(parts, shrink, func(shrunk []*partition) {
		for _, p := range shrunk {
			if p.lead.Leader == znode.NoLeader && p.state == partitionOnline {
				m.setPartitionState(p, partitionOffline)
			}
			m.tellLeaders(without(p.replicas, gone[p]), p, false)
		}
		m.tellAll(parts...) // of offline replicas, where nothing else changed
		m.flush()
		then()
	})
}

// withoutReplicas takes replicas out of a state one after the other, each a
// leader epoch of its own as in Kafka.
func withoutReplicas(s znode.PartitionState, replicas []int32) (znode.PartitionState, bool) {
	changed := false
	for _, id := range replicas {
		if !slices.Contains(s.ISR, id) {
			continue
		}
		if len(s.ISR) > 1 {
			s.ISR = without(s.ISR, []int32{id})
		} else if s.Leader != id {
			continue // the last one, and already without a leader
		}
		if s.Leader == id {
			s.Leader = znode.NoLeader
		}
		s.LeaderEpoch++
		changed = true
	}
	return s, changed
}

// replicasDeletionStarted asks brokers to delete replicas.
func (m *Machine) replicasDeletionStarted(replicas []replica) {
	for _, r := range m.valid(replicas, replicaDeletionStarted) {
		r.replicaStates[r.broker] = replicaDeletionStarted
		m.tellStop(r.broker, r.partition, true)
	}
	m.flush()
}

// replicasBecome is for the states that nobody is told of.
func (m *Machine) replicasBecome(replicas []replica, to replicaState) {
	for _, r := range m.valid(replicas, to) {
		r.replicaStates[r.broker] = to
	}
}

// removeReplicas asks brokers to delete replicas that reassignments took away
// and forgets them without waiting for the answers.
func (m *Machine) removeReplicas(replicas []replica, then func()) {
	if len(replicas) == 0 {
		then()
		return
	}
	m.replicasOffline(replicas, func() {
		m.replicasDeletionStarted(replicas)
		for _, r := range replicas {
			delete(r.replicaStates, r.broker)
		}
		then()
	})
}
