package core

import (
	"maps"
	"slices"

	"barnabas/internal/config"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Values of the leader and the leader epoch in requests about topics that are
// being deleted (LeaderAndIsr.LeaderDuringDelete, EpochDuringDelete), and the
// epoch of a partition that never had a leader.
const (
	leaderDuringDelete int32 = -2
	epochDuringDelete  int32 = -2
	noEpoch            int32 = -1
)

// batch gathers what a step of the machine wants to tell brokers
// (ControllerBrokerRequestBatch): one request a broker and kind.
type batch struct {
	lead       map[int32]map[*partition]bool // LeaderAndIsr; the value is isNew
	stop       map[int32]map[*partition]bool // StopReplica; the value is delete
	metadata   map[*partition]struct{}       // partitions of UpdateMetadata
	metadataTo map[int32]struct{}            // and to whom
}

// tellLeaders adds a partition to the LeaderAndIsr requests of those brokers
// that are registered, and to everybody's UpdateMetadata.
func (m *Machine) tellLeaders(brokers []int32, p *partition, isNew bool) {
	if m.batch.lead == nil {
		m.batch.lead = map[int32]map[*partition]bool{}
	}
	for _, id := range brokers {
		if m.brokers[id] == nil {
			continue
		}
		if m.batch.lead[id] == nil {
			m.batch.lead[id] = map[*partition]bool{}
		}
		m.batch.lead[id][p] = m.batch.lead[id][p] || isNew
	}
	m.tellAll(p)
}

// tellAll adds partitions to the UpdateMetadata of every broker.
func (m *Machine) tellAll(parts ...*partition) {
	if len(parts) > 0 {
		m.tellMetadata(m.brokerIDs(), parts...)
	}
}

// tellMetadata adds partitions to an UpdateMetadata of brokers; without
// partitions it tells the live brokers and the controller only.
func (m *Machine) tellMetadata(brokers []int32, parts ...*partition) {
	if m.batch.metadataTo == nil {
		m.batch.metadata, m.batch.metadataTo = map[*partition]struct{}{}, map[int32]struct{}{}
	}
	for _, id := range brokers {
		if m.brokers[id] != nil {
			m.batch.metadataTo[id] = struct{}{}
		}
	}
	for _, p := range parts {
		m.batch.metadata[p] = struct{}{}
	}
}

// tellStop adds a partition to a broker's StopReplica.
func (m *Machine) tellStop(id int32, p *partition, remove bool) {
	if m.brokers[id] == nil {
		return
	}
	if m.batch.stop == nil {
		m.batch.stop = map[int32]map[*partition]bool{}
	}
	if m.batch.stop[id] == nil {
		m.batch.stop[id] = map[*partition]bool{}
	}
	m.batch.stop[id][p] = m.batch.stop[id][p] || remove
}

// flush makes the requests: LeaderAndIsr, then UpdateMetadata, then
// StopReplica.
func (m *Machine) flush() {
	b := m.batch
	m.batch = batch{}
	for _, id := range sortedKeys(b.lead) {
		m.sendLeaderAndISR(m.brokers[id], b.lead[id])
	}
	m.sendMetadata(b)
	for _, id := range sortedKeys(b.stop) {
		m.sendStop(m.brokers[id], b.stop[id])
	}
}

func (m *Machine) sendLeaderAndISR(b *broker, parts map[*partition]bool) {
	r := kmsg.NewPtrLeaderAndISRRequest()
	r.Version = m.cfg.IBP.LeaderAndIsr()
	r.ControllerID, r.ControllerEpoch, r.BrokerEpoch = m.cfg.BrokerID, m.epoch, b.epoch
	leaders := map[int32]bool{}
	var last *topic
	for _, p := range inOrder(parts) {
		if p.topic != last {
			last = p.topic
			t := kmsg.NewLeaderAndISRRequestTopicState()
			t.Topic, t.TopicID = last.name, last.id
			r.TopicStates = append(r.TopicStates, t)
		}
		s := kmsg.NewLeaderAndISRRequestTopicPartition()
		s.Topic, s.Partition = p.topic.name, p.id
		s.ControllerEpoch = p.lead.ControllerEpoch
		s.Leader, s.LeaderEpoch, s.ISR, s.ZKVersion = p.lead.Leader, p.lead.LeaderEpoch, p.lead.ISR, p.version
		s.Replicas, s.AddingReplicas, s.RemovingReplicas = p.replicas, p.adding, p.removing
		s.IsNew, s.LeaderRecoveryState = parts[p], p.lead.RecoveryState
		t := &r.TopicStates[len(r.TopicStates)-1]
		t.PartitionStates = append(t.PartitionStates, s)
		leaders[p.lead.Leader] = true
	}
	for _, id := range sortedKeys(leaders) {
		if l := m.brokers[id]; l != nil {
			e := interBroker(l.info, m.cfg.InterBrokerListener)
			live := kmsg.NewLeaderAndISRRequestLiveLeader()
			live.BrokerID, live.Host, live.Port = id, e.Host, e.Port
			r.LiveLeaders = append(r.LiveLeaders, live)
		}
	}
	m.emit(Send{b.id, r})
}

// interBroker is a broker's endpoint for other brokers, its first one if it has
// none of that name.
func interBroker(b znode.Broker, listener string) znode.Endpoint {
	for _, e := range b.Endpoints {
		if e.Listener == listener {
			return e
		}
	}
	if len(b.Endpoints) > 0 {
		return b.Endpoints[0]
	}
	return znode.Endpoint{Port: -1}
}

func (m *Machine) sendMetadata(b batch) {
	if len(b.metadataTo) == 0 {
		return
	}
	topics := m.metadataTopics(b.metadata)
	live := m.liveBrokers()
	for _, id := range sortedKeys(b.metadataTo) {
		r := kmsg.NewPtrUpdateMetadataRequest()
		r.Version = m.cfg.IBP.UpdateMetadata()
		r.ControllerID, r.ControllerEpoch, r.BrokerEpoch = m.cfg.BrokerID, m.epoch, m.brokers[id].epoch
		r.TopicStates, r.LiveBrokers = topics, live
		m.emit(Send{id, r})
	}
}

func (m *Machine) metadataTopics(parts map[*partition]struct{}) []kmsg.UpdateMetadataRequestTopicState {
	var topics []kmsg.UpdateMetadataRequestTopicState
	var last *topic
	for _, p := range inOrder(parts) {
		if !p.led {
			continue // a partition that never had a leader is not told of
		}
		if p.topic != last {
			last = p.topic
			t := kmsg.NewUpdateMetadataRequestTopicState()
			t.Topic, t.TopicID = last.name, last.id
			topics = append(topics, t)
		}
		s := kmsg.NewUpdateMetadataRequestTopicPartition()
		s.Topic, s.Partition = p.topic.name, p.id
		s.ControllerEpoch = p.lead.ControllerEpoch
		s.Leader, s.LeaderEpoch, s.ISR, s.ZKVersion = p.lead.Leader, p.lead.LeaderEpoch, p.lead.ISR, p.version
		if p.topic.deletion {
			s.Leader, s.LeaderEpoch, s.ZKVersion = leaderDuringDelete, 0, 0
		}
		s.Replicas = p.replicas
		s.OfflineReplicas = filter(p.replicas, func(id int32) bool { return !m.online(id, p) })
		t := &topics[len(topics)-1]
		t.PartitionStates = append(t.PartitionStates, s)
	}
	return topics
}

func (m *Machine) liveBrokers() []kmsg.UpdateMetadataRequestLiveBroker {
	live := make([]kmsg.UpdateMetadataRequestLiveBroker, 0, len(m.brokers))
	for _, id := range m.brokerIDs() {
		b := m.brokers[id]
		l := kmsg.NewUpdateMetadataRequestLiveBroker()
		l.ID, l.Rack = id, b.info.Rack
		for _, e := range b.info.Endpoints {
			u := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
			u.Host, u.Port, u.ListenerName, u.SecurityProtocol = e.Host, e.Port, e.Listener, protocolID(e.Protocol)
			l.Endpoints = append(l.Endpoints, u)
		}
		live = append(live, l)
	}
	return live
}

// protocolID is the number of a security protocol (SecurityProtocol.id).
func protocolID(name string) int16 {
	return int16(max(0, slices.Index([]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, name)))
}

// sendStop makes one request, or two where the version has one delete flag for
// the whole request (below 2.6-IV0).
func (m *Machine) sendStop(b *broker, parts map[*partition]bool) {
	version := m.cfg.IBP.StopReplica()
	if version >= 3 {
		m.emit(Send{b.id, m.stopRequest(b, version, parts, false)})
		return
	}
	for _, remove := range []bool{true, false} {
		some := maps.Clone(parts)
		maps.DeleteFunc(some, func(_ *partition, r bool) bool { return r != remove })
		if len(some) > 0 {
			m.emit(Send{b.id, m.stopRequest(b, version, some, remove)})
		}
	}
}

func (m *Machine) stopRequest(b *broker, version int16, parts map[*partition]bool, remove bool) *kmsg.StopReplicaRequest {
	r := kmsg.NewPtrStopReplicaRequest()
	r.Version = version
	r.ControllerID, r.ControllerEpoch, r.BrokerEpoch = m.cfg.BrokerID, m.epoch, b.epoch
	r.DeletePartitions = remove
	var last *topic
	for _, p := range inOrder(parts) {
		if p.topic != last {
			last = p.topic
			t := kmsg.NewStopReplicaRequestTopic()
			t.Topic = last.name
			r.Topics = append(r.Topics, t)
		}
		t := &r.Topics[len(r.Topics)-1]
		if version < 3 {
			t.Partitions = append(t.Partitions, p.id)
			continue
		}
		s := kmsg.NewStopReplicaRequestTopicPartitionState()
		s.Partition, s.LeaderEpoch, s.Delete = p.id, noEpoch, parts[p]
		switch {
		case p.topic.deletion:
			s.LeaderEpoch = epochDuringDelete
		case p.led:
			s.LeaderEpoch = p.lead.LeaderEpoch
		}
		t.PartitionStates = append(t.PartitionStates, s)
	}
	return r
}

// hasTopicIDs tells whether topics have ids (KIP-516).
func (m *Machine) hasTopicIDs() bool { return m.cfg.IBP >= config.V2_8IV0 }

// hasRecovery tells whether an unclean election is marked (KIP-704).
func (m *Machine) hasRecovery() bool { return m.cfg.IBP >= config.V3_2IV0 }
