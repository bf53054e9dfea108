package core

import (
	"maps"
	"slices"
	"strings"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// changed handles a watch that fired.
func (m *Machine) changed(path string) {
	switch path {
	case znode.BrokerIDs:
		m.brokersChanged()
	case znode.Topics:
		m.topicsChanged()
	case znode.DeleteTopics:
		m.deletionsChanged()
	case znode.ISRChanges:
		m.isrNotified()
	case znode.LogDirEvents:
		m.logDirsFailed()
	case znode.PreferredElection:
		m.preferredElection()
	case znode.ReassignPartitions:
		m.reassignNode()
	default:
		if name, ok := strings.CutPrefix(path, znode.BrokerIDs+"/"); ok {
			if id, err := znode.ParseBrokerID(name); err == nil {
				m.brokerChanged(id)
			}
		} else if name, ok := strings.CutPrefix(path, znode.Topics+"/"); ok {
			if tp, ok := statePath(name); ok {
				m.stateChanged(tp)
			} else {
				m.topicChanged(name)
			}
		}
	}
}

// statePath reads topic/partitions/number/state.
func statePath(rest string) (tp wire.TopicPartition, ok bool) {
	parts := strings.Split(rest, "/")
	if len(parts) != 4 || parts[1] != "partitions" || parts[3] != "state" {
		return tp, false
	}
	id, err := znode.ParsePartition(parts[2])
	return wire.TopicPartition{Topic: parts[0], Partition: id}, err == nil
}

// topicsChanged handles a change of the list of topics.
func (m *Machine) topicsChanged() {
	m.read([]Read{{Kind: ReadChildren, Path: znode.Topics, Watch: true}}, func(r []ReadResult) {
		present := make(map[string]bool, len(r[0].Children))
		var fresh []string
		for _, name := range r[0].Children {
			present[name] = true
			if m.topics[name] == nil && !m.unreadable[name] {
				fresh = append(fresh, name)
			}
		}
		maps.DeleteFunc(m.unreadable, func(name string, _ bool) bool { return !present[name] })
		for _, name := range sortedKeys(m.topics) {
			if !present[name] {
				m.warnf("topic %s is gone from ZooKeeper without a deletion; brokers keep its logs", name)
				m.forgetTopic(m.topics[name])
			}
		}
		m.loadTopics(fresh, func(loaded []*topic) {
			var parts []*partition
			for _, t := range loaded {
				parts = append(parts, t.ordered()...)
			}
			m.startPartitions(parts, m.watchTopics)
		})
	})
}

// watchTopics sets the watch on the nodes that the controller itself made, and
// takes up what was written there since.
func (m *Machine) watchTopics() {
	var bare []*topic
	var reads []Read
	for _, name := range sortedKeys(m.topics) {
		if t := m.topics[name]; !t.watched {
			bare = append(bare, t)
			reads = append(reads, Read{Kind: ReadData, Path: znode.TopicPath(name), Watch: true})
		}
	}
	m.read(reads, func(r []ReadResult) {
		for i, t := range bare {
			if r[i].Err != jute.OK {
				continue
			}
			t.watched = true
			if !t.is(r[i].Stat) || t.version != r[i].Stat.Version {
				m.queue = append(m.queue, Changed{znode.TopicPath(t.name)})
			}
		}
	})
}

// startPartitions brings partitions that are new to the controller to life
// (KafkaController.onNewPartitionCreation). Those whose state node exists
// already, since an earlier controller made it, are elected for as offline.
func (m *Machine) startPartitions(parts []*partition, then func()) {
	var replicas []replica
	for _, p := range parts {
		if p.led {
			m.setPartitionState(p, partitionOffline)
		} else {
			m.setPartitionState(p, partitionNew)
		}
		for _, id := range p.replicas {
			p.replicaStates[id] = replicaNew
			replicas = append(replicas, replica{p, id})
		}
	}
	m.partitionsOnline(parts, electOffline, func([]*partition) {
		m.replicasOnline(replicas)
		then()
	})
}

// topicChanged handles a change of a topic node's data: new partitions. Other
// changes of the replicas there are the controller's own.
func (m *Machine) topicChanged(name string) {
	if strings.Contains(name, "/") {
		return
	}
	m.read([]Read{{Kind: ReadData, Path: znode.TopicPath(name), Watch: true}}, func(r []ReadResult) {
		if r[0].Err != jute.OK {
			return // the list's watch tells that it is gone
		}
		n, err := znode.DecodeTopic(r[0].Data)
		if err != nil {
			m.refuseTopic(name, err.Error())
			return
		}
		delete(m.unreadable, name)
		t := m.topics[name]
		switch {
		case t == nil:
			m.topicsChanged()
		case !t.is(r[0].Stat):
			m.warnf("topic %s was deleted and made again without a deletion by the controller; brokers keep its old logs", name)
			m.forgetTopic(t)
			m.topicsChanged()
		default:
			t.version, t.watched = r[0].Stat.Version, true
			m.compareTopic(t, n)
		}
	})
}

// compareTopic takes up what somebody else wrote into a topic node.
func (m *Machine) compareTopic(t *topic, n znode.Topic) {
	clear(t.pending) // it is in n, if it still counts
	for id := range t.partitions {
		delete(n.Partitions, id)
	}
	for id := range t.skipped {
		delete(n.Partitions, id)
	}
	if t.deletion {
		if len(n.Partitions) == 0 {
			return
		}
		m.warnf("topic %s is being deleted: its new partitions %v are taken back", t.name, sortedKeys(n.Partitions))
		m.writeTopic(t, func(bool) {})
		return
	}
	maps.Copy(t.skipped, m.splitPartitions(t.name, n.Partitions))
	var fresh []*partition
	for _, id := range slices.Sorted(maps.Keys(n.Partitions)) {
		a := n.Partitions[id]
		fresh = append(fresh, m.addPartition(t, id, znode.Assignment{Replicas: a.Replicas}))
	}
	restore := func(then func()) { then() }
	switch {
	case m.hasTopicIDs() && n.ID.IsZero() && !t.id.IsZero():
		// Tools from before 2.8 write the node without the id. Brokers have it
		// in partition.metadata, so it must be the same again.
		restore = func(then func()) { m.writeTopic(t, func(bool) { then() }) }
	case n.ID != t.id && !n.ID.IsZero() && !t.id.IsZero():
		m.warnf("topic %s keeps its id %v: the node says %v", t.name, t.id, n.ID)
	}
	restore(func() {
		if len(fresh) == 0 {
			return
		}
		m.infof("topic %s: new partitions %v", t.name, sortedKeys(n.Partitions))
		m.startPartitions(fresh, func() {})
	})
}

// writeTopic writes a topic node as it is in memory. A version that somebody
// else raised is read and written over: what they changed, their watch event
// brings.
func (m *Machine) writeTopic(t *topic, then func(ok bool)) {
	m.writeTopics([]*topic{t}, func(ok map[*topic]bool) { then(ok[t]) })
}

// writeTopics is writeTopic for several; ok has those that are written.
func (m *Machine) writeTopics(topics []*topic, then func(ok map[*topic]bool)) {
	m.writeTopicsRound(topics, 0, map[*topic]bool{}, then)
}

func (m *Machine) writeTopicsRound(topics []*topic, round int, ok map[*topic]bool, then func(map[*topic]bool)) {
	units := make([]Unit, len(topics))
	for i, t := range topics {
		units[i] = Unit{{Kind: OpSet, Path: znode.TopicPath(t.name), Data: t.node().Encode(), Version: t.version}}
	}
	m.write(units, func(results []UnitResult) {
		var stale []*topic
		for i, r := range results {
			t := topics[i]
			switch {
			case r.Err == jute.OK:
				t.version, ok[t] = r.Version, true
			case r.Err == jute.ErrBadVersion && round < maxRounds:
				stale = append(stale, t)
			default:
				m.warnf("could not write topic %s: %v", t.name, r.Err)
			}
		}
		if len(stale) == 0 {
			then(ok)
			return
		}
		// Partitions that they add are kept in the node for their watch event.
		keep := func(t *topic, n znode.Topic) {
			for id := range n.Partitions {
				if !t.deletion && t.partitions[id] == nil {
					t.pending[id] = n.Partitions[id]
				}
			}
		}
		m.rereadTopics(stale, keep, func() { m.writeTopicsRound(stale, round+1, ok, then) })
	})
}

// rereadTopics takes the data versions of topic nodes that somebody wrote
// between our read and our write, and hands over what they hold.
func (m *Machine) rereadTopics(topics []*topic, each func(*topic, znode.Topic), then func()) {
	reads := make([]Read, len(topics))
	for i, t := range topics {
		reads[i] = Read{Kind: ReadData, Path: znode.TopicPath(t.name)}
	}
	m.read(reads, func(results []ReadResult) {
		for i, r := range results {
			t := topics[i]
			if r.Err != jute.OK || !t.is(r.Stat) {
				continue
			}
			t.version = r.Stat.Version
			if n, err := znode.DecodeTopic(r.Data); err == nil {
				each(t, n)
			}
		}
		then()
	})
}
