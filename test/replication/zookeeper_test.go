package replication

import (
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"
)

// onZooKeeper starts three brokers under load on a ZooKeeper that the test stops.
func onZooKeeper(t *testing.T, zk kind) (server *real.ZooKeeperServer, brokers []*real.BarnabasBroker, a *load.Admin, l *load.Load) {
	t.Helper()
	var seeds []string
	brokers, seeds, server = three(t, zk, "replica.lag.time.max.ms=4000")
	a = load.NewAdmin(t, seeds)
	load.CreateTopic(t, a, "t", zkPartitions, []int32{1, 2, 3}, atLeastTwo)
	load.UntilInSync(t, a, "t", zkPartitions, 3)
	l = load.Start(t, "t", zkPartitions, seeds)
	l.More(1000)
	return server, brokers, a, l
}

const zkPartitions = 6

// TestZooKeeperRestartedLosesNothing stops ZooKeeper and starts it again, by
// turns with SIGTERM and kill -9. In every other round a broker dies while
// ZooKeeper is away: nobody can take its place before ZooKeeper is back.
func TestZooKeeperRestartedLosesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		server, brokers, a, l := onZooKeeper(t, zk)
		for round := range rounds() {
			l.LongestGap()
			if round/2%2 == 0 {
				server.Kill()
			} else {
				server.Stop()
			}
			l.More(1000) // without ZooKeeper
			without := l.LongestGap()
			victim := brokers[round/2%3]
			if round%2 == 1 {
				victim.Kill()
			}
			server.Restart(t)
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
	})
}

// TestZooKeeperDownForAMinuteLosesNothing has ZooKeeper down for much longer
// than a session. Records go on; sessions begin again where they were.
func TestZooKeeperDownForAMinuteLosesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		server, brokers, a, l := onZooKeeper(t, zk)
		rounds := 1
		if load.Soak() {
			rounds = 20
		}
		for round := range rounds {
			server.Kill()
			l.LongestGap()
			for down := time.Now(); time.Since(down) < time.Minute; {
				l.More(100)
			}
			without := l.LongestGap()
			server.Restart(t)
			l.More(500)
			brokers[round%3].Stop() // there is a controller
			l.More(500)
			brokers[round%3].Restart(t)
			load.UntilInSync(t, a, "t", zkPartitions, 3)
			t.Logf("round %d: longest gap %v without ZooKeeper, %v when it was back", round+1, without.Round(time.Millisecond), l.LongestGap().Round(time.Millisecond))
		}
		l.Finish()
		untilEqual(t, brokers, "t", zkPartitions)
	})
}
