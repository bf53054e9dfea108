package replica

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"barnabas/internal/config"
	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// hosted is a Manager on a folder of its own; the test is the controller.
func hosted(t *testing.T, epoch func() int64) *Manager {
	t.Helper()
	dir := t.TempDir()
	c, err := config.NewBroker(map[string]string{"broker.id": "1", "log.dirs": dir, "zookeeper.connect": "unused:1"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(storage.Options{Dirs: []string{dir}, Config: c, BrokerID: 1, ClusterID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	m := NewManager(Options{BrokerID: 1, Storage: s, BrokerEpoch: epoch})
	t.Cleanup(func() {
		m.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// apply sends one partition's state and returns the codes of the answer: of the
// whole and of the partition.
func apply(t *testing.T, m *Manager, version int16, controllerEpoch int32, id wire.UUID, s kmsg.LeaderAndISRRequestTopicPartition) string {
	t.Helper()
	r := kmsg.NewPtrLeaderAndISRRequest()
	r.Version, r.ControllerEpoch, r.BrokerEpoch = version, controllerEpoch, -1
	s.Topic = "t"
	if version < 2 {
		r.PartitionStates = append(r.PartitionStates, s)
	} else {
		r.TopicStates = append(r.TopicStates, kmsg.LeaderAndISRRequestTopicState{Topic: "t", TopicID: id, PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{s}})
	}
	resp := m.ApplyLeaderAndISR(r)
	parts := resp.Partitions
	if version >= 5 {
		parts = resp.Topics[0].Partitions
	}
	// What is encoded must decode at this version.
	again := r.ResponseKind()
	again.SetVersion(version)
	if err := again.ReadFrom(resp.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(resp.ErrorCode, parts[0].ErrorCode)
}

func state(partition, leader, epoch int32, replicas ...int32) kmsg.LeaderAndISRRequestTopicPartition {
	return kmsg.LeaderAndISRRequestTopicPartition{Partition: partition, Leader: leader, LeaderEpoch: epoch, ISR: replicas, Replicas: replicas}
}

func TestLeaderAndISRFollowsEpochs(t *testing.T) {
	m := hosted(t, nil)
	id, other := wire.NewUUID(), wire.NewUUID()
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check("first", apply(t, m, 7, 5, id, state(0, 1, 3, 1)), "0 0")
	check("older controller", apply(t, m, 7, 4, id, state(0, 1, 9, 1)), "11 11")
	check("the same again", apply(t, m, 7, 5, id, state(0, 1, 3, 1)), "0 11")
	check("older leader epoch", apply(t, m, 7, 5, id, state(0, 1, 2, 1)), "0 11")
	check("another topic of the name", apply(t, m, 7, 5, other, state(0, 1, 4, 1)), "0 103")
	check("not a replica", apply(t, m, 7, 5, id, state(0, 2, 4, 2, 3)), "0 3")
	check("a partition below 0", apply(t, m, 7, 5, id, state(-1, 1, 4, 1)), "0 3")
	p := m.Partition(wire.TopicPartition{Topic: "t"})
	if v := p.View(); v.Role != Leader || v.LeaderEpoch != 3 {
		t.Fatalf("refused requests changed something: %+v", v)
	}
	if e := p.Log().LatestEpoch(); e != 3 {
		t.Errorf("the log's latest epoch is %d, want 3 with no append yet", e)
	}
	check("newer leader epoch", apply(t, m, 7, 6, id, state(0, 2, 4, 2, 1)), "0 0")
	if _, code := p.Leading(-1); code != wire.NotLeaderOrFollower {
		t.Errorf("a follower serves clients: %v", code)
	}
	if _, err := p.Append(storage.AppendRequest{}, false); storage.Code(err) != wire.NotLeaderOrFollower {
		t.Errorf("a follower appends: %v", err)
	}
	if got := m.TopicByID(id); got == nil || got.Name != "t" {
		t.Errorf("by id: %v", got)
	}
}

// Kafka's LogManager.getOrCreateLog: an empty log must not take the place of
// one that a failed directory hides.
func TestPartitionsOfAnOfflineDirectoryAreNotMadeAnew(t *testing.T) {
	folder := t.TempDir()
	good, bad := filepath.Join(folder, "good"), filepath.Join(folder, "bad")
	c, err := config.NewBroker(map[string]string{"broker.id": "1", "log.dirs": good + "," + bad, "zookeeper.connect": "unused:1"})
	if err != nil {
		t.Fatal(err)
	}
	open := func() (*Manager, func()) {
		s, err := storage.Open(storage.Options{Dirs: []string{good, bad}, Config: c, BrokerID: 1, ClusterID: "c"})
		if err != nil {
			t.Fatal(err)
		}
		m := NewManager(Options{BrokerID: 1, Storage: s})
		return m, func() { m.Close(); _ = s.Close() }
	}
	isNew := func(partition int32) kmsg.LeaderAndISRRequestTopicPartition {
		s := state(partition, 1, 0, 1)
		s.IsNew = true
		return s
	}
	m, closeAll := open()
	for i := range int32(4) {
		if got := apply(t, m, 4, 1, wire.UUID{}, isNew(i)); got != "0 0" {
			t.Fatal(got)
		}
	}
	closeAll()
	if err := os.Rename(bad, bad+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m, closeAll = open()
	hidden := 0
	for i := range int32(4) {
		got := apply(t, m, 4, 2, wire.UUID{}, state(i, 1, 1, 1))
		switch {
		case got == "0 56":
			hidden++
			p := m.Partition(wire.TopicPartition{Topic: "t", Partition: i})
			if _, code := p.Leading(-1); code != wire.KafkaStorageError {
				t.Errorf("partition %d: %v", i, code)
			}
		case got != "0 0":
			t.Errorf("partition %d: %s", i, got)
		}
	}
	if hidden != 2 {
		t.Errorf("%d partitions are offline, want the 2 of the offline directory", hidden)
	}
	// New ones have a place.
	if got := apply(t, m, 4, 2, wire.UUID{}, isNew(4)); got != "0 0" {
		t.Errorf("a new partition: %s", got)
	}
	closeAll()
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(bad+".away", bad); err != nil {
		t.Fatal(err)
	}
	m, closeAll = open() // no partition lies in both
	defer closeAll()
	for i := range int32(4) {
		if got := apply(t, m, 4, 3, wire.UUID{}, state(i, 1, 2, 1)); got != "0 0" {
			t.Errorf("partition %d once its directory is back: %s", i, got)
		}
	}
}

func TestLeaderAndISRTeachesATopicID(t *testing.T) {
	m := hosted(t, nil)
	id := wire.NewUUID()
	for version, want := range map[int16]string{0: "0 0", 1: "0 0", 3: "0 0", 4: "0 0"} {
		if got := apply(t, m, version, 1, wire.UUID{}, state(int32(version), 1, 0, 1)); got != want {
			t.Errorf("v%d: %s, want %s", version, got, want)
		}
	}
	if got := apply(t, m, 5, 1, id, state(0, 1, 0, 1)); got != "0 0" {
		t.Errorf("same epoch with an id: %s", got)
	}
	if got := m.Partition(wire.TopicPartition{Topic: "t"}).Log().TopicID(); got != id {
		t.Errorf("id %v, want %v", got, id)
	}
	if m.TopicByID(id) == nil {
		t.Error("not found by id")
	}
}

func TestRequestsForAnEarlierLifeOfTheBrokerAreRefused(t *testing.T) {
	m := hosted(t, func() int64 { return 100 })
	for epoch, want := range map[int64]wire.Code{99: wire.StaleBrokerEpoch, 100: wire.None, 101: wire.None, -1: wire.None} {
		if got := m.CheckController(1, epoch); got != want {
			t.Errorf("broker epoch %d: %v, want %v", epoch, got, want)
		}
	}
	r := kmsg.NewPtrStopReplicaRequest()
	r.Version, r.ControllerEpoch, r.BrokerEpoch = 4, 1, 99
	if got := m.StopReplica(r).ErrorCode; got != 77 {
		t.Errorf("StopReplica: %d, want 77", got)
	}
}

func TestStopReplicaFollowsEpochsAndDeletes(t *testing.T) {
	m := hosted(t, nil)
	for i := range int32(3) {
		if got := apply(t, m, 7, 1, wire.UUID{}, state(i, 1, 5, 1)); got != "0 0" {
			t.Fatal(got)
		}
	}
	stop := func(version int16, partition, epoch int32, del bool) int16 {
		r := kmsg.NewPtrStopReplicaRequest()
		r.Version, r.ControllerEpoch, r.BrokerEpoch, r.DeletePartitions = version, 1, -1, del
		topic := kmsg.StopReplicaRequestTopic{Topic: "t", Partition: partition, Partitions: []int32{partition}}
		topic.PartitionStates = []kmsg.StopReplicaRequestTopicPartitionState{{Partition: partition, LeaderEpoch: epoch, Delete: del}}
		r.Topics = append(r.Topics, topic)
		return m.StopReplica(r).Partitions[0].ErrorCode
	}
	if got := stop(4, 0, 4, true); got != 74 {
		t.Errorf("older epoch: %d, want 74", got)
	}
	if m.Partition(wire.TopicPartition{Topic: "t"}) == nil {
		t.Fatal("deleted by a request of an older epoch")
	}
	for partition, version := range map[int32]int16{0: 4, 1: 1, 2: 0} {
		tp := wire.TopicPartition{Topic: "t", Partition: partition}
		p := m.Partition(tp)
		if got := stop(version, partition, -2, true); got != 0 {
			t.Errorf("v%d: %d", version, got)
		}
		if _, ok := m.o.Storage.Log(tp); ok || m.Partition(tp) != nil || p.View().Role != Gone {
			t.Errorf("v%d: still there", version)
		}
	}
	if got := stop(4, 7, 5, true); got != 0 {
		t.Errorf("a partition that is not here: %d, want 0", got)
	}
}
