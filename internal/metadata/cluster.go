package metadata

import (
	"sort"

	"barnabas/internal/wire"
)

// NoLeader is the leader of a partition that has none.
const NoLeader = -1

// LeaderDuringDelete is the leader that UpdateMetadata gives to a partition
// that is going away (LeaderAndIsr.LeaderDuringDelete).
const LeaderDuringDelete = -2

// Endpoint is the address of one listener of a broker.
type Endpoint struct {
	Listener string // such as PLAINTEXT
	Protocol int16  // SecurityProtocol.id: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
	Host     string
	Port     int32
}

// Broker is a live broker.
type Broker struct {
	ID        int32
	Rack      *string // nil for none
	Endpoints []Endpoint
	// Since is the number of the update with which the broker came, or changed
	// its endpoints.
	Since uint64
}

// Endpoint returns the broker's address on the named listener, or nil if it
// has no such listener.
func (b *Broker) Endpoint(listener string) *Endpoint {
	for i := range b.Endpoints {
		if b.Endpoints[i].Listener == listener {
			return &b.Endpoints[i]
		}
	}
	return nil
}

// Cluster is the live brokers and the controller as of one update.
type Cluster struct {
	ControllerID    int32 // -1: not known
	ControllerEpoch int32
	Brokers         []*Broker // in order of id
}

// Broker returns the live broker with this id, or nil.
func (c *Cluster) Broker(id int32) *Broker {
	i := sort.Search(len(c.Brokers), func(i int) bool { return c.Brokers[i].ID >= id })
	if i < len(c.Brokers) && c.Brokers[i].ID == id {
		return c.Brokers[i]
	}
	return nil
}

// Endpoint returns the address of a broker on the named listener, or nil if
// the broker is not alive or has no such listener.
func (c *Cluster) Endpoint(id int32, listener string) *Endpoint {
	if b := c.Broker(id); b != nil {
		return b.Endpoint(listener)
	}
	return nil
}

// Partition is the state of one partition.
type Partition struct {
	Index           int32
	ControllerEpoch int32
	Leader          int32 // NoLeader for none
	LeaderEpoch     int32
	PartitionEpoch  int32 // the version of the state znode
	ISR             []int32
	Replicas        []int32
	Offline         []int32 // replicas on failed log dirs or dead brokers
}

// Topic is a topic with the partitions that are known of it.
type Topic struct {
	Name       string
	ID         wire.UUID    // zero: it has none (IBP below 2.8)
	Partitions []*Partition // in order of index, which may have gaps
}

// Partition returns the partition with this index, or nil.
func (t *Topic) Partition(index int32) *Partition {
	if i := int(index); i >= 0 && i < len(t.Partitions) && t.Partitions[i].Index == index {
		return t.Partitions[i]
	}
	if i, ok := t.find(index); ok {
		return t.Partitions[i]
	}
	return nil
}

func (t *Topic) find(index int32) (int, bool) {
	i := sort.Search(len(t.Partitions), func(i int) bool { return t.Partitions[i].Index >= index })
	return i, i < len(t.Partitions) && t.Partitions[i].Index == index
}
