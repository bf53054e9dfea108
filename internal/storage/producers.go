package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"barnabas/internal/record"
)

// remembered is how many batches of a producer a duplicate is recognised among
// (max.in.flight.requests.per.connection of an idempotent producer).
const remembered = 5

// producerBatch is one batch of a producer, as the snapshot has it.
type producerBatch struct {
	lastSeq    int32
	lastOffset int64
	delta      int32
	timestamp  int64
}

func (b producerBatch) firstOffset() int64 { return b.lastOffset - int64(b.delta) }

func (b producerBatch) firstSeq() int32 {
	if b.lastSeq >= b.delta {
		return b.lastSeq - b.delta
	}
	return int32(int64(b.lastSeq) - int64(b.delta) + 1<<31) // it wrapped
}

// producer is what a log knows of one producer id (Kafka's ProducerStateEntry).
type producer struct {
	epoch            int16
	n                int8
	batches          [remembered]producerBatch // the oldest first, n of them
	coordinatorEpoch int32
	lastTimestamp    int64
	txnFirst         int64 // first offset of the open transaction, -1
	markedUpTo       int64 // the offset after its last marker, 0: none came in this run
}

// openTxn is a transaction that has not ended, or whose end is above the high
// watermark (then last is its marker's offset).
type openTxn struct {
	producer    int64
	first, last int64
}

// producers is the state of all producers of a log (Kafka's
// ProducerStateManager). Log.mu guards it.
type producers struct {
	byID         map[int64]*producer
	snapshot     int64     // they come from one of this offset, which had only their last batches; 0: from none
	ongoing      []openTxn // by first offset
	unreplicated []openTxn // ended, the marker not below the high watermark yet
}

func newProducers() *producers { return &producers{} } // the map is made when there is something in it

// marker is the content of a transaction's control record.
type marker struct {
	kind             int16 // 0 abort, 1 commit, else none of a transaction's
	coordinatorEpoch int32
}

var errMarker = errors.New("malformed control record")

// readMarker reads a control batch, which has one record:
//
//	key    version int16, type int16
//	value  version int16, coordinator epoch int32
func readMarker(b record.Batch) (marker, error) {
	m := marker{kind: -1}
	found := errMarker
	err := b.Each(0, func(r *record.Record) error {
		if len(r.Key) < 4 {
			return errMarker
		}
		m.kind = int16(binary.BigEndian.Uint16(r.Key[2:]))
		if m.kind == 0 || m.kind == 1 {
			if len(r.Value) < 6 {
				return errMarker
			}
			m.coordinatorEpoch = int32(binary.BigEndian.Uint32(r.Value[2:]))
		}
		found = nil
		return nil
	})
	return m, errors.Join(err, found)
}

// duplicate returns the remembered batch that b repeats.
func (p *producers) duplicate(b record.Batch) (producerBatch, bool) {
	e := p.byID[b.ProducerID()]
	if e == nil || e.epoch != b.ProducerEpoch() {
		return producerBatch{}, false
	}
	first, last := b.BaseSequence(), b.LastSequence()
	for _, old := range e.batches[:e.n] {
		if old.lastSeq == last && old.firstSeq() == first {
			return old, true
		}
	}
	return producerBatch{}, false
}

func inSequence(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == 1<<31-1
}

// check decides whether a batch may follow what is known of its producer
// (Kafka's ProducerAppendInfo). m is the marker of a control batch, verified is
// as in AppendRequest.
func (p *producers) check(b record.Batch, m marker, origin Origin, verified int64) error {
	id, epoch := b.ProducerID(), b.ProducerEpoch()
	e := p.byID[id]
	if e == nil {
		return nil // an unknown producer may start anywhere (KIP-360)
	}
	if epoch < e.epoch {
		return fmt.Errorf("%w: producer %d has epoch %d, the batch %d", ErrProducerFenced, id, e.epoch, epoch)
	}
	if b.Control() {
		if m.kind >= 0 && m.coordinatorEpoch < e.coordinatorEpoch {
			return fmt.Errorf("%w: producer %d: %d is known, the marker has %d", ErrCoordinatorFenced, id, e.coordinatorEpoch, m.coordinatorEpoch)
		}
		return nil
	}
	if e.txnFirst >= 0 && !b.Transactional() {
		return fmt.Errorf("%w: producer %d has a transaction open and sent a batch outside of it", ErrInvalidTxnState, id)
	}
	if verified > 0 && e.txnFirst < 0 && e.markedUpTo >= verified {
		return fmt.Errorf("%w: the transaction of producer %d ended meanwhile", ErrInvalidTxnState, id)
	}
	if origin != Client {
		return nil
	}
	first := b.BaseSequence()
	if epoch != e.epoch {
		if first != 0 && e.epoch != record.NoProducerEpoch {
			return fmt.Errorf("%w: producer %d begins epoch %d with sequence %d", ErrOutOfOrderSequence, id, epoch, first)
		}
		return nil
	}
	last := record.NoSequence
	if e.n > 0 {
		last = e.batches[e.n-1].lastSeq
	}
	if e.epoch != record.NoProducerEpoch && !inSequence(last, first) {
		return fmt.Errorf("%w: producer %d sent sequence %d after %d", ErrOutOfOrderSequence, id, first, last)
	}
	return nil
}

// ended is a transaction that a marker ended.
type ended struct {
	txn     openTxn
	aborted bool
	stable  int64 // the last stable offset then, for the index
}

// apply notes a batch that is in the log. It returns the transaction that ended
// with it, if one did.
func (p *producers) apply(b record.Batch, m marker) (done ended, ok bool) {
	id := b.ProducerID()
	e := p.byID[id]
	if e == nil {
		e = &producer{epoch: record.NoProducerEpoch, coordinatorEpoch: -1, txnFirst: -1}
		p.put(id, e)
	}
	if epoch := b.ProducerEpoch(); epoch != e.epoch {
		e.epoch, e.n = epoch, 0
	}
	if b.Control() {
		if m.kind < 0 {
			return ended{}, false
		}
		e.lastTimestamp, e.coordinatorEpoch, e.markedUpTo = b.MaxTimestamp(), m.coordinatorEpoch, b.NextOffset()
		return p.end(id, e, b.BaseOffset(), m.kind == 0)
	}
	batch := producerBatch{b.LastSequence(), b.LastOffset(), b.LastOffsetDelta(), b.MaxTimestamp()}
	if e.n == remembered {
		copy(e.batches[:], e.batches[1:])
		e.n--
	}
	e.batches[e.n] = batch
	e.n++
	e.lastTimestamp = batch.timestamp
	if b.Transactional() && e.txnFirst < 0 {
		e.txnFirst = b.BaseOffset()
		p.open(id, e.txnFirst)
	}
	return ended{}, false
}

func (p *producers) put(id int64, e *producer) {
	if p.byID == nil {
		p.byID = map[int64]*producer{}
	}
	p.byID[id] = e
}

func (p *producers) open(id, first int64) {
	i := sort.Search(len(p.ongoing), func(i int) bool { return p.ongoing[i].first > first })
	p.ongoing = append(p.ongoing, openTxn{})
	copy(p.ongoing[i+1:], p.ongoing[i:])
	p.ongoing[i] = openTxn{producer: id, first: first, last: -1}
}

func (p *producers) end(id int64, e *producer, at int64, aborted bool) (ended, bool) {
	if e.txnFirst < 0 {
		return ended{}, false // a marker with nothing before it here
	}
	done := ended{txn: openTxn{id, e.txnFirst, at}, aborted: aborted, stable: at + 1}
	e.txnFirst = -1
	kept := p.ongoing[:0]
	for _, t := range p.ongoing {
		if t.producer != id || t.first != done.txn.first {
			kept = append(kept, t)
		}
	}
	p.ongoing = kept
	if len(kept) > 0 {
		done.stable = kept[0].first
	}
	p.unreplicated = append(p.unreplicated, done.txn)
	return done, true
}

// firstUnstable returns the first offset that read_committed must not pass, or
// -1. Transactions whose marker lies below the high watermark no longer count.
func (p *producers) firstUnstable(highWatermark int64) int64 {
	kept := p.unreplicated[:0]
	first := int64(-1)
	for _, t := range p.unreplicated {
		if t.last < highWatermark {
			continue
		}
		kept = append(kept, t)
		if first < 0 || t.first < first {
			first = t.first
		}
	}
	p.unreplicated = kept
	if len(p.ongoing) > 0 && (first < 0 || p.ongoing[0].first < first) {
		first = p.ongoing[0].first
	}
	return first
}

// expire forgets producers that were idle since before the time given (ms) and
// have no transaction open.
func (p *producers) expire(before int64) {
	for id, e := range p.byID {
		if e.txnFirst < 0 && e.lastTimestamp < before {
			delete(p.byID, id)
		}
	}
}
