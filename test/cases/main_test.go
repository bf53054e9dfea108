package cases

import (
	"fmt"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMain(m *testing.M) { real.Main(m) }

// target is a broker that a case is asked of.
type target struct {
	addr, zk string
	apache   bool
}

var topics atomic.Int32

// oldRecordsStay: many records of the cases have timestamps of long ago, and the
// retention check comes 30 s after a start.
const oldRecordsStay = "log.retention.ms=-1"

// onBoth asks a case of both brokers. Properties are name=value.
func onBoth(t *testing.T, f func(t *testing.T, to target), properties ...string) {
	properties = append([]string{oldRecordsStay}, properties...)
	t.Run("barnabas", func(t *testing.T) {
		b := real.Barnabas(t, 1, properties...)
		f(t, target{addr: b.Addr, zk: b.Keeper})
	})
	t.Run("kafka-3.9.1", func(t *testing.T) {
		zk := real.ZooKeeper(t)
		k := real.Kafka(t, "3.9.1", 1, zk, append([]string{"inter.broker.protocol.version=3.9"}, properties...)...)
		f(t, target{addr: k.Addr, zk: zk, apache: true})
	})
}

// newTopic makes a topic of one partition with config name=value pairs and
// returns its name and id once it has a leader.
func newTopic(t *testing.T, to target, config ...string) (string, [16]byte) {
	t.Helper()
	return newTopicNamed(t, to, fmt.Sprintf("topic-%d", topics.Add(1)), config...)
}

func newTopicNamed(t *testing.T, to target, name string, config ...string) (string, [16]byte) {
	t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version = 7
	r.TimeoutMillis = 30000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
	for i := 0; i+1 < len(config); i += 2 {
		topic.Configs = append(topic.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: config[i], Value: &config[i+1]})
	}
	r.Topics = append(r.Topics, topic)
	c := raw.Dial(t, to.addr)
	answer := raw.Do[*kmsg.CreateTopicsResponse](c, r)
	if code := answer.Topics[0].ErrorCode; code != 0 {
		t.Fatalf("create %s: error %d", name, code)
	}
	return name, answer.Topics[0].TopicID
}

// batch returns a v2 batch of n records with keys and values of one byte.
func batch(t *testing.T, n int, o record.BatchOptions) record.Batch {
	t.Helper()
	o.LeaderEpoch = -1
	b := record.NewBuilder(o)
	now := time.Now().UnixMilli()
	for i := range n {
		b.Append(now, []byte{'k'}, []byte{byte('a' + i%26)})
	}
	set, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// produce sends a set to partition 0 and returns the partition's answer.
func produce(t *testing.T, c *raw.Conn, version int16, topic string, set []byte) kmsg.ProduceResponseTopicPartition {
	t.Helper()
	answer := raw.Do[*kmsg.ProduceResponse](c, produceRequest(version, -1, topic, 0, set))
	return answer.Topics[0].Partitions[0]
}

func produceRequest(version, acks int16, topic string, partition int32, set []byte) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = version, acks, 10000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, set
	top := kmsg.NewProduceRequestTopic()
	top.Topic, top.Partitions = topic, append(top.Partitions, p)
	r.Topics = append(r.Topics, top)
	return r
}

// fetchRequest asks for one partition of a topic, by name below v13.
func fetchRequest(version int16, topic string, id [16]byte, partition int32, offset int64) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.Version, r.ReplicaID, r.MaxWaitMillis, r.MinBytes, r.MaxBytes = version, -1, 500, 1, 50<<20
	r.SessionID, r.SessionEpoch = 0, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = partition, offset, 1<<20, -1
	top := kmsg.NewFetchRequestTopic()
	top.Topic, top.TopicID, top.Partitions = topic, id, append(top.Partitions, p)
	r.Topics = append(r.Topics, top)
	return r
}

func fetch(t *testing.T, c *raw.Conn, r *kmsg.FetchRequest) kmsg.FetchResponseTopicPartition {
	t.Helper()
	answer := raw.Do[*kmsg.FetchResponse](c, r)
	if answer.ErrorCode != 0 {
		t.Fatalf("fetch: error %d", answer.ErrorCode)
	}
	return answer.Topics[0].Partitions[0]
}

// started is a broker whose listeners a test chose itself.
type started struct {
	*real.Process
	keeper string
}

func start(t *testing.T, properties ...string) started {
	t.Helper()
	dir := t.TempDir()
	s := started{keeper: "127.0.0.1:" + real.FreePort(t)}
	args := []string{"start"}
	for _, p := range append([]string{"broker.id=1", "log.dirs=" + dir + "/data", "keeper.dir=" + dir + "/keeper", "keeper.listen=" + s.keeper}, properties...) {
		args = append(args, "--override", p)
	}
	s.Process = real.Start(t, "barnabas", exec.Command(real.Binary(t), args...))
	return s
}

func portText(port int32) string { return strconv.Itoa(int(port)) }
