package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"barnabas/internal/config"
	"barnabas/internal/controller"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"
)

var cases = []struct {
	name string
	run  func(*world)
}{
	{"one broker becomes the controller", oneBroker},
	{"the golden form of the nodes at protocol 2.8", oldProtocol},
	{"topics that others write are served", topicsOfOthers},
	{"topics come and go by the services", services},
	{"a configuration that was left behind does not stop a creation", leftoverConfig},
	{"a deleted /controller begins a new term", deletedController},
	{"a raised epoch ends the term of the old controller", fenced},
	{"an expired session ends the term before the next session", expiry},
	{"the next broker takes over", takeover},
	{"junk in /controller is no controller", junkController},
	{"junk in /controller_epoch holds up the election until it is repaired", junkEpoch},
	{"an election that ZooKeeper refuses is held once it does not", refusedElection},
	{"a connection that is cut again and again", cuts},
	{"a broker that does not answer holds up nobody else", silentBroker},
	{"a thousand topics", thousandTopics},
	{"a node that is written by two controllers' clients at once", racingGrowth},
}

func TestOnApacheZooKeeper(t *testing.T) {
	zk := real.StartZooKeeper(t, "tickTime=300", "minSessionTimeout=600", "maxSessionTimeout=60000")
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(newWorld(t, fmt.Sprintf("%s/case%d", zk.Addr, i), nil)) })
	}
}

func TestOnTheEmbeddedServer(t *testing.T) {
	s := embedded(t, t.TempDir())
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.run(newWorld(t, fmt.Sprintf("embedded/case%d", i), func(ctx context.Context, _ string) (net.Conn, error) { return s.Dial(ctx) }))
		})
	}
}

func oneBroker(w *world) {
	b := w.broker(1)
	w.active(1)
	c, err := znode.DecodeController([]byte(w.get(znode.ControllerPath)))
	if err != nil || c.Version != 2 || c.BrokerID != 1 || c.KRaftEpoch != -1 {
		w.t.Errorf("/controller: %+v, %v", c, err)
	}
	data, stat, err := w.zk.Get(w.ctx(), znode.ControllerEpochPath)
	if err != nil || string(data) != "1" || stat.Version != 1 {
		w.t.Errorf("/controller_epoch: %q version %d, %v", data, stat.Version, err)
	}
	w.until("broker 1 knows itself", func() bool { return b.metadata.Cluster().Broker(1) != nil })
	if got := w.get(znode.FeaturePath); got != `{"features":{},"version":2,"status":1}` {
		w.t.Errorf("/feature: %s", got)
	}
	if b.ctl.ActiveID() != 1 || b.metadata.Cluster().ControllerID != 1 {
		w.t.Errorf("controller %d, told %d", b.ctl.ActiveID(), b.metadata.Cluster().ControllerID)
	}
}

func oldProtocol(w *world) {
	v, err := config.ParseIBP("2.8")
	if err != nil {
		w.t.Fatal(err)
	}
	b := w.broker(1, func(o *controller.Options) { o.IBP = v })
	w.until("broker 1 knows itself", func() bool { return b.metadata.Cluster().Broker(1) != nil })
	if got := w.get(znode.FeaturePath); got != `{"features":{},"version":1,"status":1}` {
		w.t.Errorf("/feature: %s", got)
	}
	if err := errors.Join(b.ctl.CreateTopics(w.ctx(), []controller.NewTopic{{Name: "t", Assignment: [][]int32{{1}}}})...); err != nil {
		w.t.Fatal(err)
	}
	w.knows("t", 1, b)
	if got := w.get(znode.StatePath("t", 0)); got != `{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}` {
		w.t.Errorf("state: %s", got)
	}
}

func topicsOfOthers(w *world) {
	b := w.broker(1)
	w.active(1)
	w.create("/brokers/topics/z", `{"version":1,"partitions":{"0":[1],"1":[1]}}`)
	w.knows("z", 2, b)
	n, err := znode.DecodeTopic([]byte(w.get("/brokers/topics/z")))
	if err != nil || n.Version != 3 || n.ID.IsZero() {
		w.t.Errorf("topic node: %+v, %v", n, err)
	}
	w.set("/brokers/topics/z", `{"version":1,"partitions":{"0":[1],"1":[1],"2":[1]}}`)
	w.knows("z", 3, b)
	w.until("the id is back", func() bool {
		again, err := znode.DecodeTopic([]byte(w.get("/brokers/topics/z")))
		return err == nil && again.ID == n.ID
	})
	w.create("/brokers/topics/junk", "[")
	w.create("/admin/preferred_replica_election", `{"version":1,"partitions":[{"topic":"ghost","partition":0}]}`)
	w.create("/admin/reassign_partitions", `{"version":1,"partitions":[{"topic":"z","partition":0,"replicas":[99]},{"topic":"ghost","partition":0,"replicas":[1]}]}`)
	w.create("/admin/delete_topics/ghost", "")
	for _, path := range []string{"/admin/preferred_replica_election", "/admin/reassign_partitions", "/admin/delete_topics/ghost"} {
		w.until(path+" is removed", func() bool { return !w.exists(path) })
	}
	w.create("/admin/delete_topics/z", "")
	w.until("z is deleted", func() bool { return !w.exists("/admin/delete_topics/z") })
	if w.exists("/brokers/topics/z") {
		w.t.Error("/brokers/topics/z is still there")
	}
	w.create("/admin/delete_topics/junk", "")
	w.until("junk is deleted", func() bool { return !w.exists("/brokers/topics/junk") && !w.exists("/admin/delete_topics/junk") })
}

func services(w *world) {
	b := w.broker(1)
	w.active(1)
	ctx := w.ctx()
	topic := controller.NewTopic{Name: "t", Config: map[string]string{"retention.ms": "5"}, Assignment: [][]int32{{1}, {1}}}
	if err := errors.Join(b.ctl.CreateTopics(ctx, []controller.NewTopic{topic})...); err != nil {
		w.t.Fatal(err)
	}
	w.knows("t", 2, b)
	if got := w.get("/config/topics/t"); got != `{"version":1,"config":{"retention.ms":"5"}}` {
		w.t.Errorf("config: %s", got)
	}
	if err := b.ctl.CreateTopics(ctx, []controller.NewTopic{topic})[0]; !errors.Is(err, wire.TopicAlreadyExists) {
		w.t.Errorf("again: %v", err)
	}
	if err := b.ctl.CreatePartitions(ctx, "t", 2, [][]int32{{1}}); err != nil {
		w.t.Error(err)
	}
	w.knows("t", 3, b)
	if err := b.ctl.CreatePartitions(ctx, "t", 2, [][]int32{{1}}); !errors.Is(err, wire.InvalidPartitions) {
		w.t.Errorf("growth from an old count: %v", err)
	}
	start, n, err := b.ctl.AllocateProducerIDs(ctx, 1, b.epoch)
	if err != nil || start != 0 || n != 1000 {
		w.t.Errorf("producer ids: %d %d %v", start, n, err)
	}
	if _, _, err := b.ctl.AllocateProducerIDs(ctx, 1, b.epoch-1); !errors.Is(err, wire.StaleBrokerEpoch) {
		w.t.Errorf("producer ids for an old epoch: %v", err)
	}
	if list, err := b.ctl.ElectLeaders(ctx, controller.ElectPreferred, nil); err != nil || len(list) != 3 || !errors.Is(list[0].Err, wire.ElectionNotNeeded) {
		w.t.Errorf("elections: %v %v", list, err)
	}
	if list, err := b.ctl.Reassign(ctx, []controller.Reassignment{{TopicPartition: wire.TopicPartition{Topic: "t"}, Replicas: []int32{99}}}); err != nil || !errors.Is(list[0].Err, wire.InvalidReplicaAssignment) {
		w.t.Errorf("reassignment: %v %v", list, err)
	}
	if list, err := b.ctl.ListReassignments(ctx, nil); err != nil || len(list) != 0 {
		w.t.Errorf("reassignments: %v %v", list, err)
	}
	if err := b.ctl.DeleteTopics(ctx, []string{"t", "ghost"}); err[0] != nil || !errors.Is(err[1], wire.UnknownTopicOrPartition) {
		w.t.Errorf("deletion: %v", err)
	}
	w.until("t is deleted", func() bool { return !w.exists("/brokers/topics/t") && b.metadata.Topic("t") == nil })
	w.until("no deletion is pending", func() bool {
		list, err := b.ctl.TopicsQueuedForDeletion(ctx)
		return err == nil && len(list) == 0
	})
	if w.exists("/config/topics/t") {
		w.t.Error("the configuration is still there")
	}
}

func leftoverConfig(w *world) {
	b := w.broker(1)
	c := w.broker(2)
	w.active(1)
	for i, by := range []*broker{b, c} { // one of them is not the controller
		name := fmt.Sprintf("t%d", i)
		w.create("/config/topics/"+name, `{"version":1,"config":{"retention.ms":"5"}}`)
		topic := controller.NewTopic{Name: name, Assignment: [][]int32{{1, 2}}}
		if err := by.ctl.CreateTopics(w.ctx(), []controller.NewTopic{topic})[0]; err != nil {
			w.t.Fatal(err)
		}
		w.knows(name, 1, b, c)
		if got := w.get("/config/topics/" + name); got != `{"version":1,"config":{}}` {
			w.t.Errorf("config: %s", got)
		}
		if err := by.ctl.CreateTopics(w.ctx(), []controller.NewTopic{topic})[0]; !errors.Is(err, wire.TopicAlreadyExists) {
			w.t.Errorf("again: %v", err)
		}
	}
}

func deletedController(w *world) {
	w.broker(1)
	w.broker(2)
	for epoch := int32(1); epoch < 6; epoch++ {
		w.active(epoch)
		if got := w.get(znode.ControllerEpochPath); got != fmt.Sprint(epoch) {
			w.t.Fatalf("/controller_epoch is %s in term %d", got, epoch)
		}
		if err := w.zk.Delete(w.ctx(), znode.ControllerPath, -1); err != nil {
			w.t.Fatal(err)
		}
	}
	w.active(6)
}

func fenced(w *world) {
	b := w.broker(1)
	w.active(1)
	w.set(znode.ControllerEpochPath, "7")
	w.create("/brokers/topics/t", `{"version":1,"partitions":{"0":[1]}}`) // to be written in the old term, and refused
	w.active(8)
	w.knows("t", 1, b)
	if got := w.get(znode.StatePath("t", 0)); !strings.Contains(got, `"controller_epoch":8`) {
		w.t.Errorf("state: %s", got)
	}

	// Another controller, as Kafka's election makes it. Whether the request or
	// the watch tells of it first, nothing more is written in the old term.
	other := znode.Controller{Version: 2, BrokerID: 2, KRaftEpoch: znode.NoKRaftEpoch}
	if _, err := w.zk.Multi(w.ctx(), zookeeper.DeleteOp(znode.ControllerPath, zookeeper.AnyVersion),
		zookeeper.CreateOp(znode.ControllerPath, other.Encode(), zookeeper.Ephemeral),
		zookeeper.SetOp(znode.ControllerEpochPath, znode.EncodeControllerEpoch(20), zookeeper.AnyVersion)); err != nil {
		w.t.Fatal(err)
	}
	if err := b.ctl.CreatePartitions(w.ctx(), "t", 1, [][]int32{{1}}); !errors.Is(err, wire.NotController) {
		w.t.Errorf("a partition added in the old term: %v", err)
	}
	if got := w.get(znode.TopicPath("t")); strings.Contains(got, `"1":[1]`) {
		w.t.Errorf("the old term wrote %s", got)
	}
	if err := w.zk.Delete(w.ctx(), znode.ControllerPath, -1); err != nil {
		w.t.Fatal(err)
	}
	w.active(21)
	if err := b.ctl.CreatePartitions(w.ctx(), "t", 1, [][]int32{{1}}); err != nil {
		w.t.Errorf("a partition added in the new term: %v", err)
	}
	w.knows("t", 2, b)
	if got := w.get(znode.StatePath("t", 1)); !strings.Contains(got, `"controller_epoch":21`) {
		w.t.Errorf("state: %s", got)
	}
}

func expiry(w *world) {
	b := w.broker(1)
	w.active(1)
	w.create("/brokers/topics/t", `{"version":1,"partitions":{"0":[1]}}`)
	w.knows("t", 1, b)
	old := b.zk.SessionID()
	b.expire()
	w.active(2)
	if b.zk.SessionID() == old {
		w.t.Error("the session is the old one")
	}
	w.create("/brokers/topics/u", `{"version":1,"partitions":{"0":[1]}}`)
	w.knows("u", 1, b)
}

func takeover(w *world) {
	brokers := map[int32]*broker{}
	for id := int32(1); id <= 3; id++ {
		brokers[id] = w.broker(id)
	}
	first := w.active(1)
	w.create("/brokers/topics/t", `{"version":1,"partitions":{"0":[1,2,3],"1":[2,3,1],"2":[3,1,2]}}`)
	w.knows("t", 3, brokers[1], brokers[2], brokers[3])
	w.mu.Lock()
	delete(w.mu.brokers, first.id)
	w.mu.Unlock()
	delete(brokers, first.id)
	first.stop()
	second := w.active(2)
	for _, b := range brokers {
		w.until(fmt.Sprintf("broker %d knows the new leaders", b.id), func() bool {
			t := b.metadata.Topic("t")
			for _, p := range t.Partitions {
				if p.Leader == first.id || slices.Contains(p.ISR, first.id) {
					return false
				}
			}
			return b.metadata.Cluster().ControllerID == second.id
		})
	}
	if _, err := first.ctl.Why(w.ctx(), "t"); !errors.Is(err, wire.NotController) {
		w.t.Errorf("the old controller answers %v", err)
	}
}

func junkController(w *world) {
	w.create(znode.ControllerPath, "junk")
	b := w.broker(1)
	w.active(1)
	w.set(znode.ControllerPath, "junk")
	w.active(2)
	if b.ctl.ActiveID() != 1 {
		w.t.Errorf("active is %d", b.ctl.ActiveID())
	}
}

func junkEpoch(w *world) {
	w.create(znode.ControllerEpochPath, "junk")
	b := w.broker(1)
	for !hasWatch(w) {
	}
	if b.ctl.IsActive() {
		w.t.Error("a controller without an epoch")
	}
	w.set(znode.ControllerEpochPath, "41")
	w.active(42)
}

// hasWatch gives the election time by as many round trips as it takes itself.
func hasWatch(w *world) bool {
	for range 50 {
		w.exists(znode.ControllerPath)
	}
	return true
}

func refusedElection(w *world) {
	waits := make(said, 1)
	w.broker(1, func(o *controller.Options) {
		o.Logger = slog.New(heard{o.Logger.Handler(), "the election waits", waits})
	})
	w.active(1)
	w.permit("/", jute.PermAll&^jute.PermDelete)
	w.set(znode.ControllerEpochPath, "7")
	w.create("/brokers/topics/t", `{"version":1,"partitions":{"0":[1]}}`) // the write fails, and so does the end of the old term
	waits.wait(w)
	w.permit("/", jute.PermAll)
	w.active(8)
	w.permit("/", jute.PermAll&^jute.PermCreate)
	if err := w.zk.Delete(w.ctx(), znode.ControllerPath, -1); err != nil {
		w.t.Fatal(err)
	}
	waits.wait(w)
	w.permit("/", jute.PermAll)
	w.active(9)
}

func cuts(w *world) {
	b := w.broker(1)
	w.active(1)
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		for i := range 40 {
			begun <- struct{}{}
			name := fmt.Sprintf("t%d", i)
			for _, err := range b.ctl.CreateTopics(w.ctx(), []controller.NewTopic{{Name: name, Assignment: [][]int32{{1}, {1}}}}) {
				if err != nil {
					w.t.Errorf("%s: %v", name, err)
				}
			}
		}
	}()
	seed := rand.Uint64()
	w.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	cut := 0
	for range begun {
		// Few, since the client waits longer after each that comes soon.
		if cut < 8 && random.IntN(3) == 0 {
			for range random.IntN(20) {
				w.exists("/brokers")
			}
			b.cut()
			cut++
		}
	}
	w.active(1)
	for i := range 40 {
		w.knows(fmt.Sprintf("t%d", i), 2, b)
	}
}

func silentBroker(w *world) {
	one := w.broker(1)
	two := w.broker(2)
	w.active(1)
	w.until("both are known", func() bool { return one.metadata.Cluster().Broker(2) != nil && two.metadata.Cluster().Broker(2) != nil })
	mute := func(silent bool) {
		two.mu.Lock()
		two.mu.silent = silent
		two.mu.Unlock()
	}
	mute(true)
	w.create("/brokers/topics/t", `{"version":1,"partitions":{"0":[2,1]}}`)
	w.knows("t", 1, one)
	if two.metadata.Topic("t") != nil {
		w.t.Error("broker 2 answered")
	}
	mute(false)
	w.knows("t", 1, two)
}

func thousandTopics(w *world) {
	b := w.broker(1)
	w.active(1)
	topics := make([]controller.NewTopic, 1000)
	for i := range topics {
		topics[i] = controller.NewTopic{Name: fmt.Sprintf("t%d", i), Assignment: [][]int32{{1}, {1}, {1}}}
	}
	if err := errors.Join(b.ctl.CreateTopics(w.ctx(), topics)...); err != nil {
		w.t.Fatal(err)
	}
	w.knows("t999", 3, b)
	if err := w.zk.Delete(w.ctx(), znode.ControllerPath, -1); err != nil {
		w.t.Fatal(err)
	}
	w.active(2)
	w.until("no deletion is pending", func() bool {
		list, err := b.ctl.TopicsQueuedForDeletion(w.ctx())
		return err == nil && len(list) == 0
	})
	names := make([]string, len(topics))
	for i := range names {
		names[i] = topics[i].Name
	}
	if err := errors.Join(b.ctl.DeleteTopics(w.ctx(), names)...); err != nil {
		w.t.Fatal(err)
	}
	w.until("all topics are deleted", func() bool {
		names, _, err := w.zk.Children(w.ctx(), znode.DeleteTopics)
		return err == nil && len(names) == 0
	})
	if left, _, err := w.zk.Children(w.ctx(), znode.Topics); err != nil || len(left) > 0 {
		w.t.Errorf("%d topics are left, %v", len(left), err)
	}
}

func racingGrowth(w *world) {
	b := w.broker(1)
	w.active(1)
	if err := b.ctl.CreateTopics(w.ctx(), []controller.NewTopic{{Name: "t", Assignment: [][]int32{{1}}}})[0]; err != nil {
		w.t.Fatal(err)
	}
	n := 1
	for range 20 {
		// A tool grows the topic by what it read; the service by what it counted.
		tool := make(chan error, 1)
		go func() {
			data, stat, err := w.zk.Get(w.ctx(), znode.TopicPath("t"))
			if err != nil {
				tool <- err
				return
			}
			node, err := znode.DecodeTopic(data)
			if err != nil {
				tool <- err
				return
			}
			node.Partitions[int32(len(node.Partitions))] = znode.Assignment{Replicas: []int32{1}}
			_, err = w.zk.Set(w.ctx(), znode.TopicPath("t"), node.Encode(), stat.Version)
			tool <- err
		}()
		byService := b.ctl.CreatePartitions(w.ctx(), "t", n, [][]int32{{1}})
		byTool := <-tool
		if byService != nil && (!errors.Is(byService, wire.InvalidPartitions) || byTool != nil) {
			w.t.Fatal(byService, byTool)
		}
		// Both may have wanted the same partition, and then both have it.
		node, err := znode.DecodeTopic([]byte(w.get(znode.TopicPath("t"))))
		if err != nil || len(node.Partitions) <= n {
			w.t.Fatalf("%d partitions after %d, %v", len(node.Partitions), n, err)
		}
		n = len(node.Partitions)
		w.knows("t", n, b)
	}
}
