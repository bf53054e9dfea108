package replica

import (
	"slices"

	"barnabas/internal/wire"
)

// isrChange is an ISR that a leader has asked for, and has no answer for yet.
// It never changes.
type isrChange struct {
	p           *Partition
	leaderEpoch int32
	version     int32 // the partition epoch that it is to follow
	controller  int32 // epoch of the controller that made this the leader
	isr         []int32
	topicID     wire.UUID
}

// expandLocked proposes an ISR with the followers that have caught up; nil when
// there are none. The caller holds p.mu and submits the change.
func (p *Partition) expandLocked(v *View, hw int64) *isrChange {
	if p.mu.change != nil || p.m.isr == nil {
		return nil
	}
	return p.proposeLocked(v, p.mu.isr.expansion(hw, v.EpochStart))
}

func (p *Partition) proposeLocked(v *View, isr []int32) *isrChange {
	if isr == nil {
		return nil
	}
	slices.Sort(isr)
	p.mu.isr.propose(isr)
	p.mu.change = &isrChange{p: p, leaderEpoch: v.LeaderEpoch, version: v.PartitionEpoch, controller: v.ControllerEpoch,
		isr: isr, topicID: p.log.TopicID()}
	return p.mu.change
}

// expandISR proposes an ISR with those that have caught up since another change
// was asked for: a fetch proposes only while none is.
func (p *Partition) expandISR() {
	v := p.view.Load()
	if v.Role != Leader || v.solo || p.m.isr == nil {
		return
	}
	p.mu.Lock()
	var change *isrChange
	if p.view.Load() == v {
		change = p.expandLocked(v, p.hw.Load())
	}
	p.mu.Unlock()
	p.m.submit(change)
}

// checkISR proposes an ISR without those that have fallen behind, or with those
// that have come back. It is for the timer alone: a follower that has just joined
// may well be behind for longer than allowed, and gets until the next time.
func (p *Partition) checkISR() {
	v := p.view.Load()
	if v.Role != Leader || v.solo || p.m.isr == nil {
		return
	}
	p.mu.Lock()
	var change *isrChange
	if p.view.Load() == v && p.mu.change == nil {
		if change = p.proposeLocked(v, p.mu.isr.shrunk(p.log.EndOffset(), p.m.o.Now(), p.m.o.LagTime())); change == nil {
			change = p.expandLocked(v, p.hw.Load())
		}
	}
	p.mu.Unlock()
	if change != nil && len(change.isr) < len(v.ISR) {
		p.m.o.Logger.Info("followers have fallen behind; taking them out of the ISR",
			"partition", p.TopicPartition.String(), "isr", v.ISR, "now", change.isr, "high watermark", p.hw.Load(), "end", p.log.EndOffset())
	}
	p.m.submit(change)
}

// current tells whether the change is still waited for: no other leader epoch
// has begun.
func (c *isrChange) current() bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return c.p.mu.change == c
}

// done puts a change that was made in force: the partition has this ISR and
// version now.
func (c *isrChange) done(leaderEpoch, version int32, isr []int32) {
	p := c.p
	p.role.Lock()
	old := p.view.Load()
	p.mu.Lock()
	ok := p.mu.change == c && old.Role == Leader && old.LeaderEpoch == leaderEpoch && version >= old.PartitionEpoch
	if ok {
		v := *old
		v.ISR, v.PartitionEpoch = slices.Clone(isr), version
		p.mu.isr.commit(isr)
		p.mu.change = nil
		v.solo = p.mu.isr.solo()
		p.view.Store(&v)
	}
	p.mu.Unlock()
	p.role.Unlock()
	if !ok {
		return
	}
	p.m.o.Logger.Info("the ISR has changed", "partition", p.TopicPartition.String(), "isr", isr, "version", version)
	if p.underMin() {
		p.m.o.Logger.Warn("fewer replicas are in sync than min.insync.replicas asks for; acks=all is refused", "partition", p.TopicPartition.String(), "isr", isr)
	}
	p.advance(p.log.CommitEnd(), 0)
	p.endAcks() // min.insync.replicas may judge otherwise now
	p.expandISR()
}

// refused takes a change back: the ISR is what it was. The partition is looked at
// again before long, since what was refused may be allowed by then.
func (c *isrChange) refused() {
	p := c.p
	p.mu.Lock()
	ok := p.mu.change == c
	if ok {
		p.mu.isr.pending, p.mu.change = nil, nil
		p.mu.isr.ineligible(c.isr)
	}
	p.mu.Unlock()
	if ok {
		p.advance(p.log.CommitEnd(), 0)
		p.m.isr.lookAgain(p)
	}
}
