package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/load"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// operator is somebody who reads and writes Kafka's znodes with a ZooKeeper
// client, as tools do.
type operator struct {
	t  *testing.T
	zk *zookeeper.Client
}

func newOperator(t *testing.T, connect string) operator {
	t.Helper()
	zk, err := zookeeper.New(zookeeper.Options{Connect: connect, SessionTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := zk.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(zk.Close)
	return operator{t, zk}
}

func (o operator) create(path, data string) {
	o.t.Helper()
	mode := zookeeper.Persistent
	if strings.HasSuffix(path, "_") {
		mode = zookeeper.PersistentSequential
	}
	if _, _, err := o.zk.Create(o.t.Context(), path, []byte(data), mode); err != nil {
		o.t.Fatalf("%s: %v", path, err)
	}
}

// set writes a node with the version that was read, as CMAK and kafkat do.
func (o operator) set(path string, change func(data string) string) {
	o.t.Helper()
	data, stat := o.get(path)
	if _, err := o.zk.Set(o.t.Context(), path, []byte(change(data)), stat.Version); err != nil {
		o.t.Fatalf("%s: %v", path, err)
	}
}

func (o operator) get(path string) (string, jute.Stat) {
	o.t.Helper()
	data, stat, err := o.zk.Get(o.t.Context(), path)
	if err != nil {
		o.t.Fatalf("%s: %v", path, err)
	}
	return string(data), stat
}

// json reads a node as a tool that knows no more of it than its keys.
func (o operator) json(path string) (v map[string]any) {
	o.t.Helper()
	data, _ := o.get(path)
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		o.t.Fatalf("%s: %s: %v", path, data, err)
	}
	return v
}

func (o operator) gone(path string) bool {
	_, ok, err := o.zk.Exists(o.t.Context(), path)
	return err == nil && !ok
}

// toolWorld is three brokers on an Apache ZooKeeper.
type toolWorld struct {
	operator
	brokers []*real.BarnabasBroker
	seeds   []string
	admin   *load.Admin
}

func newToolWorld(t *testing.T) *toolWorld {
	server := real.ZooKeeper(t)
	w := &toolWorld{}
	for id := 1; id <= 3; id++ {
		b := real.Barnabas(t, id, "zookeeper.connect="+server+"/kafka", "auto.leader.rebalance.enable=false")
		w.brokers, w.seeds = append(w.brokers, b), append(w.seeds, b.Addr)
	}
	w.operator, w.admin = newOperator(t, server+"/kafka"), load.NewAdmin(t, w.seeds)
	return w
}

func (w *toolWorld) on(t *testing.T) *toolWorld {
	own := *w
	own.t = t
	return &own
}

// replicas waits until clients see these replicas of a partition, all in sync,
// the first of them leading unless leader says else.
func (w *toolWorld) replicas(topic string, partition int32, leader int32, replicas ...int32) {
	w.t.Helper()
	var seen string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%s-%d: %s", topic, partition, seen)
		}
	}()
	real.Until(w.t, 30*time.Second, fmt.Sprintf("%s-%d on %v led by %d", topic, partition, replicas, leader), func() bool {
		p := load.Describe(w.t, w.admin, topic)[partition]
		seen = fmt.Sprint(p)
		return slices.Equal(p.Replicas, replicas) && len(p.ISR) == len(replicas) && p.Leader == leader
	})
}

// config waits until a broker describes a property so.
func (w *toolWorld) config(broker int, kind kmsg.ConfigResourceType, name, key, value string) {
	w.t.Helper()
	r := kmsg.NewPtrDescribeConfigsRequest()
	r.Version = 2
	r.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name, ConfigNames: []string{key}}}
	conn := raw.Dial(w.t, w.seeds[broker-1])
	real.Until(w.t, 20*time.Second, fmt.Sprintf("%s of %s is %s at broker %d", key, name, value, broker), func() bool {
		found := raw.Do[*kmsg.DescribeConfigsResponse](conn, r).Resources[0].Configs
		return len(found) == 1 && found[0].Value != nil && *found[0].Value == value
	})
}

// What tools do to the znodes of a cluster of three brokers works as with Kafka
// (cases 17 to 19).
func TestToolsThatWriteZnodes(t *testing.T) {
	w := newToolWorld(t)
	for _, tool := range []struct {
		name string
		run  func(*toolWorld)
	}{
		{"CMAK creates, grows and configures a topic", cmakTopics},
		{"CMAK moves replicas and elects leaders", cmakMoves},
		{"kafka-kit throttles and maps", kafkaKit},
		{"kafkat rewrites partition states", kafkat},
		{"Burrow reads offsets by their times", burrow},
		{"moves to brokers that are not there are refused", impossibleMoves},
		{"a deleted controller node", deletedController},
		{"CMAK deletes a topic", cmakDeletes},
	} {
		t.Run(tool.name, func(t *testing.T) { tool.run(w.on(t)) })
	}
}

func cmakTopics(w *toolWorld) {
	w.create("/config/topics/cm", `{"version":1,"config":{"retention.ms":"1234567"}}`)
	w.create("/brokers/topics/cm", `{"version":1,"partitions":{"1":[2,3],"0":[1,2]}}`)
	w.replicas("cm", 0, 1, 1, 2)
	w.replicas("cm", 1, 2, 2, 3)
	node := w.json("/brokers/topics/cm")
	id, _ := node["topic_id"].(string)
	if node["version"] != 3.0 || len(id) != 22 {
		w.t.Errorf("the node: %v", node)
	}
	// It rewrites the node with a partition more, and drops what it does not know.
	w.set("/brokers/topics/cm", func(string) string { return `{"version":1,"partitions":{"1":[2,3],"0":[1,2],"2":[3,1]}}` })
	w.replicas("cm", 2, 3, 3, 1)
	real.Until(w.t, 20*time.Second, "the topic's id again", func() bool { return w.json("/brokers/topics/cm")["topic_id"] == id })
	state := w.json("/brokers/topics/cm/partitions/2/state")
	if state["leader"] != 3.0 || state["version"] != 1.0 || state["leader_epoch"] != 0.0 {
		w.t.Errorf("the state: %v", state)
	}
	w.config(3, kmsg.ConfigResourceTypeTopic, "cm", "retention.ms", "1234567")
	w.set("/config/topics/cm", func(string) string {
		return `{"version":1,"config":{"retention.ms":"7654321","segment.bytes":"1048576"}}`
	})
	w.create("/config/changes/config_change_", `{"version":1,"entity_type":"topics","entity_name":"cm"}`)
	for broker := 1; broker <= 3; broker++ {
		w.config(broker, kmsg.ConfigResourceTypeTopic, "cm", "segment.bytes", "1048576")
	}
}

func cmakMoves(w *toolWorld) {
	w.create("/admin/reassign_partitions", `{"version":1,"partitions":[{"topic":"cm","partition":0,"replicas":[3,1]},{"topic":"cm","partition":1,"replicas":[1,2]}]}`)
	w.replicas("cm", 0, 1, 3, 1) // the leader stays as long as it can
	w.replicas("cm", 1, 2, 1, 2)
	real.Until(w.t, 20*time.Second, "the node goes when all is moved", func() bool { return w.gone("/admin/reassign_partitions") })
	w.create("/admin/preferred_replica_election", `{"version":1,"partitions":[{"topic":"cm","partition":0},{"topic":"cm","partition":1},{"topic":"ghost","partition":0}]}`)
	w.replicas("cm", 0, 3, 3, 1)
	w.replicas("cm", 1, 1, 1, 2)
	real.Until(w.t, 20*time.Second, "the node goes after the election", func() bool { return w.gone("/admin/preferred_replica_election") })
}

func kafkaKit(w *toolWorld) {
	// topicmappr reads who holds what, and the sizes of brokers elsewhere.
	node := w.json("/brokers/topics/cm")
	for _, key := range []string{"partitions", "adding_replicas", "removing_replicas", "topic_id", "version"} {
		if node[key] == nil {
			w.t.Errorf("/brokers/topics/cm has no %s", key)
		}
	}
	for id := 1; id <= 3; id++ {
		b := w.json(fmt.Sprintf("/brokers/ids/%d", id))
		for _, key := range []string{"listener_security_protocol_map", "endpoints", "jmx_port", "host", "timestamp", "port", "version"} {
			if b[key] == nil {
				w.t.Errorf("/brokers/ids/%d has no %s: %v", id, key, b)
			}
		}
	}
	// autothrottle sets rates of brokers and throttled replicas of topics.
	for id := 1; id <= 3; id++ {
		w.create(fmt.Sprintf("/config/brokers/%d", id), `{"version":1,"config":{"leader.replication.throttled.rate":"5000000","follower.replication.throttled.rate":"5000000"}}`)
		w.create("/config/changes/config_change_", fmt.Sprintf(`{"version":2,"entity_path":"brokers/%d"}`, id))
	}
	w.set("/config/topics/cm", func(string) string {
		return `{"version":1,"config":{"leader.replication.throttled.replicas":"0:3,0:1","follower.replication.throttled.replicas":"0:2"}}`
	})
	w.create("/config/changes/config_change_", `{"version":2,"entity_path":"topics/cm"}`)
	for id := 1; id <= 3; id++ {
		w.config(id, kmsg.ConfigResourceTypeBroker, fmt.Sprint(id), "leader.replication.throttled.rate", "5000000")
		w.config(id, kmsg.ConfigResourceTypeTopic, "cm", "follower.replication.throttled.replicas", "0:2")
		// It takes them away by an empty configuration.
		w.set(fmt.Sprintf("/config/brokers/%d", id), func(string) string { return `{"version":1,"config":{}}` })
		w.create("/config/changes/config_change_", fmt.Sprintf(`{"version":2,"entity_path":"brokers/%d"}`, id))
	}
	w.create("/admin/reassign_partitions", `{"version":1,"partitions":[{"topic":"cm","partition":0,"replicas":[3,2]}]}`)
	w.replicas("cm", 0, 3, 3, 2)
}

// kafkat rewrites leaderships straight in the states (resign-rewrite), with the
// version that it read; the next controller makes it so. The records stay.
func kafkat(w *toolWorld) {
	fill(w.t, w.seeds, "cm", 30_000)
	path := znode.StatePath("cm", 0)
	w.set(path, func(data string) string {
		s, err := znode.DecodePartitionState([]byte(data))
		if err != nil || s.Leader != 3 {
			w.t.Fatalf("%s: %v", data, err)
		}
		s.Leader, s.LeaderEpoch = 2, s.LeaderEpoch+1
		return string(s.Encode())
	})
	before, err := w.admin.ListEndOffsets(w.t.Context(), "cm")
	if err != nil || before.Error() != nil {
		w.t.Fatal(err, before.Error())
	}
	if err := w.zk.Delete(w.t.Context(), "/controller", -1); err != nil {
		w.t.Fatal(err)
	}
	w.replicas("cm", 0, 2, 3, 2)
	fill(w.t, w.seeds, "cm", 30_000)
	after, err := w.admin.ListEndOffsets(w.t.Context(), "cm")
	if err != nil || after.Error() != nil {
		w.t.Fatal(err, after.Error())
	}
	records := int64(0)
	for p, o := range after["cm"] {
		if o.Offset < before["cm"][p].Offset {
			w.t.Errorf("cm-%d went from %d back to %d", p, before["cm"][p].Offset, o.Offset)
		}
		records += o.Offset
	}
	if records != 60 {
		w.t.Errorf("%d records of 60", records)
	}
}

// Burrow takes the time of a commit from the node's mtime and its order from the
// mzxid; brokers write the node for clients that commit in version 0.
func burrow(w *toolWorld) {
	commit := func(broker int, offset int64) {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group = "old"
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "cm", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: 1, Offset: offset, LeaderEpoch: -1}}}}
		if code := raw.Do[*kmsg.OffsetCommitResponse](raw.Dial(w.t, w.seeds[broker]), r).Topics[0].Partitions[0].ErrorCode; code != 0 {
			w.t.Fatalf("commit: %d", code)
		}
	}
	path := znode.ConsumerOffsetPath("old", "cm", 1)
	var last jute.Stat
	for i := range 4 {
		began := time.Now().Add(-time.Second)
		commit(i%3, int64(10+i))
		data, stat := w.get(path)
		if data != fmt.Sprint(10+i) || stat.Mzxid <= last.Mzxid || stat.Mtime < began.UnixMilli() || stat.Version != int32(i) {
			w.t.Errorf("commit %d: %s, %+v after %+v", i, data, stat, last)
		}
		last = stat
	}
	groups, _, err := w.zk.Children(w.t.Context(), "/consumers/old/offsets/cm")
	if err != nil || !slices.Equal(groups, []string{"1"}) {
		w.t.Errorf("%v, %v", groups, err)
	}
}

func impossibleMoves(w *toolWorld) {
	before, _ := w.get("/brokers/topics/cm")
	w.create("/admin/reassign_partitions", `{"version":1,"partitions":[{"topic":"cm","partition":2,"replicas":[99]},{"topic":"cm","partition":1,"replicas":[1,1]},{"topic":"ghost","partition":0,"replicas":[1]},{"topic":"cm","partition":0,"replicas":[]}]}`)
	real.Until(w.t, 20*time.Second, "the node goes at once", func() bool { return w.gone("/admin/reassign_partitions") })
	if after, _ := w.get("/brokers/topics/cm"); after != before {
		w.t.Errorf("the topic changed: %s", after)
	}
	said := false
	for _, b := range w.brokers {
		said = said || strings.Contains(b.Output(), "/admin/reassign_partitions: 4 of 4 partitions are refused; the first is ")
	}
	if !said {
		w.t.Error("no broker says why")
	}
}

// deletedController: the next controller's epoch is one more, and what the last
// one sends is refused by every broker.
func deletedController(w *toolWorld) {
	was, _ := w.get("/controller_epoch")
	if err := w.zk.Delete(w.t.Context(), "/controller", -1); err != nil {
		w.t.Fatal(err)
	}
	epoch, err := znode.DecodeControllerEpoch([]byte(was))
	if err != nil {
		w.t.Fatal(err)
	}
	real.Until(w.t, 20*time.Second, "the next epoch", func() bool {
		now, _ := w.get("/controller_epoch")
		return now == fmt.Sprint(epoch+1)
	})
	w.replicas("cm", 0, 2, 3, 2)
	for _, addr := range w.seeds {
		conn := raw.Dial(w.t, addr)
		real.Until(w.t, 20*time.Second, "STALE_CONTROLLER_EPOCH at "+addr, func() bool {
			known := kmsg.NewPtrUpdateMetadataRequest()
			known.Version, known.ControllerID, known.ControllerEpoch, known.BrokerEpoch = 6, 1, epoch, -1
			stop := kmsg.NewPtrStopReplicaRequest()
			stop.Version, stop.ControllerID, stop.ControllerEpoch, stop.BrokerEpoch = 3, 1, epoch, -1
			return raw.Do[*kmsg.UpdateMetadataResponse](conn, known).ErrorCode == 11 && raw.Do[*kmsg.StopReplicaResponse](conn, stop).ErrorCode == 11
		})
	}
}

func cmakDeletes(w *toolWorld) {
	w.create("/admin/delete_topics/cm", "")
	w.create("/admin/delete_topics/ghost", "")
	real.Until(w.t, 30*time.Second, "the topic's znodes gone", func() bool {
		return w.gone("/admin/delete_topics/cm") && w.gone("/admin/delete_topics/ghost") && w.gone("/brokers/topics/cm") && w.gone("/config/topics/cm")
	})
	real.Until(w.t, 20*time.Second, "no broker knows it", func() bool { return load.Describe(w.t, w.admin, "cm") == nil })
}
