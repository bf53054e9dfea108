package replication

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMain(m *testing.M) { real.Main(m) }

// kind is a kind of ZooKeeper.
type kind struct {
	name    string
	startAt func(t testing.TB, host, port string, in func(*exec.Cmd) *exec.Cmd) *real.ZooKeeperServer
}

var (
	apaches = kind{"zookeeper-3.8", func(t testing.TB, host, port string, in func(*exec.Cmd) *exec.Cmd) *real.ZooKeeperServer {
		return real.StartZooKeeperAt(t, host, port, in)
	}}
	embedded = kind{"embedded", real.StartKeeperAt}
)

func (k kind) start(t testing.TB) *real.ZooKeeperServer {
	return k.startAt(t, "127.0.0.1", real.FreePort(t), func(cmd *exec.Cmd) *exec.Cmd { return cmd })
}

// onBoth runs a test on either kind of ZooKeeper, at the same time: most of it
// is waiting.
func onBoth(t *testing.T, f func(t *testing.T, zk kind)) {
	for _, zk := range []kind{apaches, embedded} {
		t.Run(zk.name, func(t *testing.T) {
			t.Parallel()
			f(t, zk)
		})
	}
}

// onBothAs is onBoth for versions of the brokers' protocol; in a short run the
// embedded ZooKeeper sees the newest, which stands first.
func onBothAs(t *testing.T, ibps []string, f func(t *testing.T, zk kind, ibp string)) {
	onBoth(t, func(t *testing.T, zk kind) {
		ibps := ibps
		if zk.name == embedded.name && !load.Soak() {
			ibps = ibps[:1]
		}
		for _, ibp := range ibps {
			t.Run("ibp-"+ibp, func(t *testing.T) { f(t, zk, ibp) })
		}
	})
}

// three starts a ZooKeeper and three Barnabas brokers on it.
func three(t *testing.T, zk kind, properties ...string) (brokers []*real.BarnabasBroker, seeds []string, server *real.ZooKeeperServer) {
	t.Helper()
	server = zk.start(t)
	for id := 1; id <= 3; id++ {
		b := real.Barnabas(t, id, append([]string{"zookeeper.connect=" + server.Addr, "zookeeper.session.timeout.ms=6000"}, properties...)...)
		brokers, seeds = append(brokers, b), append(seeds, b.Addr)
	}
	return brokers, seeds, server
}

// rounds is how often a fault is made.
func rounds() int {
	if load.Soak() {
		return 20
	}
	return 2
}

// untilController returns the id of the active controller, once there is one.
func untilController(t *testing.T, a *load.Admin) (id int) {
	t.Helper()
	real.Until(t, time.Minute, "a controller", func() bool {
		for _, b := range a.Raw.SeedBrokers() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			m, err := b.Request(ctx, kmsg.NewPtrMetadataRequest())
			cancel()
			if err == nil {
				id = int(m.(*kmsg.MetadataResponse).ControllerID)
				return id > 0
			}
		}
		return false
	})
	return id
}

var atLeastTwo = map[string]*string{"min.insync.replicas": load.Text("2")}

func TestNothingAcknowledgedIsLostWhenLeadersAreKilled(t *testing.T) {
	ibps := []string{"3.9", "2.4"}
	if load.Soak() {
		ibps = append(ibps, "2.8", "2.7-IV0")
	}
	onBothAs(t, ibps, func(t *testing.T, zk kind, ibp string) {
		brokers, seeds, _ := three(t, zk, "inter.broker.protocol.version="+ibp)
		a := load.NewAdmin(t, seeds)
		const partitions = 4
		load.CreateTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
		load.UntilInSync(t, a, "t", partitions, 3)
		l := load.Start(t, "t", partitions, seeds)
		l.More(1000)
		for round := range max(3, rounds()) {
			victim := round % 3
			l.LongestGap()
			brokers[victim].Kill()
			l.More(2000)
			t.Logf("broker %d killed: longest gap %v", victim+1, l.LongestGap().Round(time.Millisecond))
			brokers[victim].Restart(t)
			load.UntilInSync(t, a, "t", partitions, 3)
			l.More(500)
		}
		l.Finish()
		untilEqual(t, brokers, "t", partitions)
	})
}

// untilEqual waits until every broker has the same bytes of each partition.
func untilEqual(t *testing.T, brokers []*real.BarnabasBroker, topic string, partitions int) {
	t.Helper()
	var dirs []string
	for _, b := range brokers {
		dirs = append(dirs, b.Dir)
	}
	load.UntilEqual(t, dirs, topic, partitions)
}

// longestStopGap is how long producers may wait when a broker is asked to stop.
// A real one needs some 10 ms; the tests share their machine.
const longestStopGap = 2 * time.Second

func TestStoppedBrokerHandsItsLeadershipsOver(t *testing.T) {
	brokers, seeds, _ := three(t, apaches)
	a := load.NewAdmin(t, seeds)
	const partitions = 6
	load.CreateTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
	load.UntilInSync(t, a, "t", partitions, 3)
	l := load.Start(t, "t", partitions, seeds)
	l.More(1000)
	for _, stopped := range []int{0, 1, 2} {
		l.LongestGap()
		began := time.Now()
		if code := brokers[stopped].Stop(); code != 0 {
			t.Errorf("broker %d ended with code %d", stopped+1, code)
		}
		took := time.Since(began)
		l.More(1000)
		gap := l.LongestGap()
		t.Logf("broker %d stopped in %v: longest gap %v", stopped+1, took.Round(time.Millisecond), gap.Round(time.Millisecond))
		if gap > longestStopGap {
			t.Errorf("nothing was acknowledged for %v", gap)
		}
		brokers[stopped].Restart(t)
		load.UntilInSync(t, a, "t", partitions, 3)
		l.More(300)
	}
	l.Finish()
	untilEqual(t, brokers, "t", partitions)
}
