package cluster

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"
)

// TestOneBrokerThatIsKilledAndStoppedLosesNothing: a broker on its embedded
// ZooKeeper ends at moments that nothing waits for, and starts again on the same
// folders, under a producer and a consumer that go on. The seed is printed; the
// broker's own timing is not in it.
func TestOneBrokerThatIsKilledAndStoppedLosesNothing(t *testing.T) {
	runs, rounds := 1, 4
	if load.Soak() {
		runs, rounds = 10, 20
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("BARNABAS_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	for run := range runs {
		t.Run(fmt.Sprint("run-", run+1), func(t *testing.T) {
			seed := seed + uint64(run)
			t.Logf("BARNABAS_SEED=%d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			broker := real.Barnabas(t, 1, "log.segment.bytes=100000", "zookeeper.session.timeout.ms=6000")
			seeds := []string{broker.Addr}
			a := load.NewAdmin(t, seeds)
			const partitions = 3
			load.CreateTopic(t, a, "t", partitions, []int32{1}, nil)
			load.UntilInSync(t, a, "t", partitions, 1)
			l := load.Start(t, "t", partitions, seeds)
			f := load.Follow(t, "t", partitions, seeds)
			for range rounds {
				l.More(random.IntN(1500))
				if random.IntN(3) > 0 {
					t.Logf("killed after %d acknowledged records", l.Acked())
					broker.Kill()
				} else {
					t.Logf("stopped after %d acknowledged records", l.Acked())
					if code := broker.Stop(); code != 0 {
						t.Errorf("it ended with status %d", code)
					}
				}
				if random.IntN(4) == 0 { // and once more while it starts
					broker.Launch(t)
					lines := random.IntN(8)
					t.Logf("killed while it started, at line %d of its log", lines)
					broker.UntilRunning(30*time.Second, "has logged some lines", func() bool { return strings.Count(broker.Output(), "\n") >= lines })
					broker.Kill()
				}
				broker.Restart(t)
			}
			l.More(300)
			l.Finish()
			f.Finish(l)
		})
	}
}
