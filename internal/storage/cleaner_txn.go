package storage

import (
	"cmp"
	"slices"

	"barnabas/internal/record"
)

// cleanedTxns follows the transactions through a pass over the log (Kafka's
// CleanedTransactionMetadata): which batches were aborted, and which markers no
// longer have a batch to speak for.
type cleanedTxns struct {
	coming    []abortedTxn // not begun yet, by first offset
	aborted   map[int64]*abortedUnderWay
	committed map[int64]bool // a batch of the transaction was seen
	keep      []abortedTxn   // for the new segment's index
}

type abortedUnderWay struct {
	txn  abortedTxn
	seen bool // a batch of it was seen, so the marker stays
}

func newCleanedTxns() *cleanedTxns {
	return &cleanedTxns{aborted: map[int64]*abortedUnderWay{}, committed: map[int64]bool{}}
}

// add takes the aborted transactions that have records in [from, upTo).
func (t *cleanedTxns) add(segs []*segment, from, upTo int64) {
	for _, s := range segs {
		s.txns.mu.Lock()
		for _, x := range s.txns.mu.all {
			if x.last >= from && x.first < upTo {
				t.coming = append(t.coming, x)
			}
		}
		s.txns.mu.Unlock()
	}
	slices.SortStableFunc(t.coming, func(a, b abortedTxn) int { return cmp.Compare(a.first, b.first) })
}

func (t *cleanedTxns) begin(upTo int64) {
	n := 0
	for n < len(t.coming) && t.coming[n].first <= upTo {
		if x := t.coming[n]; t.aborted[x.producer] == nil {
			t.aborted[x.producer] = &abortedUnderWay{txn: x}
		}
		n++
	}
	t.coming = t.coming[n:]
}

// data tells whether a batch of records belongs to an aborted transaction.
func (t *cleanedTxns) data(h record.Batch) (aborted bool) {
	t.begin(h.LastOffset())
	if !h.Transactional() {
		return false
	}
	if x := t.aborted[h.ProducerID()]; x != nil {
		x.seen = true
		return true
	}
	t.committed[h.ProducerID()] = true
	return false
}

// control tells whether a control batch may go: nothing of its transaction was
// seen in this pass, or it is empty.
func (t *cleanedTxns) control(b record.Batch) (idle bool) {
	t.begin(b.LastOffset())
	if b.Count() == 0 {
		return true
	}
	m, err := readMarker(b)
	if err != nil {
		return false
	}
	id := b.ProducerID()
	switch m.kind {
	case 0:
		x := t.aborted[id]
		delete(t.aborted, id)
		if x == nil || !x.seen {
			return true
		}
		t.keep = append(t.keep, x.txn)
		return false
	case 1:
		had := t.committed[id]
		delete(t.committed, id)
		return !had
	}
	return false
}
