package changeover

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
)

func TestMain(m *testing.M) { real.Main(m) }

// machine is where a broker runs: the id, the folder and the server.properties
// stay, the program changes.
type machine struct {
	t         *testing.T
	id        int32
	addr, dir string
	file      string // server.properties
	process   *real.Process
}

func newMachine(t *testing.T, id int32, zk, ibp string) *machine {
	t.Helper()
	home := t.TempDir()
	m := &machine{t: t, id: id, addr: "127.0.0.1:" + real.FreePort(t), dir: filepath.Join(home, "data"), file: filepath.Join(home, "server.properties")}
	lines := []string{
		fmt.Sprintf("broker.id=%d", id), "listeners=PLAINTEXT://" + m.addr, "log.dirs=" + m.dir, "zookeeper.connect=" + zk,
		"inter.broker.protocol.version=" + ibp, "auto.create.topics.enable=false",
		"offsets.topic.replication.factor=3", "transaction.state.log.replication.factor=3", "transaction.state.log.min.isr=2",
		fmt.Sprintf("transaction.state.log.num.partitions=%d", txnPartitions), "min.insync.replicas=2", "controlled.shutdown.enable=true",
	}
	if err := os.WriteFile(m.file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return m
}

// start starts a program on this machine: "barnabas" or a version of Apache
// Kafka.
func (m *machine) start(program string) {
	m.t.Helper()
	name := fmt.Sprintf("%s-%d", program, m.id)
	if program == "barnabas" {
		m.process = real.Start(m.t, name, exec.Command(real.Binary(m.t), "start", m.file))
		m.process.UntilRunning(2*time.Minute, "answers", func() bool { return real.Ready(m.addr) })
		return
	}
	m.process = real.Start(m.t, name, real.Java(m.t, program, "kafka.Kafka", "-Xmx384m", "--", m.file))
	m.process.UntilRunning(5*time.Minute, "started", func() bool {
		return strings.Contains(m.process.Output(), "started (kafka.server.KafkaServer)")
	})
}

func (m *machine) stop() {
	m.t.Helper()
	if code := m.process.Stop(); code != 0 && code != 143 { // a JVM's, for SIGTERM
		m.t.Errorf("broker %d ended with code %d", m.id, code)
	}
}

const (
	topic      = "t"
	partitions = 60

	txnTopic      = "x"
	txnPartitions = 6 // of __transaction_state too
)

// cluster is three machines with a load on them.
type cluster struct {
	t        *testing.T
	zk       string
	machines []*machine
	seeds    []string
	dirs     []string
	admin    *load.Admin
	produced *load.Load
	group    *load.Group
	txns     *load.Transactions
}

func startCluster(t *testing.T, zk, version, ibp string) *cluster {
	t.Helper()
	c := &cluster{t: t, zk: zk}
	for id := int32(1); id <= 3; id++ {
		m := newMachine(t, id, c.zk, ibp)
		m.start(version)
		c.machines, c.seeds, c.dirs = append(c.machines, m), append(c.seeds, m.addr), append(c.dirs, m.dir)
	}
	c.admin = load.NewAdmin(t, c.seeds)
	load.CreateTopic(t, c.admin, topic, partitions, []int32{1, 2, 3}, nil) // min.insync.replicas is the brokers'
	load.CreateTopic(t, c.admin, txnTopic, txnPartitions, []int32{1, 2, 3}, nil)
	load.UntilInSync(t, c.admin, topic, partitions, 3)
	load.UntilInSync(t, c.admin, txnTopic, txnPartitions, 3)
	c.produced = load.Start(t, topic, partitions, c.seeds)
	c.group = load.StartGroup(t, topic, 2, c.seeds)
	c.txns = load.StartTransactions(t, txnTopic, txnPartitions, 2, c.seeds)
	c.group.More(2000)
	c.txns.More(10)
	return c
}

// replace stops a broker as an operator does and starts a program on its
// machine.
func (c *cluster) replace(m *machine, program string) {
	c.t.Helper()
	c.produced.LongestGap()
	m.stop()
	m.start(program)
	c.untilWhole(c.machines[m.id%3]) // another
	c.group.More(1000)
	c.txns.More(5)
	c.t.Logf("broker %d is %s now: longest gap %v", m.id, program, c.produced.LongestGap().Round(time.Millisecond))
}

// barnabas runs a command of the runbook to its end.
func (c *cluster) barnabas(args ...string) string {
	c.t.Helper()
	return real.Run(c.t, time.Minute, exec.Command(real.Binary(c.t), args...))
}

// untilWhole waits until nothing is under-replicated, as the runbook does, and
// until clients see the same.
func (c *cluster) untilWhole(ask *machine) {
	c.t.Helper()
	for _, list := range []string{"--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"} {
		real.Until(c.t, 2*time.Minute, "nothing is listed by "+list, func() bool {
			return c.barnabas("topics", "--bootstrap-server", ask.addr, "--describe", list) == ""
		})
	}
	for name, n := range map[string]int{topic: partitions, "__consumer_offsets": 50, txnTopic: txnPartitions, "__transaction_state": txnPartitions} {
		load.UntilInSync(c.t, c.admin, name, n, 3)
	}
}

// controllerLast returns the machines with the controller's at the end.
func (c *cluster) controllerLast() []*machine {
	c.t.Helper()
	said := c.barnabas("zookeeper-shell", c.zk, "get", "/controller")
	list := slices.Clone(c.machines)
	for i, m := range list {
		if strings.Contains(said, fmt.Sprintf(`"brokerid":%d`, m.id)) {
			c.t.Logf("broker %d is the controller", m.id)
			return append(slices.Delete(list, i, i+1), m)
		}
	}
	c.t.Fatalf("no broker is the controller: %s", said)
	return nil
}

// finish holds what was sent against what is stored and what the group got.
func (c *cluster) finish() {
	c.t.Helper()
	c.txns.Finish()
	c.produced.Finish()
	committed := c.group.Finish(c.produced)
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	var stored kadm.OffsetResponses
	real.Until(c.t, time.Minute, "the group's offsets", func() bool { // its coordinator has just moved
		var err error
		stored, err = c.admin.FetchOffsets(ctx, "group")
		return err == nil
	})
	got := map[int32]int64{}
	stored.Each(func(o kadm.OffsetResponse) { got[o.Partition] = o.At })
	if !maps.Equal(got, committed) {
		c.t.Errorf("the group committed %v, stored is %v", committed, got)
	}
	load.UntilEqual(c.t, c.dirs, topic, partitions)
}

// Two clusters at a time: most of it is waiting. On the embedded ZooKeeper one
// broker goes back, elsewhere all do.
func TestRunningClusterChangesOverAndBack(t *testing.T) {
	for _, v := range []struct {
		version, ibp string
		embedded     bool
	}{{"3.9.1", "3.9", false}, {"2.8.2", "2.8", false}, {"3.9.1", "3.9", true}} {
		name := v.version
		if v.embedded {
			name += "-embedded"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func() string { return real.ZooKeeper(t) }
			if v.embedded {
				start = func() string { return real.StartKeeper(t).Addr }
			}
			c := startCluster(t, start(), v.version, v.ibp)
			for _, m := range c.controllerLast() {
				c.replace(m, "barnabas")
			}
			back := c.controllerLast()
			if v.embedded && !load.Soak() {
				back = back[2:]
			}
			for _, m := range back {
				c.replace(m, v.version)
			}
			c.barnabas("leader-election", "--bootstrap-server", c.machines[0].addr, "--election-type", "preferred", "--all-topic-partitions")
			c.finish()
		})
	}
}
