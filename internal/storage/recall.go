package storage

import (
	"encoding/binary"
	"errors"
	"io"
	"time"
)

const (
	// recallBytes before a snapshot's offset are looked at.
	recallBytes = 1 << 20
	// recallAge is more than clients try to send a record
	// (delivery.timeout.ms is two minutes).
	recallAge = 10 * time.Minute
)

// recall adds to what a snapshot knows of producers, which is the last batch of
// each, the ones before that from the log: a client that lost its connection
// when the broker stopped repeats all to which it got no answer. What can't be
// read is not recalled; who reads it for its own sake will say so.
func (l *Log) recall(p *producers, segs []*segment, upTo int64) {
	last := map[int64]int64{} // the offset of the batch that the snapshot has
	for id, e := range p.byID {
		if e.n == 1 {
			last[id] = e.batches[0].lastOffset
		}
	}
	if len(last) == 0 || upTo <= segs[0].base {
		return
	}
	// The records' own times are what clients say.
	info, err := l.dir().fs.Stat(segs[floorSegment(segs, upTo-1)].path())
	if err != nil || l.dir().now().Sub(info.ModTime()) > recallAge {
		return
	}
	from, err := before(segs, upTo, recallBytes)
	if err == nil {
		err = l.eachBatch(segs, from, func(_ *segment, sc *scanner) error {
			h := sc.header
			if h.BaseOffset() >= upTo {
				return io.EOF
			}
			if !h.HasProducerID() || h.Control() {
				return nil
			}
			e := p.byID[h.ProducerID()]
			if known, ok := last[h.ProducerID()]; ok && h.ProducerEpoch() == e.epoch && h.LastOffset() < known {
				e.insert(producerBatch{h.LastSequence(), h.LastOffset(), h.LastOffsetDelta(), h.MaxTimestamp()})
			}
			return nil
		})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		l.dir().log.Warn("cannot read the batches that a producer snapshot leaves out", "partition", l.tp.String(), "error", err)
	}
}

// insert notes a batch that comes before the last known one, and after all others.
func (e *producer) insert(b producerBatch) {
	newest := e.batches[e.n-1]
	if e.n == remembered {
		copy(e.batches[:], e.batches[1:])
		e.n--
	}
	e.batches[e.n-1], e.batches[e.n] = b, newest
	e.n++
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
