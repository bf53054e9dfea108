package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
)

// topicOn makes the node of a topic with one partition, as old tools do, and
// waits until the controller has given it an id.
func topicOn(t *testing.T, zk *zookeeper.Client, name, replicas string) {
	t.Helper()
	data := fmt.Sprintf(`{"version":1,"partitions":{"0":[%s]}}`, replicas)
	if _, _, err := zk.Create(t.Context(), znode.TopicPath(name), []byte(data), zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
	real.Until(t, 20*time.Second, "an id for topic "+name, func() bool {
		data, _, err := zk.Get(t.Context(), znode.TopicPath(name))
		topic, bad := znode.DecodeTopic(data)
		return err == nil && bad == nil && !topic.ID.IsZero()
	})
}

func deleted(zk *zookeeper.Client, name string) func() bool {
	return func() bool {
		_, topic, err := zk.Exists(context.Background(), znode.TopicPath(name))
		_, wish, wishErr := zk.Exists(context.Background(), znode.DeleteTopicPath(name))
		return err == nil && wishErr == nil && !topic && !wish
	}
}

func wishDeleted(t *testing.T, zk *zookeeper.Client, name string) {
	t.Helper()
	if _, _, err := zk.Create(t.Context(), znode.DeleteTopicPath(name), nil, zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
}

// A topic with a replica on a dead broker is deleted once every registered
// broker has said that it is Barnabas, and not before (case 19).
func TestADeadBrokerStopsADeletionOnlyWhileKafkaIsThere(t *testing.T) {
	server := real.ZooKeeper(t)
	ibp := "inter.broker.protocol.version=3.9"
	one := real.Barnabas(t, 1, "zookeeper.connect="+server, ibp)
	real.Barnabas(t, 2, "zookeeper.connect="+server, ibp)
	zk, err := zookeeper.New(zookeeper.Options{Connect: server, SessionTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := zk.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(zk.Close)

	topicOn(t, zk, "ours", "77")
	wishDeleted(t, zk, "ours")
	real.Until(t, 20*time.Second, "deletion of ours", deleted(zk, "ours"))

	kafka := real.Kafka(t, "3.9.1", 3, server, ibp)
	topicOn(t, zk, "mixed", "1,77")
	wishDeleted(t, zk, "mixed")
	waits := "the deletion of topic mixed waits for brokers [77]: registered brokers [3] are not known to be Barnabas"
	one.UntilRunning(20*time.Second, "says why the deletion waits", func() bool { return strings.Contains(one.Output(), waits) })
	if deleted(zk, "mixed")() {
		t.Fatal("the topic is gone, although an old log of it may come back to Kafka")
	}
	kafka.Stop()
	real.Until(t, 30*time.Second, "deletion of mixed", deleted(zk, "mixed"))
}

// A broker that was away while a topic was deleted and made again puts its old
// log aside and copies the new topic.
func TestALogOfADeletedTopicDoesNotComeBack(t *testing.T) {
	server := real.ZooKeeper(t)
	var brokers []*real.BarnabasBroker
	var seeds []string
	for id := 1; id <= 2; id++ {
		b := real.Barnabas(t, id, "zookeeper.connect="+server, "zookeeper.session.timeout.ms=4000")
		brokers, seeds = append(brokers, b), append(seeds, b.Addr)
	}
	a := load.NewAdmin(t, seeds)
	load.CreateTopic(t, a, "again", 1, []int32{1, 2}, nil)
	fill(t, seeds, "again", 10_000)
	load.UntilInSync(t, a, "again", 1, 2)
	brokers[1].Kill()
	load.UntilInSync(t, a, "again", 1, 1)
	if _, err := a.DeleteTopics(t.Context(), "again"); err != nil {
		t.Fatal(err)
	}
	brokers[0].UntilRunning(30*time.Second, "deletes the topic without broker 2", func() bool {
		return strings.Contains(brokers[0].Output(), "topic again is deleted")
	})
	load.CreateTopic(t, a, "again", 1, []int32{1}, nil)
	fill(t, seeds[:1], "again", 3_000)
	brokers[1].Restart(t)
	var grow kadm.AlterPartitionAssignmentsReq
	grow.Assign("again", 0, []int32{1, 2})
	if _, err := a.AlterPartitionAssignments(t.Context(), grow); err != nil {
		t.Fatal(err)
	}
	load.UntilInSync(t, a, "again", 1, 2)
	load.UntilEqual(t, []string{brokers[0].Dir, brokers[1].Dir}, "again", 1)
	if strays, err := filepath.Glob(filepath.Join(brokers[1].Dir, "again-0.*-stray")); err != nil || len(strays) != 1 {
		t.Errorf("set aside: %v, %v", strays, err)
	}
}
