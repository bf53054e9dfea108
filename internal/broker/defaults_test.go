package broker

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"

	"barnabas/internal/record"
	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// lead has a broker lead the only partition of a topic, which another broker
// that is not in sync replicates too. It is the controller's request.
func lead(b *Broker, topic string) *kmsg.LeaderAndISRResponse {
	r := kmsg.NewPtrLeaderAndISRRequest()
	r.Version, r.ControllerEpoch, r.BrokerEpoch = 7, b.replicas.ControllerEpoch(), -1
	r.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: topic, TopicID: wire.NewUUID(), PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{
		{Leader: 1, LeaderEpoch: 0, ISR: []int32{1}, Replicas: []int32{1, 2}},
	}}}
	return b.replicas.ApplyLeaderAndISR(r)
}

func led(t *testing.T, b *Broker, topic string) *replica.Partition {
	t.Helper()
	p := b.replicas.Partition(wire.TopicPartition{Topic: topic})
	if p == nil {
		t.Fatal("no partition")
	}
	return p
}

// refusal holds the first who says that a topic's configuration is refused.
type refusal struct {
	held  chan struct{}
	first atomic.Bool
}

func (r *refusal) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("configuration is refused")) && r.first.CompareAndSwap(false, true) {
		r.held <- struct{}{}
		<-r.held
	}
	return len(p), nil
}

// A default that changes between the look at a new partition's configuration and
// the making of its log is in force there.
func TestADefaultThatChangesWhileAPartitionIsMadeIsInForce(t *testing.T) {
	c := startCluster(t, 0, nil) // min.insync.replicas is 2
	r := &refusal{held: make(chan struct{})}
	c.log, c.dirs, c.ports, c.brokers = r, []string{t.TempDir()}, []int{0}, []*Broker{nil}
	c.start(0)
	defer c.stop(0)
	b := c.brokers[0]
	b.configs.setTopic(b.configs.beginRead(), "t", map[string]string{"retention.ms": "?"}) // so that the look at it is seen
	b.configs.endRead()

	made, changed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(made)
		lead(b, "t")
	}()
	<-r.held
	go func() { changed <- b.config.Update(nil, map[string]string{"min.insync.replicas": "1"}) }()
	until(t, "the change has begun", func() bool { return b.config.Load().Int("min.insync.replicas") == 1 })
	for range 100 {
		runtime.Gosched() // it may go on
	}
	r.held <- struct{}{}
	<-made
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	if got := led(t, b, "t").Log().Config().MinInsyncReplicas; got != 1 {
		t.Errorf("min.insync.replicas is %d, want 1", got)
	}
}

// What is held back for want of replicas in sync is there to read once the
// default asks for no more of them.
func TestADefaultOfMinInsyncReplicasMovesTheHighWatermark(t *testing.T) {
	c := startCluster(t, 1, nil) // min.insync.replicas is 2
	b := c.brokers[0]
	lead(b, "t")
	p := led(t, b, "t")
	builder := record.NewBuilder(record.BatchOptions{})
	builder.Append(1, nil, []byte("v"))
	batch, err := builder.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Append(storage.AppendRequest{Records: batch, LogAppendTime: -1}, false); err != nil {
		t.Fatal(err)
	}
	if hw := p.HighWatermark(); hw != 0 {
		t.Fatalf("the high watermark is %d with too few replicas in sync", hw)
	}
	if err := b.config.Update(nil, map[string]string{"min.insync.replicas": "1"}); err != nil {
		t.Fatal(err)
	}
	if hw := p.HighWatermark(); hw != 1 {
		t.Errorf("the high watermark is %d, want 1", hw)
	}
}
