package broker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/keeper"
	"barnabas/internal/replica"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is some brokers in this process on one ZooKeeper in this process.
type cluster struct {
	t       *testing.T
	keeper  string
	extra   map[string]string
	dirs    []string
	ports   []int
	brokers []*Broker // nil while stopped
	log     io.Writer // optional: of brokers that are started
}

func startCluster(t *testing.T, brokers int, extra map[string]string) *cluster {
	t.Helper()
	k, err := keeper.Open(keeper.Options{})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- k.Serve(socket) }()
	t.Cleanup(func() {
		socket.Close()
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	c := &cluster{t: t, keeper: socket.Addr().String(), extra: extra}
	for i := range brokers {
		c.dirs = append(c.dirs, filepath.Join(t.TempDir(), strconv.Itoa(i)))
	}
	t.Cleanup(func() {
		for i := range c.brokers {
			c.stop(i)
		}
	})
	for i := range brokers {
		c.ports, c.brokers = append(c.ports, 0), append(c.brokers, nil)
		c.start(i)
	}
	return c
}

func (c *cluster) start(i int) {
	c.t.Helper()
	properties := map[string]string{
		"broker.id": strconv.Itoa(i + 1), "log.dirs": c.dirs[i], "zookeeper.connect": c.keeper,
		"listeners": fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", c.ports[i]), "min.insync.replicas": "2",
		"log.cleaner.dedupe.buffer.size": "2097152",
	}
	for k, v := range c.extra {
		properties[k] = v
	}
	o, err := config.NewBroker(properties)
	if err != nil {
		c.t.Fatal(err)
	}
	var out io.Writer = io.Discard
	switch {
	case c.log != nil:
		out = c.log
	case testing.Verbose():
		out = c.t.Output()
	}
	log := slog.New(slog.NewTextHandler(out, nil)).With("broker", i+1)
	b, err := Start(c.t.Context(), Options{Config: o, Logger: log})
	if err != nil {
		c.t.Fatal(err)
	}
	c.brokers[i], c.ports[i] = b, b.Info().Listeners[0].Port
}

func (c *cluster) stop(i int) {
	if c.brokers[i] == nil {
		return
	}
	if err := c.brokers[i].Stop(); err != nil {
		c.t.Errorf("broker %d: %v", i+1, err)
	}
	c.brokers[i] = nil
}

func (c *cluster) seeds() (seeds []string) {
	for _, p := range c.ports {
		seeds = append(seeds, fmt.Sprintf("127.0.0.1:%d", p))
	}
	return seeds
}

func (c *cluster) client(o ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.seeds()...), kgo.MetadataMinAge(10 * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}, o...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

// until waits for a condition that is met by the brokers' own work.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for: %s", what)
		case <-tick.C:
		}
	}
}

// inSync waits until a partition has n replicas in sync as its leader sees it.
func (c *cluster) inSync(topic string, partitions, n int) {
	c.t.Helper()
	until(c.t, fmt.Sprintf("%d replicas of %s in sync", n, topic), func() bool {
		led := 0
		for _, b := range c.brokers {
			if b == nil {
				continue
			}
			for p := range partitions {
				part := b.replicas.Partition(wire.TopicPartition{Topic: topic, Partition: int32(p)})
				if part == nil {
					continue
				}
				if v := part.View(); v.Role == replica.Leader && len(v.ISR) == n {
					led++
				}
			}
		}
		return led == partitions
	})
}

// same waits until every broker has the same end and high watermark.
func (c *cluster) same(topic string, partitions int) {
	c.t.Helper()
	until(c.t, "equal ends and high watermarks", func() bool {
		for p := range partitions {
			var end int64 = -1
			for _, b := range c.brokers {
				part := b.replicas.Partition(wire.TopicPartition{Topic: topic, Partition: int32(p)})
				if part == nil || end >= 0 && part.Log().EndOffset() != end || part.HighWatermark() != part.Log().EndOffset() {
					return false
				}
				end = part.Log().EndOffset()
			}
		}
		return true
	})
}

func (c *cluster) makeTopic(topic string, partitions int) {
	c.t.Helper()
	admin := kadm.NewClient(c.client())
	made, err := admin.CreateTopic(c.t.Context(), int32(partitions), int16(len(c.brokers)), nil, topic)
	if err != nil {
		c.t.Fatal(made, err)
	}
}

func TestBrokersReplicateWhileTheyStopInTurn(t *testing.T) {
	for _, ibp := range []string{"3.9", "2.7-IV0"} {
		t.Run("ibp-"+ibp, func(t *testing.T) {
			c := startCluster(t, 3, map[string]string{"inter.broker.protocol.version": ibp})
			const partitions = 6
			c.makeTopic("t", partitions)
			c.inSync("t", partitions, 3)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var sent sync.WaitGroup
			client := c.client(kgo.RecordDeliveryTimeout(time.Minute))
			// The client gives up at once when the first broker that it asks for a
			// producer id closes the connection.
			if err := client.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("first")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			sent.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					err := client.ProduceSync(context.WithoutCancel(ctx), &kgo.Record{Topic: "t", Partition: int32(n % partitions), Value: []byte(strconv.Itoa(n))}).FirstErr()
					if err != nil {
						t.Errorf("record %d: %v", n, err)
						return
					}
				}
			})
			for i := range c.brokers {
				c.stop(i)
				c.start(i)
				c.inSync("t", partitions, 3)
			}
			cancel()
			sent.Wait()
			c.same("t", partitions)
		})
	}
}
