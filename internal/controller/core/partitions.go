package core

import (
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/znode"
)

// strategy is how a leader is chosen (PartitionLeaderElectionAlgorithms).
type strategy int8

const (
	electOffline    strategy = iota // the first live replica in the ISR; unclean if the settings allow
	electUnclean                    // the same, unclean allowed by request
	electReassigned                 // of the replicas in memory, which are the target
	electPreferred                  // the first replica only
	electShutdown                   // not a broker that is shutting down; these leave the ISR
)

// setPartitionState keeps the index of partitions that want a leader.
func (m *Machine) setPartitionState(p *partition, s partitionState) {
	p.state = s
	if s == partitionNew || s == partitionOffline {
		m.unled[p] = struct{}{}
	} else {
		delete(m.unled, p)
	}
}

// partitionsOffline marks partitions whose leader is gone; nothing is written.
func (m *Machine) partitionsOffline(parts []*partition) {
	for _, p := range parts {
		if p.state != partitionAbsent {
			m.setPartitionState(p, partitionOffline)
		}
	}
}

// unledPartitions are those without a leader that may get one.
func (m *Machine) unledPartitions() []*partition {
	return filter(inOrder(m.unled), func(p *partition) bool { return !m.doomed(p.topic) })
}

// electUnled tries to give leaders to partitions without one
// (triggerOnlinePartitionStateChange).
func (m *Machine) electUnled(parts []*partition, then func()) {
	m.partitionsOnline(parts, electOffline, func([]*partition) { then() })
}

// partitionsOnline gives partitions a leader: New ones their first state, the
// others one chosen by s. then gets those which have a new leader; why another
// has none is in its unready.
func (m *Machine) partitionsOnline(parts []*partition, s strategy, then func(elected []*partition)) {
	var fresh, led []*partition
	for _, p := range parts {
		switch {
		case p.state == partitionAbsent:
		case !p.led:
			fresh = append(fresh, p)
		default:
			led = append(led, p)
		}
	}
	m.initialize(fresh, func(initialized, found []*partition) {
		led = append(led, found...)
		m.elect(led, s, func(elected []*partition) {
			m.flush()
			then(append(initialized, elected...))
		})
	})
}

// initialize writes the first state of New partitions: the first live replica
// leads, all live ones are in sync. One without a live replica stays New.
func (m *Machine) initialize(parts []*partition, then func(initialized, found []*partition)) {
	wanted := map[*partition]znode.PartitionState{}
	for _, p := range parts {
		live := m.onlineReplicas(p)
		if len(live) == 0 {
			p.unready = "no replica is on a live broker"
			m.infof("%s waits for one of its replicas %v to be live", p, p.replicas)
			continue
		}
		wanted[p] = znode.PartitionState{Leader: live[0], ControllerEpoch: m.epoch, ISR: live}
	}
	m.createStates(inOrder(wanted), wanted, func(created, found []*partition) {
		for _, p := range created {
			m.setPartitionState(p, partitionOnline)
			p.unready = ""
			m.tellLeaders(p.lead.ISR, p, true)
		}
		for _, p := range found {
			m.setPartitionState(p, partitionOffline)
		}
		then(created, found)
	})
}

// elect chooses and writes leaders of partitions that have a state. Where leaders
// change ISRs themselves, and tell of it seconds later, what is in memory may
// name no candidate although there is one: it is read again first.
func (m *Machine) elect(parts []*partition, s strategy, then func(elected []*partition)) {
	if m.lowISR() && len(parts) > 0 {
		m.readStates(parts, func([]bool) { m.electKnown(parts, s, then) })
		return
	}
	m.electKnown(parts, s, then)
}

func (m *Machine) electKnown(parts []*partition, s strategy, then func(elected []*partition)) {
	m.uncleanAllowed(parts, s, func(unclean map[string]bool) {
		choose := func(p *partition) (znode.PartitionState, bool) {
			state, why := m.choose(p, s, s == electUnclean || unclean[p.topic.name])
			p.unready = why
			return state, why == ""
		}
		m.updateStates(parts, choose, func(elected []*partition) {
			for _, p := range elected {
				m.setPartitionState(p, partitionOnline)
				if s == electShutdown {
					m.tellLeaders(filter(p.replicas, func(id int32) bool { return m.reachable(id, p) }), p, false)
				} else {
					m.tellLeaders(m.onlineReplicas(p), p, false)
				}
			}
			for _, p := range parts {
				if p.unready != "" && s == electOffline {
					m.infof("%s has no leader: %s", p, p.unready)
				}
			}
			then(elected)
		})
	})
}

// uncleanAllowed reads the overrides of the topics whose ISRs are dead, for
// unclean.leader.election.enable. Where they can't be read they may forbid it.
func (m *Machine) uncleanAllowed(parts []*partition, s strategy, then func(map[string]bool)) {
	var topics []string
	var reads []Read
	seen := map[*topic]bool{}
	if s == electOffline {
		for _, p := range parts {
			if !seen[p.topic] && len(m.liveISR(p)) == 0 && len(m.onlineReplicas(p)) > 0 {
				seen[p.topic] = true
				topics = append(topics, p.topic.name)
				reads = append(reads, Read{Kind: ReadData, Path: znode.TopicConfig(p.topic.name).Path()})
			}
		}
	}
	m.read(reads, func(results []ReadResult) {
		allowed := map[string]bool{}
		for i, r := range results {
			if r.Err != jute.OK && r.Err != jute.ErrNoNode {
				m.warnf("could not read the configuration of topic %s: %v; there is no unclean election until it can be", topics[i], r.Err)
				continue
			}
			allowed[topics[i]] = m.cfg.UncleanElection
			overrides, err := znode.DecodeConfig(r.Data)
			if v, ok := overrides["unclean.leader.election.enable"]; ok && err == nil {
				allowed[topics[i]] = v == "true"
			}
		}
		then(allowed)
	})
}

func (m *Machine) liveISR(p *partition) []int32 {
	return filter(p.lead.ISR, func(id int32) bool { return m.online(id, p) })
}

// choose returns the next state of a partition, or why there is none.
func (m *Machine) choose(p *partition, s strategy, unclean bool) (next znode.PartitionState, why string) {
	next = p.lead
	next.LeaderEpoch++
	eligible := func(id int32) bool { return m.online(id, p) && slices.Contains(p.lead.ISR, id) }
	candidates := p.replicas
	switch s {
	case electOffline, electUnclean:
		return m.chooseOffline(p, next, unclean)
	case electPreferred:
		candidates = candidates[:1]
		why = "the preferred replica is not live and in sync"
	case electReassigned:
		why = "none of the new replicas is live and in sync"
	case electShutdown:
		// online leaves out the brokers that are shutting down
		next.ISR = filter(p.lead.ISR, func(id int32) bool { b := m.brokers[id]; return b == nil || !b.shuttingDown })
		why = "no other replica is live and in sync"
	}
	i := slices.IndexFunc(candidates, eligible)
	if i < 0 {
		return next, why
	}
	next.Leader = candidates[i]
	return next, ""
}

func (m *Machine) chooseOffline(p *partition, next znode.PartitionState, unclean bool) (znode.PartitionState, string) {
	live := m.onlineReplicas(p)
	for _, id := range live {
		if slices.Contains(p.lead.ISR, id) {
			next.Leader, next.ISR = id, m.liveISR(p)
			return next, ""
		}
	}
	switch {
	case len(live) == 0:
		return next, "no replica is on a live broker"
	case !unclean:
		return next, "no replica that is in sync is on a live broker (unclean.leader.election.enable is false)"
	}
	m.warnf("unclean election: %s loses what replica %d does not have; in sync were %v", p, live[0], p.lead.ISR)
	next.Leader, next.ISR = live[0], live[:1]
	if m.hasRecovery() {
		next.RecoveryState = znode.Recovering
	}
	return next, ""
}
