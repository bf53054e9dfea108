package core

import (
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/internal/wire"
)

// readBrokers reads registrations, with watches.
func (m *Machine) readBrokers(names []string, then func(map[int32]*broker)) {
	var ids []int32
	for _, name := range names {
		if id, err := znode.ParseBrokerID(name); err == nil {
			ids = append(ids, id)
		} else {
			m.warnf("%s/%s is skipped: not a broker id", znode.BrokerIDs, name)
		}
	}
	slices.Sort(ids)
	reads := make([]Read, len(ids))
	for i, id := range ids {
		reads[i] = Read{Kind: ReadData, Path: znode.BrokerPath(id), Watch: true}
	}
	m.read(reads, func(results []ReadResult) {
		found := map[int32]*broker{}
		for i, r := range results {
			if r.Err != jute.OK {
				continue // gone since it was listed; the watch on the list tells
			}
			info, err := znode.DecodeBroker(r.Data)
			if err != nil {
				// A registration begins with null data and is filled in the
				// same transaction, so this one is somebody's own.
				m.warnf("broker %d is skipped until its registration changes: %v", ids[i], err)
				continue
			}
			found[ids[i]] = &broker{id: ids[i], epoch: r.Stat.Czxid, info: info, data: string(r.Data), offline: map[*partition]bool{}}
		}
		then(found)
	})
}

func (m *Machine) connect(b *broker) { m.emit(Connect{b.id, b.epoch, b.info.Endpoints}) }

// brokersChanged handles a change of the list of registrations.
func (m *Machine) brokersChanged() {
	m.read([]Read{{Kind: ReadChildren, Path: znode.BrokerIDs, Watch: true}}, func(r []ReadResult) {
		m.readBrokers(r[0].Children, m.compareBrokers)
	})
}

// compareBrokers tells new, bounced and dead brokers from what is known. A
// bounced one (the same id, a later epoch) has failed and started.
func (m *Machine) compareBrokers(found map[int32]*broker) {
	var fresh, bounced, dead []int32
	changed := false
	for _, id := range sortedKeys(found) {
		switch known := m.brokers[id]; {
		case known == nil:
			fresh = append(fresh, id)
		case found[id].epoch > known.epoch:
			bounced = append(bounced, id)
		case found[id].data != known.data:
			known.info, known.data = found[id].info, found[id].data
			changed = true
		}
	}
	for _, id := range m.brokerIDs() {
		if found[id] == nil {
			dead = append(dead, id)
		}
	}
	if len(fresh)+len(bounced)+len(dead) > 0 {
		m.infof("brokers: new %v, bounced %v, dead %v", fresh, bounced, dead)
	}
	if changed {
		m.tellMetadata(m.brokerIDs())
		m.flush()
	}
	m.startBrokers(fresh, found, func() {
		gone := m.dropBrokers(bounced)
		m.bouncing = true
		m.brokersFailed(bounced, gone, func() {
			m.bouncing = false
			m.startBrokers(bounced, found, func() {
				gone := m.dropBrokers(dead)
				m.brokersFailed(dead, gone, func() {
					if len(dead) > 0 {
						m.forgetDead(func() {})
					}
				})
			})
		})
	})
}

// dropBrokers takes brokers out of the cluster and returns the replicas on them.
func (m *Machine) dropBrokers(ids []int32) []replica {
	for _, id := range ids {
		m.emit(Disconnect{id})
		delete(m.brokers, id)
	}
	return m.replicasOn(ids)
}

func (m *Machine) brokersFailed(ids []int32, gone []replica, then func()) {
	if len(ids) == 0 {
		then()
		return
	}
	m.replicasFailed(gone, then)
}

// replicasFailed handles replicas that went with their broker or their log
// directory (KafkaController.onReplicasBecomeOffline).
func (m *Machine) replicasFailed(gone []replica, then func()) {
	var keep, deleting []replica
	leaderless := map[*partition]struct{}{}
	for _, r := range gone {
		if m.doomed(r.topic) {
			deleting = append(deleting, r)
			continue
		}
		keep = append(keep, r)
		if r.led && r.lead.Leader == r.broker {
			leaderless[r.partition] = struct{}{}
		}
	}
	m.partitionsOffline(inOrder(leaderless))
	m.partitionsOnline(m.unledPartitions(), electOffline, func(elected []*partition) {
		m.replicasOffline(keep, func() {
			if len(keep) == 0 && len(elected) == 0 {
				m.tellMetadata(m.brokerIDs())
				m.flush()
			}
			m.replicaDeletionFailed(deleting, "a replica is on a broker that is not live", then)
		})
	})
}

// startBrokers takes brokers into the cluster (KafkaController.onBrokerStartup).
func (m *Machine) startBrokers(ids []int32, found map[int32]*broker, then func()) {
	if len(ids) == 0 {
		then()
		return
	}
	others := m.brokerIDs()
	for _, id := range ids {
		m.brokers[id] = found[id]
		m.connect(found[id])
	}
	m.tellMetadata(others)
	m.flush()
	m.tellMetadata(ids, filter(m.allPartitions(), func(p *partition) bool { return p.led })...)
	m.flush()
	on := m.replicasOn(ids)
	m.markOnline(filter(on, func(r replica) bool { return r.state != partitionAbsent }))
	for _, id := range ids {
		delete(m.batch.metadataTo, id) // they have just been told everything
	}
	m.flush()
	m.electUnled(m.unledPartitions(), func() {
		mine := func(p *partition) bool {
			return slices.ContainsFunc(p.target(), func(id int32) bool { return slices.Contains(ids, id) })
		}
		m.resumeReassignments(mine, func() {
			for _, r := range on {
				if r.topic.deletion {
					r.topic.ineligible = ""
				}
			}
			m.resumeDeletions(then)
		})
	})
}

// brokerChanged handles a change of one registration's data: endpoints or
// features. One that is gone or new is for the list's watch.
func (m *Machine) brokerChanged(id int32) {
	m.read([]Read{{Kind: ReadData, Path: znode.BrokerPath(id), Watch: true}}, func(r []ReadResult) {
		known := m.brokers[id]
		if r[0].Err != jute.OK {
			return
		}
		info, err := znode.DecodeBroker(r[0].Data)
		switch {
		case err != nil:
			m.warnf("broker %d: its registration is left unread: %v", id, err)
		case known == nil || known.epoch != r[0].Stat.Czxid:
			m.brokersChanged()
		case known.data != string(r[0].Data):
			known.info, known.data = info, string(r[0].Data)
			m.tellMetadata(m.brokerIDs())
			m.flush()
		}
	})
}

// answered handles a broker's answer.
func (m *Machine) answered(a Answered) {
	b := m.brokers[a.Broker]
	if b == nil || b.epoch != a.Epoch {
		return
	}
	switch resp := a.Response.(type) {
	case *kmsg.LeaderAndISRResponse:
		m.leadersAnswered(b, resp)
	case *kmsg.StopReplicaResponse:
		if req, ok := a.Request.(*kmsg.StopReplicaRequest); ok {
			m.stopAnswered(b, req, resp)
		}
	}
}

// leadersAnswered looks for replicas whose log directory has failed.
func (m *Machine) leadersAnswered(b *broker, resp *kmsg.LeaderAndISRResponse) {
	if code := wire.Code(resp.ErrorCode); code != wire.None {
		m.warnf("broker %d refused LeaderAndIsr: %v", b.id, code)
		return
	}
	var gone []replica
	see := func(p *partition, code wire.Code) {
		switch {
		case p == nil:
		case code == wire.None:
			delete(b.offline, p)
		case code == wire.KafkaStorageError && !b.offline[p]:
			b.offline[p] = true
			gone = append(gone, replica{p, b.id})
		case code == wire.StaleControllerEpoch: // it has this leader epoch already
		case code != wire.KafkaStorageError:
			m.warnf("broker %d refused LeaderAndIsr of %s: %v", b.id, p, code)
		}
	}
	for _, p := range resp.Partitions {
		see(m.partition(wire.TopicPartition{Topic: p.Topic, Partition: p.Partition}), wire.Code(p.ErrorCode))
	}
	for _, t := range resp.Topics {
		if top := m.byID[t.TopicID]; top != nil {
			for _, p := range t.Partitions {
				see(top.partitions[p.Partition], wire.Code(p.ErrorCode))
			}
		}
	}
	if len(gone) > 0 {
		m.warnf("broker %d: the log directory of %d replicas has failed, among them %s", b.id, len(gone), gone[0].partition)
		m.replicasFailed(gone, func() {})
	}
}
