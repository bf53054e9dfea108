package cluster

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
)

// why runs the command until it says all of that, or fails.
func why(t *testing.T, addr, topic string, wanted ...string) {
	t.Helper()
	var said string
	defer func() {
		if t.Failed() {
			t.Logf("barnabas why %s says:\n%s", topic, said)
		}
	}()
	real.Until(t, 30*time.Second, "why "+topic+": "+strings.Join(wanted, " ... "), func() bool {
		said = real.Run(t, 20*time.Second, exec.Command(real.Binary(t), "why", topic, "--bootstrap-server", addr))
		for _, w := range wanted {
			if !strings.Contains(said, w) {
				return false
			}
		}
		return true
	})
}

// What is stuck says why, to who asks and in the log.
func TestWhySaysWhatATopicWaitsFor(t *testing.T) {
	server := real.ZooKeeper(t)
	var brokers []*real.BarnabasBroker
	var seeds []string
	for id := 1; id <= 3; id++ {
		b := real.Barnabas(t, id, "zookeeper.connect="+server, "zookeeper.session.timeout.ms=6000", "replica.lag.time.max.ms=5000", "replica.fetch.wait.max.ms=100")
		brokers, seeds = append(brokers, b), append(seeds, b.Addr)
	}
	a := load.NewAdmin(t, seeds)
	load.CreateTopic(t, a, "three", 1, []int32{1, 2, 3}, map[string]*string{"min.insync.replicas": load.Text("2")})
	load.CreateTopic(t, a, "third", 1, []int32{3}, nil)
	load.CreateTopic(t, a, "moves", 1, []int32{1}, map[string]*string{"leader.replication.throttled.replicas": load.Text("*")})
	load.UntilInSync(t, a, "three", 1, 3)
	why(t, seeds[0], "three", "Topic three waits for nothing.")
	why(t, seeds[0], "nobody", "The controller knows no such topic.")

	// A rate of 0 lets one answer through, and no more.
	rate := kadm.AlterConfig{Op: kadm.SetConfig, Name: "leader.replication.throttled.rate", Value: load.Text("0")}
	if _, err := a.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{rate}, 1); err != nil {
		t.Fatal(err)
	}
	fill(t, seeds, "moves", 3<<20)
	var move kadm.AlterPartitionAssignmentsReq
	move.Assign("moves", 0, []int32{1, 2})
	if _, err := a.AlterPartitionAssignments(t.Context(), move); err != nil {
		t.Fatal(err)
	}
	why(t, seeds[2], "moves", "Partition 0 is being reassigned to [1 2]: it waits until replicas [2] are in sync.",
		"Partition 0: replica 2 is not in sync: it is ", " records behind, held back by leader.replication.throttled.rate.")

	brokers[2].Kill()
	why(t, seeds[0], "three", "Partition 0: replica 3 is not in sync: its broker is not registered.")
	why(t, seeds[0], "third", "Partition 0 has no leader: ", "One of brokers [3] has to come back; replicas [3], live brokers [1 2].")
	brokers[1].Kill()
	why(t, seeds[0], "three", "Partition 0: replica 2 is not in sync: its broker is not registered.",
		"Partition 0: acks=all is refused: 1 in sync [1], and min.insync.replicas asks for 2.")
	why(t, seeds[0], "moves", "it waits until replicas [2] are in sync; brokers [2] are not live")
	if log := brokers[0].Output(); !strings.Contains(log, "moves-0 is being reassigned to [1 2]: it waits until replicas [2] are in sync") ||
		!strings.Contains(log, "third-0 has no leader: no replica") {
		t.Error("the log does not say it")
	}

}
