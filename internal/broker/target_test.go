package broker

import (
	"strings"
	"testing"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// An UpdateMetadata request of a controller that was deposed may pass the check
// of its epoch and then be overtaken by the new controller's.
func TestAnUpdateThatALaterControllersOvertookIsRefused(t *testing.T) {
	c := startCluster(t, 1, nil)
	b := c.brokers[0]
	until(t, "it knows itself", func() bool { return len(b.metadata.Cluster().Brokers) == 1 })
	update := func(controller, epoch int32) *kmsg.UpdateMetadataRequest {
		r := kmsg.NewPtrUpdateMetadataRequest()
		r.Version, r.ControllerID, r.ControllerEpoch, r.BrokerEpoch = 8, controller, epoch, -1
		return r
	}
	if b.metadata.Update(update(9, 9)); b.replicas.ControllerEpoch() >= 8 {
		t.Fatal("the check knows the later controller")
	}
	for _, step := range []struct {
		controller, epoch, now int32
		want                   wire.Code
	}{{8, 8, 9, wire.StaleControllerEpoch}, {7, 9, 7, wire.None}, {10, 10, 10, wire.None}} {
		resp, err := local{b}.UpdateMetadata(t.Context(), update(step.controller, step.epoch))
		if err != nil {
			t.Fatal(err)
		}
		if now := b.metadata.Cluster().ControllerID; wire.Code(resp.ErrorCode) != step.want || now != step.now {
			t.Errorf("epoch %d: error code %d, the controller is %d; want %d, %d", step.epoch, resp.ErrorCode, now, step.want, step.now)
		}
	}
}

// What ZooKeeper does not show of one topic holds up no other, and has no log
// made with the defaults.
func TestATopicWhoseOverridesAreNotShownIsRefusedAlone(t *testing.T) {
	dir := t.TempDir() // goes after the broker
	c := startCluster(t, 0, nil)
	zk := c.admin()
	var log logged
	c.log, c.dirs, c.ports, c.brokers = &log, []string{dir}, []int{0}, []*Broker{nil}
	c.start(0)
	b := c.brokers[0]
	path := znode.TopicConfig("refused").Path()
	if _, _, err := zk.CreateRecursive(t.Context(), path, znode.EncodeConfig(map[string]string{"retention.ms": "77"}), zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
	permit(t, zk, path, jute.PermAll&^jute.PermRead)
	apply := func(epoch int32, want ...wire.Code) {
		t.Helper()
		r := kmsg.NewPtrLeaderAndISRRequest()
		r.Version, r.ControllerEpoch, r.BrokerEpoch = 5, b.replicas.ControllerEpoch(), -1
		for i, topic := range []string{"first", "refused", "last"} {
			s := kmsg.NewLeaderAndISRRequestTopicState()
			s.Topic, s.TopicID = topic, [16]byte{15: byte(i + 1)}
			for partition := range int32(2) {
				p := kmsg.NewLeaderAndISRRequestTopicPartition()
				p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.Replicas, p.IsNew = partition, 1, epoch, []int32{1}, []int32{1}, true
				s.PartitionStates = append(s.PartitionStates, p)
			}
			r.TopicStates = append(r.TopicStates, s)
		}
		resp, err := local{b}.LeaderAndISR(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for i, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				if got := wire.Code(p.ErrorCode); got != want[i] {
					t.Errorf("%s, partition %d: %v, want %v", r.TopicStates[i].Topic, p.Partition, got, want[i])
				}
			}
		}
	}
	log.take()
	apply(1, wire.None, wire.UnknownServerError, wire.None)
	if text := log.take(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, path) {
		t.Errorf("logged:\n%s", text)
	}
	tp := wire.TopicPartition{Topic: "refused"}
	b.replicas.DefaultsChanged()
	if _, ok := b.storage.Log(tp); ok {
		t.Error("a log was made without its topic's overrides")
	}
	permit(t, zk, path, jute.PermAll)
	apply(2, wire.None, wire.None, wire.None)
	if _, ok := b.storage.Log(tp); !ok || b.configs.topic("refused").RetentionMs != 77 {
		t.Error("there is no log, or it has not its topic's overrides")
	}
}
