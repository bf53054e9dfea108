package core

import (
	"cmp"
	"maps"
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// broker is a registered broker.
type broker struct {
	id           int32
	epoch        int64 // czxid of the registration
	info         znode.Broker
	data         string // of the registration, to see what changed
	shuttingDown bool
	ours         bool                // it has said that it is Barnabas
	offline      map[*partition]bool // replicas in failed log directories
}

type partitionState int8

// The partition states of kafka.controller.PartitionState.
const (
	partitionAbsent partitionState = iota // NonExistentPartition
	partitionNew
	partitionOnline
	partitionOffline
)

func (s partitionState) String() string {
	return [...]string{"NonExistentPartition", "NewPartition", "OnlinePartition", "OfflinePartition"}[s]
}

type replicaState int8

// The replica states of kafka.controller.ReplicaState.
const (
	replicaAbsent replicaState = iota // NonExistentReplica
	replicaNew
	replicaOnline
	replicaOffline
	replicaDeletionStarted
	replicaDeleted // ReplicaDeletionSuccessful
	replicaDeletionIneligible
)

func (s replicaState) String() string {
	return [...]string{"NonExistentReplica", "NewReplica", "OnlineReplica", "OfflineReplica",
		"ReplicaDeletionStarted", "ReplicaDeletionSuccessful", "ReplicaDeletionIneligible"}[s]
}

// replicaFrom are the states from which a replica may come into a state
// (ReplicaState.validPreviousStates).
var replicaFrom = [...][]replicaState{
	replicaAbsent:             {replicaDeleted},
	replicaNew:                {replicaAbsent},
	replicaOnline:             {replicaNew, replicaOnline, replicaOffline, replicaDeletionIneligible},
	replicaOffline:            {replicaNew, replicaOnline, replicaOffline, replicaDeletionIneligible},
	replicaDeletionStarted:    {replicaOffline},
	replicaDeleted:            {replicaDeletionStarted},
	replicaDeletionIneligible: {replicaOffline, replicaDeletionStarted},
}

// topic is a topic with a readable node.
type topic struct {
	name       string
	id         wire.UUID
	version    int32 // data version of the topic node
	czxid      int64 // tells a topic from a later one of the same name
	hasParts   bool  // the partitions node exists
	partitions map[int32]*partition
	skipped    map[int32]znode.Assignment // partitions of the node that were refused
	pending    map[int32]znode.Assignment // that somebody added and whose watch event is to come
	watched    bool                       // a watch was left on the topic node

	deletion   bool   // queued for deletion
	started    bool   // its partitions are NonExistent
	ineligible string // why its deletion waits; empty: it does not
}

// partition is one partition of a topic.
type partition struct {
	topic    *topic
	id       int32
	hasNode  bool // its node exists (not its state)
	replicas []int32
	adding   []int32
	removing []int32

	state   partitionState
	led     bool // the state node exists
	lead    znode.PartitionState
	version int32 // data version of the state node

	replicaStates map[int32]replicaState
	unready       string // why the last election found no leader
}

func (p *partition) tp() wire.TopicPartition {
	return wire.TopicPartition{Topic: p.topic.name, Partition: p.id}
}
func (p *partition) String() string { return p.tp().String() }

// replica is one broker's copy of a partition.
type replica struct {
	*partition
	broker int32
}

// target are the replicas when a reassignment is through, origin those before.
func (p *partition) target() []int32 { return without(p.replicas, p.removing) }
func (p *partition) origin() []int32 { return without(p.replicas, p.adding) }
func (p *partition) moving() bool    { return len(p.adding)+len(p.removing) > 0 }

// online tells whether a replica can serve: its broker is registered and not
// shutting down, and its log directory has not failed.
func (m *Machine) online(id int32, p *partition) bool {
	b := m.brokers[id]
	return b != nil && !b.shuttingDown && !b.offline[p]
}

// reachable is online, with brokers that are shutting down.
func (m *Machine) reachable(id int32, p *partition) bool {
	b := m.brokers[id]
	return b != nil && !b.offline[p]
}

func (m *Machine) onlineReplicas(p *partition) []int32 {
	return filter(p.replicas, func(id int32) bool { return m.online(id, p) })
}

func (m *Machine) brokerIDs() []int32 { return slices.Sorted(maps.Keys(m.brokers)) }

// setAssignment changes a partition's replicas and the index by broker.
func (m *Machine) setAssignment(p *partition, replicas, adding, removing []int32) {
	for _, id := range p.replicas {
		if !slices.Contains(replicas, id) {
			delete(m.onBroker[id], p)
		}
	}
	p.replicas, p.adding, p.removing = replicas, adding, removing
	for _, id := range replicas {
		if m.onBroker[id] == nil {
			m.onBroker[id] = map[*partition]struct{}{}
		}
		m.onBroker[id][p] = struct{}{}
	}
}

// addTopic takes a topic into the cluster, with partitions in no state yet.
func (m *Machine) addTopic(name string, t znode.Topic, stat jute.Stat) *topic {
	top := &topic{name: name, id: t.ID, version: stat.Version, czxid: stat.Czxid, partitions: map[int32]*partition{},
		skipped: map[int32]znode.Assignment{}, pending: map[int32]znode.Assignment{}}
	m.topics[name] = top
	if !t.ID.IsZero() {
		m.byID[t.ID] = top
	}
	for _, id := range slices.Sorted(maps.Keys(t.Partitions)) {
		m.addPartition(top, id, t.Partitions[id])
	}
	return top
}

// is tells whether a node that was read is this topic's, and not that of a
// later topic of the same name. The node of a topic that we made ourselves
// tells its czxid at the first read.
func (t *topic) is(stat jute.Stat) bool {
	if t.czxid == 0 {
		t.czxid = stat.Czxid
	}
	return t.czxid == stat.Czxid
}

func (m *Machine) addPartition(t *topic, id int32, a znode.Assignment) *partition {
	p := &partition{topic: t, id: id, replicaStates: map[int32]replicaState{}}
	t.partitions[id] = p
	m.setAssignment(p, a.Replicas, a.Adding, a.Removing)
	if p.moving() {
		m.reassigning[p] = struct{}{}
	}
	return p
}

// forgetTopic takes a topic out of the cluster.
func (m *Machine) forgetTopic(t *topic) {
	for _, p := range t.partitions {
		m.setAssignment(p, nil, nil, nil)
		delete(m.unled, p)
		delete(m.reassigning, p)
		delete(m.isrMoved, p)
		for _, b := range m.brokers {
			delete(b.offline, p)
		}
	}
	delete(m.topics, t.name)
	delete(m.queued, t.name)
	if m.byID[t.id] == t {
		delete(m.byID, t.id)
	}
}

// ordered returns a topic's partitions by number.
func (t *topic) ordered() []*partition {
	list := slices.Collect(maps.Values(t.partitions))
	slices.SortFunc(list, comparePartitions)
	return list
}

// node is the topic node's data for what is in memory.
func (t *topic) node() znode.Topic {
	n := znode.Topic{Version: 3, ID: t.id, Partitions: make(map[int32]znode.Assignment, len(t.partitions))}
	maps.Copy(n.Partitions, t.pending)
	maps.Copy(n.Partitions, t.skipped)
	for id, p := range t.partitions {
		n.Partitions[id] = znode.Assignment{Replicas: p.replicas, Adding: p.adding, Removing: p.removing}
	}
	return n
}

func comparePartitions(a, b *partition) int {
	return cmp.Or(cmp.Compare(a.topic.name, b.topic.name), cmp.Compare(a.id, b.id))
}

// inOrder returns the partitions of a set, by topic and number.
func inOrder[V any](set map[*partition]V) []*partition {
	list := make([]*partition, 0, len(set))
	for p := range set {
		list = append(list, p)
	}
	slices.SortFunc(list, comparePartitions)
	return list
}

// allPartitions returns every partition, by topic and number.
func (m *Machine) allPartitions() []*partition {
	var list []*partition
	for _, name := range sortedKeys(m.topics) {
		list = append(list, m.topics[name].ordered()...)
	}
	return list
}

// replicasOn returns the replicas on brokers, by broker, topic and partition.
func (m *Machine) replicasOn(brokers []int32) []replica {
	var list []replica
	for _, id := range brokers {
		for _, p := range inOrder(m.onBroker[id]) {
			list = append(list, replica{p, id})
		}
	}
	return list
}

func (m *Machine) partition(tp wire.TopicPartition) *partition {
	if t := m.topics[tp.Topic]; t != nil {
		return t.partitions[tp.Partition]
	}
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func filter[T any](list []T, keep func(T) bool) []T {
	kept := make([]T, 0, len(list))
	for _, v := range list {
		if keep(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// without returns list less those in minus; list itself if nothing goes.
func without(list, minus []int32) []int32 {
	if !slices.ContainsFunc(list, func(v int32) bool { return slices.Contains(minus, v) }) {
		return list
	}
	return filter(list, func(v int32) bool { return !slices.Contains(minus, v) })
}

func subset(list, of []int32) bool {
	return !slices.ContainsFunc(list, func(v int32) bool { return !slices.Contains(of, v) })
}

// sameSet compares without order.
func sameSet(a, b []int32) bool { return len(a) == len(b) && subset(a, b) && subset(b, a) }
