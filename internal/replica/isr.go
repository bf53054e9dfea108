package replica

import (
	"slices"
	"time"
)

// follower is what a leader knows of another replica (Kafka's
// cluster.Replica).
type follower struct {
	id          int32
	end         int64 // its LEO, -1 while it has not fetched in this epoch
	start       int64 // its log start offset
	caughtUp    time.Time
	fetched     time.Time // when it last fetched
	endAtFetch  int64     // the leader's LEO then
	brokerEpoch int64     // -1: not told
	since       bool      // it has fetched since it left the ISR, or since the epoch began
	asks        Asker     // tells when it last asked in its fetch session; nil: it has none
}

// Asker is a follower's fetch session. A session's request tells of every
// partition of it that is not named that the follower is still where it was.
type Asker interface {
	LastAsked() time.Time
}

// still notes that a follower which had everything was there until now, or
// until it last asked.
func (f *follower) still() {
	if f.asks == nil {
		return
	}
	if asked := f.asks.LastAsked(); asked.After(f.caughtUp) {
		f.caughtUp = asked
	}
}

// isrState decides, on the leader, which replicas are in sync and where the
// high watermark is (Kafka's Partition and PartitionState). It has no lock of
// its own and asks no clock.
type isrState struct {
	local     int32
	followers []follower       // the other replicas of the assignment
	committed []int32          // the ISR that the controller or ZooKeeper knows
	pending   []int32          // the ISR that was asked for; nil when nothing is
	min       int32            // min.insync.replicas
	alive     func(int32) bool // whether a broker is registered; nil: all are
}

// reset begins a leader epoch. Members of the ISR count as caught up now, so
// that they get the time of replica.lag.time.max.ms to fetch.
func (s *isrState) reset(local int32, replicas, isr []int32, minISR int32, now time.Time) {
	*s = isrState{local: local, committed: slices.Clone(isr), min: minISR, alive: s.alive}
	for _, id := range replicas {
		if id == local {
			continue
		}
		f := follower{id: id, end: -1, start: -1, endAtFetch: -1, brokerEpoch: -1}
		if slices.Contains(isr, id) {
			f.caughtUp = now
		}
		s.followers = append(s.followers, f)
	}
}

// again begins another leader epoch of the same leader: what is known of the
// followers' ends stays true, so that the high watermark does not stand still
// until each has fetched again (Replica.resetReplicaState).
func (s *isrState) again(local int32, replicas, isr []int32, minISR int32, leo int64, now time.Time) {
	old := s.followers
	s.reset(local, replicas, isr, minISR, now)
	for i := range s.followers {
		f := &s.followers[i]
		for j := range old {
			if o := &old[j]; o.id == f.id && o.end >= 0 {
				f.end, f.start, f.brokerEpoch, f.asks = o.end, o.start, o.brokerEpoch, o.asks
				f.endAtFetch, f.fetched = leo, now
			}
		}
	}
}

func (s *isrState) lives(id int32) bool { return s.alive == nil || s.alive(id) }

// propose notes the ISR that is asked for. Who is to leave comes back by
// fetching from now on, also before the answer.
func (s *isrState) propose(isr []int32) {
	for i := range s.followers {
		if f := &s.followers[i]; slices.Contains(s.committed, f.id) && !slices.Contains(isr, f.id) {
			f.since = false
		}
	}
	s.pending = isr
}

// commit puts an ISR in force.
func (s *isrState) commit(isr []int32) { s.committed, s.pending = slices.Clone(isr), nil }

// ineligible notes that the controller does not want these in the ISR: nothing
// waits for those that are not in it, until they fetch again.
func (s *isrState) ineligible(isr []int32) {
	for i := range s.followers {
		if f := &s.followers[i]; slices.Contains(isr, f.id) && !slices.Contains(s.committed, f.id) {
			f.caughtUp = time.Time{}
		}
	}
}

// appending notes that the leader's end is about to move on from leo.
func (s *isrState) appending(leo int64) {
	for i := range s.followers {
		if f := &s.followers[i]; f.end == leo {
			f.still()
		}
	}
}

// maximal is how many the ISR has, those that are being added included.
func (s *isrState) maximal() int { return max(len(s.committed), len(s.pending)) }

// minISR returns min.insync.replicas, no larger than the assignment is.
func (s *isrState) minISR() int { return min(int(s.min), len(s.followers)+1) }

// underMin tells whether acks=all must be refused.
func (s *isrState) underMin() bool { return len(s.committed) < s.minISR() }

// solo tells whether the high watermark is simply the leader's own end.
func (s *isrState) solo() bool {
	return len(s.followers) == 0 && len(s.committed) == 1 && s.pending == nil
}

// inMaximal tells whether a replica is in the ISR or being added to it. A
// pending shrink does not count: until it is committed, another leader may
// still be elected among the larger set.
func (s *isrState) inMaximal(id int32) bool {
	return slices.Contains(s.committed, id) || slices.Contains(s.pending, id)
}

// highWatermark returns where the high watermark may go, never less than
// current: the least end of the leader, of the maximal ISR, and of those that
// are caught up without being in it yet, so that a replica that comes back
// does not wait for a watermark that runs away from it; a dead one is not
// waited for. With fewer in sync than min.insync.replicas it stays
// (KAFKA-15583).
func (s *isrState) highWatermark(leo, current int64, now time.Time, lag time.Duration) int64 {
	if s.underMin() {
		return current
	}
	hw := leo
	for i := range s.followers {
		f := &s.followers[i]
		if s.inMaximal(f.id) || f.end >= 0 && now.Sub(f.caughtUp) <= lag && s.lives(f.id) {
			hw = min(hw, f.end)
		}
	}
	return max(hw, current)
}

// fetched notes a follower's fetch at an offset, while the leader's end was leo.
func (s *isrState) fetched(id int32, offset, start, leo int64, now time.Time) bool {
	for i := range s.followers {
		f := &s.followers[i]
		if f.id != id {
			continue
		}
		if offset >= leo {
			f.caughtUp = now
		} else if f.endAtFetch >= 0 && offset >= f.endAtFetch && f.fetched.After(f.caughtUp) {
			f.caughtUp = f.fetched
		}
		f.end, f.start, f.fetched, f.endAtFetch, f.since = offset, start, now, leo, true
		return true
	}
	return false
}

// asks notes the session and the epoch of a follower.
func (s *isrState) asks(id int32, session Asker, brokerEpoch int64) {
	for i := range s.followers {
		if f := &s.followers[i]; f.id == id {
			f.asks, f.brokerEpoch = session, brokerEpoch
		}
	}
}

// toExpand tells whether a follower may join the ISR: it has all that is
// committed and the start of this leader epoch, and no change is under way.
func (s *isrState) toExpand(id int32, hw, epochStart int64) bool {
	if s.pending != nil || s.inMaximal(id) {
		return false
	}
	for i := range s.followers {
		if f := &s.followers[i]; f.id == id {
			return f.since && f.end >= hw && f.end >= epochStart
		}
	}
	return false
}

// expansion returns the ISR with all followers that may join it now, or nil.
func (s *isrState) expansion(hw, epochStart int64) []int32 {
	var add []int32
	for i := range s.followers {
		id := s.followers[i].id
		if s.toExpand(id, hw, epochStart) && s.lives(id) {
			add = append(add, id)
		}
	}
	if add == nil {
		return nil
	}
	return append(slices.Clone(s.committed), add...)
}

// shrunk returns the ISR without those that have fallen behind, or nil.
func (s *isrState) shrunk(leo int64, now time.Time, lag time.Duration) []int32 {
	out := s.toShrink(leo, now, lag)
	if out == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.committed), func(id int32) bool { return slices.Contains(out, id) })
}

// toShrink returns the members of the ISR that have fallen behind for longer
// than replica.lag.time.max.ms.
func (s *isrState) toShrink(leo int64, now time.Time, lag time.Duration) []int32 {
	if s.pending != nil {
		return nil
	}
	var out []int32
	for i := range s.followers {
		f := &s.followers[i]
		if slices.Contains(s.committed, f.id) && f.end != leo && now.Sub(f.caughtUp) > lag {
			out = append(out, f.id)
		}
	}
	return out
}

// afterAppend judges a produce request that waits for offset (exclusive).
func (s *isrState) afterAppend(hw, offset int64) ackState {
	switch {
	case hw < offset:
		return ackWaits
	case s.maximal() < s.minISR():
		return ackTooFew
	default:
		return ackDone
	}
}

// ackState is where a produce request with acks=all stands.
type ackState int8

const (
	ackWaits  ackState = iota
	ackDone            // replicated
	ackTooFew          // replicated, but the ISR is below min.insync.replicas now
)
