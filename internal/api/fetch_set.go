package api

import (
	"slices"
	"sync"

	"barnabas/internal/replica"
)

// fetchSet is the partitions of one fetch: of a request, or of a session, whose
// subscriptions stand. It knows which of them may have something new.
type fetchSet struct {
	list     []*fetchPartition // in the order that the client named them
	free     []*fetchPartition // to be used again
	taken    []*fetchPartition // what take returned last; its memory serves again
	standing bool              // the partitions stay subscribed

	mu struct {
		sync.Mutex
		dirty  []*fetchPartition // may have something to tell, in the order of their turns
		told   int               // counts calls of Changed
		seen   int               // what told was when the partitions were last looked at
		parked *fetching         // waits for changes; nil: none
		bytes  int               // that the parked one has found so far
	}
}

// add returns a new partition of the set.
func (s *fetchSet) add() *fetchPartition {
	var p *fetchPartition
	if n := len(s.free); n > 0 {
		p, s.free = s.free[n-1], s.free[:n-1]
	} else {
		p = &fetchPartition{hw: -1, lso: -1, start: -1}
	}
	p.set, p.sub.Owner, p.at = s, p, len(s.list)
	s.list = append(s.list, p)
	return p
}

func (s *fetchSet) empty() bool { return len(s.list) == 0 }

// take returns the partitions to look at: all, or those that have been marked,
// which are not marked any more.
func (s *fetchSet) take(onlyDirty bool) []*fetchPartition {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.seen = s.mu.told
	s.taken, s.mu.dirty = s.mu.dirty, s.taken[:0]
	for _, p := range s.taken {
		p.dirty = false
	}
	if onlyDirty {
		return s.taken
	}
	return s.list
}

// remove takes a partition out.
func (s *fetchSet) remove(p *fetchPartition) {
	p.sub.Unsubscribe()
	last := len(s.list) - 1
	s.list[p.at] = s.list[last]
	s.list[p.at].at = p.at
	s.list[last] = nil
	s.list = s.list[:last]
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.dirty {
		s.mu.dirty = slices.DeleteFunc(s.mu.dirty, func(d *fetchPartition) bool { return d == p })
	}
}

// mark has a partition looked at next time.
func (s *fetchSet) mark(p *fetchPartition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.markLocked(p)
}

func (s *fetchSet) markLocked(p *fetchPartition) {
	if !p.dirty {
		p.dirty = true
		s.mu.dirty = append(s.mu.dirty, p)
	}
}

// Changed is called by the partition, under its lock.
func (p *fetchPartition) Changed(_ *replica.Subscription, bytes int) {
	s := p.set
	s.mu.Lock()
	s.mu.told++
	s.markLocked(p)
	f := s.mu.parked
	if f != nil {
		if bytes != replica.Unknown {
			s.mu.bytes += min(bytes, p.maxBytes)
		}
		if bytes != replica.Unknown && s.mu.bytes < f.minBytes {
			f = nil
		} else {
			s.mu.parked = nil
		}
	}
	s.mu.Unlock()
	if f != nil {
		f.q.Later(f.wait.resume)
	}
}

// subscribe makes every partition that is here tell of its changes.
func (s *fetchSet) subscribe() {
	for _, p := range s.list {
		if p.part != nil && !p.sub.Subscribed() {
			p.part.Subscribe(&p.sub)
		}
	}
}

// unsubscribe ends that.
func (s *fetchSet) unsubscribe() {
	for _, p := range s.list {
		p.sub.Unsubscribe()
	}
}

// keptPartitions bounds what a request leaves behind for the next one.
const keptPartitions = 64

// memory returns the set's memory, emptied, for the set of another request.
func (s *fetchSet) memory() fetchSet {
	for _, p := range s.list {
		if len(s.free) < keptPartitions {
			*p = fetchPartition{hw: -1, lso: -1, start: -1}
			s.free = append(s.free, p)
		}
	}
	clear(s.list)
	return fetchSet{list: s.list[:0], free: s.free}
}
