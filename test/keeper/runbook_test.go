package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
)

// ensemble is three servers of Apache ZooKeeper 3.8, started on folders that
// may have data already.
type ensemble struct {
	dirs    [3]string
	addrs   [3]string
	servers [3]*real.Process
}

func (e *ensemble) connect() string { return strings.Join(e.addrs[:], ",") }

func startEnsemble(t *testing.T, dirs [3]string) *ensemble {
	t.Helper()
	e := &ensemble{dirs: dirs}
	var members []string
	for i := range dirs {
		members = append(members, fmt.Sprintf("server.%d=127.0.0.1:%s:%s", i+1, real.FreePort(t), real.FreePort(t)))
	}
	for i, dir := range dirs {
		port := real.FreePort(t)
		e.addrs[i] = "127.0.0.1:" + port
		conf := append([]string{"dataDir=" + dir, "clientPort=" + port, "clientPortAddress=127.0.0.1", "maxClientCnxns=0", "admin.enableServer=false",
			"4lw.commands.whitelist=*", "tickTime=2000", "initLimit=10", "syncLimit=5"}, members...)
		file := filepath.Join(t.TempDir(), "zoo.cfg")
		for name, text := range map[string]string{file: strings.Join(conf, "\n") + "\n", filepath.Join(dir, "myid"): fmt.Sprintln(i + 1)} {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		e.servers[i] = real.Start(t, fmt.Sprint("zookeeper ", i+1), real.Java(t, "3.9.1", "org.apache.zookeeper.server.quorum.QuorumPeerMain", file))
	}
	for i, s := range e.servers {
		s.UntilRunning(2*time.Minute, "leader or follower", func() bool { return e.mode(i) != "" })
	}
	return e
}

// mode returns what srvr says that a server is, or "".
func (e *ensemble) mode(i int) string {
	for _, line := range strings.Split(real.FourLetterWord(e.addrs[i], "srvr"), "\n") {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return mode
		}
	}
	return ""
}

// stop ends the servers, the followers first, and returns the leader's folder.
func (e *ensemble) stop(t *testing.T) string {
	t.Helper()
	leader := -1
	for i := range e.servers {
		if e.mode(i) == "leader" {
			leader = i
		}
	}
	if leader < 0 {
		t.Fatal("the ensemble has no leader")
	}
	for i, s := range e.servers {
		if i != leader {
			s.Stop()
		}
	}
	e.servers[leader].Stop()
	return e.dirs[leader]
}

// reassign gives each partition of the topics these replicas and waits until
// all of them are in sync.
func reassign(t *testing.T, addr string, replicas []int32, topics map[string]int) {
	t.Helper()
	type move struct {
		Topic     string  `json:"topic"`
		Partition int     `json:"partition"`
		Replicas  []int32 `json:"replicas"`
	}
	var moves []move
	for topic, partitions := range topics {
		for p := range partitions {
			turned := append(append([]int32{}, replicas[p%len(replicas):]...), replicas[:p%len(replicas)]...)
			moves = append(moves, move{topic, p, turned})
		}
	}
	plan, err := json.Marshal(map[string]any{"version": 1, "partitions": moves})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(file, plan, 0o600); err != nil {
		t.Fatal(err)
	}
	real.Run(t, 2*time.Minute, exec.Command(real.Binary(t), "reassign-partitions", "--bootstrap-server", addr, "--execute", "--reassignment-json-file", file, "--wait"))
}

// untilInSync waits until three replicas of each partition are in sync.
func untilInSync(t *testing.T, a *load.Admin, topics map[string]int) {
	t.Helper()
	for topic, partitions := range topics {
		load.UntilInSync(t, a, topic, partitions, 3)
	}
}

// kept is what must be the same on each side of a move.
type kept struct {
	cluster, acl, retention, users, quota string
}

// makeKept makes an ACL, a user and a quota.
func makeKept(t *testing.T, a *load.Admin, broker, zk string) {
	t.Helper()
	real.Run(t, time.Minute, real.Java(t, "3.9.1", "kafka.admin.AclCommand", "--authorizer-properties", "zookeeper.connect="+zk,
		"--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "t"))
	if _, err := a.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: "alice", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "secret"}}); err != nil {
		t.Fatal(err)
	}
	real.Run(t, time.Minute, exec.Command(real.Binary(t), "configs", "--bootstrap-server", broker, "--alter", "--add-config", "consumer_byte_rate=1000000000", "--entity-type", "clients", "--entity-name", "app"))
}

func readKept(t *testing.T, a *load.Admin, zk *keepertest.Client) kept {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	get := func(path string) string {
		f, _, err := zk.Call(jute.OpGetData, &jute.PathWatchRequest{Path: path})
		if err != nil || f.Err != jute.OK {
			t.Fatal(path, f.Err, err)
		}
		return string(f.Body.(*jute.GetDataResponse).Data)
	}
	k := kept{cluster: get("/cluster/id"), acl: get("/kafka-acl/Topic/t"), quota: get("/config/clients/app")}
	configs, err := a.DescribeTopicConfigs(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs[0].Configs {
		if c.Key == "retention.ms" {
			k.retention = c.MaybeValue()
		}
	}
	users, err := a.DescribeUserSCRAMs(ctx, "alice")
	if err != nil {
		t.Fatal(err)
	}
	k.users = fmt.Sprint(users)
	return k
}

// The runbooks of docs/operations/zookeeper.md: from one broker on the embedded
// ZooKeeper to three on an ensemble of Apache ZooKeeper, and back, while a
// producer, transactions and a consumer group go on.
func TestOneBrokerGrowsToThreeOnAnEnsembleAndComesBack(t *testing.T) {
	home := t.TempDir()
	embedded := filepath.Join(home, "keeper")
	var addrs []string
	for range 3 {
		addrs = append(addrs, "127.0.0.1:"+real.FreePort(t))
	}
	// A broker's address stays when it is started anew with other properties; the
	// second listener is the one that is waited for.
	broker := func(id int, more ...string) *real.BarnabasBroker {
		return real.Barnabas(t, id, append([]string{"listeners=PLAINTEXT://" + addrs[id] + ",PROBE://{addr}",
			"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROBE:PLAINTEXT", "log.dirs=" + filepath.Join(home, fmt.Sprint("data", id)),
			"offsets.topic.num.partitions=4", "transaction.state.log.num.partitions=4", "group.initial.rebalance.delay.ms=0"}, more...)...)
	}
	onKeeper := func() *real.BarnabasBroker { return broker(0, "keeper.dir="+embedded) }

	first := onKeeper()
	a := load.NewAdmin(t, addrs)
	load.CreateTopic(t, a, "t", 6, []int32{0}, map[string]*string{"retention.ms": load.Text("123456789")})
	load.CreateTopic(t, a, "x", 3, []int32{0}, nil)
	makeKept(t, a, addrs[0], first.Keeper)
	produced := load.Start(t, "t", 6, addrs)
	group := load.StartGroup(t, "t", 2, addrs)
	txns := load.StartTransactions(t, "x", 3, 1, addrs)
	goOn := func() {
		t.Helper()
		produced.More(500)
		group.More(500)
		txns.More(5)
	}
	goOn()
	before := readKept(t, a, super(t, first.Keeper))
	if before.acl == "" || before.retention != "123456789" || !strings.Contains(before.users, "alice") {
		t.Fatalf("%+v", before)
	}
	same := func(zk string) {
		t.Helper()
		if now := readKept(t, a, super(t, zk)); now != before {
			t.Errorf("%+v, before the move %+v", now, before)
		}
	}

	// To an ensemble.
	if code := first.Stop(); code != 0 {
		t.Fatal("the broker ended with", code)
	}
	dirs := [3]string{filepath.Join(home, "zk1"), filepath.Join(home, "zk2"), filepath.Join(home, "zk3")}
	t.Log(real.Run(t, time.Minute, exec.Command(real.Binary(t), "zookeeper", "export", "--dir", embedded, "--to", dirs[0])))
	e := startEnsemble(t, dirs)
	onEnsemble := []string{"zookeeper.connect=" + e.connect(), "offsets.topic.replication.factor=3", "transaction.state.log.replication.factor=3", "transaction.state.log.min.isr=2"}
	brokers := []*real.BarnabasBroker{broker(0, onEnsemble...)}
	goOn()
	same(e.addrs[1])
	brokers = append(brokers, broker(1, onEnsemble...), broker(2, onEnsemble...))
	topics := map[string]int{"t": 6, "x": 3, "__consumer_offsets": 4, "__transaction_state": 4}
	reassign(t, addrs[0], []int32{0, 1, 2}, topics)
	untilInSync(t, a, topics)
	goOn()
	brokers[0].Kill() // two others have everything
	goOn()
	brokers[0].Restart(t)
	untilInSync(t, a, topics)
	same(e.addrs[2])

	// And back.
	reassign(t, addrs[0], []int32{0}, topics)
	for _, b := range []*real.BarnabasBroker{brokers[2], brokers[1], brokers[0]} {
		if code := b.Stop(); code != 0 {
			t.Error("a broker ended with", code)
		}
	}
	leader := e.stop(t)
	if err := os.RemoveAll(embedded); err != nil {
		t.Fatal(err)
	}
	t.Log(real.Run(t, time.Minute, exec.Command(real.Binary(t), "zookeeper", "import", "--from", leader, "--dir", embedded)))
	last := onKeeper()
	goOn()
	same(last.Keeper)
	produced.Finish()
	group.Finish(produced)
	txns.Finish()
}
