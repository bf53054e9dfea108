package replica

import (
	"hash/maphash"
	"sync/atomic"

	"barnabas/internal/wire"
)

// Topic is the partitions of a topic that this broker has.
type Topic struct {
	Name       string
	id         atomic.Pointer[wire.UUID]
	partitions atomic.Pointer[[]atomic.Pointer[Partition]] // by number; nil where it has none
}

// ID returns the topic's id, zero when it has none.
func (t *Topic) ID() wire.UUID {
	if id := t.id.Load(); id != nil {
		return *id
	}
	return wire.UUID{}
}

// Len is one more than the largest number of a partition here.
func (t *Topic) Len() int { return len(*t.partitions.Load()) }

// Partition returns the partition with this number, or nil.
func (t *Topic) Partition(index int32) *Partition {
	parts := *t.partitions.Load()
	if index < 0 || int(index) >= len(parts) {
		return nil
	}
	return parts[index].Load()
}

const tableShards = 64

// table finds topics by name and by id without a lock. Its maps are never
// changed once published: a change copies one shard. Changes are serialized by
// the caller.
type table struct {
	seed   maphash.Seed
	byName [tableShards]atomic.Pointer[map[string]*Topic]
	byID   [tableShards]atomic.Pointer[map[wire.UUID]*Topic]
}

func newTable() *table { return &table{seed: maphash.MakeSeed()} }

func (t *table) nameShard(name []byte) *atomic.Pointer[map[string]*Topic] {
	return &t.byName[maphash.Bytes(t.seed, name)%tableShards]
}

// Ids are random, but what a client sends need not be: only a shard is chosen by it.
func (t *table) idShard(id wire.UUID) *atomic.Pointer[map[wire.UUID]*Topic] {
	return &t.byID[id[15]%tableShards]
}

func (t *table) topic(name []byte) *Topic {
	m := t.nameShard(name).Load()
	if m == nil {
		return nil
	}
	return (*m)[string(name)]
}

func (t *table) topicByID(id wire.UUID) *Topic {
	m := t.idShard(id).Load()
	if m == nil {
		return nil
	}
	return (*m)[id]
}

// put publishes a partition.
func (t *table) put(p *Partition) {
	topic := t.topic([]byte(p.Topic))
	known := topic != nil
	if !known {
		topic = &Topic{Name: p.Topic}
		topic.partitions.Store(new([]atomic.Pointer[Partition]))
	}
	topic.grow(int(p.Index) + 1)
	(*topic.partitions.Load())[p.Index].Store(p)
	if !known {
		update(t.nameShard([]byte(p.Topic)), p.Topic, topic)
	}
}

// grow has room for n partitions, and for more to come: a topic may have
// thousands, which come one by one.
func (t *Topic) grow(n int) {
	parts := *t.partitions.Load()
	if n <= len(parts) {
		return
	}
	if n > cap(parts) {
		larger := make([]atomic.Pointer[Partition], len(parts), max(n, 2*len(parts)))
		for i := range parts {
			larger[i].Store(parts[i].Load())
		}
		parts = larger
	}
	parts = parts[:n]
	t.partitions.Store(&parts)
}

// remove takes a partition out, and its topic when it was the last.
func (t *table) remove(p *Partition) {
	topic := t.topic([]byte(p.Topic))
	if topic == nil || topic.Partition(p.Index) != p {
		return
	}
	parts := *topic.partitions.Load()
	parts[p.Index].Store(nil)
	for i := range parts {
		if parts[i].Load() != nil {
			return
		}
	}
	update(t.nameShard([]byte(p.Topic)), p.Topic, nil)
	if id := topic.ID(); !id.IsZero() && t.topicByID(id) == topic {
		update(t.idShard(id), id, nil)
	}
}

// setID publishes a topic's id.
func (t *table) setID(name string, id wire.UUID) {
	topic := t.topic([]byte(name))
	if topic == nil || topic.ID() == id {
		return
	}
	if old := topic.ID(); !old.IsZero() {
		update(t.idShard(old), old, nil)
	}
	topic.id.Store(&id)
	if !id.IsZero() {
		update(t.idShard(id), id, topic)
	}
}

func update[K comparable](shard *atomic.Pointer[map[K]*Topic], key K, topic *Topic) {
	now := make(map[K]*Topic)
	if old := shard.Load(); old != nil {
		for k, v := range *old {
			now[k] = v
		}
	}
	if topic == nil {
		delete(now, key)
	} else {
		now[key] = topic
	}
	shard.Store(&now)
}

// all returns every partition.
func (t *table) all() []*Partition {
	var all []*Partition
	for i := range t.byName {
		m := t.byName[i].Load()
		if m == nil {
			continue
		}
		for _, topic := range *m {
			parts := *topic.partitions.Load()
			for i := range parts {
				if p := parts[i].Load(); p != nil {
					all = append(all, p)
				}
			}
		}
	}
	return all
}
