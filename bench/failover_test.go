package bench

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"barnabas/test/real"
)

// embeddedZooKeeper starts barnabas zookeeper.
func embeddedZooKeeper(t testing.TB) string {
	addr := "127.0.0.1:" + real.FreePort(t)
	p := real.Start(t, "barnabas zookeeper", exec.Command(real.Binary(t), "zookeeper", "--listen", addr, "--dir", t.TempDir()))
	p.UntilRunning(20*time.Second, "ruok", func() bool { return real.FourLetterWord(addr, "ruok") == "imok" })
	return addr
}

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
		barnabasOn("barnabas, embedded ZooKeeper", func() string { return embeddedZooKeeper(t) }),
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

// gapOf ends one broker under load and starts it again.
func (c *cluster) gapOf(signal syscall.Signal, controller bool) float64 {
	c.t.Helper()
	target := c.controller()
	if !controller {
		target = target%3 + 1
	}
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
