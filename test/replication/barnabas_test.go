package replication

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"barnabas/test/real"
)

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

var atLeastTwo = map[string]*string{"min.insync.replicas": text("2")}

func TestNothingAcknowledgedIsLostWhenLeadersAreKilled(t *testing.T) {
	ibps := []string{"3.9", "2.4"}
	if soak() {
		ibps = append(ibps, "2.8", "2.7-IV0")
	}
	for _, ibp := range ibps {
		t.Run("ibp-"+ibp, func(t *testing.T) {
			brokers, seeds, _ := three(t, "inter.broker.protocol.version="+ibp)
			a := admin(t, seeds)
			const partitions = 4
			createTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
			untilInSync(t, a, "t", partitions, 3)
			l := startLoad(t, "t", partitions, seeds)
			l.more(1000)
			for _, victim := range []int{0, 1, 2} {
				l.longestGap()
				brokers[victim].Kill()
				l.more(2000)
				t.Logf("broker %d killed: longest gap %v", victim+1, l.longestGap().Round(time.Millisecond))
				brokers[victim].Restart(t)
				untilInSync(t, a, "t", partitions, 3)
				l.more(500)
			}
			l.finish()
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
	untilEqualDirs(t, dirs, topic, partitions)
}

func untilEqualDirs(t *testing.T, dirs []string, topic string, partitions int) {
	t.Helper()
	var differs string
	defer func() {
		if t.Failed() {
			t.Log(differs)
		}
	}()
	real.Until(t, 30*time.Second, "equal logs on all brokers", func() bool {
		for p := range partitions {
			folder := fmt.Sprintf("%s-%d", topic, p)
			first := records(t, filepath.Join(dirs[0], folder))
			for _, dir := range dirs[1:] {
				if other := records(t, filepath.Join(dir, folder)); !bytes.Equal(first, other) {
					differs = fmt.Sprintf("%s: %d bytes in %s, %d in %s", folder, len(first), dirs[0], len(other), dir)
					return false
				}
			}
		}
		return true
	})
}

// records returns the bytes of all segments of a partition.
func records(t *testing.T, folder string) []byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var all []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

// longestStopGap is how long producers may wait when a broker is asked to stop.
// A real one needs some 10 ms; the tests share their machine.
const longestStopGap = 2 * time.Second

func TestStoppedBrokerHandsItsLeadershipsOver(t *testing.T) {
	brokers, seeds, _ := three(t)
	a := admin(t, seeds)
	const partitions = 6
	createTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
	untilInSync(t, a, "t", partitions, 3)
	l := startLoad(t, "t", partitions, seeds)
	l.more(1000)
	for _, stopped := range []int{0, 1, 2} {
		l.longestGap()
		began := time.Now()
		if code := brokers[stopped].Stop(); code != 0 {
			t.Errorf("broker %d ended with code %d", stopped+1, code)
		}
		took := time.Since(began)
		l.more(1000)
		gap := l.longestGap()
		t.Logf("broker %d stopped in %v: longest gap %v", stopped+1, took.Round(time.Millisecond), gap.Round(time.Millisecond))
		if gap > longestStopGap {
			t.Errorf("nothing was acknowledged for %v", gap)
		}
		brokers[stopped].Restart(t)
		untilInSync(t, a, "t", partitions, 3)
		l.more(300)
	}
	l.finish()
	untilEqual(t, brokers, "t", partitions)
}
