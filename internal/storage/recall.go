package storage

import (
	"encoding/binary"
	"errors"
	"io"
	"time"

	"barnabas/internal/record"
)

const (
	// recallBytes before a snapshot's offset are looked at.
	recallBytes = 1 << 20
	// recallAge is more than clients try to send a record
	// (delivery.timeout.ms is two minutes).
	recallAge = 10 * time.Minute
)

// A snapshot knows the last batch of each producer; a client that lost its
// connection when the broker stopped repeats all to which it got no answer. The
// batches before the last are recalled from the log when the first repeat asks for
// them, and before records go: a start reads nothing for it.

// mayRepeat tells whether b, which is no duplicate of a batch that is remembered
// and does not follow the last, may be one of a batch that the snapshot left out.
func (p *producers) mayRepeat(b record.Batch) bool {
	e := p.byID[b.ProducerID()]
	return e != nil && p.lacks(e) && e.epoch == b.ProducerEpoch() && !inSequence(e.batches[e.n-1].lastSeq, b.BaseSequence())
}

// lacks tells whether the log may hold batches of a producer that the snapshot
// left out.
func (p *producers) lacks(e *producer) bool {
	return e.n > 0 && e.n < remembered && e.batches[0].lastOffset < p.snapshot
}

// recallLocked adds the batches to the producers that their snapshot left out.
// The log is read while mu is free and busy keeps appends out. What can't be read
// is not recalled; who reads it for its own sake will say so.
func (l *Log) recallLocked() {
	p := l.mu.producers
	segs := *l.segments.Load()
	l.mu.busy = true
	l.mu.Unlock()
	found, err := l.producersBefore(segs, p.snapshot)
	if err != nil {
		l.dir().log.Warn("cannot read the batches that a producer snapshot leaves out", "partition", l.tp.String(), "error", err)
	}
	l.mu.Lock()
	l.mu.busy = false
	l.mu.idle.Broadcast()
	for id, e := range p.byID {
		if old := found.byID[id]; old != nil && old.epoch == e.epoch && p.lacks(e) {
			e.precede(old.batches[:old.n])
		}
	}
	p.snapshot = 0
}

// recallBeforeLoss is recallLocked for who takes records away, if somebody may
// still repeat them.
func (l *Log) recallBeforeLoss() error {
	l.mu.Lock()
	segs, upTo := *l.segments.Load(), l.mu.producers.snapshot
	idle := len(l.mu.producers.byID) == 0
	l.mu.Unlock()
	if idle || upTo <= segs[0].base {
		return nil
	}
	// The records' own times are what clients say.
	info, err := l.dir().fs.Stat(segs[floorSegment(segs, upTo-1)].path())
	if err != nil || l.dir().now().Sub(info.ModTime()) > recallAge {
		return err
	}
	l.lockIdle()
	defer l.mu.Unlock()
	if l.mu.producers.snapshot > 0 {
		l.recallLocked()
	}
	return nil
}

// producersBefore returns the producers of the last batches in front of an offset.
func (l *Log) producersBefore(segs []*segment, upTo int64) (*producers, error) {
	p := newProducers()
	if upTo <= segs[0].base {
		return p, nil
	}
	from, err := before(segs, upTo, recallBytes)
	if err == nil {
		err = l.eachBatch(segs, from, func(_ *segment, sc *scanner) error {
			h := sc.header
			if h.BaseOffset() >= upTo {
				return io.EOF
			}
			if h.HasProducerID() && !h.Control() {
				p.apply(h, marker{})
			}
			return nil
		})
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p, err
}

// precede puts batches in front of those that are remembered, as many as there is
// room for.
func (e *producer) precede(older []producerBatch) {
	for len(older) > 0 && older[len(older)-1].lastOffset >= e.batches[0].lastOffset {
		older = older[:len(older)-1]
	}
	older = older[max(0, len(older)-(remembered-int(e.n))):]
	copy(e.batches[len(older):], e.batches[:e.n])
	copy(e.batches[:], older)
	e.n += int8(len(older))
}

// before returns an offset that lies at least some bytes before another, as far
// as the indexes lead, or the first.
func before(segs []*segment, offset, bytes int64) (int64, error) {
	for i := floorSegment(segs, offset-1); i >= 0; i-- {
		s := segs[i]
		size := s.size.Load()
		if at, ok, err := s.locate(offset, size); err != nil {
			return 0, err
		} else if ok {
			size = at.pos
		}
		if bytes -= size; bytes > 0 {
			continue
		}
		if err := s.checkIndexes(); err != nil {
			return 0, err
		}
		from := s.base
		_, err := s.offsets.search(func(e []byte) bool {
			low := int64(binary.BigEndian.Uint32(e[4:])) <= -bytes
			if low {
				from = max(from, s.base+int64(binary.BigEndian.Uint32(e)))
			}
			return low
		})
		return from, err
	}
	return segs[0].base, nil
}
