package core

import (
	"slices"
	"strings"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
)

// failover begins a term: it reads the cluster, watches it, and brings every
// replica and partition into a state (KafkaController.onControllerFailover).
func (m *Machine) failover(epoch int32) {
	queue := m.queue
	m.reset()
	m.queue = queue
	m.active, m.epoch = true, epoch
	reads := []Read{
		{Kind: ReadData, Path: znode.FeaturePath},
		{Kind: ReadChildren, Path: znode.BrokerIDs, Watch: true},
		{Kind: ReadChildren, Path: znode.Topics, Watch: true},
		{Kind: ReadChildren, Path: znode.DeleteTopics, Watch: true},
		{Kind: ReadChildren, Path: znode.LogDirEvents, Watch: true},
		{Kind: ReadChildren, Path: znode.ISRChanges, Watch: true},
		{Kind: ReadExists, Path: znode.PreferredElection, Watch: true},
		{Kind: ReadExists, Path: znode.ReassignPartitions, Watch: true},
	}
	m.read(reads, func(r []ReadResult) {
		// What tools asked for meanwhile is taken up as if it had just come.
		if r[6].Err == jute.OK {
			m.queue = append(m.queue, Changed{znode.PreferredElection})
		}
		if r[7].Err == jute.OK {
			m.queue = append(m.queue, Changed{znode.ReassignPartitions})
		}
		units := m.featureUnits(r[0])
		for _, name := range r[4].Children {
			units = append(units, Unit{{Kind: OpDelete, Path: znode.LogDirEvents + "/" + name, Version: -1}})
		}
		for _, name := range r[5].Children {
			units = append(units, Unit{{Kind: OpDelete, Path: znode.ISRChanges + "/" + name, Version: -1}})
		}
		m.readBrokers(r[1].Children, func(found map[int32]*broker) {
			m.brokers = found
			m.loadTopics(r[2].Children, func([]*topic) {
				m.write(units, func(results []UnitResult) {
					m.checkFeature(results)
					m.begin(r[3].Children)
				})
			})
		})
	})
}

// featureUnits brings /feature to what the inter-broker protocol version wants,
// with the features that are in it: creates it, or sets it when its version or
// status differs (KafkaController.enableFeatureVersioning).
func (m *Machine) featureUnits(r ReadResult) []Unit {
	want := znode.Features{Version: 1, Features: map[string]znode.FeatureLevels{}}
	if m.cfg.IBP >= config.V3_3IV0 {
		want.Version = 2
	}
	if m.cfg.IBP >= config.V2_7IV0 {
		want.Status = znode.FeaturesEnabled
	}
	if r.Err == jute.ErrNoNode {
		return []Unit{{{Kind: OpCreate, Path: znode.FeaturePath, Data: want.Encode()}}}
	}
	have, err := znode.DecodeFeatures(r.Data)
	if err != nil {
		m.warnf("%s is written anew: %v", znode.FeaturePath, err)
	} else if want.Status == znode.FeaturesEnabled {
		want.Features = have.Features
	}
	if err == nil && have.Version == want.Version && have.Status == want.Status {
		return nil
	}
	return []Unit{{{Kind: OpSet, Path: znode.FeaturePath, Data: want.Encode(), Version: r.Stat.Version}}}
}

func (m *Machine) checkFeature(results []UnitResult) {
	if len(results) > 0 && results[0].Err != jute.OK && results[0].Err != jute.ErrNoNode {
		m.warnf("could not set up %s: %v", znode.FeaturePath, results[0].Err)
	}
}

// begin brings replicas and partitions into their first states and starts what
// is pending. deletions are the names under /admin/delete_topics.
func (m *Machine) begin(deletions []string) {
	for _, id := range m.brokerIDs() {
		m.connect(m.brokers[id])
	}
	var online, offline []replica
	for _, p := range m.allPartitions() {
		for _, id := range p.replicas {
			if m.online(id, p) {
				p.replicaStates[id] = replicaOnline
				online = append(online, replica{p, id})
			} else {
				p.replicaStates[id] = replicaDeletionIneligible
				offline = append(offline, replica{p, id})
			}
		}
	}
	// Followers find their leaders' addresses in the metadata, so the brokers come
	// first. A broker alone needs none, and serves clients once it has metadata:
	// it gets them together with its topics.
	m.tellMetadata(m.brokerIDs())
	if len(m.brokers) > 1 || len(online) == 0 {
		m.flush()
	}
	m.queueDeletions(deletions, func() {
		m.replicasOnline(online)
		m.replicasOffline(offline, func() {
			for _, p := range m.allPartitions() {
				switch {
				case !p.led:
					m.setPartitionState(p, partitionNew)
				case m.online(p.lead.Leader, p):
					m.setPartitionState(p, partitionOnline)
				default:
					m.setPartitionState(p, partitionOffline)
				}
			}
			m.electUnled(m.unledPartitions(), func() {
				m.resumeReassignments(func(*partition) bool { return true }, func() {
					m.resumeDeletions(m.ready)
				})
			})
		})
	})
}

// ready ends the failover.
func (m *Machine) ready() {
	m.infof("controller of epoch %d: %d brokers %v, %d topics, %d partitions without a leader",
		m.epoch, len(m.brokers), m.brokerIDs(), len(m.topics), len(m.unled))
	if m.cfg.AutoRebalance {
		m.emit(Alarm{m.now.Add(firstRebalance)})
	}
}

// loadTopics reads topic nodes, with watches, and the states below them, and
// takes the readable topics into the cluster, with ids where they lack one.
func (m *Machine) loadTopics(names []string, then func(loaded []*topic)) {
	names = filter(slices.Sorted(slices.Values(names)), m.legalTopic)
	reads := make([]Read, 0, 2*len(names))
	for _, name := range names {
		reads = append(reads,
			Read{Kind: ReadData, Path: znode.TopicPath(name), Watch: true},
			Read{Kind: ReadChildren, Path: znode.PartitionsPath(name)})
	}
	m.read(reads, func(r []ReadResult) {
		var loaded []*topic
		var states []*partition
		for i, name := range names {
			t := m.loadTopic(name, r[2*i], r[2*i+1])
			if t == nil {
				continue
			}
			loaded = append(loaded, t)
			for _, p := range t.ordered() {
				if p.hasNode {
					states = append(states, p)
				}
			}
		}
		m.readStates(states, func([]bool) {
			m.giveIDs(loaded, 0, func() { then(loaded) })
		})
	})
}

// loadTopic takes one topic from its node; nil if it cannot be read.
func (m *Machine) loadTopic(name string, node, partitions ReadResult) *topic {
	if node.Err != jute.OK {
		return nil // deleted since it was listed
	}
	n, err := znode.DecodeTopic(node.Data)
	if err != nil {
		m.refuseTopic(name, err.Error())
		return nil
	}
	delete(m.unreadable, name)
	skipped := m.splitPartitions(name, n.Partitions)
	t := m.addTopic(name, n, node.Stat)
	t.skipped, t.watched = skipped, true
	t.hasParts = partitions.Err == jute.OK
	for _, child := range partitions.Children {
		if id, err := znode.ParsePartition(child); err == nil && t.partitions[id] != nil {
			t.partitions[id].hasNode = true
		}
	}
	return t
}

// refuseTopic says once that a topic node cannot be used.
func (m *Machine) refuseTopic(name, why string) {
	if !m.unreadable[name] {
		m.warnf("topic %q is skipped until its node changes: %s", name, why)
	}
	m.unreadable[name] = true
}

// legalTopic says once about each name that no topic can have
// (org.apache.kafka.common.internals.Topic).
func (m *Machine) legalTopic(name string) bool {
	legal := name != "" && name != "." && name != ".." && len(name) <= 249 &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
		})
	if !legal {
		m.refuseTopic(name, "no topic can have this name")
	}
	return legal
}

// splitPartitions takes the partitions with impossible replica lists out of a
// topic node that was read, with one line of log. They stay in the node.
func (m *Machine) splitPartitions(name string, partitions map[int32]znode.Assignment) (skipped map[int32]znode.Assignment) {
	skipped = map[int32]znode.Assignment{}
	for id, a := range partitions {
		if !possibleReplicas(a.Replicas) || !subset(a.Adding, a.Replicas) || !subset(a.Removing, a.Replicas) ||
			len(without(a.Replicas, a.Removing)) == 0 {
			skipped[id] = a
			delete(partitions, id)
		}
	}
	if len(skipped) > 0 {
		m.warnf("topic %s: partitions %v are skipped: a replica list is empty, repeats a broker, or does not fit the reassignment", name, sortedKeys(skipped))
	}
	return skipped
}

// possibleReplicas tells whether a list names brokers, each once.
func possibleReplicas(list []int32) bool {
	if len(list) == 0 || len(list) > maxReplicas {
		return false
	}
	seen := make(map[int32]bool, len(list))
	for _, id := range list {
		if id < 0 || seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

// maxReplicas bounds a replica list that somebody wrote into a znode.
const maxReplicas = 32767

// giveIDs writes ids into the nodes of topics that have none, if the cluster's
// inter-broker protocol has ids (KIP-516).
func (m *Machine) giveIDs(topics []*topic, round int, then func()) {
	var bare []*topic
	var units []Unit
	if m.hasTopicIDs() && round < maxRounds {
		bare = filter(topics, func(t *topic) bool { return t.id.IsZero() && m.topics[t.name] == t })
	}
	for _, t := range bare {
		n := t.node()
		n.ID = m.cfg.NewTopicID()
		t.id = n.ID
		units = append(units, Unit{{Kind: OpSet, Path: znode.TopicPath(t.name), Data: n.Encode(), Version: t.version}})
	}
	m.write(units, func(results []UnitResult) {
		var again []*topic
		for i, t := range bare {
			if results[i].Err == jute.OK {
				t.version = results[i].Version
				m.byID[t.id] = t
				continue
			}
			t.id = [16]byte{}
			if results[i].Err == jute.ErrBadVersion {
				again = append(again, t)
			} else if results[i].Err != jute.ErrNoNode {
				m.warnf("could not give topic %s an id: %v", t.name, results[i].Err)
			}
		}
		takeID := func(t *topic, n znode.Topic) {
			if t.id.IsZero() && !n.ID.IsZero() {
				t.id = n.ID
				m.byID[t.id] = t
			}
		}
		m.rereadTopics(again, takeID, func() {
			if len(again) > 0 {
				m.giveIDs(again, round+1, then)
				return
			}
			then()
		})
	})
}
