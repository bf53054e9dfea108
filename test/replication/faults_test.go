package replication

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"barnabas/test/real"
)

func TestBrokersThatSleptPastTheirSessionAreRefused(t *testing.T) {
	for _, ibp := range []string{"3.9", "2.7-IV0"} {
		t.Run("ibp-"+ibp, func(t *testing.T) {
			brokers, seeds, _ := three(t, "inter.broker.protocol.version="+ibp, "replica.lag.time.max.ms=4000", "replica.fetch.wait.max.ms=500")
			a := admin(t, seeds)
			const partitions = 4
			createTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
			untilInSync(t, a, "t", partitions, 3)
			l := startLoad(t, "t", partitions, seeds)
			l.more(1000)
			for _, asleep := range []int{0, 1} { // the controller, then a follower and leader
				l.longestGap()
				brokers[asleep].Signal(syscall.SIGSTOP)
				l.more(2000) // a new leader has come
				t.Logf("broker %d stopped: longest gap %v", asleep+1, l.longestGap().Round(time.Millisecond))
				brokers[asleep].Signal(syscall.SIGCONT)
				untilInSync(t, a, "t", partitions, 3)
				l.more(500)
			}
			l.finish()
			untilEqual(t, brokers, "t", partitions)
		})
	}
}

// TestRandomFaultsLoseNothing kills, stops and stalls brokers at random, one or
// two at a time, at moments that nothing waits for. The seed is printed; the
// brokers' own timing is not in it.
func TestRandomFaultsLoseNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("BARNABAS_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("BARNABAS_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	rounds := 8
	if soak() {
		rounds = 200
	}
	brokers, seeds, _ := three(t, "replica.lag.time.max.ms=3000", "log.segment.bytes=100000", "log.retention.check.interval.ms=300000")
	a := admin(t, seeds)
	const partitions = 6
	createTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
	untilInSync(t, a, "t", partitions, 3)
	l := startLoad(t, "t", partitions, seeds)
	l.doubles = true
	for range rounds {
		l.more(random.IntN(300))
		var did []string
		var undo []func()
		for _, i := range random.Perm(3)[:1+random.IntN(2)] {
			b := brokers[i]
			switch random.IntN(4) {
			case 0, 1:
				b.Kill()
				undo, did = append(undo, func() { b.Restart(t) }), append(did, fmt.Sprint("kill ", i+1))
			case 2:
				b.Stop()
				undo, did = append(undo, func() { b.Restart(t) }), append(did, fmt.Sprint("stop ", i+1))
			default:
				b.Signal(syscall.SIGSTOP)
				undo, did = append(undo, func() { b.Signal(syscall.SIGCONT) }), append(did, fmt.Sprint("stall ", i+1))
			}
		}
		if len(did) == 1 && random.IntN(2) == 0 { // long enough for others to take over
			l.more(200 + random.IntN(500))
		}
		t.Logf("%v", did)
		for _, f := range undo {
			f()
		}
		if random.IntN(2) == 0 {
			untilInSync(t, a, "t", partitions, 3)
		}
		l.more(1)
		t.Logf("longest gap %v", l.longestGap().Round(time.Millisecond))
	}
	untilInSync(t, a, "t", partitions, 3)
	l.finish()
	untilEqual(t, brokers, "t", partitions)
}

func TestAllBrokersKilledAtOnceComeBackWithEverything(t *testing.T) {
	brokers, seeds, _ := three(t)
	a := admin(t, seeds)
	const partitions = 4
	createTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
	untilInSync(t, a, "t", partitions, 3)
	l := startLoad(t, "t", partitions, seeds)
	for round := range 3 {
		l.more(1000)
		for _, b := range brokers {
			b.Kill()
		}
		for _, b := range brokers {
			b.Restart(t)
		}
		untilInSync(t, a, "t", partitions, 3)
		t.Logf("round %d: longest gap %v", round+1, l.longestGap().Round(time.Millisecond))
	}
	l.more(500)
	l.finish()
	untilEqual(t, brokers, "t", partitions)
}

func TestControllerAndLeaderKilledTogether(t *testing.T) {
	brokers, seeds, _ := three(t)
	a := admin(t, seeds)
	createTopic(t, a, "t", 1, []int32{2, 1, 3}, map[string]*string{"min.insync.replicas": text("1")})
	untilInSync(t, a, "t", 1, 3)
	l := startLoad(t, "t", 1, seeds)
	l.more(1000)
	brokers[0].Kill() // the controller, since it started first
	brokers[1].Kill() // the leader
	l.more(1000)
	t.Logf("longest gap %v", l.longestGap().Round(time.Millisecond))
	brokers[0].Restart(t)
	brokers[1].Restart(t)
	untilInSync(t, a, "t", 1, 3)
	l.more(500)
	l.finish()
	untilEqual(t, brokers, "t", 1)
}

func TestUncleanElectionIsDoneOnlyWhereItIsAllowed(t *testing.T) {
	brokers, seeds, _ := three(t, "replica.lag.time.max.ms=2000", "replica.fetch.wait.max.ms=500")
	a := admin(t, seeds)
	for topic, unclean := range map[string]string{"careful": "false", "available": "true"} {
		createTopic(t, a, topic, 1, []int32{2, 3}, map[string]*string{"min.insync.replicas": text("1"), "unclean.leader.election.enable": text(unclean)})
		untilInSync(t, a, topic, 1, 2)
	}
	brokers[2].Kill()
	for _, topic := range []string{"careful", "available"} {
		untilInSync(t, a, topic, 1, 1)
	}
	careful := startLoad(t, "careful", 1, seeds)
	careful.more(100)
	careful.finish()
	brokers[1].Kill()
	brokers[2].Restart(t)
	untilLeader(t, a, "available", 3)
	untilLeader(t, a, "careful", -1)
	brokers[1].Restart(t)
	untilInSync(t, a, "available", 1, 2)
	untilInSync(t, a, "careful", 1, 2)
	careful.finish() // all of it is still there
	untilEqual(t, brokers[1:], "available", 1)
	untilEqual(t, brokers[1:], "careful", 1)
}

func untilLeader(t *testing.T, a *adminClient, topic string, leader int32) {
	t.Helper()
	var seen string
	defer func() {
		if t.Failed() {
			t.Log(seen)
		}
	}()
	real.Until(t, time.Minute, fmt.Sprintf("leader %d of %s", leader, topic), func() bool {
		p, ok := describe(t, a, topic)[0]
		seen = fmt.Sprintf("%s: %+v", topic, p)
		return ok && p.Leader == leader
	})
}
