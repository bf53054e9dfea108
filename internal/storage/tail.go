package storage

import (
	"runtime"
	"sync/atomic"
)

// tailRing is how many of the newest batches a log remembers the position of.
const tailRing = 32

// tail is the published end of a log, a seqlock: written under Log.mu, read
// without a lock. All of it belongs to the active segment.
type tail struct {
	seq  atomic.Uint64 // odd while a write is under way
	end  atomic.Int64  // offset of the next record
	base atomic.Int64  // of the active segment
	size atomic.Int64  // bytes of the active segment
	// the newest batches; nil before the first: most logs are idle
	ring  atomic.Pointer[[tailRing]tailBatch]
	count atomic.Uint64 // batches put in since the last reset
}

type tailBatch struct{ first, last, pos atomic.Int64 }

func (t *tail) begin() { t.seq.Add(1) }
func (t *tail) done()  { t.seq.Add(1) }

// put remembers a batch; between begin and done.
func (t *tail) put(first, last, pos int64) {
	n, ring := t.count.Load(), t.ring.Load()
	if ring == nil {
		ring = new([tailRing]tailBatch)
		t.ring.Store(ring)
	}
	slot := &ring[n%tailRing]
	slot.first.Store(first)
	slot.last.Store(last)
	slot.pos.Store(pos)
	t.count.Store(n + 1)
}

// reset forgets the batches and moves the end; it is a whole write.
func (t *tail) reset(base, size, end int64) { t.replace(base, size, end, func() {}) }

// replace is reset for a log whose segments change with it.
func (t *tail) replace(base, size, end int64, segments func()) {
	t.begin()
	segments()
	t.base.Store(base)
	t.size.Store(size)
	t.end.Store(end)
	t.count.Store(0)
	t.done()
}

// tailView is a consistent reading.
type tailView struct {
	end, base, size int64
	// position of the remembered batch that holds the offset (or bound) asked
	// for and its end, -1 when it is not among those remembered
	pos, next, boundPos int64
}

// published reads the tail and the segments that it belongs to, or newer ones;
// offset and bound are looked up among the newest batches.
func (l *Log) published(offset, bound int64) (tailView, []*segment) {
	t := &l.tail
	for {
		before := t.seq.Load()
		if before&1 == 0 {
			v := tailView{end: t.end.Load(), base: t.base.Load(), size: t.size.Load()}
			t.find(&v, offset, bound)
			segs := *l.segments.Load()
			if t.seq.Load() == before {
				return v, segs
			}
		}
		runtime.Gosched()
	}
}

func (t *tail) find(v *tailView, offset, bound int64) {
	v.pos, v.next, v.boundPos = -1, -1, -1
	if bound >= v.end {
		v.boundPos = v.size
	}
	if offset >= v.end {
		offset = -1 // nothing to look for
	}
	n, ring := t.count.Load(), t.ring.Load()
	pos, next := int64(-1), v.size // of the batch after the one looked at
	for i := uint64(1); i <= min(n, tailRing); i++ {
		slot := &ring[(n-i)%tailRing]
		first, last, at := slot.first.Load(), slot.last.Load(), slot.pos.Load()
		if v.boundPos < 0 && first <= bound {
			v.boundPos = at
		}
		if offset >= 0 && last < offset { // a gap, as compaction leaves
			v.pos, v.next = pos, next
			return
		}
		if i > 1 {
			next = pos
		}
		pos = at
		if offset >= 0 && first <= offset {
			v.pos, v.next = pos, next
			return
		}
	}
}
