package metadata

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func brokers(ids ...int32) (live []kmsg.UpdateMetadataRequestLiveBroker) {
	for _, id := range ids {
		live = append(live, kmsg.UpdateMetadataRequestLiveBroker{ID: id, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{
			{ListenerName: "PLAINTEXT", Host: "h", Port: 9000 + id},
			{ListenerName: "INSIDE", Host: "in", Port: 9100 + id, SecurityProtocol: 2},
		}})
	}
	return live
}

func topicState(name string, id wire.UUID, parts ...kmsg.UpdateMetadataRequestTopicPartition) kmsg.UpdateMetadataRequestTopicState {
	return kmsg.UpdateMetadataRequestTopicState{Topic: name, TopicID: id, PartitionStates: parts}
}

func part(index, leader int32) kmsg.UpdateMetadataRequestTopicPartition {
	return kmsg.UpdateMetadataRequestTopicPartition{Partition: index, Leader: leader, ISR: []int32{leader}, Replicas: []int32{leader}}
}

func update(controller int32, live []kmsg.UpdateMetadataRequestLiveBroker, topics ...kmsg.UpdateMetadataRequestTopicState) *kmsg.UpdateMetadataRequest {
	return &kmsg.UpdateMetadataRequest{Version: 8, ControllerID: controller, LiveBrokers: live, TopicStates: topics}
}

func TestBrokersAndControllerReplaceWhatWasKnown(t *testing.T) {
	c := New()
	if cl := c.Cluster(); cl.ControllerID != -1 || len(cl.Brokers) != 0 {
		t.Fatalf("a fresh cache knows %+v", cl)
	}
	c.Update(update(2, brokers(2, 1)))
	cl := c.Cluster()
	if cl.ControllerID != 2 || len(cl.Brokers) != 2 || cl.Brokers[0].ID != 1 {
		t.Fatalf("got %+v", cl)
	}
	if e := cl.Endpoint(2, "INSIDE"); e == nil || e.Port != 9102 {
		t.Fatalf("got %+v", e)
	}
	if cl.Endpoint(2, "NONE") != nil || cl.Endpoint(3, "INSIDE") != nil {
		t.Fatal("an address out of nowhere")
	}
	c.Update(update(-5, brokers(3)))
	if cl := c.Cluster(); cl.ControllerID != -1 || len(cl.Brokers) != 1 || cl.Broker(3) == nil || cl.Broker(2) != nil {
		t.Fatalf("got %+v", cl)
	}
}

func TestPartitionsMergeAndAreRemovedByLeaderMinus2(t *testing.T) {
	c, id := New(), wire.NewUUID()
	c.Update(update(1, brokers(1), topicState("t", id, part(0, 1), part(2, 1))))
	before := c.Topic("t")
	c.Update(update(1, brokers(1), topicState("t", id, part(1, 1), part(2, NoLeader))))
	if len(before.Partitions) != 2 || before.Partition(2).Leader != 1 {
		t.Fatal("a published topic changed")
	}
	now := c.TopicByID(id)
	if len(now.Partitions) != 3 || now.Partition(2).Leader != NoLeader || now.Partition(1).Index != 1 || now.Partition(3) != nil || now.Partition(-1) != nil {
		t.Fatalf("got %+v", now)
	}
	if c.Update(update(1, brokers(1))); c.Topic("t") != now {
		t.Fatal("an update that names no topic touched one")
	}
	removed, _ := c.Update(update(1, brokers(1), topicState("t", id, part(0, LeaderDuringDelete))))
	if len(removed) != 1 || removed[0] != (wire.TopicPartition{Topic: "t"}) || c.Partition("t", 0) != nil || c.Partition("t", 1) == nil {
		t.Fatalf("removed %v", removed)
	}
	c.Update(update(1, brokers(1), topicState("t", id, part(1, LeaderDuringDelete), part(2, LeaderDuringDelete))))
	if c.Topic("t") != nil || c.TopicByID(id) != nil || len(c.Topics()) != 0 {
		t.Fatal("the topic outlives its partitions")
	}
}

func TestTopicIDsMergeAndZeroRemoves(t *testing.T) {
	c, a, b := New(), wire.NewUUID(), wire.NewUUID()
	c.Update(update(1, nil, topicState("t", a, part(0, 1))))
	c.Update(update(1, nil, topicState("t", b, part(0, 1))))
	if c.TopicByID(a) != nil || c.TopicByID(b) == nil {
		t.Fatal("a topic answers to its former id")
	}
	c.Update(update(1, nil, topicState("t", wire.UUID{}, part(0, 1))))
	if c.TopicByID(b) != nil || !c.Topic("t").ID.IsZero() {
		t.Fatal("a zero id leaves the old one")
	}
}

func TestAnUpdateOfAnEarlierControllerIsRefused(t *testing.T) {
	c := New()
	of := func(epoch int32, states ...kmsg.UpdateMetadataRequestTopicState) *kmsg.UpdateMetadataRequest {
		r := update(epoch, brokers(epoch), states...)
		r.ControllerEpoch = epoch
		return r
	}
	for _, epoch := range []int32{1, 3, 3} {
		if _, ok := c.Update(of(epoch, topicState("t", wire.UUID{}, part(0, epoch)))); !ok || c.Partition("t", 0).Leader != epoch {
			t.Fatalf("an update of epoch %d is refused", epoch)
		}
	}
	cluster, topic, changed := c.Cluster(), c.Topic("t"), c.Changed()
	removed, ok := c.Update(of(2, topicState("t", wire.UUID{}, part(0, LeaderDuringDelete))))
	if ok || len(removed) > 0 || c.Cluster() != cluster || c.Topic("t") != topic || c.Changed() != changed {
		t.Fatalf("an update of epoch 2 after one of 3 is applied: %t, removed %v", ok, removed)
	}
}

func TestTopicsThatComeAreCounted(t *testing.T) {
	c, a := New(), wire.NewUUID()
	for i, step := range []struct {
		states []kmsg.UpdateMetadataRequestTopicState
		came   uint64
	}{
		{[]kmsg.UpdateMetadataRequestTopicState{topicState("t", a, part(0, 1)), topicState("u", wire.NewUUID(), part(0, 1))}, 2},
		{[]kmsg.UpdateMetadataRequestTopicState{topicState("t", a, part(0, 2), part(1, 1))}, 2},
		{[]kmsg.UpdateMetadataRequestTopicState{topicState("u", wire.NewUUID(), part(0, 1))}, 3}, // another of that name
		{[]kmsg.UpdateMetadataRequestTopicState{topicState("t", a, part(0, LeaderDuringDelete), part(1, LeaderDuringDelete))}, 3},
		{[]kmsg.UpdateMetadataRequestTopicState{topicState("t", wire.NewUUID(), part(0, 1))}, 4},
	} {
		if c.Update(update(1, nil, step.states...)); c.Came() != step.came {
			t.Errorf("step %d: %d topics have come, want %d", i, c.Came(), step.came)
		}
	}
}

func TestEveryVersionOfUpdateMetadata(t *testing.T) {
	for v := int16(0); v <= 8; v++ {
		t.Run(fmt.Sprint("v", v), func(t *testing.T) {
			p := part(3, 1)
			p.Topic = "t"
			in := kmsg.UpdateMetadataRequest{Version: v, ControllerID: 1, LiveBrokers: brokers(1), PartitionStates: []kmsg.UpdateMetadataRequestTopicPartition{p},
				TopicStates: []kmsg.UpdateMetadataRequestTopicState{topicState("t", wire.NewUUID(), p)}}
			in.LiveBrokers[0].Host, in.LiveBrokers[0].Port = "h", 9001
			var out kmsg.UpdateMetadataRequest
			out.Version = v
			if err := out.ReadFrom(in.AppendTo(nil)); err != nil {
				t.Fatal(err)
			}
			c := New()
			c.Update(&out)
			if c.Partition("t", 3) == nil {
				t.Fatal("the partition is missing")
			}
			if e := c.Cluster().Endpoint(1, "PLAINTEXT"); e == nil || e.Port != 9001 {
				t.Fatalf("got %+v", e)
			}
			name := "INSIDE"
			if v < 3 {
				name = "SASL_PLAINTEXT"
			}
			if e := c.Cluster().Endpoint(1, name); v > 0 && (e == nil || e.Port != 9101) {
				t.Fatalf("got %+v", e)
			}
		})
	}
}

func TestWaitersSeeTheUpdateTheyWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		led := func() bool { p := c.Partition("t", 0); return p != nil && p.Leader >= 0 }
		got := make(chan bool)
		go func() { got <- c.WaitFor(led, nil) }()
		synctest.Wait()
		c.Update(update(1, nil, topicState("t", wire.UUID{}, part(0, NoLeader))))
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("woken for good before the partition had a leader")
		default:
		}
		c.Update(update(1, nil, topicState("t", wire.UUID{}, part(0, 1))))
		if !<-got {
			t.Fatal("the wait failed")
		}
		expired := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(expired) })
		if c.WaitFor(func() bool { return false }, expired) {
			t.Fatal("an expired wait succeeded")
		}
	})
}

func TestReadersRunBesideUpdates(t *testing.T) {
	c, done := New(), make(chan struct{})
	go func() {
		defer close(done)
		for i := range int32(2000) {
			c.Update(update(1, brokers(1, i%3), topicState(fmt.Sprint("t", i%7), wire.UUID{1, byte(i % 7)}, part(i%50, i%3), part(i%11, LeaderDuringDelete))))
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		for _, topic := range c.Topics() {
			for i, p := range topic.Partitions {
				if p == nil || i > 0 && topic.Partitions[i-1].Index >= p.Index {
					t.Fatal("partitions out of order")
				}
			}
		}
	}
}
