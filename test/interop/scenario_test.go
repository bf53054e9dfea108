package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/internal/keeper"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"
)

// step is one step of the scenario: what an administrator types, and the
// golden dump that shows the tree after it.
type step struct {
	golden   string
	commands [][]string // class and arguments after --bootstrap-server
	do       func(bootstrap string)
}

func config(args ...string) []string {
	return append([]string{"kafka.admin.ConfigCommand", "--alter"}, args...)
}

// scenario is a life of one-broker administration through the tools of Kafka
// 2.8.2. They are requests of the admin protocol, so they work on any broker.
func scenario(one bool) []step {
	three, four := "1:2,2:1,1:2", "1:2,2:1,1:2,2:1"
	if one {
		three, four = "1,1,1", "1,1,1,1"
	}
	return []step{
		{golden: "boot"},
		{golden: "create-topic", commands: [][]string{{"kafka.admin.TopicCommand", "--create", "--topic", "t1", "--replica-assignment", three, "--config", "retention.ms=3600000"}}},
		{golden: "alter-topic-config", commands: [][]string{config("--entity-type", "topics", "--entity-name", "t1", "--add-config", "cleanup.policy=compact")}},
		{golden: "configs", commands: [][]string{
			config("--entity-type", "brokers", "--entity-name", "1", "--add-config", "log.cleaner.threads=2"),
			config("--entity-type", "brokers", "--entity-default", "--add-config", "message.max.bytes=2000000"),
			config("--entity-type", "clients", "--entity-name", "c1", "--add-config", "producer_byte_rate=1000000"),
			config("--entity-type", "users", "--entity-name", "alice", "--add-config", "SCRAM-SHA-256=[iterations=4096,password=pw]"),
			config("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "c1", "--add-config", "consumer_byte_rate=1000"),
		}},
		{golden: "add-partition", commands: [][]string{{"kafka.admin.TopicCommand", "--alter", "--topic", "t1", "--partitions", "4", "--replica-assignment", four}}},
	}
}

// wholeScenario is the life of a cluster of two brokers, groups included.
func wholeScenario(t *testing.T) []step {
	moves := filepath.Join(t.TempDir(), "reassign.json")
	text := `{"version":1,"partitions":[{"topic":"t1","partition":0,"replicas":[2]},{"topic":"t1","partition":2,"replicas":[2,1]}]}`
	if err := os.WriteFile(moves, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return append(append(scenario(false),
		step{golden: "reassign", commands: [][]string{{"kafka.admin.ReassignPartitionsCommand", "--reassignment-json-file", moves, "--execute"}}},
		step{golden: "preferred", commands: [][]string{{"kafka.admin.LeaderElectionCommand", "--election-type", "PREFERRED", "--all-topic-partitions"}}},
	), lastSteps(t)...)
}

// lastSteps are a consumer group and the deletion of the topic.
func lastSteps(t *testing.T) []step {
	return []step{
		{golden: "group", do: func(bootstrap string) {
			// kcat ends at the end of the partitions, or is ended: the group's topic is what counts.
			_, _, _ = real.Try(t, 10*time.Second, real.Kcat(t, "-b", bootstrap, "-G", "g1", "t1", "-e", "-q"))
		}},
		{golden: "delete-topic", commands: [][]string{{"kafka.admin.TopicCommand", "--delete", "--topic", "t1"}}},
	}
}

// runScenario goes through the steps and compares the tree after each with the
// golden dump.
func runScenario(t *testing.T, zk *zookeeper.Client, bootstrap, golden string, steps []step) {
	for i, s := range steps {
		for _, c := range s.commands {
			args := append([]string{"--bootstrap-server", bootstrap}, c[1:]...)
			real.Run(t, 3*time.Minute, real.Java(t, "2.8.2", c[0], args...))
		}
		if s.do != nil {
			s.do(bootstrap)
		}
		file := filepath.Join("testdata", "golden", golden, fmt.Sprintf("%02d-%s.txt", i+1, s.golden))
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := maskTree(strings.Split(strings.TrimSpace(string(b)), "\n"))
		var diff string
		deadline := time.Now().Add(15 * time.Second)
		real.Until(t, 20*time.Second, "the tree of "+s.golden, func() bool {
			diff = diffLines(maskTree(dumpTree(t, zk, "/")), want)
			return diff == "" || time.Now().After(deadline)
		})
		if diff != "" {
			t.Fatalf("after %s the tree differs from %s:\n%s", s.golden, file, diff)
		}
	}
}

func TestScenarioGivesTheGoldenTree(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		broker := real.Barnabas(t, 1, "inter.broker.protocol.version=2.8")
		runScenario(t, connect(t, broker.Keeper), broker.Addr, "znodes-one-broker", append(scenario(true), lastSteps(t)...))
	})
	t.Run("zookeeper-3.8", func(t *testing.T) {
		addr := real.ZooKeeper(t)
		broker := real.Barnabas(t, 1, "inter.broker.protocol.version=2.8", "zookeeper.connect="+addr, "offsets.topic.replication.factor=1")
		runScenario(t, connect(t, addr), broker.Addr, "znodes-one-broker", append(scenario(true), lastSteps(t)...))
	})
}

// TestApacheKafkaRunsOnTheEmbeddedZooKeeper puts two real brokers on our
// server and takes them through the whole scenario.
func TestApacheKafkaRunsOnTheEmbeddedZooKeeper(t *testing.T) {
	for _, version := range []string{"2.8.2", "3.9.1"} {
		t.Run(version, func(t *testing.T) {
			addr := startKeeper(t)
			first := real.Kafka(t, version, 1, addr)
			real.Kafka(t, version, 2, addr)
			runScenario(t, connect(t, addr), first.Addr, "znodes-"+version, wholeScenario(t))
		})
	}
}

// startKeeper serves an embedded ZooKeeper on a free port.
func startKeeper(t *testing.T) string {
	t.Helper()
	server, err := keeper.Open(keeper.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	listener := listen(t)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return listener.Addr().String()
}
