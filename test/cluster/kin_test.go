package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"
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
