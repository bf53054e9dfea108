package tools

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

// What waits for moves between three brokers shows how far they are, outlives the
// stop of a broker that takes part, and leaves no throttle behind; who stops it
// stops no move.
func TestCommandsWaitForMovesBetweenThreeBrokers(t *testing.T) {
	for name, start := range map[string]func(*testing.T, string) place{"barnabas": barnabasPlace, "kafka": kafkaPlace} {
		t.Run(name, func(t *testing.T) {
			p := start(t, "cluster-wait")
			c := commands{t, p.broker, p.zookeeper, t.TempDir()}
			c.run("topics --bootstrap-server @B --create --topic m --replica-assignment 1:2,2:1,1:2,2:1", "")
			c.run("topics --bootstrap-server @B --create --topic still --replica-assignment 1:2", "")
			p.act(t, []string{"% settle"})
			c.run("producer-perf-test --topic m --num-records 20000 --record-size 1000 --throughput -1 --producer-props bootstrap.servers=@B", "")
			c.file("move.json", `{"version":1,"partitions":[{"topic":"m","partition":0,"replicas":[3,1]},{"topic":"m","partition":1,"replicas":[2,3]},
				{"topic":"m","partition":2,"replicas":[1,3]},{"topic":"still","partition":0,"replicas":[1,2]}]}`)
			execute := "reassign-partitions --bootstrap-server @B --execute --reassignment-json-file @D/move.json --throttle 500000 --wait"

			first := sit(t, c.args(execute)...) // and is stopped while it waits
			first.sees("Successfully started")
			first.sees(" of 4 partitions moved")
			first.types(ctrlC)
			first.ends(130)
			again := sit(t, c.args(execute+" --additional")...)
			again.sees(" of 4 partitions moved")
			p.brokers[2].Stop()
			p.brokers[2].Restart(t)
			c.run("reassign-partitions --bootstrap-server @B --execute --additional --reassignment-json-file @D/move.json --throttle 50000000", "")
			again.sees("Reassignment of partition m-2 is completed.")
			again.ends(0)
			for topic, want := range map[string]string{"m": "[3,1] [2,3] [1,3] [2,1]", "still": "[1,2]"} {
				if got := replicas(t, c, topic); got != want {
					t.Errorf("%s has replicas %s, want %s", topic, got, want)
				}
			}
			// Who waits hears that another command cancelled the moves.
			c.file("far.json", `{"version":1,"partitions":[{"topic":"m","partition":3,"replicas":[3,1]}]}`)
			waits := sit(t, c.args("reassign-partitions --bootstrap-server @B --execute --reassignment-json-file @D/far.json --throttle 10000 --wait")...)
			waits.sees(" 0 of 1 partitions moved")
			c.run("reassign-partitions --bootstrap-server @B --cancel --reassignment-json-file @D/far.json", "")
			waits.sees("rather than 3,1")
			waits.sees("another command cancelled")
			waits.ends(1)
			for _, of := range []string{"--entity-type topics --entity-name m", "--entity-type brokers --entity-name 3"} {
				if out := c.run("configs --bootstrap-server @B --describe "+of, ""); strings.Contains(out, "throttled") {
					t.Errorf("a throttle is left: %s", out)
				}
			}

			// What is not moved at all is waited for as long as it takes: not.
			c.file("same.json", `{"version":1,"partitions":[{"topic":"still","partition":0,"replicas":[1,2]}]}`)
			out := c.run("reassign-partitions --bootstrap-server @B --execute --reassignment-json-file @D/same.json --wait --output json", "")
			if !json.Valid([]byte(out)) {
				t.Errorf("no document: %s", out)
			}

			// An election returns when the leader is there.
			p.brokers[0].Stop()
			if _, said, err := real.Try(t, time.Minute, exec.Command(real.Binary(t), c.args("leader-election --bootstrap-server @B --election-type preferred --topic still --partition 0")...)); err == nil {
				t.Errorf("the preferred leader is stopped, and was elected: %s", said)
			}
			p.brokers[0].Restart(t)
			p.act(t, []string{"% settle"})
			real.Until(t, time.Minute, "the preferred leader to be elected", func() bool {
				_, _, err := real.Try(t, time.Minute, exec.Command(real.Binary(t), c.args("leader-election --bootstrap-server @B --election-type preferred --topic still --partition 0")...))
				return err == nil
			})
			real.Until(t, time.Minute, "every broker to know of the election", func() bool { // the controller answers first
				return strings.Contains(c.run("topics --bootstrap-server @B --describe --topic still", ""), "Leader: 1\t")
			})
		})
	}
}

func replicas(t *testing.T, c commands, topic string) string {
	t.Helper()
	var doc struct {
		Topics []struct {
			Partitions []struct{ Replicas []int }
		}
	}
	out := c.run("topics --bootstrap-server @B --describe --topic "+topic+" --output json", "")
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Topics) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	var all []string
	for _, p := range doc.Topics[0].Partitions {
		b, err := json.Marshal(p.Replicas)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(b))
	}
	return strings.Join(all, " ")
}
