package replica

import (
	"testing"
	"time"

	"barnabas/internal/config"
)

func throttleAt(t *testing.T, rate string) *throttle {
	t.Helper()
	b, err := config.NewBroker(map[string]string{"broker.id": "1", "zookeeper.connect": "unused:1"})
	if err != nil {
		t.Fatal(err)
	}
	c := config.NewDynamic(b)
	if rate != "" {
		for _, w := range c.UpdateStored(nil, map[string]string{"leader.replication.throttled.rate": rate}) {
			t.Fatal(w)
		}
	}
	return newThrottle("leader.replication.throttled.rate", c)
}

// copyFor moves pieces whenever the throttle lets it, as a fetcher does, and
// returns how many bytes that are after a time.
func copyFor(o *throttle, piece int, step, total time.Duration) (bytes int) {
	now := time.Unix(1000, 0)
	for end := now.Add(total); now.Before(end); now = now.Add(step) {
		if wait := o.wait(now); wait > 0 {
			now = now.Add(wait)
			continue
		}
		o.record(piece, now)
		bytes += piece
	}
	return bytes
}

func TestAThrottledReplicaKeepsToTheRateAndUsesIt(t *testing.T) {
	const rate, seconds = 1000, 600
	for _, piece := range []int{10, 700, 1500, 40_000} {
		free := copyFor(throttleAt(t, ""), piece, 5*time.Millisecond, seconds*time.Second)
		throttled := copyFor(throttleAt(t, "1000"), piece, 5*time.Millisecond, seconds*time.Second)
		if most := rate*(seconds+1) + piece; throttled > most { // a window that was saved up, the last piece
			t.Errorf("pieces of %d: %d bytes, at most %d", piece, throttled, most)
		}
		if least := min(free, rate*seconds) * 95 / 100; throttled < least {
			t.Errorf("pieces of %d: %d bytes, at least %d", piece, throttled, least)
		}
		if free > rate*seconds && throttled >= free {
			t.Errorf("pieces of %d: the throttle takes nothing off %d bytes", piece, free)
		}
	}
}

func TestAThrottleFollowsItsRate(t *testing.T) {
	o := throttleAt(t, "10")
	now := time.Unix(1000, 0)
	if o.wait(now) != 0 {
		t.Error("it waits before anything was counted")
	}
	o.record(1_000_000, now)
	if wait := o.wait(now.Add(time.Hour)); wait != longestWait {
		t.Errorf("with most of it to wait off, it waits %v", wait)
	}
	o.config.UpdateStored(nil, map[string]string{"leader.replication.throttled.rate": "1000000000"})
	if wait := o.wait(now.Add(time.Hour + time.Second)); wait != 0 {
		t.Errorf("the rate was raised; it waits %v", wait)
	}
	none := throttleAt(t, "0")
	none.record(1, now)
	if none.wait(now.Add(time.Hour)) == 0 {
		t.Error("a rate of 0 lets something through")
	}
}
