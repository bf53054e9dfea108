package replica

import (
	"barnabas/internal/wire"
)

// An AckWaiter waits until appended records are replicated.
type AckWaiter interface {
	// Acked tells, once for each wait, how it ended: None when the high
	// watermark reached the offset. It is called from any goroutine, under no
	// lock of this package but those of a controller's request.
	Acked(index int, code wire.Code)
}

type ackWait struct {
	offset int64 // exclusive
	w      AckWaiter
	index  int
}

// Await judges a produce request that needs the high watermark to reach offset
// (exclusive). When it returns false the wait has been entered and w.Acked will
// be called with index.
func (p *Partition) Await(offset int64, w AckWaiter, index int) (code wire.Code, done bool) {
	if code, done = p.Acked(offset); done {
		return code, true
	}
	p.acks.Lock()
	p.acks.waits = append(p.acks.waits, ackWait{offset, w, index})
	p.acks.n.Add(1)
	p.acks.Unlock()
	// It may have moved in between; whoever finds the wait ends it.
	if _, done = p.Acked(offset); done {
		p.endAcks()
	}
	return wire.None, false
}

// Acked judges one wait by what holds now, and enters none.
func (p *Partition) Acked(offset int64) (wire.Code, bool) {
	v := p.view.Load()
	if v.Role != Leader {
		return v.refusal(), true
	}
	hw := p.hw.Load()
	if hw < offset {
		return wire.None, false
	}
	if v.solo {
		return wire.None, true
	}
	p.mu.Lock()
	state := p.mu.isr.afterAppend(hw, offset)
	p.mu.Unlock()
	if state == ackTooFew {
		return wire.NotEnoughReplicasAfterAppend, true
	}
	return wire.None, true
}

// endAcks ends every wait that is over.
func (p *Partition) endAcks() {
	if p.acks.n.Load() == 0 {
		return
	}
	type ended struct {
		ackWait
		code wire.Code
	}
	var over []ended
	p.acks.Lock()
	rest := p.acks.waits[:0]
	for _, a := range p.acks.waits {
		if code, done := p.Acked(a.offset); done {
			over = append(over, ended{a, code})
		} else {
			rest = append(rest, a)
		}
	}
	clear(p.acks.waits[len(rest):])
	p.acks.waits = rest
	p.acks.n.Store(int32(len(rest)))
	p.acks.Unlock()
	for _, e := range over {
		e.w.Acked(e.index, e.code)
	}
}

// CancelAwait drops a wait that its owner has given up; Acked may still be
// running, or have run.
func (p *Partition) CancelAwait(w AckWaiter) {
	p.acks.Lock()
	defer p.acks.Unlock()
	rest := p.acks.waits[:0]
	for _, a := range p.acks.waits {
		if a.w != w {
			rest = append(rest, a)
		}
	}
	clear(p.acks.waits[len(rest):])
	p.acks.waits = rest
	p.acks.n.Store(int32(len(rest)))
}

// A Subscriber is told when a partition that it subscribed to has something
// new: more below the high watermark, another start, another role.
type Subscriber interface {
	// Changed is called under a lock of the partition: it must be quick, must
	// not block and must call nothing of this package. bytes is how much more
	// there is to read, or Unknown.
	Changed(s *Subscription, bytes int)
}

// Unknown is told to subscribers when they have to look themselves.
const Unknown = -1

// Subscription is one subscriber's interest in one partition. The zero value is
// none. Its owner serializes the calls on it.
type Subscription struct {
	Owner      Subscriber
	Follower   bool // may read beyond the high watermark; set before Subscribe
	p          *Partition
	next, prev *Subscription
}

// Subscribed tells whether the subscription is in force.
func (s *Subscription) Subscribed() bool { return s.p != nil }

// Subscribe enters s. The subscriber looks at the partition after that, since
// what changed before is not told.
func (p *Partition) Subscribe(s *Subscription) {
	p.subs.Lock()
	defer p.subs.Unlock()
	s.p, s.prev, s.next = p, nil, p.subs.first
	if s.next != nil {
		s.next.prev = s
	}
	p.subs.first = s
	p.subs.n.Add(1)
}

// Unsubscribe takes s out; when it returns, Changed is not running and will not
// be called for s.
func (s *Subscription) Unsubscribe() {
	p := s.p
	if p == nil {
		return
	}
	p.subs.Lock()
	defer p.subs.Unlock()
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		p.subs.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.p, s.next, s.prev = nil, nil, nil
	p.subs.n.Add(-1)
}

// tell tells all subscribers.
func (p *Partition) tell(bytes int) { p.tellEach(bytes, bytes) }

// tellAppended tells the followers that there is more to copy.
func (p *Partition) tellAppended(bytes int) { p.tellEach(nothing, bytes) }

// tellCommitted tells that the high watermark has moved: consumers have more to
// read; followers learn it with their next answer.
func (p *Partition) tellCommitted() { p.tellEach(Unknown, 0) }

const nothing = -2 // is not told

func (p *Partition) tellEach(consumers, followers int) {
	if p.subs.n.Load() == 0 {
		return
	}
	p.subs.Lock()
	defer p.subs.Unlock()
	for s := p.subs.first; s != nil; s = s.next {
		bytes := consumers
		if s.Follower {
			bytes = followers
		}
		if bytes != nothing {
			s.Owner.Changed(s, bytes)
		}
	}
}

// Subscribers returns how many subscriptions are in force.
func (p *Partition) Subscribers() int { return int(p.subs.n.Load()) }
