package core

import (
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// isrNotified handles the notes of leaders that wrote states themselves
// (inter-broker protocol below 2.7-IV2): read those states again, tell all
// brokers, and delete the notes.
func (m *Machine) isrNotified() {
	m.readNotes(znode.ISRChanges, func(r []ReadResult, drop []Unit) {
		parts := map[*partition]struct{}{}
		for _, note := range r {
			if note.Err != jute.OK {
				continue
			}
			list, err := znode.DecodeISRChange(note.Data)
			if err != nil {
				m.warnf("a note in %s is removed: %v", znode.ISRChanges, err)
			}
			for _, tp := range list {
				if p := m.partition(tp); p != nil {
					parts[p] = struct{}{}
				}
			}
		}
		list := inOrder(parts)
		m.readStates(list, func([]bool) {
			m.tellAll(list...)
			m.flush()
			m.write(drop, func([]UnitResult) {})
		})
	})
}

// readNotes reads the children of a notification node, watching for more, and
// gives what deletes them.
func (m *Machine) readNotes(parent string, then func(notes []ReadResult, drop []Unit)) {
	m.read([]Read{{Kind: ReadChildren, Path: parent, Watch: true}}, func(r []ReadResult) {
		var reads []Read
		var drop []Unit
		for _, name := range slices.Sorted(slices.Values(r[0].Children)) {
			path := parent + "/" + name
			reads = append(reads, Read{Kind: ReadData, Path: path})
			drop = append(drop, Unit{{Kind: OpDelete, Path: path, Version: -1}})
		}
		if len(reads) == 0 {
			return
		}
		m.read(reads, func(notes []ReadResult) { then(notes, drop) })
	})
}

// logDirsFailed handles the notes of brokers one of whose log directories has
// failed: they are asked about every replica by LeaderAndIsr, and their answers
// tell which are gone (KIP-112).
func (m *Machine) logDirsFailed() {
	m.readNotes(znode.LogDirEvents, func(r []ReadResult, drop []Unit) {
		ids := map[int32]bool{}
		for _, note := range r {
			if note.Err != jute.OK {
				continue
			}
			id, err := znode.DecodeLogDirEvent(note.Data)
			if err != nil {
				m.warnf("a note in %s is removed: %v", znode.LogDirEvents, err)
				continue
			}
			if m.brokers[id] != nil {
				ids[id] = true
			}
		}
		m.write(drop, func([]UnitResult) {
			m.replicasOnline(filter(m.replicasOn(sortedKeys(ids)), func(r replica) bool { return !r.topic.deletion }))
		})
	})
}

// alteration is one partition's wish in an AlterPartition request.
type alteration struct {
	part     *partition
	want     znode.PartitionState
	version  int32
	code     wire.Code
	topic    int // index of the response's topic
	position int // and of the partition in it
}

// alterPartition answers a leader that wants to change ISRs (KIP-497).
func (m *Machine) alterPartition(call uint64, req *kmsg.AlterPartitionRequest) {
	resp := req.ResponseKind().(*kmsg.AlterPartitionResponse)
	b := m.brokers[req.BrokerID]
	if b == nil || b.epoch != req.BrokerEpoch {
		resp.ErrorCode = int16(wire.StaleBrokerEpoch)
		m.reply(call, resp)
		return
	}
	var alterations []*alteration
	for i, t := range req.Topics {
		out := kmsg.NewAlterPartitionResponseTopic()
		out.Topic, out.TopidID = t.Topic, t.TopicID
		top, missing := m.topics[t.Topic], wire.UnknownTopicOrPartition
		if req.Version >= 2 {
			top, missing = m.byID[t.TopicID], wire.UnknownTopicID
		}
		for j := range t.Partitions {
			out.Partitions = append(out.Partitions, kmsg.NewAlterPartitionResponseTopicPartition())
			out.Partitions[j].Partition = t.Partitions[j].Partition
			a := &alteration{topic: i, position: j, code: missing}
			if top != nil {
				m.checkAlteration(a, top, req.Version, &t.Partitions[j])
			}
			alterations = append(alterations, a)
		}
		resp.Topics = append(resp.Topics, out)
	}
	m.writeAlterations(alterations, func(changed []*partition) {
		for _, a := range alterations {
			fillAlteration(&resp.Topics[a.topic].Partitions[a.position], a)
		}
		if len(changed) > 0 {
			m.tellAll(changed...)
			m.flush()
		}
		if req.Version == 0 {
			askAgain(resp, alterations)
		}
		m.reply(call, resp)
	})
}

// askAgain makes an error of a partition that says "later" one of the whole
// answer. A leader of 2.7 or 2.8 (the only ones that send v0) trips over such
// an error of a partition and never changes that ISR again; after one of the
// whole it sends everything once more, and what was done by then is confirmed.
func askAgain(resp *kmsg.AlterPartitionResponse, alterations []*alteration) {
	for _, a := range alterations {
		if a.code == wire.OperationNotAttempted || a.code == wire.NotController {
			resp.ErrorCode, resp.Topics = int16(a.code), nil
			return
		}
	}
}

// alterNeeded is the code of an alteration that passed the checks and is to be
// written.
const alterNeeded wire.Code = -100

func (m *Machine) checkAlteration(a *alteration, t *topic, version int16, r *kmsg.AlterPartitionRequestTopicPartition) {
	p := t.partitions[r.Partition]
	if p == nil || !p.led || t.started {
		a.code = wire.UnknownTopicOrPartition
		return
	}
	a.part, a.version = p, r.PartitionEpoch
	a.want = p.lead
	a.want.ISR = slices.Clone(r.NewISR)
	if version >= 3 {
		a.want.ISR = make([]int32, len(r.NewEpochISR))
		for i, e := range r.NewEpochISR {
			a.want.ISR[i] = e.BrokerID
		}
	}
	if version >= 1 {
		a.want.RecoveryState = r.LeaderRecoveryState
	}
	a.code = m.judgeAlteration(p, a, version, r)
}

func (m *Machine) judgeAlteration(p *partition, a *alteration, version int16, r *kmsg.AlterPartitionRequestTopicPartition) wire.Code {
	sameISR := sameSet(a.want.ISR, p.lead.ISR) && a.want.RecoveryState == p.lead.RecoveryState
	switch {
	case r.PartitionEpoch > p.version || r.LeaderEpoch > p.lead.LeaderEpoch:
		return wire.NotController // a later controller told the leader of this
	case r.LeaderEpoch < p.lead.LeaderEpoch:
		return wire.FencedLeaderEpoch
	case sameISR:
		return wire.None
	case r.PartitionEpoch < p.version:
		return wire.InvalidUpdateVersion
	case a.want.RecoveryState == znode.Recovering && (len(a.want.ISR) > 1 || p.lead.RecoveryState == znode.Recovered),
		!possibleReplicas(a.want.ISR), !subset(a.want.ISR, p.replicas), !slices.Contains(a.want.ISR, p.lead.Leader):
		return wire.InvalidRequest
	}
	for i, id := range a.want.ISR {
		b := m.brokers[id]
		stale := b != nil && version >= 3 && r.NewEpochISR[i].BrokerEpoch != -1 && r.NewEpochISR[i].BrokerEpoch != b.epoch
		if b == nil || b.shuttingDown || stale {
			if version >= 2 {
				return wire.IneligibleReplica
			}
			return wire.OperationNotAttempted
		}
	}
	return alterNeeded
}

// writeAlterations writes what passed, each expecting the version that the
// leader knows, and never again: a leader with an old version must hear of it.
func (m *Machine) writeAlterations(list []*alteration, then func(changed []*partition)) {
	var units []Unit
	var needed []*alteration
	for _, a := range list {
		if a.code == alterNeeded {
			a.want.ControllerEpoch = m.epoch
			needed = append(needed, a)
			units = append(units, Unit{{Kind: OpSet, Path: znode.StatePath(a.part.topic.name, a.part.id), Data: a.want.Encode(), Version: a.version}})
		}
	}
	m.write(units, func(results []UnitResult) {
		var changed, stale []*partition
		for i, r := range results {
			a := needed[i]
			switch {
			case r.Err == jute.OK:
				m.setState(a.part, a.want, r.Version)
				a.code = wire.None
				changed = append(changed, a.part)
			case r.Err == jute.ErrBadVersion:
				a.code = wire.InvalidUpdateVersion
				stale = append(stale, a.part)
			default:
				a.code = wire.UnknownServerError
			}
		}
		m.readStates(stale, func([]bool) {
			for _, a := range needed {
				if a.code == wire.InvalidUpdateVersion && sameState(a.part.lead, a.want) {
					a.code = wire.None // our own write, whose answer was lost
					changed = append(changed, a.part)
				}
			}
			then(changed)
		})
	})
}

func fillAlteration(out *kmsg.AlterPartitionResponseTopicPartition, a *alteration) {
	out.ErrorCode = int16(a.code)
	if a.code == wire.None {
		lead := a.part.lead
		out.LeaderID, out.LeaderEpoch, out.ISR = lead.Leader, lead.LeaderEpoch, lead.ISR
		out.LeaderRecoveryState, out.PartitionEpoch = lead.RecoveryState, a.part.version
	}
}

// allocateProducerIDs hands out the next block (KIP-730).
func (m *Machine) allocateProducerIDs(call uint64, r AllocateProducerIDs) {
	b := m.brokers[r.Broker]
	switch {
	case b == nil:
		m.reply(call, ProducerIDs{Refusal: Refusal{wire.BrokerIDNotRegistered, "The broker is not registered."}})
		return
	case b.epoch != r.Epoch:
		m.reply(call, ProducerIDs{Refusal: Refusal{wire.StaleBrokerEpoch, wire.StaleBrokerEpoch.Error()}})
		return
	}
	m.allocateRound(call, r, 0)
}

func (m *Machine) allocateRound(call uint64, r AllocateProducerIDs, round int) {
	m.read([]Read{{Kind: ReadData, Path: znode.ProducerIDBlock}}, func(results []ReadResult) {
		next, op, why := nextBlock(r.Broker, results[0])
		if why != "" {
			if m.noIDs != why { // brokers ask again and again
				m.warnf("no producer ids can be given out: %s: %s", znode.ProducerIDBlock, why)
			}
			m.noIDs = why
			m.reply(call, ProducerIDs{Refusal: Refusal{wire.UnknownServerError, why}})
			return
		}
		m.write([]Unit{{op}}, func(w []UnitResult) {
			switch {
			case w[0].Err == jute.OK:
				m.noIDs = ""
				m.reply(call, ProducerIDs{Start: next.Start, Count: int32(next.End - next.Start + 1)})
			case (w[0].Err == jute.ErrBadVersion || w[0].Err == jute.ErrNodeExists) && round < maxRounds:
				m.allocateRound(call, r, round+1)
			default:
				m.reply(call, ProducerIDs{Refusal: Refusal{wire.UnknownServerError, w[0].Err.Error()}})
			}
		})
	})
}

// nextBlock is the block after the one in the node, and the write that takes it.
func nextBlock(broker int32, node ReadResult) (next znode.ProducerIDs, op Op, why string) {
	next = znode.FirstProducerIDs(broker)
	op = Op{Kind: OpSet, Path: znode.ProducerIDBlock, Version: node.Stat.Version}
	switch {
	case node.Err == jute.ErrNoNode:
		op.Kind = OpCreate
	case node.Err != jute.OK:
		return next, op, node.Err.Error()
	case len(node.Data) > 0:
		last, err := znode.DecodeProducerIDs(node.Data)
		if err != nil {
			return next, op, err.Error()
		}
		var ok bool
		if next, ok = last.Next(broker); !ok {
			return next, op, "producer ids are used up"
		}
	}
	op.Data = next.Encode()
	return next, op, ""
}
