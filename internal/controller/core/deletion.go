package core

import (
	"fmt"
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// deletionsChanged handles a change of the list of topics to delete.
func (m *Machine) deletionsChanged() {
	m.read([]Read{{Kind: ReadChildren, Path: znode.DeleteTopics, Watch: true}}, func(r []ReadResult) {
		names := filter(slices.Sorted(slices.Values(r[0].Children)), func(name string) bool { return m.queued[name] == nil })
		m.queueDeletions(names, func() { m.resumeDeletions(func() {}) })
	})
}

// queueDeletions marks topics for deletion, and removes the wishes that name no
// topic or that the settings forbid. A topic whose node cannot be read has no
// replicas to stop: its nodes go at once.
func (m *Machine) queueDeletions(names []string, then func()) {
	var units []Unit
	var junk []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		t := m.topics[name]
		switch {
		case t == nil && m.unreadable[name] && m.cfg.DeleteTopicEnable:
			junk = append(junk, name)
		case t == nil || !m.cfg.DeleteTopicEnable:
			m.infof("the wish to delete topic %q is removed: there is no such topic, or delete.topic.enable is false", name)
			units = append(units, Unit{{Kind: OpDelete, Path: znode.DeleteTopicPath(name), Version: -1}})
		case !t.deletion:
			t.deletion = true
			m.queued[name] = t
		}
	}
	m.write(units, func([]UnitResult) { m.deleteEach(junk, then) })
}

func (m *Machine) deleteEach(names []string, then func()) {
	if len(names) == 0 {
		then()
		return
	}
	delete(m.unreadable, names[0])
	m.deleteTree(names[0], func(bool) { m.deleteEach(names[1:], then) })
}

// resumeDeletions carries on every queued deletion that can go on
// (TopicDeletionManager.resumeDeletions).
func (m *Machine) resumeDeletions(then func()) {
	var complete, eligible []*topic
	for _, name := range sortedKeys(m.queued) {
		t := m.queued[name]
		if !t.started && m.held(t) {
			continue
		}
		if t.allReplicas(replicaDeleted) {
			complete = append(complete, t)
			continue
		}
		if t.anyReplica(replicaDeletionStarted) || t.ineligible != "" {
			continue
		}
		m.replicasBecome(t.replicasIn(replicaDeletionIneligible), replicaOffline)
		eligible = append(eligible, t)
	}
	if len(complete)+len(eligible) == 0 {
		then()
		return
	}
	m.completeDeletions(complete, func() {
		m.startDeletions(eligible, then)
	})
}

// held tells whether a reassignment holds up the deletion of a topic.
func (m *Machine) held(t *topic) bool {
	for p := range m.reassigning {
		if p.topic == t {
			return true
		}
	}
	return false
}

// doomed tells whether nothing but deletion is done to a topic any more. One
// whose deletion waits for a reassignment lives on until that is through.
func (m *Machine) doomed(t *topic) bool { return t.deletion && (t.started || !m.held(t)) }

func (t *topic) allReplicas(s replicaState) bool {
	for _, p := range t.partitions {
		for _, have := range p.replicaStates {
			if have != s {
				return false
			}
		}
	}
	return true
}

func (t *topic) anyReplica(s replicaState) bool { return len(t.replicasIn(s)) > 0 }

func (t *topic) replicasIn(s replicaState) []replica {
	var list []replica
	for _, p := range t.ordered() {
		for _, id := range sortedKeys(p.replicaStates) {
			if p.replicaStates[id] == s {
				list = append(list, replica{p, id})
			}
		}
	}
	return list
}

// startDeletions tells brokers that topics are going, and asks for their
// replicas to be deleted. A replica on a dead broker holds the deletion up,
// unless mayForget.
func (m *Machine) startDeletions(topics []*topic, then func()) {
	if len(topics) == 0 {
		then()
		return
	}
	var alive []replica
	for _, t := range topics {
		for _, p := range t.ordered() {
			if !t.started {
				m.setPartitionState(p, partitionAbsent)
			}
			m.tellAll(p)
		}
		t.started = true
	}
	m.flush()
	forgotten := false
	for _, t := range topics {
		var dead []replica
		for _, p := range t.ordered() {
			for _, id := range sortedKeys(p.replicaStates) {
				switch {
				case p.replicaStates[id] == replicaDeleted:
				case m.online(id, p):
					alive = append(alive, replica{p, id})
				default:
					dead = append(dead, replica{p, id})
				}
			}
		}
		if m.leaveDead(t, dead) {
			forgotten = true
		}
	}
	m.replicasOffline(alive, func() {
		m.replicasDeletionStarted(alive)
		if forgotten || slices.ContainsFunc(topics, func(t *topic) bool { return t.allReplicas(replicaDeleted) }) {
			m.resumeDeletions(then)
			return
		}
		then()
	})
}

// leaveDead decides about replicas that nobody can delete now. It tells whether
// they are forgotten.
func (m *Machine) leaveDead(t *topic, dead []replica) bool {
	if len(dead) == 0 {
		return false
	}
	if m.mayForget(t, dead) {
		for _, r := range dead {
			r.replicaStates[r.broker] = replicaDeleted
		}
		m.infof("topic %s: replicas on brokers %v are left for their brokers to put aside", t.name, brokersOf(dead))
		return true
	}
	for _, r := range dead {
		if r.replicaStates[r.broker] != replicaDeletionIneligible {
			r.replicaStates[r.broker] = replicaDeletionIneligible
		}
	}
	t.ineligible = "replicas are on brokers that are not live"
	m.warnf("the deletion of topic %s waits for brokers %v%s", t.name, brokersOf(dead), m.whyNotForget(t))
	return false
}

// mayForget tells whether a deletion may finish without dead replicas: the
// topic has an id, so that an old log cannot come back under a new topic of the
// name, every registered broker puts logs of unknown ids aside, and the
// brokers of these replicas are not registered: one that is shutting down, or
// whose log directory has failed, still holds what it was told.
func (m *Machine) mayForget(t *topic, dead []replica) bool {
	if t.id.IsZero() || m.bouncing || len(m.brokers) == 0 ||
		slices.ContainsFunc(dead, func(r replica) bool { return m.brokers[r.broker] != nil }) {
		return false
	}
	return len(m.others()) == 0
}

// others are the registered brokers that are not known to be Barnabas.
func (m *Machine) others() []int32 {
	return filter(m.brokerIDs(), func(id int32) bool { return id != m.cfg.BrokerID && !m.brokers[id].ours })
}

// identified notes that a broker is Barnabas: a deletion may have waited for that.
func (m *Machine) identified(e Identified) {
	if b := m.brokers[e.Broker]; b != nil && b.epoch == e.Epoch {
		b.ours = true
		m.forgetDead(func() {})
	}
}

// forgetDead carries on the deletions that waited for dead brokers and need to
// no longer.
func (m *Machine) forgetDead(then func()) {
	for _, t := range m.queued {
		if t.ineligible != "" && m.mayForget(t, t.replicasIn(replicaDeletionIneligible)) {
			t.ineligible = ""
		}
	}
	m.resumeDeletions(then)
}

// whyNotForget says why a deletion does not finish without dead brokers.
func (m *Machine) whyNotForget(t *topic) string {
	switch {
	case t.id.IsZero():
		return ": the topic has no id by which they would know that their logs are old"
	case len(m.others()) > 0:
		return fmt.Sprintf(": registered brokers %v are not known to be Barnabas, which puts an old log aside", m.others())
	}
	return ""
}

func brokersOf(replicas []replica) []int32 {
	ids := map[int32]bool{}
	for _, r := range replicas {
		ids[r.broker] = true
	}
	return sortedKeys(ids)
}

// replicaDeletionFailed puts deletions off whose replicas could not be deleted.
func (m *Machine) replicaDeletionFailed(replicas []replica, why string, then func()) {
	replicas = filter(replicas, func(r replica) bool { return r.topic.deletion })
	if len(replicas) == 0 {
		then()
		return
	}
	for _, r := range replicas {
		if s := r.replicaStates[r.broker]; s == replicaDeletionStarted || s == replicaOffline {
			r.replicaStates[r.broker] = replicaDeletionIneligible
		}
		if m.mayForget(r.topic, []replica{r}) {
			r.replicaStates[r.broker] = replicaDeleted
			r.topic.ineligible = "" // what else is dead is looked at again
			continue
		}
		r.topic.ineligible = why
		m.warnf("the deletion of topic %s waits: %s (replica %d of %s)", r.topic.name, why, r.broker, r.partition)
	}
	m.resumeDeletions(then)
}

// stopAnswered takes the outcome of deletions from a StopReplica.
func (m *Machine) stopAnswered(b *broker, req *kmsg.StopReplicaRequest, resp *kmsg.StopReplicaResponse) {
	failures := map[wire.TopicPartition]wire.Code{}
	for _, p := range resp.Partitions {
		failures[wire.TopicPartition{Topic: p.Topic, Partition: p.Partition}] = wire.Code(p.ErrorCode)
	}
	var failed []replica
	why := ""
	for _, tp := range deletedIn(req) {
		p := m.partition(tp)
		if p == nil || !p.topic.deletion || p.replicaStates[b.id] != replicaDeletionStarted {
			continue
		}
		code := wire.Code(resp.ErrorCode)
		if code == wire.None {
			code = failures[tp]
		}
		if code != wire.None {
			failed, why = append(failed, replica{p, b.id}), "a broker could not delete a replica: "+code.Error()
			continue
		}
		p.replicaStates[b.id] = replicaDeleted
	}
	m.replicaDeletionFailed(failed, why, func() { m.resumeDeletions(func() {}) })
}

// deletedIn lists the partitions that a request asks to delete.
func deletedIn(req *kmsg.StopReplicaRequest) []wire.TopicPartition {
	var list []wire.TopicPartition
	for _, t := range req.Topics {
		for _, s := range t.PartitionStates {
			if s.Delete {
				list = append(list, wire.TopicPartition{Topic: t.Topic, Partition: s.Partition})
			}
		}
		if req.Version < 3 && req.DeletePartitions {
			for _, id := range t.Partitions {
				list = append(list, wire.TopicPartition{Topic: t.Topic, Partition: id})
			}
		}
	}
	return list
}

// completeDeletions removes the nodes of topics whose replicas are all gone:
// the topic, its configuration, the wish.
func (m *Machine) completeDeletions(topics []*topic, then func()) {
	var units []Unit
	ends := make([]int, len(topics)) // index after a topic's last unit
	for i, t := range topics {
		for _, p := range t.ordered() {
			if p.led {
				units = append(units, Unit{
					{Kind: OpDelete, Path: znode.StatePath(t.name, p.id), Version: -1},
					{Kind: OpDelete, Path: znode.PartitionPath(t.name, p.id), Version: -1}})
			}
		}
		var last Unit
		if t.hasParts {
			last = append(last, Op{Kind: OpDelete, Path: znode.PartitionsPath(t.name), Version: -1})
		}
		last = append(last, Op{Kind: OpDelete, Path: znode.TopicPath(t.name), Version: -1})
		units = append(units, last,
			Unit{{Kind: OpDelete, Path: znode.TopicConfig(t.name).Path(), Version: -1}},
			Unit{{Kind: OpDelete, Path: znode.DeleteTopicPath(t.name), Version: -1}})
		ends[i] = len(units)
	}
	m.write(units, func(results []UnitResult) {
		var again []string
		for i, t := range topics {
			m.forgetTopic(t)
			if node := results[ends[i]-3]; node.Err == jute.OK {
				m.infof("topic %s is deleted", t.name)
			} else {
				again = append(again, t.name)
			}
		}
		m.deleteEach(again, then)
	})
}

// deleteTree removes a topic's nodes whatever is below them.
func (m *Machine) deleteTree(name string, then func(ok bool)) {
	m.collect([]string{znode.TopicPath(name)}, nil, func(paths []string) {
		units := make([]Unit, 0, len(paths)+2)
		for _, path := range slices.Backward(paths) {
			units = append(units, Unit{{Kind: OpDelete, Path: path, Version: -1}})
		}
		units = append(units,
			Unit{{Kind: OpDelete, Path: znode.TopicConfig(name).Path(), Version: -1}},
			Unit{{Kind: OpDelete, Path: znode.DeleteTopicPath(name), Version: -1}})
		m.write(units, func(results []UnitResult) {
			ok := !slices.ContainsFunc(results, func(r UnitResult) bool { return !done(r) })
			if ok {
				m.infof("topic %s is deleted", name)
			} else {
				m.warnf("some znodes of topic %s could not be deleted", name)
			}
			then(ok)
		})
	})
}

// collect lists paths and everything below, parents first.
func (m *Machine) collect(level, found []string, then func([]string)) {
	if len(level) == 0 {
		then(found)
		return
	}
	reads := make([]Read, len(level))
	for i, path := range level {
		reads[i] = Read{Kind: ReadChildren, Path: path}
	}
	m.read(reads, func(results []ReadResult) {
		var below []string
		for i, r := range results {
			if r.Err != jute.OK {
				continue
			}
			found = append(found, level[i])
			for _, child := range r.Children {
				below = append(below, level[i]+"/"+child)
			}
		}
		m.collect(below, found, then)
	})
}
