package replication

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// network is a bridge with a network namespace for each machine on it, so that
// machines can be cut off from one another. The test itself is on it too.
// Everything bears the process id, and a letter for each network of the
// process, and goes with the test.
type network struct {
	t      *testing.T
	name   string // of the bridge, and the beginning of all other names
	prefix string // of the addresses: "198.18.N."
}

var networks atomic.Int32

func newNetwork(t *testing.T) *network {
	t.Helper()
	_, err := exec.LookPath("ip")
	if err == nil && os.Geteuid() != 0 {
		err = fmt.Errorf("not root")
	}
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("no network namespaces: %v", err)
	} else if err != nil {
		t.Fatalf("no network namespaces: %v", err)
	}
	number := networks.Add(1) % 2 // no more at a time
	n := &network{t: t, name: fmt.Sprintf("bb%d%c", os.Getpid(), "ab"[number]), prefix: fmt.Sprintf("198.%d.%d.", 18+number, os.Getpid()%256)}
	n.ip("link", "add", n.name, "type", "bridge")
	t.Cleanup(func() { n.ip("link", "del", n.name) })
	n.ip("addr", "add", n.prefix+"254/24", "dev", n.name)
	n.ip("link", "set", n.name, "up")
	return n
}

func (n *network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (n *network) namespace(i int) string { return fmt.Sprintf("%s-%d", n.name, i) }
func (n *network) address(i int) string   { return fmt.Sprint(n.prefix, i) }

// machine adds machine i.
func (n *network) machine(i int) {
	n.t.Helper()
	ns, outer, inner := n.namespace(i), fmt.Sprintf("%s-%d", n.name, i), fmt.Sprintf("%si%d", n.name, i)
	n.ip("netns", "add", ns)
	n.t.Cleanup(func() { n.ip("netns", "del", ns) })
	n.ip("link", "add", outer, "type", "veth", "peer", "name", inner)
	n.t.Cleanup(func() { n.ip("link", "del", outer) }) // which would outlive its namespace for a moment
	n.ip("link", "set", inner, "netns", ns)
	n.ip("link", "set", outer, "master", n.name, "up")
	n.ip("-n", ns, "link", "set", inner, "name", "eth0")
	n.ip("-n", ns, "addr", "add", n.address(i)+"/24", "dev", "eth0")
	n.ip("-n", ns, "link", "set", "lo", "up")
	n.ip("-n", ns, "link", "set", "eth0", "up")
}

// in returns the command that runs cmd on machine i.
func (n *network) in(i int, cmd *exec.Cmd) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.namespace(i)}, cmd.Args...)...)
}

// manner is how a cut is made.
type manner int

const (
	silent  manner = iota // packets vanish
	refused               // the sender is told (a blackhole route)
)

func (m manner) String() string { return [...]string{"silently", "by blackhole routes"}[m] }

// cut takes two machines apart, both ways, and returns what joins them again.
func (n *network) cut(a, b int, how manner) (heal func()) {
	n.t.Helper()
	var undo [][]string
	for _, way := range [][2]int{{a, b}, {b, a}} {
		ns, to := n.namespace(way[0]), n.address(way[1])
		if how == refused {
			n.ip("-n", ns, "route", "add", "blackhole", to+"/32")
			undo = append(undo, []string{"-n", ns, "route", "del", "blackhole", to + "/32"})
		} else {
			// To an address that nobody has.
			n.ip("-n", ns, "neigh", "replace", to, "lladdr", "02:00:00:00:00:ff", "dev", "eth0", "nud", "permanent")
			undo = append(undo, []string{"-n", ns, "neigh", "del", to, "dev", "eth0"})
		}
	}
	return func() {
		n.t.Helper()
		for _, args := range undo {
			n.ip(args...)
		}
	}
}

// unplug takes a machine off the network.
func (n *network) unplug(i int) (plug func()) {
	n.t.Helper()
	link := fmt.Sprintf("%s-%d", n.name, i)
	n.ip("link", "set", link, "down")
	return func() { n.t.Helper(); n.ip("link", "set", link, "up") }
}

const (
	brokerPort = "9092"
	keeper     = 9 // the machine of ZooKeeper
)

// scattered is a ZooKeeper and three brokers, each on a machine of its own.
type scattered struct {
	*network
	brokers [4]*real.Process // by id, from 1
	seeds   []string
	dirs    []string
	admin   *load.Admin
	load    *load.Load
}

const cutPartitions = 6

func scatter(t *testing.T, zk kind, properties ...string) *scattered {
	t.Helper()
	c := &scattered{network: newNetwork(t)}
	c.machine(keeper)
	server := zk.startAt(t, c.address(keeper), "2181", func(cmd *exec.Cmd) *exec.Cmd { return c.in(keeper, cmd) })
	for id := 1; id <= 3; id++ {
		c.machine(id)
		addr, data := c.address(id)+":"+brokerPort, filepath.Join(t.TempDir(), "data")
		args := []string{"start"}
		for _, p := range append([]string{fmt.Sprintf("broker.id=%d", id), "listeners=PLAINTEXT://" + addr, "log.dirs=" + data,
			"zookeeper.connect=" + server.Addr, "zookeeper.session.timeout.ms=6000", "replica.lag.time.max.ms=4000"}, properties...) {
			args = append(args, "--override", p)
		}
		c.brokers[id] = real.Start(t, fmt.Sprintf("barnabas-%d", id), c.in(id, exec.Command(real.Binary(t), args...)))
		c.brokers[id].UntilRunning(2*time.Minute, "answers", func() bool { return real.Ready(addr) })
		c.seeds, c.dirs = append(c.seeds, addr), append(c.dirs, data)
	}
	c.admin = load.NewAdmin(t, c.seeds)
	load.CreateTopic(t, c.admin, "t", cutPartitions, []int32{1, 2, 3}, atLeastTwo)
	c.untilWhole()
	c.load = load.Start(t, "t", cutPartitions, c.seeds)
	c.load.More(1000)
	return c
}

// state is a partition as a broker tells it.
type state = kmsg.MetadataResponseTopicPartition

// untilWhole waits until each broker says that all replicas are in sync.
func (c *scattered) untilWhole() {
	c.t.Helper()
	c.untilAll("3 replicas of each partition in sync", []int{1, 2, 3}, func(p state) bool { return len(p.ISR) == 3 && p.Leader > 0 })
}

// untilAll waits until something holds for each partition, as each of some
// brokers sees it.
func (c *scattered) untilAll(what string, brokers []int, ok func(state) bool) {
	c.t.Helper()
	for _, b := range brokers {
		load.UntilEach(c.t, c.admin, b-1, "t", cutPartitions, what, ok)
	}
}
