package replication

import (
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"
)

// onZooKeeper starts three brokers on a ZooKeeper that the test stops.
func onZooKeeper(t *testing.T) (zk *real.ZooKeeperServer, brokers []*real.BarnabasBroker, a *load.Admin, l *load.Load) {
	t.Helper()
	zk = real.StartZooKeeper(t)
	var seeds []string
	for id := 1; id <= 3; id++ {
		b := real.Barnabas(t, id, "zookeeper.connect="+zk.Addr, "zookeeper.session.timeout.ms=6000", "replica.lag.time.max.ms=4000")
		brokers, seeds = append(brokers, b), append(seeds, b.Addr)
	}
	a = load.NewAdmin(t, seeds)
	load.CreateTopic(t, a, "t", zkPartitions, []int32{1, 2, 3}, atLeastTwo)
	load.UntilInSync(t, a, "t", zkPartitions, 3)
	l = load.Start(t, "t", zkPartitions, seeds)
	l.More(1000)
	return zk, brokers, a, l
}

const zkPartitions = 6

// TestZooKeeperRestartedLosesNothing stops ZooKeeper and starts it again, by
// turns with SIGTERM and kill -9. In every other round a broker dies while
// ZooKeeper is away: nobody can take its place before ZooKeeper is back.
func TestZooKeeperRestartedLosesNothing(t *testing.T) {
	zk, brokers, a, l := onZooKeeper(t)
	for round := range rounds() {
		l.LongestGap()
		if round/2%2 == 0 {
			zk.Kill()
		} else {
			zk.Stop()
		}
		l.More(1000) // without ZooKeeper
		without := l.LongestGap()
		victim := brokers[round/2%3]
		if round%2 == 1 {
			victim.Kill()
		}
		zk.Restart(t)
		l.More(1000)
		if round%2 == 1 {
			victim.Restart(t)
		}
		load.UntilInSync(t, a, "t", zkPartitions, 3)
		l.More(500)
		t.Logf("round %d: longest gap %v without ZooKeeper, %v when it was back (a broker killed: %v)", round+1,
			without.Round(time.Millisecond), l.LongestGap().Round(time.Millisecond), round%2 == 1)
	}
	l.Finish()
	untilEqual(t, brokers, "t", zkPartitions)
}

// TestZooKeeperDownForAMinuteLosesNothing has ZooKeeper down for much longer
// than a session. Records go on; sessions begin again where they were.
func TestZooKeeperDownForAMinuteLosesNothing(t *testing.T) {
	zk, brokers, a, l := onZooKeeper(t)
	for round := range max(1, rounds()/10) {
		zk.Kill()
		l.LongestGap()
		for down := time.Now(); time.Since(down) < time.Minute; {
			l.More(100)
		}
		without := l.LongestGap()
		zk.Restart(t)
		l.More(500)
		brokers[round%3].Stop() // there is a controller
		l.More(500)
		brokers[round%3].Restart(t)
		load.UntilInSync(t, a, "t", zkPartitions, 3)
		t.Logf("round %d: longest gap %v without ZooKeeper, %v when it was back", round+1, without.Round(time.Millisecond), l.LongestGap().Round(time.Millisecond))
	}
	l.Finish()
	untilEqual(t, brokers, "t", zkPartitions)
}
