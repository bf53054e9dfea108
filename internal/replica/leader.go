package replica

import (
	"cmp"
	"slices"

	"barnabas/internal/wire"
)

// FollowerFetch is where a follower stands, as its Fetch request tells.
type FollowerFetch struct {
	Replica     int32
	BrokerEpoch int64 // -1: not told
	Offset      int64 // its end
	LogStart    int64
	LeaderEpoch int32 // that the follower knows; -1: not told
	Asker       Asker // its session; nil: none
}

// Follows judges whether a broker may copy this partition: the code for one
// that is no replica as far as this leader knows, which may have heard less
// than the follower (Partition.followerReplicaOrThrow).
func (p *Partition) Follows(f *FollowerFetch) wire.Code {
	if slices.Contains(p.view.Load().Replicas, f.Replica) && f.Replica != p.m.o.BrokerID {
		return wire.None
	}
	if f.LeaderEpoch >= 0 {
		return wire.UnknownLeaderEpoch
	}
	return wire.NotLeaderOrFollower
}

// Fetched notes where a follower stands, while this leader's end was leo: the
// high watermark may move, and the follower may join the ISR.
func (p *Partition) Fetched(f *FollowerFetch, leo int64) {
	old := p.view.Load()
	if old.Role != Leader || f.LeaderEpoch >= 0 && f.LeaderEpoch != old.LeaderEpoch {
		return
	}
	now, end := p.m.o.Now(), p.log.CommitEnd()
	p.mu.Lock()
	v := p.view.Load() // with the lock: what is proposed follows the version in force
	if v.Role != Leader || v.LeaderEpoch != old.LeaderEpoch || !p.mu.isr.fetched(f.Replica, f.Offset, f.LogStart, leo, now) {
		p.mu.Unlock()
		return
	}
	p.mu.isr.asks(f.Replica, f.Asker, f.BrokerEpoch)
	moved := p.raise(p.mu.isr.highWatermark(end, p.hw.Load(), now, p.m.o.LagTime()))
	change := p.expandLocked(v, p.hw.Load())
	p.mu.Unlock()
	if moved {
		p.raised()
		p.tellCommitted()
	}
	p.m.submit(change)
	if end < f.Offset { // read before a sync that the follower did not wait for was over
		p.advance(p.log.CommitEnd(), 0)
	}
}

// Nearest chooses the replica that a consumer at an offset is sent to, among
// those that are near: of the followers in sync that have the offset, the one
// with most, or with most lately (RackAwareReplicaSelector). False: the leader
// serves it.
func (p *Partition) Nearest(offset int64, near func(broker int32) bool) (int32, bool) {
	if p.view.Load().Role != Leader {
		return -1, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *follower
	for i := range p.mu.isr.followers {
		f := &p.mu.isr.followers[i]
		if f.end < offset || f.start > offset || !slices.Contains(p.mu.isr.committed, f.id) || !near(f.id) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(f.end, best.end), f.caughtUp.Compare(best.caughtUp), cmp.Compare(f.id, best.id)) > 0 {
			best = f
		}
	}
	if best == nil {
		return -1, false
	}
	return best.id, true
}

// LowWatermark returns the least log start offset of the leader and the live
// followers, for DeleteRecords; false while a live follower has not told its.
func (p *Partition) LowWatermark(alive func(int32) bool) (int64, bool) {
	low := p.log.StartOffset()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.mu.isr.followers {
		f := &p.mu.isr.followers[i]
		if alive != nil && !alive(f.id) {
			continue
		}
		if f.start < 0 {
			return -1, false
		}
		low = min(low, f.start)
	}
	return low, true
}
