package storage

import (
	"sync"
	"time"
)

// pace spreads the bytes of all moves over time
// (replica.alter.log.dirs.io.max.bytes.per.second).
type pace struct {
	mu struct {
		sync.Mutex
		rate    int64 // bytes a second; 0 stops
		owed    float64
		at      time.Time // when owed was right
		changed chan struct{}
	}
}

func newPace(rate int64) *pace {
	p := &pace{}
	p.mu.rate, p.mu.changed = rate, make(chan struct{})
	return p
}

// set changes the rate, also for who is waiting.
func (p *pace) set(rate int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rate != p.mu.rate {
		p.mu.rate = rate
		close(p.mu.changed)
		p.mu.changed = make(chan struct{})
	}
}

// wait counts n bytes and waits for least, and until they are paid for. It returns
// false when one of the channels was closed.
func (p *pace) wait(n int, least time.Duration, now func() time.Time, stop, off <-chan struct{}) bool {
	for {
		delay, changed := p.owe(n, now())
		n = 0
		if delay = max(delay, least); delay <= 0 {
			select {
			case <-stop:
				return false
			case <-off:
				return false
			default:
				return true
			}
		}
		t := time.NewTimer(delay)
		select {
		case <-t.C:
			least = 0
		case <-changed:
			t.Stop()
		case <-stop:
			t.Stop()
			return false
		case <-off:
			t.Stop()
			return false
		}
	}
}

func (p *pace) owe(n int, now time.Time) (time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rate := float64(p.mu.rate)
	p.mu.owed = max(0, p.mu.owed-rate*now.Sub(p.mu.at).Seconds()) + float64(n)
	p.mu.at = now
	if rate <= 0 {
		return time.Hour, p.mu.changed
	}
	seconds := p.mu.owed / rate
	if seconds < 0.01 { // what timers can't tell apart
		return 0, p.mu.changed
	}
	return time.Duration(min(seconds, 3600) * 1e9), p.mu.changed
}
