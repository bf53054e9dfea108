package controller

import (
	"cmp"
	"fmt"
	"slices"

	"barnabas/internal/wire"
)

// BrokerRack is a live broker as replica assignment sees it. An empty Rack is
// none.
type BrokerRack struct {
	ID   int32
	Rack string
}

// Placement is what AssignReplicas needs besides the brokers.
type Placement struct {
	Partitions        int
	ReplicationFactor int
	FirstPartition    int // the number of the first partition: 0 for a new topic, the present count for growth
	Start             int // index of the broker of partition 0's first replica; random for a new topic
	Shift             int // how far the second replica is from the first; random for a new topic
}

// AssignReplicas spreads replicas over brokers as Kafka does
// (org.apache.kafka.admin.AdminUtils): first replicas round robin from Start,
// the others each partition a bit further, and over different racks as far as
// there are enough. If any broker has no rack, racks are not looked at (Kafka
// refuses such a mixture). The brokers may come in any order.
func AssignReplicas(brokers []BrokerRack, p Placement) ([][]int32, error) {
	switch {
	case p.Partitions <= 0:
		return nil, &Error{wire.InvalidPartitions, "Number of partitions must be larger than 0."}
	case p.ReplicationFactor <= 0:
		return nil, &Error{wire.InvalidReplicationFactor, "Replication factor must be larger than 0."}
	case p.ReplicationFactor > len(brokers):
		return nil, &Error{wire.InvalidReplicationFactor,
			fmt.Sprintf("Replication factor: %d larger than available brokers: %d.", p.ReplicationFactor, len(brokers))}
	}
	ordered := slices.SortedFunc(slices.Values(brokers), func(a, b BrokerRack) int { return cmp.Compare(a.ID, b.ID) })
	racks := 1
	if !slices.ContainsFunc(ordered, func(b BrokerRack) bool { return b.Rack == "" }) {
		ordered, racks = alternateRacks(ordered)
	} else {
		for i := range ordered {
			ordered[i].Rack = ""
		}
	}
	shift := p.Shift
	assignment := make([][]int32, p.Partitions)
	for i := range assignment {
		number := p.FirstPartition + i
		if number > 0 && number%len(ordered) == 0 {
			shift++
		}
		assignment[i] = placePartition(ordered, racks, (number+p.Start)%len(ordered), shift*racks, p.ReplicationFactor)
	}
	return assignment, nil
}

// placePartition walks the ring of brokers from first, passing over brokers
// that hold a replica, and over racks that do while others do not.
func placePartition(ring []BrokerRack, racks, first, shift, factor int) []int32 {
	replicas := []int32{ring[first].ID}
	usedRacks := map[string]bool{ring[first].Rack: true}
	for k := 0; len(replicas) < factor; k++ {
		b := ring[(first+1+(shift+k)%(len(ring)-1))%len(ring)]
		if usedRacks[b.Rack] && len(usedRacks) < racks || slices.Contains(replicas, b.ID) {
			continue
		}
		replicas = append(replicas, b.ID)
		usedRacks[b.Rack] = true
	}
	return replicas
}

// alternateRacks orders brokers so that neighbours are in different racks: the
// first of each rack, then the second of each, and so on.
func alternateRacks(brokers []BrokerRack) ([]BrokerRack, int) {
	byRack := map[string][]BrokerRack{}
	var racks []string
	for _, b := range brokers {
		if byRack[b.Rack] == nil {
			racks = append(racks, b.Rack)
		}
		byRack[b.Rack] = append(byRack[b.Rack], b)
	}
	slices.Sort(racks)
	ring := make([]BrokerRack, 0, len(brokers))
	for i := 0; len(ring) < len(brokers); i++ {
		for _, r := range racks {
			if i < len(byRack[r]) {
				ring = append(ring, byRack[r][i])
			}
		}
	}
	return ring, len(racks)
}

// StartForGrowth returns the Start and Shift with which AssignReplicas carries
// on a topic's pattern: from the broker of partition 0's first replica
// (AdminZkClient.createNewPartitionsAssignment).
func StartForGrowth(brokers []BrokerRack, firstReplica int32) int {
	ids := make([]int32, 0, len(brokers))
	for _, b := range brokers {
		ids = append(ids, b.ID)
	}
	slices.Sort(ids)
	i, _ := slices.BinarySearch(ids, firstReplica)
	return i % max(1, len(ids))
}
