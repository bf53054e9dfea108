package core

import (
	"fmt"
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// maxOpsAtOnce is up to how many writes a new topic, or the growth of one, is
// made in one transaction together with its partition states.
const maxOpsAtOnce = 250

// createTopics makes topics for the CreateTopics API: configuration, topic node
// and, for all but huge topics, the partition states in one transaction.
func (m *Machine) createTopics(call uint64, topics []NewTopic) {
	refusals := make([]Refusal, len(topics))
	news := make([]*newTopic, 0, len(topics))
	taken := map[string]bool{}
	for i, t := range topics {
		switch known := m.topics[t.Name]; {
		case known != nil && known.deletion:
			refusals[i] = Refusal{wire.TopicAlreadyExists, fmt.Sprintf("Topic '%s' is marked for deletion.", t.Name)}
		case known != nil || m.unreadable[t.Name] || taken[t.Name]:
			refusals[i] = Refusal{wire.TopicAlreadyExists, fmt.Sprintf("Topic '%s' already exists.", t.Name)}
		default:
			taken[t.Name] = true
			news = append(news, m.newTopic(i, t))
		}
	}
	m.makeTopics(news, refusals, 0, func() {
		var rest []*partition
		for _, n := range news {
			if n.made && !n.whole {
				rest = append(rest, n.topic.ordered()...)
			}
		}
		m.startPartitions(rest, func() {
			m.flush()
			m.reply(call, refusals)
		})
	})
}

// newTopic is a topic in the making.
type newTopic struct {
	index     int // among the call's topics
	name      string
	node      znode.Topic
	config    []byte
	states    map[int32]znode.PartitionState
	whole     bool // states are made with the topic
	hasConfig bool // a leftover configuration is there and is set instead
	topicOp   int  // index of the op that creates the topic node
	topic     *topic
	made      bool
}

func (m *Machine) newTopic(index int, t NewTopic) *newTopic {
	n := &newTopic{index: index, name: t.Name, config: znode.EncodeConfig(t.Config)}
	n.node = znode.Topic{Version: 3, ID: t.ID, Partitions: map[int32]znode.Assignment{}}
	if n.node.ID.IsZero() && m.hasTopicIDs() {
		n.node.ID = m.cfg.NewTopicID()
	}
	n.states = map[int32]znode.PartitionState{}
	for i, replicas := range t.Assignment {
		n.node.Partitions[int32(i)] = znode.Assignment{Replicas: replicas}
		live := filter(replicas, func(id int32) bool { return m.online(id, nil) })
		if len(live) > 0 {
			n.states[int32(i)] = znode.PartitionState{Leader: live[0], ControllerEpoch: m.epoch, ISR: live}
		}
	}
	n.whole = 2*len(n.states)+3 <= maxOpsAtOnce
	return n
}

func (n *newTopic) unit() Unit {
	config := Op{Kind: OpCreate, Path: znode.TopicConfig(n.name).Path(), Data: n.config}
	if n.hasConfig {
		config.Kind, config.Version = OpSet, -1
	}
	u := Unit{config, {Kind: OpCreate, Path: znode.TopicPath(n.name), Data: n.node.Encode()}}
	n.topicOp = 1
	if !n.whole {
		return u
	}
	u = append(u, Op{Kind: OpCreate, Path: znode.PartitionsPath(n.name)})
	for _, id := range sortedKeys(n.states) {
		u = append(u,
			Op{Kind: OpCreate, Path: znode.PartitionPath(n.name, id)},
			Op{Kind: OpCreate, Path: znode.StatePath(n.name, id), Data: n.states[id].Encode()})
	}
	return u
}

func (m *Machine) makeTopics(news []*newTopic, refusals []Refusal, round int, then func()) {
	units := make([]Unit, len(news))
	for i, n := range news {
		units[i] = n.unit()
	}
	m.write(units, func(results []UnitResult) {
		var again, exist []*newTopic
		for i, r := range results {
			n := news[i]
			switch {
			case r.Err == jute.OK:
				m.topicMade(n)
			case r.Err == jute.ErrNodeExists && r.Op == 0 && !n.hasConfig && round < maxRounds:
				n.hasConfig = true
				again = append(again, n)
			case r.Err == jute.ErrNodeExists && r.Op == n.topicOp:
				exist = append(exist, n)
			default:
				refusals[n.index] = Refusal{wire.UnknownServerError, fmt.Sprintf("Topic '%s' could not be created: %v", n.name, r.Err)}
			}
		}
		m.whoseTopics(exist, refusals, func() {
			if len(again) > 0 {
				m.makeTopics(again, refusals, round+1, then)
				return
			}
			then()
		})
	})
}

// whoseTopics looks at topic nodes that were there when we came: a node with
// the id that we chose is our own write, whose answer was lost.
func (m *Machine) whoseTopics(exist []*newTopic, refusals []Refusal, then func()) {
	reads := make([]Read, len(exist))
	for i, n := range exist {
		reads[i] = Read{Kind: ReadData, Path: znode.TopicPath(n.name)}
	}
	m.read(reads, func(results []ReadResult) {
		for i, n := range exist {
			node, err := znode.DecodeTopic(results[i].Data)
			if results[i].Err == jute.OK && err == nil && !node.ID.IsZero() && node.ID == n.node.ID {
				m.topicMade(n)
				continue
			}
			refusals[n.index] = Refusal{wire.TopicAlreadyExists, fmt.Sprintf("Topic '%s' already exists.", n.name)}
		}
		then()
	})
}

// topicMade takes a topic that was written into the cluster and tells brokers.
func (m *Machine) topicMade(n *newTopic) {
	n.made = true
	t := m.addTopic(n.name, n.node, jute.Stat{})
	n.topic = t
	if !n.whole {
		return
	}
	t.hasParts = true
	for _, p := range t.ordered() {
		s, ok := n.states[p.id]
		m.partitionMade(p, s, ok)
	}
}

// partitionMade is startPartitions for a partition whose state was written
// with its topic; ok is false for one without a live replica.
func (m *Machine) partitionMade(p *partition, s znode.PartitionState, ok bool) {
	for _, id := range p.replicas {
		p.replicaStates[id] = replicaOnline
	}
	if !ok {
		p.unready = "no replica is on a live broker"
		m.setPartitionState(p, partitionNew)
		return
	}
	m.setState(p, s, 0)
	m.setPartitionState(p, partitionOnline)
	m.tellLeaders(s.ISR, p, true)
}

// createPartitions makes a topic larger for the CreatePartitions API.
func (m *Machine) createPartitions(call uint64, r CreatePartitions) {
	t := m.topics[r.Topic]
	if r.retried && alreadyGrown(t, r) {
		m.reply(call, Refusal{})
		return
	}
	if refusal := m.mayGrow(t, r); refusal.Code != wire.None {
		m.reply(call, refusal)
		return
	}
	node := t.node()
	states := map[int32]znode.PartitionState{}
	for i, replicas := range r.Added {
		id := int32(r.From + i)
		node.Partitions[id] = znode.Assignment{Replicas: replicas}
		live := filter(replicas, func(id int32) bool { return m.online(id, nil) })
		if len(live) > 0 {
			states[id] = znode.PartitionState{Leader: live[0], ControllerEpoch: m.epoch, ISR: live}
		}
	}
	unit := Unit{{Kind: OpSet, Path: znode.TopicPath(t.name), Data: node.Encode(), Version: t.version}}
	whole := t.hasParts && 2*len(states)+1 <= maxOpsAtOnce
	if whole {
		for _, id := range sortedKeys(states) {
			unit = append(unit,
				Op{Kind: OpCreate, Path: znode.PartitionPath(t.name, id)},
				Op{Kind: OpCreate, Path: znode.StatePath(t.name, id), Data: states[id].Encode()})
		}
	}
	m.write([]Unit{unit}, func(results []UnitResult) {
		result := results[0]
		switch {
		case result.Err == jute.OK:
			t.version = result.Version
			m.grown(call, t, r, states, whole)
		case result.Err == jute.ErrBadVersion:
			// Somebody wrote the node: what they wrote comes first.
			r.retried = true
			m.queue = append([]Event{Changed{znode.TopicPath(t.name)}, Call{call, r}}, m.queue...)
		default:
			m.reply(call, Refusal{wire.UnknownServerError, fmt.Sprintf("Partitions of '%s' could not be created: %v", t.name, result.Err)})
		}
	})
}

// alreadyGrown tells whether the wanted partitions are there: our own write,
// whose answer was lost.
func alreadyGrown(t *topic, r CreatePartitions) bool {
	if t == nil || len(t.partitions) < r.From+len(r.Added) {
		return false
	}
	for i, replicas := range r.Added {
		if p := t.partitions[int32(r.From+i)]; p == nil || !slices.Equal(p.replicas, replicas) {
			return false
		}
	}
	return true
}

func (m *Machine) mayGrow(t *topic, r CreatePartitions) Refusal {
	if t == nil || t.deletion {
		return Refusal{wire.UnknownTopicOrPartition, fmt.Sprintf("The topic '%s' does not exist.", r.Topic)}
	}
	for _, p := range t.partitions {
		if p.moving() {
			return Refusal{wire.ReassignmentInProgress, fmt.Sprintf("A partition reassignment is in progress for the topic '%s'.", r.Topic)}
		}
	}
	if n := len(t.node().Partitions); n != r.From {
		return Refusal{wire.InvalidPartitions, fmt.Sprintf("Topic currently has %d partitions.", n)}
	}
	return Refusal{}
}

func (m *Machine) grown(call uint64, t *topic, r CreatePartitions, states map[int32]znode.PartitionState, whole bool) {
	var fresh []*partition
	for i, replicas := range r.Added {
		p := m.addPartition(t, int32(r.From+i), znode.Assignment{Replicas: replicas})
		if whole {
			s, ok := states[p.id]
			m.partitionMade(p, s, ok)
		} else {
			fresh = append(fresh, p)
		}
	}
	m.startPartitions(fresh, func() {
		m.flush()
		m.reply(call, Refusal{})
	})
}

// deleteTopics queues topics for deletion for the DeleteTopics API. One that is
// queued already is no error.
func (m *Machine) deleteTopics(call uint64, topics []string) {
	refusals := make([]Refusal, len(topics))
	var names []string
	var units []Unit
	index := map[int]int{}
	for i, name := range topics {
		if m.topics[name] == nil && !m.unreadable[name] {
			refusals[i] = Refusal{wire.UnknownTopicOrPartition, wire.UnknownTopicOrPartition.Error()}
			continue
		}
		index[len(units)] = i
		names = append(names, name)
		units = append(units, Unit{{Kind: OpCreate, Path: znode.DeleteTopicPath(name)}})
	}
	m.write(units, func(results []UnitResult) {
		queued := names[:0]
		for i, r := range results {
			if r.Err != jute.OK && r.Err != jute.ErrNodeExists {
				refusals[index[i]] = Refusal{wire.UnknownServerError, r.Err.Error()}
				continue
			}
			queued = append(queued, names[i])
		}
		m.reply(call, refusals)
		m.queueDeletions(queued, func() { m.resumeDeletions(func() {}) })
	})
}
