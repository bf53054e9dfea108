package core

import (
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// preferredElection handles /admin/preferred_replica_election. The node goes
// when its elections are done; that fires the watch, which is set again.
func (m *Machine) preferredElection() {
	reads := []Read{
		{Kind: ReadExists, Path: znode.PreferredElection, Watch: true},
		{Kind: ReadData, Path: znode.PreferredElection},
	}
	m.read(reads, func(r []ReadResult) {
		if r[1].Err != jute.OK {
			return
		}
		list, err := znode.DecodePreferredElection(r[1].Data)
		if err != nil {
			m.warnf("%s is removed: %v", znode.PreferredElection, err)
		}
		m.electRequested(list, electPreferred, func(answers []PartitionRefusal) {
			failed := filter(answers, func(a PartitionRefusal) bool {
				return a.Code != wire.None && a.Code != wire.ElectionNotNeeded
			})
			if len(failed) > 0 {
				m.warnf("%s: %d of %d elections failed; the first is %s: %s",
					znode.PreferredElection, len(failed), len(list), failed[0].TopicPartition, failed[0].Message)
			}
			m.write([]Unit{{{Kind: OpDelete, Path: znode.PreferredElection, Version: -1}}}, func([]UnitResult) {})
		})
	})
}

// electLeaders answers ElectLeaders.
func (m *Machine) electLeaders(call uint64, r ElectLeaders) {
	parts, s := r.Partitions, electPreferred
	if r.Unclean {
		s = electUnclean
	}
	if parts == nil {
		for _, p := range m.allPartitions() {
			parts = append(parts, p.tp())
		}
	}
	m.electRequested(parts, s, func(answers []PartitionRefusal) { m.reply(call, answers) })
}

// electRequested elects where it is possible and needed, and answers for each
// partition once, in order.
func (m *Machine) electRequested(wanted []wire.TopicPartition, s strategy, then func([]PartitionRefusal)) {
	var answers []PartitionRefusal
	index := map[*partition]int{}
	seen := map[wire.TopicPartition]bool{}
	for _, tp := range wanted {
		if seen[tp] {
			continue
		}
		seen[tp] = true
		p := m.partition(tp)
		if refusal := m.refuseElection(p, s); refusal.Code != wire.None {
			answers = append(answers, PartitionRefusal{tp, refusal})
			continue
		}
		index[p] = len(answers)
		answers = append(answers, PartitionRefusal{TopicPartition: tp})
	}
	m.partitionsOnline(inOrder(index), s, func(elected []*partition) {
		code := wire.PreferredLeaderNotAvailable
		if s == electUnclean {
			code = wire.EligibleLeadersNotAvailable
		}
		for p, i := range index {
			if !slices.Contains(elected, p) {
				answers[i].Refusal = Refusal{code, "No leader could be elected: " + p.unready}
			}
		}
		then(answers)
	})
}

func (m *Machine) refuseElection(p *partition, s strategy) Refusal {
	switch {
	case p == nil:
		return Refusal{wire.UnknownTopicOrPartition, "The partition does not exist."}
	case p.topic.deletion:
		return Refusal{wire.InvalidTopicException, "The topic is being deleted"}
	case !p.led && s == electPreferred:
		return Refusal{wire.PreferredLeaderNotAvailable, "The partition never had a leader."}
	case s == electPreferred && p.lead.Leader == p.replicas[0],
		s == electUnclean && p.led && m.reachable(p.lead.Leader, p):
		return Refusal{wire.ElectionNotNeeded, "Leader election not needed for topic partition."}
	}
	return Refusal{}
}

// rebalance gives leadership back to preferred replicas, broker by broker,
// where more than the allowed part of them does not lead, and sets the alarm
// for the next time (KafkaController.checkAndTriggerAutoLeaderRebalance).
func (m *Machine) rebalance() {
	if !m.cfg.AutoRebalance {
		return
	}
	m.emit(Alarm{m.now.Add(m.cfg.ImbalanceInterval)})
	if len(m.reassigning) > 0 {
		return
	}
	total := map[int32]int{}
	misplaced := map[int32][]*partition{}
	for _, p := range m.allPartitions() {
		if p.topic.deletion || !p.led {
			continue
		}
		preferred := p.replicas[0]
		total[preferred]++
		if p.lead.Leader != preferred {
			misplaced[preferred] = append(misplaced[preferred], p)
		}
	}
	var parts []*partition
	for _, id := range sortedKeys(misplaced) {
		if len(misplaced[id])*100 <= m.cfg.ImbalancePercentage*total[id] {
			continue
		}
		parts = append(parts, filter(misplaced[id], func(p *partition) bool {
			return m.online(id, p) && slices.Contains(p.lead.ISR, id)
		})...)
	}
	if len(parts) > 0 {
		m.infof("preferred replicas are elected for %d partitions", len(parts))
	}
	m.partitionsOnline(parts, electPreferred, func([]*partition) {})
}
