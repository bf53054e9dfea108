package storage

import (
	"cmp"
	"slices"

	"barnabas/internal/record"
)

// ProducerInfo is what a log knows of one idempotent producer.
type ProducerInfo struct {
	ID               int64
	Epoch            int16
	LastSequence     int32 // -1: none
	LastTimestamp    int64 // ms
	CoordinatorEpoch int32 // of its last marker; -1: none
	TxnStart         int64 // first offset of the open transaction; -1: none
}

// Producers returns the producers that the log remembers, by id.
func (l *Log) Producers() ([]ProducerInfo, error) {
	if err := l.ready(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]ProducerInfo, 0, len(l.mu.producers.byID))
	for id, p := range l.mu.producers.byID {
		info := ProducerInfo{ID: id, Epoch: p.epoch, LastSequence: record.NoSequence, LastTimestamp: p.lastTimestamp,
			CoordinatorEpoch: p.coordinatorEpoch, TxnStart: p.txnFirst}
		if p.n > 0 {
			info.LastSequence = p.batches[p.n-1].lastSeq
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b ProducerInfo) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// HasTransaction tells whether a producer has a transaction open in the log,
// under this epoch.
func (l *Log) HasTransaction(id int64, epoch int16) bool {
	if l.ready() != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.mu.producers.byID[id]
	return p != nil && p.epoch == epoch && p.txnFirst >= 0
}
