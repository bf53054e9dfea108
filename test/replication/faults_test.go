package replication

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
)

func TestBrokersThatSleptPastTheirSessionAreRefused(t *testing.T) {
	onBothAs(t, []string{"3.9", "2.7-IV0"}, func(t *testing.T, zk kind, ibp string) {
		brokers, seeds, _ := three(t, zk, "inter.broker.protocol.version="+ibp, "replica.lag.time.max.ms=4000", "replica.fetch.wait.max.ms=500")
		a := load.NewAdmin(t, seeds)
		const partitions = 4
		load.CreateTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
		load.UntilInSync(t, a, "t", partitions, 3)
		l := load.Start(t, "t", partitions, seeds)
		l.More(1000)
		for round := range rounds() {
			l.LongestGap()
			asleep := untilController(t, a) - 1
			if round%2 == 1 { // a follower and leader that is not the controller
				asleep = (asleep + 1) % 3
			}
			brokers[asleep].Signal(syscall.SIGSTOP)
			l.More(2000) // a new leader has come
			t.Logf("broker %d stopped: longest gap %v", asleep+1, l.LongestGap().Round(time.Millisecond))
			brokers[asleep].Signal(syscall.SIGCONT)
			load.UntilInSync(t, a, "t", partitions, 3)
			l.More(500)
		}
		l.Finish()
		untilEqual(t, brokers, "t", partitions)
	})
}

// TestRandomFaultsLoseNothing kills, stops and stalls brokers at random, one or
// two at a time, at moments that nothing waits for. The seed is printed; the
// brokers' own timing is not in it.
func TestRandomFaultsLoseNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		seed := uint64(time.Now().UnixNano())
		if s := os.Getenv("BARNABAS_SEED"); s != "" {
			seed, _ = strconv.ParseUint(s, 10, 64)
		}
		t.Logf("BARNABAS_SEED=%d", seed)
		random := rand.New(rand.NewPCG(seed, 1))
		rounds := 8
		if load.Soak() {
			rounds = 200
		}
		brokers, seeds, _ := three(t, zk, "replica.lag.time.max.ms=3000", "log.segment.bytes=100000", "log.retention.check.interval.ms=300000")
		a := load.NewAdmin(t, seeds)
		const partitions = 6
		load.CreateTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
		load.UntilInSync(t, a, "t", partitions, 3)
		l := load.Start(t, "t", partitions, seeds)
		for range rounds {
			l.More(random.IntN(300))
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
				l.More(200 + random.IntN(500))
			}
			t.Logf("%v", did)
			for _, f := range undo {
				f()
			}
			if random.IntN(2) == 0 {
				load.UntilInSync(t, a, "t", partitions, 3)
			}
			l.More(1)
			t.Logf("longest gap %v", l.LongestGap().Round(time.Millisecond))
		}
		load.UntilInSync(t, a, "t", partitions, 3)
		l.Finish()
		untilEqual(t, brokers, "t", partitions)
	})
}

func TestAllBrokersKilledAtOnceComeBackWithEverything(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		brokers, seeds, _ := three(t, zk)
		a := load.NewAdmin(t, seeds)
		const partitions = 4
		load.CreateTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
		load.UntilInSync(t, a, "t", partitions, 3)
		l := load.Start(t, "t", partitions, seeds)
		for round := range 3 {
			l.More(1000)
			for _, b := range brokers {
				b.Kill()
			}
			for _, b := range brokers {
				b.Restart(t)
			}
			load.UntilInSync(t, a, "t", partitions, 3)
			t.Logf("round %d: longest gap %v", round+1, l.LongestGap().Round(time.Millisecond))
		}
		l.More(500)
		l.Finish()
		untilEqual(t, brokers, "t", partitions)
	})
}

// leadBy makes a broker the leader of partition 0.
func leadBy(t *testing.T, a *load.Admin, topic string, leader int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	move := kadm.AlterPartitionAssignmentsReq{}
	move.Assign(topic, 0, append([]int32{int32(leader)}, int32(leader%3+1), int32((leader+1)%3+1)))
	if answers, err := a.AlterPartitionAssignments(ctx, move); err != nil || answers.Error() != nil {
		t.Fatal(err, answers.Error())
	}
	if _, err := a.ElectLeaders(ctx, kadm.ElectPreferredReplica, kadm.TopicsSet{topic: {0: {}}}); err != nil {
		t.Fatal(err)
	}
	untilLeader(t, a, topic, int32(leader))
}

// TestControllerKilledAlone kills a controller that leads nothing. Nobody takes
// it out of the ISR before there is another, which makes the topics that are
// asked for meanwhile.
func TestControllerKilledAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		brokers, seeds, _ := three(t, zk)
		a := load.NewAdmin(t, seeds)
		load.CreateTopic(t, a, "t", 1, []int32{1, 2, 3}, atLeastTwo)
		load.UntilInSync(t, a, "t", 1, 3)
		l := load.Start(t, "t", 1, seeds)
		for round := range rounds() {
			controller := untilController(t, a)
			leader := others(controller)[round%2]
			leadBy(t, a, "t", leader)
			l.More(500)
			l.LongestGap()
			brokers[controller-1].Kill()
			meanwhile := fmt.Sprint("meanwhile-", round)
			load.CreateTopic(t, a, meanwhile, 1, []int32{int32(leader)}, nil)
			load.UntilInSync(t, a, meanwhile, 1, 1)
			l.More(1000)
			t.Logf("round %d: controller %d killed, %d leads: longest gap %v", round+1, controller, leader, l.LongestGap().Round(time.Millisecond))
			if p := load.Describe(t, a, "t")[0]; int(p.Leader) != leader {
				t.Errorf("broker %d leads, %d did and is alive", p.Leader, leader)
			}
			brokers[controller-1].Restart(t)
			load.UntilInSync(t, a, "t", 1, 3)
			l.More(500)
		}
		l.Finish()
		untilEqual(t, brokers, "t", 1)
	})
}

func TestControllerAndLeaderKilledTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		brokers, seeds, _ := three(t, zk)
		a := load.NewAdmin(t, seeds)
		load.CreateTopic(t, a, "t", 1, []int32{2, 1, 3}, map[string]*string{"min.insync.replicas": load.Text("1")})
		load.UntilInSync(t, a, "t", 1, 3)
		l := load.Start(t, "t", 1, seeds)
		l.More(1000)
		for round := range rounds() {
			l.LongestGap()
			controller := untilController(t, a)
			leader := int(load.Describe(t, a, "t")[0].Leader)
			brokers[controller-1].Kill()
			brokers[leader-1].Kill()
			l.More(1000)
			t.Logf("round %d: controller %d and leader %d killed: longest gap %v", round+1, controller, leader, l.LongestGap().Round(time.Millisecond))
			brokers[controller-1].Restart(t)
			brokers[leader-1].Restart(t)
			load.UntilInSync(t, a, "t", 1, 3)
			// Broker 2 leads again, and is not the controller: it died.
			if _, err := a.ElectLeaders(t.Context(), kadm.ElectPreferredReplica, nil); err != nil {
				t.Fatal(err)
			}
			untilLeader(t, a, "t", 2)
			l.More(500)
		}
		l.Finish()
		untilEqual(t, brokers, "t", 1)
	})
}

func TestUncleanElectionIsDoneOnlyWhereItIsAllowed(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		brokers, seeds, _ := three(t, zk, "replica.lag.time.max.ms=2000", "replica.fetch.wait.max.ms=500")
		a := load.NewAdmin(t, seeds)
		for round := range rounds() {
			safe, available := fmt.Sprint("safe-", round), fmt.Sprint("available-", round)
			for topic, unclean := range map[string]string{safe: "false", available: "true"} {
				load.CreateTopic(t, a, topic, 1, []int32{2, 3}, map[string]*string{"min.insync.replicas": load.Text("1"), "unclean.leader.election.enable": load.Text(unclean)})
				load.UntilInSync(t, a, topic, 1, 2)
			}
			brokers[2].Kill()
			for _, topic := range []string{safe, available} {
				load.UntilInSync(t, a, topic, 1, 1)
			}
			l := load.Start(t, safe, 1, seeds)
			l.More(100)
			l.Finish()
			load.Noise(t, available, 0, brokers[1].Addr, 10)
			brokers[1].Kill()
			brokers[2].Restart(t)
			untilLeader(t, a, available, 3)
			untilLeader(t, a, safe, -1)
			brokers[1].Restart(t)
			load.UntilInSync(t, a, available, 1, 2)
			load.UntilInSync(t, a, safe, 1, 2)
			if said := fmt.Sprintf("partition=%s-0 records=10 ", available); !strings.Contains(brokers[1].Output(), said) {
				t.Errorf("broker 2 does not say how many records it drops: %s", said)
			}
			l.Finish() // all of it is still there
			untilEqual(t, brokers[1:], available, 1)
			untilEqual(t, brokers[1:], safe, 1)
		}
	})
}

func untilLeader(t *testing.T, a *load.Admin, topic string, leader int32) {
	t.Helper()
	var seen string
	defer func() {
		if t.Failed() {
			t.Log(seen)
		}
	}()
	real.Until(t, time.Minute, fmt.Sprintf("leader %d of %s", leader, topic), func() bool {
		p, ok := load.Describe(t, a, topic)[0]
		seen = fmt.Sprintf("%s: %+v", topic, p)
		return ok && p.Leader == leader
	})
}
