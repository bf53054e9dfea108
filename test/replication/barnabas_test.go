package replication

import (
	"context"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMain(m *testing.M) { real.Main(m) }

// three starts a ZooKeeper and three Barnabas brokers on it.
func three(t *testing.T, properties ...string) (brokers []*real.BarnabasBroker, seeds []string, zk string) {
	t.Helper()
	zk = real.ZooKeeper(t)
	for id := 1; id <= 3; id++ {
		b := real.Barnabas(t, id, append([]string{"zookeeper.connect=" + zk, "zookeeper.session.timeout.ms=6000"}, properties...)...)
		brokers, seeds = append(brokers, b), append(seeds, b.Addr)
	}
	return brokers, seeds, zk
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
	for _, ibp := range ibps {
		t.Run("ibp-"+ibp, func(t *testing.T) {
			brokers, seeds, _ := three(t, "inter.broker.protocol.version="+ibp)
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
	brokers, seeds, _ := three(t)
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
