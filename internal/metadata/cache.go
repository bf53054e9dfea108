package metadata

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cache is a broker's view of its cluster. Its methods are safe for concurrent
// use; all but Update are free of locks that an update could hold for long.
type Cache struct {
	cluster atomic.Pointer[Cluster]
	topics  sync.Map // topic name to *Topic
	ids     sync.Map // wire.UUID to topic name
	came    atomic.Uint64

	mu struct {
		sync.Mutex
		changed chan struct{} // closed at the next update; nil while nobody waits
		updates uint64
	}
}

// New returns a cache that knows nothing.
func New() *Cache {
	c := &Cache{}
	c.cluster.Store(&Cluster{ControllerID: -1})
	return c
}

// Cluster returns the live brokers and the controller.
func (c *Cache) Cluster() *Cluster { return c.cluster.Load() }

// Topic returns what is known of a topic, or nil.
func (c *Cache) Topic(name string) *Topic {
	if v, ok := c.topics.Load(name); ok {
		return v.(*Topic)
	}
	return nil
}

// TopicByID returns what is known of the topic with this id, or nil.
func (c *Cache) TopicByID(id wire.UUID) *Topic {
	name, ok := c.ids.Load(id)
	if !ok {
		return nil
	}
	if t := c.Topic(name.(string)); t != nil && t.ID == id {
		return t
	}
	return nil
}

// Partition returns what is known of a partition, or nil.
func (c *Cache) Partition(topic string, index int32) *Partition {
	if t := c.Topic(topic); t != nil {
		return t.Partition(index)
	}
	return nil
}

// Topics returns every known topic, in order of name.
func (c *Cache) Topics() []*Topic {
	var all []*Topic
	c.topics.Range(func(_, v any) bool {
		all = append(all, v.(*Topic))
		return true
	})
	slices.SortFunc(all, func(a, b *Topic) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Names calls f with each known topic's name, in no order, until it returns false.
func (c *Cache) Names(f func(string) bool) {
	c.topics.Range(func(name, _ any) bool { return f(name.(string)) })
}

// Came counts the topics that have come.
func (c *Cache) Came() uint64 { return c.came.Load() }

// Changed returns a channel that is closed at the next update. A waiter takes
// it first, then looks, then waits.
func (c *Cache) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.changed == nil {
		c.mu.changed = make(chan struct{})
	}
	return c.mu.changed
}

// WaitFor returns true once ok does, which is asked now and after each update,
// or false when one of the stop channels is closed or sends first.
func (c *Cache) WaitFor(ok func() bool, expired <-chan struct{}) bool {
	for {
		changed := c.Changed()
		if ok() {
			return true
		}
		select {
		case <-changed:
		case <-expired:
			return ok()
		}
	}
}

// Update applies an UpdateMetadata request of any version, which it does not
// keep, and returns the partitions that it removed. Topic ids of requests below
// version 7, which have none, leave the known ones alone only as far as Kafka
// does: such a request removes the ids of the topics it names.
//
// A request that a later controller's has overtaken changes nothing: ok is false.
func (c *Cache) Update(r *kmsg.UpdateMetadataRequest) (removed []wire.TopicPartition, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.ControllerEpoch < c.Cluster().ControllerEpoch {
		return nil, false
	}
	c.mu.updates++
	now := clusterOf(r)
	now.follow(c.Cluster(), c.mu.updates)
	c.cluster.Store(now)
	if r.Version < 5 {
		for name, parts := range groupByTopic(r.PartitionStates) {
			removed = c.updateTopicLocked(name, wire.UUID{}, parts, removed)
		}
	}
	for i := range r.TopicStates {
		t := &r.TopicStates[i]
		removed = c.updateTopicLocked(t.Topic, t.TopicID, pointers(t.PartitionStates), removed)
	}
	if c.mu.changed != nil {
		close(c.mu.changed)
		c.mu.changed = nil
	}
	return removed, true
}

func clusterOf(r *kmsg.UpdateMetadataRequest) *Cluster {
	cluster := &Cluster{ControllerID: max(r.ControllerID, -1), ControllerEpoch: r.ControllerEpoch, Brokers: make([]*Broker, 0, len(r.LiveBrokers))}
	for i := range r.LiveBrokers {
		b := &r.LiveBrokers[i]
		broker := &Broker{ID: b.ID, Rack: b.Rack}
		if r.Version == 0 {
			broker.Endpoints = []Endpoint{{Listener: protocolName(0), Host: b.Host, Port: b.Port}}
		}
		for _, e := range b.Endpoints {
			name := e.ListenerName
			if r.Version < 3 { // the protocol was the listener's name (KIP-103)
				name = protocolName(e.SecurityProtocol)
			}
			broker.Endpoints = append(broker.Endpoints, Endpoint{Listener: name, Protocol: e.SecurityProtocol, Host: e.Host, Port: e.Port})
		}
		cluster.Brokers = append(cluster.Brokers, broker)
	}
	slices.SortStableFunc(cluster.Brokers, func(a, b *Broker) int { return cmp.Compare(a.ID, b.ID) })
	return cluster
}

// follow takes over since when the brokers are there from the cluster before.
func (c *Cluster) follow(before *Cluster, update uint64) {
	for _, b := range c.Brokers {
		b.Since = update
		if old := before.Broker(b.ID); old != nil && slices.Equal(old.Endpoints, b.Endpoints) {
			b.Since = old.Since
		}
	}
}

func protocolName(id int16) string {
	switch id {
	case 1:
		return "SSL"
	case 2:
		return "SASL_PLAINTEXT"
	case 3:
		return "SASL_SSL"
	default:
		return "PLAINTEXT"
	}
}

func groupByTopic(states []kmsg.UpdateMetadataRequestTopicPartition) map[string][]*kmsg.UpdateMetadataRequestTopicPartition {
	by := make(map[string][]*kmsg.UpdateMetadataRequestTopicPartition)
	for i := range states {
		by[states[i].Topic] = append(by[states[i].Topic], &states[i])
	}
	return by
}

func pointers[T any](s []T) []*T {
	p := make([]*T, len(s))
	for i := range s {
		p[i] = &s[i]
	}
	return p
}

// updateTopicLocked publishes a copy of the topic with these states merged.
func (c *Cache) updateTopicLocked(name string, id wire.UUID, states []*kmsg.UpdateMetadataRequestTopicPartition, removed []wire.TopicPartition) []wire.TopicPartition {
	old := c.Topic(name)
	if old == nil {
		old = &Topic{Name: name}
	}
	now := &Topic{Name: old.Name, ID: id, Partitions: make([]*Partition, len(old.Partitions), len(old.Partitions)+len(states))}
	copy(now.Partitions, old.Partitions)
	for _, s := range states {
		i, known := now.find(s.Partition)
		switch {
		case s.Leader == LeaderDuringDelete:
			if known {
				now.Partitions = slices.Delete(now.Partitions, i, i+1)
			}
			removed = append(removed, wire.TopicPartition{Topic: name, Partition: s.Partition})
		case known:
			now.Partitions[i] = partitionOf(s)
		default:
			now.Partitions = slices.Insert(now.Partitions, i, partitionOf(s))
		}
	}
	if old.ID != id && !old.ID.IsZero() {
		c.ids.Delete(old.ID)
	}
	if len(now.Partitions) == 0 {
		c.topics.Delete(name)
		c.ids.Delete(id)
		return removed
	}
	c.topics.Store(name, now)
	if len(old.Partitions) == 0 || old.ID != id {
		c.came.Add(1) // after it is there: who has seen the number has seen the topic
	}
	if !id.IsZero() {
		c.ids.Store(id, name)
	}
	return removed
}

func partitionOf(s *kmsg.UpdateMetadataRequestTopicPartition) *Partition {
	return &Partition{
		Index: s.Partition, ControllerEpoch: s.ControllerEpoch, Leader: s.Leader, LeaderEpoch: s.LeaderEpoch,
		PartitionEpoch: s.ZKVersion, ISR: s.ISR, Replicas: s.Replicas, Offline: s.OfflineReplicas,
	}
}
