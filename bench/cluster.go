package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// member is a broker of a cluster under measurement.
type member struct {
	id      int32
	addr    string
	process func() *real.Process
	launch  func() // again
}

type cluster struct {
	t       testing.TB
	name    string
	members map[int32]member
	admin   *kadm.Client
	client  *kgo.Client
}

// barnabasCluster starts three Barnabas brokers on a ZooKeeper.
func barnabasCluster(t testing.TB, name, zk string, properties ...string) *cluster {
	return startCluster(t, name, zk, 3, properties)
}

// kafkaCluster starts three brokers of Kafka 3.9.1.
func kafkaCluster(t testing.TB, zk string, properties ...string) *cluster {
	return startCluster(t, "kafka 3.9.1", zk, 0, properties)
}

// mixedCluster starts two Barnabas brokers, 1 and 2, and broker 3 of Kafka 3.9.1.
func mixedCluster(t testing.TB, zk string, properties ...string) *cluster {
	return startCluster(t, "mixed", zk, 2, properties)
}

// startCluster starts three brokers, the first ones of which are Barnabas.
func startCluster(t testing.TB, name, zk string, ours int32, properties []string) *cluster {
	c := &cluster{t: t, name: name, members: map[int32]member{}}
	properties = append([]string{"inter.broker.protocol.version=3.9"}, properties...)
	for id := int32(1); id <= 3; id++ {
		if id <= ours {
			b := real.Barnabas(t, int(id), append([]string{"zookeeper.connect=" + zk}, properties...)...)
			c.members[id] = member{id, b.Addr, func() *real.Process { return b.Process }, func() { b.Launch(t) }}
		} else {
			b := real.KafkaFullSize(t, "3.9.1", int(id), zk, properties...)
			c.members[id] = member{id, b.Addr, func() *real.Process { return b.Process }, func() { b.Launch(t) }}
		}
	}
	c.connect()
	return c
}

func (c *cluster) connect() {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.seeds()...), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		c.t.Fatal(err)
	}
	c.client, c.admin = client, kadm.NewClient(client)
	c.t.Cleanup(client.Close)
}

func (c *cluster) seeds() (seeds []string) {
	for _, m := range c.members {
		seeds = append(seeds, m.addr)
	}
	return seeds
}

// end kills every broker: the next cluster has the machine to itself.
func (c *cluster) end() {
	for _, m := range c.members {
		m.process().Kill()
	}
}

// spread makes a topic whose partitions the brokers lead in turn, RF 3.
func (c *cluster) spread(topic string, partitions int) {
	c.t.Helper()
	c.create(topic, partitions, func(p int32) []int32 { return []int32{p%3 + 1, (p+1)%3 + 1, (p+2)%3 + 1} })
}

// pair makes a topic of eight partitions that broker 1 leads and broker 2 copies.
func (c *cluster) pair(topic string) {
	c.t.Helper()
	c.create(topic, 8, func(int32) []int32 { return []int32{1, 2} })
}

func (c *cluster) create(topic string, partitions int, place func(int32) []int32) {
	c.t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	want := kmsg.NewCreateTopicsRequestTopic()
	want.Topic, want.NumPartitions, want.ReplicationFactor = topic, -1, -1
	for p := range int32(partitions) {
		want.ReplicaAssignment = append(want.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{
			Partition: p, Replicas: place(p)})
	}
	r.Topics, r.TimeoutMillis = append(r.Topics, want), 600_000
	ctx, cancel := context.WithTimeout(context.Background(), 11*time.Minute)
	defer cancel()
	if _, err := r.RequestWith(ctx, c.client); err != nil {
		c.t.Fatal(err)
	}
	c.settle(topic, partitions)
}

// settle waits until every partition has all its replicas in sync and is led by
// the first of them.
func (c *cluster) settle(topic string, partitions int) {
	c.t.Helper()
	real.Until(c.t, 15*time.Minute, topic+" in sync and led as preferred", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		m, err := c.admin.Metadata(ctx, topic)
		if err != nil || len(m.Topics[topic].Partitions) != partitions || len(m.Brokers) != len(c.members) {
			return false
		}
		misled := kadm.TopicsSet{}
		for _, p := range m.Topics[topic].Partitions {
			if len(p.ISR) != len(p.Replicas) {
				return false
			}
			if p.Leader != p.Replicas[0] {
				misled.Add(topic, p.Partition)
			}
		}
		if len(misled) > 0 {
			_, _ = c.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, misled) // or the next time
		}
		return len(misled) == 0
	})
}

func (c *cluster) controller() int32 {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	m, err := c.admin.BrokerMetadata(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return m.Controller
}

// sender sends one record after the other with acks=all to one partition over
// raw connections, and asks for the leader without a pause when there is none:
// what it waits is the cluster's doing.
type sender struct {
	c         *cluster
	topic     string
	partition int32
	stop      chan struct{}
	ended     sync.WaitGroup

	mu   sync.Mutex
	cond *sync.Cond
	acks []time.Time
}

func (c *cluster) send(topic string, partition int32) *sender {
	s := &sender{c: c, topic: topic, partition: partition, stop: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	s.ended.Go(s.run)
	return s
}

func (s *sender) run() {
	var conn *rawConn
	defer func() { conn.close() }()
	payload := batchOf(100)
	leader := int32(-1)
	for n := int32(0); ; n++ {
		select {
		case <-s.stop:
			return
		default:
		}
		if conn == nil {
			if leader < 0 {
				leader = s.leader()
			}
			if conn = s.c.dial(leader, time.Minute); conn == nil {
				leader = -1
				continue
			}
		}
		r := kmsg.NewPtrProduceRequest()
		r.Version, r.Acks, r.TimeoutMillis = 10, -1, 30_000
		r.Topics = []kmsg.ProduceRequestTopic{{Topic: s.topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: s.partition, Records: payload}}}}
		answer, err := conn.do(r)
		if err != nil {
			conn.close()
			conn, leader = nil, -1
			continue
		}
		p := answer.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if p.ErrorCode == 0 {
			s.mu.Lock()
			s.acks = append(s.acks, time.Now())
			s.cond.Broadcast()
			s.mu.Unlock()
			continue
		}
		conn.close()
		conn = nil
		if next := p.CurrentLeader.LeaderID; next != leader {
			leader = next
		} else {
			leader = -1
		}
	}
}

// batchOf is a set of one record.
func batchOf(size int) []byte {
	b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1})
	b.Append(time.Now().UnixMilli(), nil, make([]byte, size))
	set, err := b.Build()
	if err != nil {
		panic(err) // one record is always well formed
	}
	return set
}

// leader asks every broker that answers, and believes the newest leader epoch.
func (s *sender) leader() int32 {
	leader, epoch := int32(-1), int32(-1)
	for id := range s.c.members {
		conn := s.c.dial(id, 200*time.Millisecond)
		if conn == nil {
			continue
		}
		r := kmsg.NewPtrMetadataRequest()
		r.Version, r.Topics = 9, []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr(s.topic)}}
		answer, err := conn.do(r)
		conn.close()
		if err != nil {
			continue
		}
		for _, t := range answer.(*kmsg.MetadataResponse).Topics {
			for _, p := range t.Partitions {
				if p.Partition == s.partition && p.LeaderEpoch > epoch {
					leader, epoch = p.Leader, p.LeaderEpoch
				}
			}
		}
	}
	return leader
}

// more waits for so many more answers.
func (s *sender) more(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for want := len(s.acks) + n; len(s.acks) < want; {
		s.cond.Wait()
	}
}

// gap ends the sender and returns the longest time between two answers since.
func (s *sender) gap(since time.Time) (longest time.Duration) {
	close(s.stop)
	s.ended.Wait()
	for i := 1; i < len(s.acks); i++ {
		if s.acks[i].After(since) {
			longest = max(longest, s.acks[i].Sub(s.acks[i-1]))
		}
	}
	return longest
}

type rawConn struct {
	nc    net.Conn
	limit time.Duration
	next  int32
}

func (c *cluster) dial(id int32, limit time.Duration) *rawConn {
	m, ok := c.members[id]
	if !ok {
		return nil
	}
	nc, err := net.DialTimeout("tcp", m.addr, time.Second)
	if err != nil {
		return nil
	}
	return &rawConn{nc: nc, limit: limit}
}

func (r *rawConn) close() {
	if r != nil {
		r.nc.Close()
	}
}

func (r *rawConn) do(q kmsg.Request) (kmsg.Response, error) {
	r.next++
	_ = r.nc.SetDeadline(time.Now().Add(r.limit))
	if _, err := r.nc.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, q, r.next)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(r.nc, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(r.nc, b); err != nil {
		return nil, err
	}
	if len(b) < 5 {
		return nil, errors.New("half an answer")
	}
	b = b[4:]
	if q.IsFlexible() {
		b = b[1:]
	}
	answer := q.ResponseKind()
	answer.SetVersion(q.GetVersion())
	return answer, answer.ReadFrom(b)
}
