package replica

import (
	"math"
	"slices"
	"sync"
	"time"

	"barnabas/internal/config"
)

// throttle bounds what this broker gives out, or takes in, for throttled
// replicas (KIP-73, Kafka's ReplicationQuotaManager): bytes a second, and what
// one window of replication.quota.window.size.seconds has saved up. What a large
// answer was too much is waited off, however long that takes.
type throttle struct {
	key    string // the property with the bytes a second
	config *config.Dynamic
	window float64 // seconds

	mu struct {
		sync.Mutex
		over float64 // bytes too many; below 0: saved up
		at   time.Time
	}
}

func newThrottle(key string, c *config.Dynamic) *throttle {
	return &throttle{key: key, config: c, window: c.Load().Duration("replication.quota.window.size.seconds").Seconds()}
}

// record counts bytes.
func (t *throttle) record(bytes int, now time.Time) {
	rate := t.config.Load().Int64(t.key)
	if rate == math.MaxInt64 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passLocked(float64(rate), now)
	t.mu.over += float64(bytes)
}

// wait returns how long nothing more is to be counted; 0: something may.
func (t *throttle) wait(now time.Time) time.Duration {
	rate := t.config.Load().Int64(t.key)
	if rate == math.MaxInt64 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passLocked(float64(rate), now)
	if t.mu.over <= 0 {
		return 0
	}
	seconds := min(t.mu.over/float64(max(rate, 1)), longestWait.Seconds())
	return max(time.Duration(seconds*float64(time.Second)), time.Millisecond)
}

// longestWait bounds one wait, so that another rate is noticed.
const longestWait = time.Second

func (t *throttle) passLocked(rate float64, now time.Time) {
	if passed := now.Sub(t.mu.at).Seconds(); passed > 0 {
		t.mu.over = max(t.mu.over-rate*passed, -rate*t.window)
		t.mu.at = now
	}
}

// Throttled tells whether what followers get of this leader's log counts
// against leader.replication.throttled.rate.
func (p *Partition) Throttled() bool {
	return p.m.leading != nil && p.log.Config().LeaderThrottledReplicas.Has(p.Index, p.m.o.BrokerID)
}

// HoldsBack tells whether a follower gets nothing of this log for now: one that
// is not in sync, while the throttle is exceeded (ReplicaManager
// .shouldLeaderThrottle).
func (p *Partition) HoldsBack(follower int32) bool {
	return p.Throttled() && !slices.Contains(p.view.Load().ISR, follower) && !p.inSync(follower) && p.m.leading.wait(p.m.o.Now()) > 0
}

// inSync tells whether a replica is in the ISR in force.
func (p *Partition) inSync(id int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.mu.isr.committed, id)
}

// SentThrottled counts what followers got of throttled partitions.
func (m *Manager) SentThrottled(bytes int) { m.leading.record(bytes, m.o.Now()) }

// takesThrottled tells whether what this follower copies counts against
// follower.replication.throttled.rate.
func (p *Partition) takesThrottled() bool {
	return p.log.Config().FollowerThrottledReplicas.Has(p.Index, p.m.o.BrokerID)
}

// holdBack has throttled partitions that are behind rest while the throttle is
// exceeded (AbstractFetcherThread.buildFetch, shouldFollowerThrottle).
func (f *fetcher) holdBack(now time.Time) {
	wait := f.m.following.wait(now)
	if wait == 0 {
		return
	}
	for _, t := range f.topics {
		for _, c := range t.parts {
			if c.member && !c.level && c.p.takesThrottled() {
				f.s.forget(c)
				c.state, c.until = resting, now.Add(wait)
				f.paused = append(f.paused, c)
			}
		}
	}
}
