package replica

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/keeper"
	"barnabas/internal/storage"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// during is a subscriber that does something while others are told of an append.
type during struct {
	Subscription
	do func()
}

func (d *during) Changed(*Subscription, int) {
	if do := d.do; do != nil {
		d.do = nil
		do()
	}
}

// The high watermark moves when it is found how far, not after others were told
// of the append: a follower that has all but that append must not join in between.
func TestAFollowerDoesNotJoinBetweenAnAppendAndItsHighWatermark(t *testing.T) {
	j := &judge{most: 3}
	p := leading(t, j, config.LatestIBP, time.Hour, 1)
	p.put(t, 2)
	p.fetchedBy(2, 1) // it is behind, and has not been caught up
	d := &during{do: func() { p.Fetched(&FollowerFetch{Replica: 2, Offset: 2, LeaderEpoch: 5, BrokerEpoch: -1}, 2) }}
	d.Owner, d.Follower = d, true
	p.Subscribe(&d.Subscription)
	defer d.Unsubscribe()
	p.put(t, 1)
	if hw := p.HighWatermark(); hw != 3 {
		t.Fatal("high watermark", hw)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.change != nil {
		t.Errorf("ISR %v is asked for: broker 2 has 2 of 3 committed records", p.mu.change.isr)
	}
}

// flushesFirst makes each append of the topic wait for the sync that covers it.
func (p *Partition) flushesFirst(t *testing.T) {
	t.Helper()
	c, err := config.NewBroker(map[string]string{"broker.id": "1", "zookeeper.connect": "unused:1"})
	if err != nil {
		t.Fatal(err)
	}
	topic, err := c.Topic(map[string]string{"flush.messages": "1"})
	if err != nil {
		t.Fatal(err)
	}
	p.log.SetConfig(topic)
}

// A follower that has everything says so by not naming the partition; while an
// append is on its way to the disk, it has everything still.
func TestAnIdleFollowerIsNotLateWhileAnAppendIsUnderWay(t *testing.T) {
	j := &judge{most: 3}
	var look atomic.Pointer[Partition]
	fsys := vfs.NewFaulty(vfs.OS, func(op vfs.Op, _ string, _ int) error {
		if p := look.Load(); p != nil && op == vfs.OpSync {
			look.Store(nil)
			p.checkISR()
		}
		return nil
	})
	p := leadingOn(t, fsys, j, config.LatestIBP, time.Minute, 1, 2, 3)
	p.flushesFirst(t)
	long := time.Now().Add(-time.Hour)
	p.mu.Lock()
	for i := range p.mu.isr.followers {
		f := &p.mu.isr.followers[i]
		f.end, f.caughtUp, f.fetched, f.asks = 0, long, long, asker{time.Now()}
	}
	p.mu.Unlock()
	look.Store(p)
	p.put(t, 1)
	if look.Load() != nil {
		t.Fatal("the append was not synced")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.change != nil {
		t.Errorf("ISR %v is asked for, though nobody is late", p.mu.change.isr)
	}
}

// A follower copies what is not on the leader's disk yet. When it says so while
// the sync ends, whoever comes second sees both.
func TestTheHighWatermarkFollowsAFollowerThatIsFasterThanTheSync(t *testing.T) {
	p := leading(t, &judge{most: 3}, config.LatestIBP, time.Hour, 1, 2)
	p.put(t, 1)
	p.flushesFirst(t) // nothing of it is synced
	fetching, synced := make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	go func() {
		close(fetching)
		p.fetchedBy(2, 1) // which reads the log's end, and waits for the lock
		close(synced)
	}()
	<-fetching
	for range 100 {
		runtime.Gosched()
	}
	if err := p.log.Flush(); err != nil {
		t.Error(err)
	}
	p.mu.Unlock()
	<-synced
	if hw := p.HighWatermark(); hw != 1 {
		t.Error("high watermark", hw)
	}
}

// A follower can be heard before the controller tells that it is alive.
func TestAFollowerJoinsWhenItIsToldToBeAlive(t *testing.T) {
	j := &judge{most: 3}
	p := leading(t, j, config.LatestIBP, time.Hour, 1, 2)
	var alive atomic.Bool
	p.mu.Lock()
	p.mu.isr.alive = func(id int32) bool { return id != 3 || alive.Load() }
	p.mu.Unlock()
	p.fetchedBy(3, 0)
	alive.Store(true)
	p.m.BrokersChanged()
	untilISR(t, p, 1, 2, 3)
}

// The logs are opened with the configurations of the start; what a topic is
// changed to before the controller's first request reaches its log with that.
func TestALogOfTheStartGetsTheConfigurationOfNow(t *testing.T) {
	c, err := config.NewBroker(map[string]string{"broker.id": "1", "zookeeper.connect": "unused:1"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(storage.Options{Dirs: []string{t.TempDir()}, Config: c, BrokerID: 1, ClusterID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	log, err := s.Create(wire.TopicPartition{Topic: "t"}, wire.UUID{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	topic, err := c.Topic(map[string]string{"min.insync.replicas": "2"})
	if err != nil {
		t.Fatal(err)
	}
	m := NewManager(Options{BrokerID: 1, Storage: s, Topic: func(string) *config.Topic { return topic }})
	defer func() {
		m.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if codes := apply(t, m, 7, 1, wire.UUID{}, state(0, 1, 5, 1, 2, 3)); codes != "0 0" {
		t.Fatal(codes)
	}
	if got := log.Config().MinInsyncReplicas; got != 2 {
		t.Error("min.insync.replicas is", got)
	}
}

// cutAtRead is a connection that breaks when a node's data is asked for, once.
type cutAtRead struct {
	net.Conn
	cut *atomic.Bool
}

func (c cutAtRead) Write(b []byte) (int, error) {
	const getData = "\x00\x00\x00\x04" // behind length and xid
	if len(b) > 12 && bytes.Equal(b[8:12], []byte(getData)) && c.cut.CompareAndSwap(true, false) {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// Below inter-broker protocol version 2.7-IV2 the leader writes its ISR itself.
// The answer to the write is lost, and so is the one to looking what came of it.
func TestAnISRThatWasWrittenIsFoundOverTwoLostConnections(t *testing.T) {
	k, err := keeper.Open(keeper.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	var cut atomic.Bool
	zk, err := zookeeper.New(zookeeper.Options{Connect: "embedded", Dial: func(ctx context.Context, _ string) (net.Conn, error) {
		nc, err := k.Dial(ctx)
		return cutAtRead{nc, &cut}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := zk.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	p := leading(t, &judge{most: 3}, config.LatestIBP, time.Hour, 1, 2)
	d := &directISR{m: p.m}
	p.m.cluster.ZooKeeper = zk
	p.mu.Lock()
	c := p.proposeLocked(p.view.Load(), []int32{1, 2, 3})
	p.mu.Unlock()
	path := znode.StatePath("t", 0)
	if _, _, err := zk.CreateRecursive(t.Context(), path, nil, zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
	if _, err := zk.Set(t.Context(), path, d.state(c).Encode(), 0); err != nil { // this answer is lost
		t.Fatal(err)
	}
	cut.Store(true)
	left, err := d.write(t.Context(), []*isrChange{c})
	if len(left) != 1 || err == nil || cut.Load() {
		t.Fatalf("%d changes are left (%v): it is not known what the state is", len(left), err)
	}
	if left, err = d.write(t.Context(), left); len(left) != 0 || err != nil {
		t.Fatalf("%d changes are left: %v", len(left), err)
	}
	if v := p.View(); len(v.ISR) != 3 || v.PartitionEpoch != 1 {
		t.Errorf("ISR %v, version %d", v.ISR, v.PartitionEpoch)
	}
}
