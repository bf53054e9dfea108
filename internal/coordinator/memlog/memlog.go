// Package memlog is a coordinator's partition in memory: tests hold back what is
// committed, have appends fail, and have the leader die with a tail that was
// never replicated.
//
// A [Partition] outlives its leaders. Each [Leader] is one run of leadership, a
// coordinator.Log; once it has ended, it appends no more (invariant 4 of package
// coordinator is checked by it). Partition.mu guards everything; waits are ended
// without it.
package memlog

import (
	"errors"
	"sync"

	"barnabas/internal/record"
	"barnabas/internal/replica"
	"barnabas/internal/wire"
)

// Partition is what is left when a leader dies.
type Partition struct {
	mu struct {
		sync.Mutex
		set     []byte // all batches
		end, hw int64
		held    bool  // the high watermark does not move by itself
		fail    error // what the next appends end with
		leader  *Leader
		epoch   int32
		waits   []wait
	}
}

type wait struct {
	offset int64
	w      replica.AckWaiter
	index  int
}

// Leader is one run of leadership.
type Leader struct {
	p     *Partition
	epoch int32
}

// Lead begins a run of leadership; the one before must have ended.
func (p *Partition) Lead() *Leader {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.leader != nil {
		panic("memlog: two leaders")
	}
	p.mu.epoch++
	p.mu.leader = &Leader{p, p.mu.epoch}
	p.mu.hw = min(p.mu.hw, p.mu.end)
	if !p.mu.held {
		p.mu.hw = p.mu.end
	}
	return p.mu.leader
}

// Hold stops the high watermark, or lets it go on to the end.
func (p *Partition) Hold(held bool) {
	p.mu.Lock()
	p.mu.held = held
	if held {
		p.mu.Unlock()
		return
	}
	end := p.mu.end
	p.mu.Unlock()
	p.Commit(end)
}

// Commit moves the high watermark up.
func (p *Partition) Commit(to int64) {
	p.mu.Lock()
	p.mu.hw = max(p.mu.hw, min(to, p.mu.end))
	over := p.endedLocked()
	p.mu.Unlock()
	for _, w := range over {
		w.w.Acked(w.index, wire.None)
	}
}

func (p *Partition) endedLocked() (over []wait) {
	var rest []wait
	for _, w := range p.mu.waits {
		if w.offset <= p.mu.hw {
			over = append(over, w)
		} else {
			rest = append(rest, w)
		}
	}
	p.mu.waits = rest
	return over
}

// Fail has each append fail with err, or succeed again when it is nil.
func (p *Partition) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.fail = err
}

// Bounds returns the high watermark and the end.
func (p *Partition) Bounds() (hw, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.hw, p.mu.end
}

// Die ends the run of leadership and cuts the log to the first batch that
// begins at or above keep, which is not below the high watermark. Each wait
// ends with NOT_LEADER_OR_FOLLOWER.
func (p *Partition) Die(keep int64) {
	p.mu.Lock()
	p.mu.leader = nil
	keep = max(keep, p.mu.hw)
	s := record.Split(p.mu.set)
	cut, end := 0, int64(0)
	for s.Next() && s.Batch().BaseOffset() < keep {
		cut, end = s.Whole(), s.Batch().NextOffset()
	}
	p.mu.set, p.mu.end = p.mu.set[:cut:cut], end
	over := p.mu.waits
	p.mu.waits = nil
	p.mu.Unlock()
	for _, w := range over {
		w.w.Acked(w.index, wire.NotLeaderOrFollower)
	}
}

// Put appends bytes as they are, whatever they are; count is how many offsets
// they take.
func (p *Partition) Put(set []byte, count int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.set = append(p.mu.set, set...)
	p.mu.end += count
	p.mu.hw = p.mu.end
}

// Set returns a copy of all batches.
func (p *Partition) Set() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]byte(nil), p.mu.set...)
}

// Append is coordinator.Log's.
func (l *Leader) Append(set []byte, _ int64) (int64, error) {
	p := l.p
	p.mu.Lock()
	if p.mu.leader != l {
		p.mu.Unlock()
		return 0, wire.NotLeaderOrFollower
	}
	if p.mu.fail != nil {
		defer p.mu.Unlock()
		return 0, p.mu.fail
	}
	set = append([]byte(nil), set...)
	record.AssignOffsets(set, p.mu.end, 0)
	p.mu.set = append(p.mu.set, set...)
	for s := record.Split(set); s.Next(); {
		p.mu.end = s.Batch().NextOffset()
	}
	end := p.mu.end
	held := p.mu.held
	p.mu.Unlock()
	if !held {
		p.Commit(end)
	}
	return end, nil
}

// Await is coordinator.Log's.
func (l *Leader) Await(offset int64, w replica.AckWaiter, index int) (wire.Code, bool) {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.mu.leader != l:
		return wire.NotLeaderOrFollower, true
	case offset <= p.mu.hw:
		return wire.None, true
	}
	p.mu.waits = append(p.mu.waits, wait{offset, w, index})
	return wire.None, false
}

// Bounds is coordinator.Log's.
func (l *Leader) Bounds() (start, end int64) {
	_, end = l.p.Bounds()
	return 0, end
}

// Epoch is coordinator.Log's.
func (l *Leader) Epoch() int32 { return l.epoch }

// MaxBatch is coordinator.Log's.
func (l *Leader) MaxBatch() int { return 16 << 10 }

// Read is coordinator.Log's.
func (l *Leader) Read(offset, upTo int64, buf []byte) ([]byte, error) {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	s := record.Split(p.mu.set)
	for s.Next() {
		b := s.Batch()
		if b.LastOffset() < offset {
			continue
		}
		rest := p.mu.set[s.Position():]
		if len(b) > len(buf) {
			return append([]byte(nil), b...), nil
		}
		return buf[:copy(buf, rest)], nil
	}
	if offset > p.mu.end {
		return nil, errors.New("memlog: out of range")
	}
	return nil, nil
}
