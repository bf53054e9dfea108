package tools

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

// slowMove starts three brokers and moves partition 0 of topic w from 1,2 to 1,3
// with a throttle that lets it take an hour. Partition 1 of w and topic still lie
// on 1,2.
func slowMove(t *testing.T) commands {
	first := real.Barnabas(t, 1, "replication.quota.window.size.seconds=3600")
	p := place{broker: first.Addr, zookeeper: first.Keeper}
	for id := 2; id <= 3; id++ {
		p.broker += "," + real.Barnabas(t, id, "zookeeper.connect="+first.Keeper, "replication.quota.window.size.seconds=3600").Addr
	}
	c := commands{t, p.broker, p.zookeeper, t.TempDir()}
	c.run("topics --bootstrap-server @B --create --topic w --replica-assignment 1:2", "")
	p.act(t, []string{"% settle", "% fill w"})
	c.run("topics --bootstrap-server @B --alter --topic w --partitions 2 --replica-assignment 1:2,1:2", "")
	c.run("topics --bootstrap-server @B --create --topic still --replica-assignment 1:2", "")
	p.act(t, []string{"% settle"})
	c.plan("slow.json", "w", "0", "1,3")
	c.run("reassign-partitions --bootstrap-server @B --execute --reassignment-json-file @D/slow.json --throttle 10", "")
	c.hasThrottle("0:1,0:2", "0:3", "10")
	return c
}

// plan writes a plan for one partition.
func (c commands) plan(file, topic, partition, replicas string) {
	c.file(file, fmt.Sprintf(`{"version":1,"partitions":[{"topic":%q,"partition":%s,"replicas":[%s]}]}`, topic, partition, replicas))
}

// hasThrottle fails the test unless topic w has these throttled replicas, and
// broker 3 this rate.
func (c commands) hasThrottle(leaders, followers, rate string) {
	c.t.Helper()
	out := c.run("configs --bootstrap-server @B --describe --topic w", "") + c.run("configs --bootstrap-server @B --describe --broker 3", "")
	for _, want := range []string{"leader.replication.throttled.replicas=" + leaders, "follower.replication.throttled.replicas=" + followers,
		"leader.replication.throttled.rate=" + rate, "follower.replication.throttled.rate=" + rate} {
		if !strings.Contains(out, "  "+want+" ") {
			c.t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// moves fails the test unless this is all that moves.
func (c commands) moves(want string) {
	c.t.Helper()
	if out := c.run("reassign-partitions --bootstrap-server @B --list", ""); out != "Current partition reassignments:\n"+want+"\n" {
		c.t.Errorf("want %s: %s", want, out)
	}
}

// Who verifies or waits for a plan that is over leaves the throttle of a move
// that still runs; when none runs any more it is removed.
func TestTheEndOfAPlanLeavesTheThrottleOfAnother(t *testing.T) {
	c := slowMove(t)
	// The plan of topic w comes last: the topic's lists are removed with the end of a plan that names it.
	for _, over := range [][2]string{{"still", "0"}, {"w", "1"}} {
		c.plan("over.json", over[0], over[1], "1,2")
		for _, command := range []string{"--verify", "--execute --additional --wait"} {
			out := c.run("reassign-partitions --bootstrap-server @B --reassignment-json-file @D/over.json "+command, "")
			if !strings.Contains(out, "is completed.") || strings.Contains(out, "Clearing") {
				t.Errorf("%s of %s: %s", command, over[0], out)
			}
			c.hasThrottle("0:1,0:2", "0:3", "10")
		}
	}
	c.moves("w-0: replicas: 1,3,2. adding: 3. removing: 2.")
	c.run("reassign-partitions --bootstrap-server @B --cancel --preserve-throttles --reassignment-json-file @D/slow.json", "")
	c.run("reassign-partitions --bootstrap-server @B --verify --reassignment-json-file @D/over.json", "")
	if out := c.run("configs --bootstrap-server @B --describe --topic w", "") + c.run("configs --bootstrap-server @B --describe --broker 3", ""); strings.Contains(out, "throttled") {
		t.Errorf("a throttle is left: %s", out)
	}
}

// What is executed in addition throttles all that moves: the sources and targets
// of a move that goes on stay throttled, if the plan is the same again with
// another rate, if it is of another partition of the topic, or of another topic;
// a new target is added to the sources that the move began with.
func TestAnAdditionalPlanKeepsTheThrottledReplicasOfAnother(t *testing.T) {
	c := slowMove(t)
	for _, plan := range []struct{ topic, partition, replicas, leaders, followers string }{
		{"w", "0", "1,3", "0:1,0:2", "0:3"},
		{"w", "1", "1,2", "0:1,0:2,1:1,1:2", "0:3"},
		{"still", "0", "1,2", "0:1,0:2", "0:3"},
		{"w", "0", "3,2,1", "0:1,0:2", "0:3"},
	} {
		c.plan("more.json", plan.topic, plan.partition, plan.replicas)
		c.run("reassign-partitions --bootstrap-server @B --execute --additional --reassignment-json-file @D/more.json --throttle 11", "")
		c.hasThrottle(plan.leaders, plan.followers, "11")
	}
	c.moves("w-0: replicas: 3,2,1. adding: 3.")
}

// A plan that names log directories moves a replica within its broker and makes
// another where it is to be on a new broker, which the controller tells of it
// only later. It is under way, and its throttle stays, until the copy within the
// broker is done.
func TestAPlanMovesReplicasToItsLogDirectories(t *testing.T) {
	broker := func(id int, more ...string) (*real.BarnabasBroker, []string) {
		dir := t.TempDir()
		dirs := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
		return real.Barnabas(t, id, append(more, "log.dirs="+strings.Join(dirs, ","), "alter.log.dirs.replication.quota.window.size.seconds=3600")...), dirs
	}
	first, from := broker(1)
	second, to := broker(2, "zookeeper.connect="+first.Keeper)
	p := place{broker: first.Addr + "," + second.Addr, zookeeper: first.Keeper}
	c := commands{t, p.broker, p.zookeeper, t.TempDir()}
	c.run("topics --bootstrap-server @B --create --topic w --replica-assignment 1", "")
	c.run("topics --bootstrap-server @B --create --topic n --replica-assignment 1", "")
	p.act(t, []string{"% settle", "% fill w"})
	if has, _ := filepath.Glob(filepath.Join(from[1], "w-0")); has != nil {
		from[0], from[1] = from[1], from[0]
	}
	c.file("dirs.json", fmt.Sprintf(`{"version":1,"partitions":[{"topic":"w","partition":0,"replicas":[1],"log_dirs":[%q]},{"topic":"n","partition":0,"replicas":[2],"log_dirs":[%q]}]}`, from[1], to[1]))
	execute := "reassign-partitions --bootstrap-server @B --execute --reassignment-json-file @D/dirs.json --replica-alter-log-dirs-throttle "
	started := "Successfully started partition reassignments for n-0,w-0\n" +
		"Successfully started moving log directory to " + from[1] + " for replica w-0 with broker 1 \n" +
		"Successfully started moving log directory to " + to[1] + " for replica n-0 with broker 2 \n"
	if out := c.run(execute+"10", ""); !strings.HasSuffix(out, started) {
		t.Errorf("want %s: %s", started, out)
	}
	p.act(t, []string{"% moved"})
	verify := "--bootstrap-server @B --verify --reassignment-json-file @D/dirs.json"
	states := "Status of partition reassignment:\nReassignment of partition n-0 is completed.\nReassignment of partition w-0 is completed.\n" +
		"Reassignment of replica w-0-1 is still in progress.\nReassignment of replica n-0-2 completed successfully.\n"
	theirs := real.Run(t, time.Minute, real.Java(t, "3.9.1", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", step{line: verify}.args(c.broker, c.zookeeper, c.dir)...))
	if out := c.run("reassign-partitions "+verify, ""); out != states || theirs != states {
		t.Errorf("want %s: %s\nKafka's script: %s", states, out, theirs)
	}
	limit := "  replica.alter.log.dirs.io.max.bytes.per.second=10 "
	if out := c.run("configs --bootstrap-server @B --describe --broker 1", ""); !strings.Contains(out, limit) {
		t.Errorf("no %s in %s", limit, out)
	}
	// The copy is cancelled, and begun again; who waits waits for it.
	cancelled := "None of the specified partition reassignments are active.\nSuccessfully started moving log directory to " + from[0] + " for replica w-0 with broker 1 \n"
	if out := c.run("reassign-partitions --bootstrap-server @B --cancel --preserve-throttles --reassignment-json-file @D/dirs.json", ""); out != cancelled {
		t.Errorf("want %s: %s", cancelled, out)
	}
	still := "Partition w-0 on broker 1 is not being moved from log dir " + from[0] + " to " + from[1] + ".\n"
	if out := c.run("reassign-partitions "+verify+" --preserve-throttles", ""); !strings.Contains(out, still) {
		t.Errorf("want %s: %s", still, out)
	}
	out := c.run(execute+"1000000000 --wait", "")
	if over := strings.Replace(states, "is still in progress", "completed successfully", 1) + "Clearing broker-level throttles on brokers 1,2\nClearing topic-level throttles on topics n,w\n"; !strings.HasSuffix(out, over) {
		t.Errorf("want %s: %s", over, out)
	}
	if has, err := filepath.Glob(filepath.Join(from[1], "w-0")); has == nil {
		t.Error("w-0 is not in", from[1], err)
	}
	if has, err := filepath.Glob(filepath.Join(to[1], "n-0")); has == nil {
		t.Error("n-0 is not in", to[1], err)
	}
}
