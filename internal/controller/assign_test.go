package controller

import (
	"errors"
	"fmt"
	"testing"

	"barnabas/internal/wire"
)

// The expected placements are the worked examples in the comment of Kafka's
// AdminUtils and outputs of its class.
func TestReplicasAreSpreadAsKafkaSpreadsThem(t *testing.T) {
	five := []BrokerRack{{0, ""}, {1, ""}, {2, ""}, {3, ""}, {4, ""}}
	got, err := AssignReplicas(five, Placement{Partitions: 10, ReplicationFactor: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := "[[0 1 2] [1 2 3] [2 3 4] [3 4 0] [4 0 1] [0 2 3] [1 3 4] [2 4 0] [3 0 1] [4 1 2]]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

func TestReplicasOfAPartitionAreInDifferentRacks(t *testing.T) {
	six := []BrokerRack{{0, "rack1"}, {1, "rack3"}, {2, "rack3"}, {3, "rack2"}, {4, "rack2"}, {5, "rack1"}}
	got, err := AssignReplicas(six, Placement{Partitions: 7, ReplicationFactor: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := "[[0 3 1] [3 1 5] [1 5 4] [5 4 2] [4 2 0] [2 0 3] [0 4 2]]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

func TestMoreReplicasThanRacksUseEveryBrokerOnce(t *testing.T) {
	brokers := []BrokerRack{{0, "a"}, {1, "a"}, {2, "b"}, {3, "b"}}
	for start := range 4 {
		for shift := range 4 {
			got, err := AssignReplicas(brokers, Placement{Partitions: 9, ReplicationFactor: 4, Start: start, Shift: shift})
			if err != nil {
				t.Fatal(err)
			}
			for _, replicas := range got {
				seen := map[int32]bool{}
				for _, r := range replicas {
					seen[r] = true
				}
				if len(seen) != 4 {
					t.Fatalf("start %d shift %d: %v", start, shift, replicas)
				}
			}
		}
	}
}

func TestBrokersWithoutRackMakeTheAssignmentUnaware(t *testing.T) {
	got, err := AssignReplicas([]BrokerRack{{1, "a"}, {2, ""}, {3, "a"}}, Placement{Partitions: 3, ReplicationFactor: 2})
	if err != nil || fmt.Sprint(got) != "[[1 2] [2 3] [3 1]]" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestGrowthCarriesOnThePattern(t *testing.T) {
	three := []BrokerRack{{10, ""}, {20, ""}, {30, ""}}
	start := StartForGrowth(three, 20)
	got, err := AssignReplicas(three, Placement{Partitions: 2, ReplicationFactor: 1, FirstPartition: 2, Start: start, Shift: start})
	if err != nil || fmt.Sprint(got) != "[[10] [20]]" {
		t.Errorf("got %v, %v", got, err)
	}
	if start := StartForGrowth(three, 99); start != 0 {
		t.Errorf("a first replica above every live broker starts at %d", start)
	}
}

func TestImpossiblePlacementsAreRefused(t *testing.T) {
	one := []BrokerRack{{1, ""}}
	for _, c := range []struct {
		p    Placement
		want wire.Code
	}{
		{Placement{Partitions: 0, ReplicationFactor: 1}, wire.InvalidPartitions},
		{Placement{Partitions: 1, ReplicationFactor: 0}, wire.InvalidReplicationFactor},
		{Placement{Partitions: 1, ReplicationFactor: 2}, wire.InvalidReplicationFactor},
	} {
		if _, err := AssignReplicas(one, c.p); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.p, err, c.want)
		}
	}
}
