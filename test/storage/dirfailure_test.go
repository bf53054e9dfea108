package storage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"

	"barnabas/internal/zookeeper"
	"barnabas/test/real"
)

// ext4Shutdown is EXT4_IOC_SHUTDOWN: from then on every write and sync of the file
// system fails, as if its disk had gone.
const ext4Shutdown = 0x8004587d

// shutDown makes the disk fail.
func (d *disk) shutDown() {
	d.t.Helper()
	f, err := os.Open(d.mount)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), ext4Shutdown, 2); err != nil {
		d.t.Skip("the file system can't be made to fail: ", err)
	}
}

// One of two log directories of a broker fails. What lies there and has another
// replica is led by that one, what has none is offline; the rest goes on. The
// controller is told through /log_dir_event_notification, be it Apache Kafka or
// the broker itself.
func TestAFailingLogDirTakesItsPartitionsOfflineAndNoOthers(t *testing.T) {
	for _, controller := range []string{"3.9.1", "barnabas"} {
		t.Run("controller "+controller, func(t *testing.T) {
			d := newDisk(t, 64)
			bad, good := filepath.Join(d.mount, "log"), filepath.Join(t.TempDir(), "log")
			zk := real.ZooKeeper(t)
			common := []string{"zookeeper.connect=" + zk, "inter.broker.protocol.version=2.8", "offsets.topic.replication.factor=1"}
			var other string
			if controller == "3.9.1" {
				other = real.Kafka(t, controller, 2, zk, common...).Addr
			}
			b := real.Barnabas(t, 1, append(common, "log.dirs="+bad+","+good)...)
			if controller == "barnabas" {
				other = real.Kafka(t, "3.9.1", 2, zk, common...).Addr
			}
			watcher, err := zookeeper.New(zookeeper.Options{Connect: zk, SessionTimeout: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if err := watcher.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer watcher.Close()
			client, err := kgo.NewClient(kgo.SeedBrokers(other), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond), kgo.RecordRetries(20))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			admin := kadm.NewClient(client)
			create := func(topic string, dir string, replicas ...int32) {
				t.Helper()
				moveTo(t, client, dir, topic) // it is not there yet: it will be made there
				r := kmsg.NewPtrCreateTopicsRequest()
				r.TimeoutMillis = 10000
				r.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: topic, NumPartitions: -1, ReplicationFactor: -1,
					ReplicaAssignment: []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: replicas}}}}
				if answer, err := r.RequestWith(t.Context(), client); err != nil || answer.Topics[0].ErrorCode != 0 {
					t.Fatal(err, answer)
				}
				real.Until(t, 20*time.Second, topic+" is led", func() bool {
					return client.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Value: []byte("before")}).FirstErr() == nil
				})
			}
			create("bad-alone", bad, 1)
			create("bad-shared", bad, 1, 2)
			create("good-alone", good, 1)
			create("good-shared", good, 1, 2)
			d.shutDown()
			leader := func(topic string) int32 {
				m, err := admin.Metadata(context.Background(), topic)
				if err != nil {
					return -2
				}
				return m.Topics[topic].Partitions[0].Leader
			}
			// Nothing is written to an idle log: the next record finds out.
			one, err := kgo.NewClient(kgo.SeedBrokers(other), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordRetries(0), kgo.DisableIdempotentWrite())
			if err != nil {
				t.Fatal(err)
			}
			defer one.Close()
			for _, topic := range []string{"bad-alone", "bad-shared"} {
				_ = one.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Value: []byte("lost?")}).FirstErr()
			}
			real.Until(t, 90*time.Second, "the directory is offline", func() bool {
				return strings.Contains(b.Output(), "log directory goes offline") || strings.Contains(b.Output(), "a log dir failed")
			})
			real.Until(t, 30*time.Second, "the other replica leads", func() bool { return leader("bad-shared") == 2 })
			real.Until(t, 30*time.Second, "the only replica is offline", func() bool { return leader("bad-alone") == -1 })
			if leader("good-alone") != 1 || leader("good-shared") != 1 {
				t.Fatal("leaders:", leader("good-alone"), leader("good-shared"))
			}
			for _, topic := range []string{"bad-shared", "good-alone", "good-shared"} {
				if err := client.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Value: []byte("after")}).FirstErr(); err != nil {
					t.Fatal(topic, err)
				}
			}
			dirs, err := admin.DescribeBrokerLogDirs(t.Context(), 1, nil)
			if err != nil || !errors.Is(dirs[bad].Err, kerr.KafkaStorageError) || dirs[good].Err != nil {
				t.Fatal(err, dirs)
			}
			if code := moveTo(t, client, bad, "good-alone"); code != kerr.KafkaStorageError.Code {
				t.Error("a move to the failed directory: error", code)
			}
			real.Until(t, 20*time.Second, "the notification is taken away", func() bool {
				names, _, err := watcher.Children(context.Background(), "/log_dir_event_notification")
				return err == nil && len(names) == 0
			})
			b.Stop()
			if _, err := os.Stat(filepath.Join(good, ".kafka_cleanshutdown")); err != nil {
				t.Fatal("the good directory was not left cleanly:", err)
			}
		})
	}
}

// moveTo asks broker 1 to move partition 0 of a topic to a log dir.
func moveTo(t *testing.T, client *kgo.Client, dir, topic string) int16 {
	t.Helper()
	r := kmsg.NewPtrAlterReplicaLogDirsRequest()
	r.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: dir, Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: topic, Partitions: []int32{0}}}}}
	answer, err := client.Broker(1).Request(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer.(*kmsg.AlterReplicaLogDirsResponse).Topics[0].Partitions[0].ErrorCode
}
