package replica

import (
	"slices"
	"time"
)

// Lagging is a replica that is not in sync, as its leader sees it.
type Lagging struct {
	Replica  int32
	Behind   int64         // records; -1: it has not fetched in this leader epoch
	Fetched  time.Duration // since it last fetched
	HeldBack bool          // by the throttle of replication
	Alive    bool          // its broker is registered
	Asked    bool          // the controller is being asked to take it into the ISR
}

// Why is what keeps a leader's partition from being replicated as it should.
type Why struct {
	ISR     []int32
	Lagging []Lagging
	MinISR  int  // how many acks=all needs
	Refused bool // acks=all is refused
}

// Why tells how the replicas of a partition are; false unless it is led here.
func (p *Partition) Why() (Why, bool) {
	v := p.view.Load()
	if v.Role != Leader {
		return Why{}, false
	}
	now, end := p.m.o.Now(), p.log.EndOffset()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.mu.isr
	s.min = p.log.Config().MinInsyncReplicas
	w := Why{ISR: slices.Clone(s.committed), MinISR: s.minISR(), Refused: s.underMin()}
	for i := range s.followers {
		f := &s.followers[i]
		if slices.Contains(s.committed, f.id) {
			continue
		}
		l := Lagging{Replica: f.id, Behind: -1, Alive: s.lives(f.id), Asked: slices.Contains(s.pending, f.id)}
		if f.end >= 0 {
			l.Behind, l.Fetched = max(0, end-f.end), now.Sub(f.fetched)
			l.HeldBack = p.Throttled() && p.m.leading.wait(now) > 0
		}
		w.Lagging = append(w.Lagging, l)
	}
	return w, true
}
