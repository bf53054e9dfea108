package bench

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"
)

const sessionTimeout = 6 * time.Second

// TestFailoverGaps measures how long an acks=all sender waits when the leader of
// its partition is stopped (SIGTERM) or killed, and when that leader is the
// controller too.
func TestFailoverGaps(t *testing.T) {
	session := fmt.Sprintf("zookeeper.session.timeout.ms=%d", sessionTimeout.Milliseconds())
	barnabasOn := func(name string, zk func() string) func() *cluster {
		return func() *cluster { return barnabasCluster(t, name, zk(), session) }
	}
	goals := map[string]string{"SIGTERM": "100 ms", "kill -9": "session timeout 6 s + 300 ms; on Apache's ZooKeeper one tickTime (2 s) more"}
	for _, start := range []func() *cluster{
		barnabasOn("barnabas, embedded ZooKeeper", func() string { return real.StartKeeper(t).Addr }),
		barnabasOn("barnabas, Apache ZooKeeper", func() string { return real.ZooKeeper(t) }),
		func() *cluster { return kafkaCluster(t, real.ZooKeeper(t), session) },
	} {
		c := start()
		c.spread("gaps", 3)
		for _, act := range []struct {
			name   string
			signal syscall.Signal
			rounds int
		}{{"SIGTERM", syscall.SIGTERM, rounds}, {"kill -9", syscall.SIGKILL, 2}} {
			for _, who := range []string{"a leader", "the controller that leads"} {
				var gaps series
				for range act.rounds {
					gaps = append(gaps, c.gapOf(act.signal, who != "a leader"))
				}
				fmt.Printf("%-44s %-28s %s ms   goal %s\n", act.name+" of "+who, c.name, gaps, goals[act.name])
			}
		}
		c.end()
	}
}

// TestMixedStopGaps measures how long an acks=all sender waits when a Barnabas
// broker that leads is stopped in a cluster with Apache Kafka, by who is the
// controller and who leads next.
func TestMixedStopGaps(t *testing.T) {
	zk := real.ZooKeeper(t)
	c := mixedCluster(t, zk, fmt.Sprintf("zookeeper.session.timeout.ms=%d", sessionTimeout.Milliseconds()))
	c.spread("gaps", 3)
	// Broker 2 leads after 1, and 3, which is Kafka, after 2.
	for _, m := range []struct {
		what             string
		controller, stop int32
	}{
		{"Kafka is the controller, Barnabas leads next", 3, 1},
		{"Kafka is the controller, Kafka leads next", 3, 2},
		{"Barnabas is the controller, Barnabas leads next", 2, 1},
		{"Barnabas is the controller, Kafka leads next", 1, 2},
		{"which is the controller, Barnabas leads next", 1, 1},
		{"which is the controller, Kafka leads next", 2, 2},
	} {
		var gaps series
		for range rounds {
			c.makeController(zk, m.controller)
			gaps = append(gaps, c.gapAt(syscall.SIGTERM, m.stop))
		}
		fmt.Printf("%-64s %s ms   goal 100 ms\n", "SIGTERM of ours, "+m.what, gaps)
	}
	c.end()
}

// makeController has the brokers elect a controller until it is the one.
func (c *cluster) makeController(connect string, id int32) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	zk, err := zookeeper.New(zookeeper.Options{Connect: connect, SessionTimeout: 20 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := zk.Start(ctx); err != nil {
		c.t.Fatal(err)
	}
	defer zk.Close()
	real.Until(c.t, 2*time.Minute, fmt.Sprintf("broker %d is the controller", id), func() bool {
		data, _, err := zk.Get(ctx, znode.ControllerPath)
		now, bad := znode.DecodeController(data)
		if err == nil && bad == nil && now.BrokerID == id {
			return true
		}
		_ = zk.Delete(ctx, znode.ControllerPath, zookeeper.AnyVersion) // or somebody is elected just now
		return false
	})
	c.settle("gaps", 3)
}

// gapOf ends one broker under load and starts it again.
func (c *cluster) gapOf(signal syscall.Signal, controller bool) float64 {
	c.t.Helper()
	target := c.controller()
	if !controller {
		target = target%3 + 1
	}
	return c.gapAt(signal, target)
}

func (c *cluster) gapAt(signal syscall.Signal, target int32) float64 {
	c.t.Helper()
	s := c.send("gaps", target-1)
	s.more(200)
	began, m := time.Now(), c.members[target]
	m.process().Signal(signal)
	<-m.process().Done()
	s.more(200)
	gap := s.gap(began)
	m.launch()
	c.settle("gaps", 3)
	return float64(gap.Microseconds()) / 1000
}
