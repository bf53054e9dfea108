package replica

import (
	"slices"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ApplyLeaderAndISR does what a LeaderAndIsr request of any version says
// (Kafka's ReplicaManager.becomeLeaderOrFollower).
func (m *Manager) ApplyLeaderAndISR(r *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse {
	m.mu.Lock()
	defer m.mu.Unlock()
	refused := m.CheckController(r.ControllerEpoch, r.BrokerEpoch)
	resp := r.ResponseKind().(*kmsg.LeaderAndISRResponse)
	resp.SetVersion(r.Version)
	resp.ErrorCode = int16(refused)
	apply := func(topic string, id wire.UUID, s *kmsg.LeaderAndISRRequestTopicPartition) kmsg.LeaderAndISRResponseTopicPartition {
		code := refused
		if code == wire.None {
			code = m.applyLocked(topic, id, s)
		}
		return kmsg.LeaderAndISRResponseTopicPartition{Topic: topic, Partition: s.Partition, ErrorCode: int16(code)}
	}
	for i := range r.PartitionStates { // v0 and v1
		s := &r.PartitionStates[i]
		resp.Partitions = append(resp.Partitions, apply(s.Topic, wire.UUID{}, s))
	}
	for i := range r.TopicStates {
		t := &r.TopicStates[i]
		of := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
		for j := range t.PartitionStates {
			of.Partitions = append(of.Partitions, apply(t.Topic, t.TopicID, &t.PartitionStates[j]))
		}
		if r.Version >= 5 {
			resp.Topics = append(resp.Topics, of)
		} else {
			resp.Partitions = append(resp.Partitions, of.Partitions...)
		}
	}
	return resp
}

func (m *Manager) applyLocked(topic string, id wire.UUID, s *kmsg.LeaderAndISRRequestTopicPartition) wire.Code {
	tp := wire.TopicPartition{Topic: topic, Partition: s.Partition}
	if s.Partition < 0 {
		return wire.UnknownTopicOrPartition
	}
	p := m.Partition(tp)
	epoch := int32(-1)
	if p != nil {
		v := p.view.Load()
		if v.Role == Offline {
			return wire.KafkaStorageError
		}
		if has := p.log.TopicID(); !id.IsZero() && !has.IsZero() && has != id {
			m.o.Logger.Error("a LeaderAndIsr request names another topic id than the log has",
				"partition", tp.String(), "log", has.String(), "request", id.String())
			return wire.InconsistentTopicID
		}
		epoch = v.LeaderEpoch
	}
	switch {
	case s.LeaderEpoch < epoch:
		m.o.Logger.Info("ignored a LeaderAndIsr request of an older leader epoch",
			"partition", tp.String(), "epoch", epoch, "request", s.LeaderEpoch)
		return wire.StaleControllerEpoch
	case s.LeaderEpoch == epoch && p != nil:
		return m.sameEpochLocked(p, id)
	case !slices.Contains(s.Replicas, m.o.BrokerID):
		m.o.Logger.Warn("ignored a LeaderAndIsr request whose replicas do not name this broker",
			"partition", tp.String(), "replicas", s.Replicas)
		return wire.UnknownTopicOrPartition
	}
	return m.changeRoleLocked(p, tp, id, s)
}

// sameEpochLocked: the controller may teach or take a topic id without a new
// epoch (an upgrade or downgrade of inter.broker.protocol.version across 2.8);
// anything else of the same epoch was applied before.
func (m *Manager) sameEpochLocked(p *Partition, id wire.UUID) wire.Code {
	has := p.log.TopicID()
	switch {
	case !id.IsZero() && has.IsZero():
		if err := p.log.SetTopicID(id); err != nil {
			return storage.Code(err)
		}
		m.table.setID(p.Topic, id)
		m.copy(p)
		return wire.None
	case id.IsZero() && !has.IsZero():
		return wire.None
	default:
		return wire.StaleControllerEpoch
	}
}

func (m *Manager) changeRoleLocked(p *Partition, tp wire.TopicPartition, id wire.UUID, s *kmsg.LeaderAndISRRequestTopicPartition) wire.Code {
	v := &View{
		Role: Follower, LeaderID: s.Leader, LeaderEpoch: s.LeaderEpoch, PartitionEpoch: s.ZKVersion,
		ControllerEpoch: s.ControllerEpoch, EpochStart: -1,
		Replicas: slices.Clone(s.Replicas), ISR: slices.Clone(s.ISR),
		Adding: slices.Clone(s.AddingReplicas), Removing: slices.Clone(s.RemovingReplicas),
	}
	if s.Leader == m.o.BrokerID {
		v.Role = Leader
	}
	known := p != nil
	if !known {
		if !s.IsNew && m.hiddenLocked(tp) {
			m.o.Logger.Error("a partition is offline: its log may lie in a log directory that is offline", "partition", tp.String())
			p = newPartition(m, tp, nil)
			v.Role = Offline
			p.view.Store(v)
			m.table.put(p)
			m.table.setID(p.Topic, id)
			m.roleChanged(p)
			return wire.KafkaStorageError
		}
		var c *config.Topic
		if m.o.Topic != nil {
			if c = m.o.Topic(tp.Topic); c == nil { // why was logged
				return wire.UnknownServerError
			}
		}
		log, err := m.openLocked(tp, id, c)
		if err != nil {
			m.o.Logger.Error("cannot open a partition's log", "partition", tp.String(), "err", err)
			return storage.Code(err)
		}
		p = newPartition(m, tp, log)
	}
	if err := p.become(v); err != nil {
		m.o.Logger.Error("cannot change a partition's role", "partition", tp.String(), "err", err)
		return storage.Code(err)
	}
	if !known {
		m.table.put(p)
	}
	if id.IsZero() {
		id = p.log.TopicID()
	}
	m.table.setID(p.Topic, id)
	p.changed()
	m.roleChanged(p)
	return wire.None
}

// hiddenLocked tells whether a partition that is not new may have its log in a
// directory that is offline: an empty one in its place would pass for it.
func (m *Manager) hiddenLocked(tp wire.TopicPartition) bool {
	if _, ok := m.o.Storage.Log(tp); ok {
		return false
	}
	return slices.ContainsFunc(m.o.Storage.Dirs(), func(d storage.DirInfo) bool { return d.Err != nil })
}

// openLocked returns the log of a partition, made when there is none; nil is the
// defaults.
func (m *Manager) openLocked(tp wire.TopicPartition, id wire.UUID, c *config.Topic) (*storage.Log, error) {
	log, err := m.o.Storage.Create(tp, id, c)
	if err != nil {
		return nil, err
	}
	if c != nil { // what changed since the logs were opened told no replica
		log.SetConfig(c)
	}
	if !id.IsZero() && log.TopicID().IsZero() {
		return log, log.SetTopicID(id)
	}
	return log, nil
}

// SetAside moves the log of an older topic of the same name out of the way (see
// storage.Manager.SetAside) and forgets the partition.
func (m *Manager) SetAside(tp wire.TopicPartition, id wire.UUID, created time.Time) (folder string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if folder, err = m.o.Storage.SetAside(tp, id, created); folder == "" || err != nil {
		return folder, err
	}
	if p := m.Partition(tp); p != nil {
		m.table.remove(p)
		p.end(Gone)
	}
	return folder, nil
}

// leaderEpochOfDelete in StopReplica says that the topic is being deleted; -1
// comes from controllers that send no epoch. Both pass every check.
const leaderEpochOfDelete = -2

// StopReplica does what a StopReplica request of any version says (Kafka's
// ReplicaManager.stopReplicas).
func (m *Manager) StopReplica(r *kmsg.StopReplicaRequest) *kmsg.StopReplicaResponse {
	m.mu.Lock()
	defer m.mu.Unlock()
	resp := r.ResponseKind().(*kmsg.StopReplicaResponse)
	resp.SetVersion(r.Version)
	if refused := m.CheckController(r.ControllerEpoch, r.BrokerEpoch); refused != wire.None {
		resp.ErrorCode = int16(refused)
		return resp
	}
	stop := func(topic string, partition, epoch int32, del bool) {
		code := m.stopLocked(wire.TopicPartition{Topic: topic, Partition: partition}, epoch, del)
		resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{
			Topic: topic, Partition: partition, ErrorCode: int16(code)})
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		switch {
		case r.Version == 0:
			stop(t.Topic, t.Partition, -1, r.DeletePartitions)
		case r.Version < 3:
			for _, partition := range t.Partitions {
				stop(t.Topic, partition, -1, r.DeletePartitions)
			}
		default:
			for _, s := range t.PartitionStates {
				stop(t.Topic, s.Partition, s.LeaderEpoch, s.Delete)
			}
		}
	}
	return resp
}

func (m *Manager) stopLocked(tp wire.TopicPartition, epoch int32, del bool) wire.Code {
	p := m.Partition(tp)
	if p != nil {
		v := p.view.Load()
		if v.Role == Offline {
			return wire.KafkaStorageError
		}
		if epoch != -1 && epoch != leaderEpochOfDelete && epoch < v.LeaderEpoch {
			return wire.FencedLeaderEpoch
		}
		if !del {
			p.stop()
			return wire.None
		}
		m.table.remove(p)
		p.end(Gone)
	}
	if !del {
		return wire.None
	}
	// Also without a partition: a log that was left over from before a restart.
	if err := m.o.Storage.Delete(tp); err != nil && storage.Code(err) != wire.NotLeaderOrFollower {
		m.o.Logger.Error("cannot delete a partition's log", "partition", tp.String(), "err", err)
		return storage.Code(err)
	}
	return wire.None
}
