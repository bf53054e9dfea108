package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
)

// clusters measures the clusters that are compared, one after the other. Kafka's part of
// a measurement with thousands of partitions takes minutes: it is left out
// unless BARNABAS_BENCH_KAFKA_PARTITIONS is set.
func clusters(t *testing.T, large bool, measure func(c *cluster, zk string)) {
	zk := real.ZooKeeper(t)
	c := barnabasCluster(t, "barnabas", zk)
	measure(c, zk)
	c.end()
	if large && os.Getenv("BARNABAS_BENCH_KAFKA_PARTITIONS") == "" {
		return
	}
	zk = real.ZooKeeper(t)
	c = kafkaCluster(t, zk)
	measure(c, zk)
	c.end()
}

// idle is how long a cluster that does nothing is watched.
const idle = 20 * time.Second

// TestManyPartitionsOfThreeBrokers creates a topic of thousands of partitions
// with three replicas, looks at what idle brokers use, and has the controller
// move.
func TestManyPartitionsOfThreeBrokers(t *testing.T) {
	clusters(t, true, func(c *cluster, zk string) {
		line := func(what string, n int, value float64, unit, goal string) {
			fmt.Printf("%-52s %-12s %8.2f %s   goal %s\n", fmt.Sprintf("%d partitions, RF 3: %s", n, what), c.name, value, unit, goal)
		}
		n := many()
		began := time.Now()
		c.spread("first", n)
		line("create until all are in sync", n, time.Since(began).Seconds(), "s", "reported")
		c.spread("second", n)
		n *= 2
		before := map[int32]float64{}
		for id, m := range c.members {
			before[id] = cpuSeconds(m.process().PID())
		}
		pause(idle)
		most := 0.0
		for id, m := range c.members {
			most = max(most, (cpuSeconds(m.process().PID())-before[id])/idle.Seconds()*100)
		}
		line("the busiest idle broker", n, most, "% of a core", "2")
		for _, m := range c.members {
			line(fmt.Sprintf("memory of broker %d", m.id), n, residentMB(m.process().PID()), "MB", "reported")
		}
		var moves series
		for i := range rounds {
			moves = append(moves, c.move(zk, "after-"+strconv.Itoa(i)))
		}
		line("the controller moves", n, moves.median(), "s", "1")
	})
}

func pause(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	<-ctx.Done()
}

// move deletes /controller and returns how long it takes until a controller of
// the next epoch has made a topic.
func (c *cluster) move(connect, topic string) float64 {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	zk, err := zookeeper.New(zookeeper.Options{Connect: connect, SessionTimeout: 20 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := zk.Start(ctx); err != nil {
		c.t.Fatal(err)
	}
	defer zk.Close()
	epoch := func() string {
		data, _, err := zk.Get(ctx, znode.ControllerEpochPath)
		if err != nil {
			c.t.Fatal(err)
		}
		return string(data)
	}
	before := epoch()
	began := time.Now()
	if err := zk.Delete(ctx, znode.ControllerPath, zookeeper.AnyVersion); err != nil {
		c.t.Fatal(err)
	}
	for epoch() == before {
	}
	for {
		_, err := c.admin.CreateTopic(ctx, 1, 3, nil, topic)
		if err == nil {
			return time.Since(began).Seconds()
		}
		if ctx.Err() != nil {
			c.t.Fatal(err)
		}
	}
}

// TestReplicationCost compares what a follower uses for a gigabyte that it
// copies and nobody reads from it.
func TestReplicationCost(t *testing.T) {
	const size, records = 1024, 300_000
	cost := map[string]series{}
	clusters(t, false, func(c *cluster, _ string) {
		follower := c.members[2]
		for round := range rounds + 1 {
			topic := "copied-" + strconv.Itoa(round)
			c.pair(topic)
			before := cpuSeconds(follower.process().PID())
			produce(t, c.members[1].addr, topic, records, size, kgo.MaxBufferedRecords(20_000))
			if used := cpuSeconds(follower.process().PID()) - before; round > 0 {
				cost[c.name] = append(cost[c.name], used/(size*records/1e9))
			}
			deleteTopic(t, c.members[1].addr, topic)
		}
	})
	report(t, "a follower's CPU a gigabyte, 1 KiB records", "s", cost["barnabas"], cost["kafka 3.9.1"], "at most 0.3")
}
