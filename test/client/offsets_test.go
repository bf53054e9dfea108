package client

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/client"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"
)

// takeSome reads n records of one stream and leaves the rest.
func takeSome(t *testing.T, s *client.Stream, n int) {
	t.Helper()
	for range n {
		if _, err := s.Next(within(t, 30*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOffsetsAreThoseOfWhatWasTaken(t *testing.T) {
	clusters(t, func(t *testing.T, c cluster) {
		zk := zookeeperClient(t, c.zookeeper)
		a := admin(t, c.broker)
		ctx := within(t, 2*time.Minute)
		inZooKeeper := func(group, topic string) string {
			data, _, err := zk.Get(ctx, znode.ConsumerOffsetPath(group, topic, 0))
			if err != nil {
				return "none"
			}
			return string(data)
		}
		inKafka := func(group, topic string) string {
			offsets, err := a.FetchOffsets(ctx, group)
			if o, ok := offsets.Lookup(topic, 0); err == nil && ok && o.At >= 0 {
				return fmt.Sprint(o.At)
			}
			return "none"
		}
		for _, s := range []struct {
			name      string
			storage   client.Storage
			zk, kafka string
		}{
			{"zookeeper", client.InZooKeeper, "7", "none"},
			{"kafka", client.InKafka, "none", "7"},
			{"both", client.InBoth, "7", "7"},
		} {
			topic, group := "taken-"+s.name, "g-"+s.name
			createTopic(t, c.broker, topic, 1, nil)
			numbers(t, c, topic, 0, 20)
			var got received
			start := func() (*client.Consumer, *client.Stream) {
				consumer := ours(t, c, &got, group, "one", client.OffsetStorage(s.storage), client.AutoCommit(0))
				streams, err := consumer.Streams(ctx, map[string]int{topic: 1})
				if err != nil {
					t.Fatal(err)
				}
				return consumer, streams[topic][0]
			}
			consumer, stream := start()
			takeSome(t, stream, 7)
			if err := consumer.Commit(ctx); err != nil {
				t.Fatal(s.name, err)
			}
			takeSome(t, stream, 3) // not committed
			if z, k := inZooKeeper(group, topic), inKafka(group, topic); z != s.zk || k != s.kafka {
				t.Errorf("%s: ZooKeeper has %s, Kafka %s; want %s, %s", s.name, z, k, s.zk, s.kafka)
			}
			consumer.Close()
			_, stream = start()
			m, err := stream.Next(ctx)
			if err != nil || m.Offset != 7 {
				t.Errorf("%s: after a restart offset %d came, %v; want 7", s.name, m.Offset, err)
			}
		}
	})
}

// onWarning calls a function at each warning.
type onWarning struct {
	slog.Handler
	f func()
}

func (h onWarning) Enabled(context.Context, slog.Level) bool { return true }

func (h onWarning) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		h.f()
	}
	return nil
}

// A commit that fails while the consumer closes is tried again.
func TestTheLastCommitIsTriedAgain(t *testing.T) {
	b := real.Barnabas(t, 1)
	c := cluster{b.Addr, b.Keeper}
	zk := zookeeperClient(t, c.zookeeper)
	ctx := within(t, 2*time.Minute)
	createTopic(t, c.broker, "last", 1, nil)
	numbers(t, c, "last", 0, 20)
	path := znode.ConsumerOffsetPath("g", "last", 0)
	if _, _, err := zk.CreateRecursive(ctx, path, znode.EncodeConsumerOffset(0), zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
	locked := []jute.ACL{{Perms: jute.PermRead | jute.PermAdmin, ID: jute.WorldACL()[0].ID}}
	var failures atomic.Int32 // of the consumer, until it is closed
	open := func() {
		failures.Add(1)
		if _, err := zk.SetACL(ctx, path, jute.WorldACL(), zookeeper.AnyVersion); err != nil {
			t.Error(err)
		}
	}
	var got received
	consumer := ours(t, c, &got, "g", "one", client.AutoCommit(time.Hour), client.Logger(slog.New(onWarning{slog.DiscardHandler, open})))
	streams, err := consumer.Streams(ctx, map[string]int{"last": 1})
	if err != nil {
		t.Fatal(err)
	}
	takeSome(t, streams["last"][0], 7)
	if _, err := zk.SetACL(ctx, path, locked, zookeeper.AnyVersion); err != nil {
		t.Fatal(err)
	}
	failures.Store(0)
	consumer.Close()
	data, _, err := zk.Get(ctx, path)
	if err != nil || string(data) != "7" || failures.Load() != 1 {
		t.Errorf("after %d failures the offset is %q, %v; want 7", failures.Load(), data, err)
	}
}

// When ZooKeeper forgets the session, the consumer joins again and goes on.
func TestAConsumerWhoseSessionEndsJoinsAgain(t *testing.T) {
	zk := real.StartZooKeeper(t)
	c := cluster{real.Kafka(t, "2.8.2", 1, zk.Addr, "zookeeper.session.timeout.ms=40000").Addr, zk.Addr}
	createTopic(t, c.broker, "sessions", 2, nil)
	var got received
	lost := make(chan struct{}, 8)
	consumer := ours(t, c, &got, "g", "one", client.SessionTimeout(4*time.Second), client.OnRebalance(client.Listener{
		Lost: func(map[string][]int32) { lost <- struct{}{} },
	}))
	streams, err := consumer.Streams(within(t, time.Minute), map[string]int{"sessions": 1})
	if err != nil {
		t.Fatal(err)
	}
	readAll(&got, "one", streams["sessions"]...)
	numbers(t, c, "sessions", 0, 50)
	real.Until(t, 30*time.Second, "the first records", func() bool { return got.count() == 50 })

	zk.Stop() // longer than the session of 4 s, shorter than the broker's
	select {
	case <-lost:
	case <-time.After(30 * time.Second):
		t.Fatal("without ZooKeeper the partitions were kept")
	}
	zk.Restart(t)
	client := zookeeperClient(t, c.zookeeper)
	untilOwned(t, client, "g", "sessions", map[string]string{"one-0": "0 1"})
	numbers(t, c, "sessions", 50, 100)
	real.Until(t, 30*time.Second, "the later records", func() bool { return got.count() == 100 })
}

func TestAConsumerIdInUseIsWaitedFor(t *testing.T) {
	zkAddr := real.ZooKeeper(t)
	c := cluster{real.Kafka(t, "2.8.2", 1, zkAddr).Addr, zkAddr}
	createTopic(t, c.broker, "ids", 1, nil)
	var got received
	first := oursOf(t, c, &got, "g", "same", "ids", 1)
	second := ours(t, c, &got, "g", "same")
	joined := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := second.Streams(ctx, map[string]int{"ids": 1})
		joined <- err
	}()
	select {
	case err := <-joined:
		t.Fatal("two consumers have one id:", err)
	case <-time.After(time.Second):
	}
	first.Close()
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(second.ID(), "g_same") {
		t.Error(second.ID())
	}
}
