package client

import (
	"math/bits"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// slabs is a kgo.PoolRecords: the records of a batch, once all were taken from
// a stream, are the memory of a later batch. What a Message holds is not of that
// memory. Without it most of a consumer's garbage, and of its time, is records.
//
// Place i has slices of 1<<i records, so that a batch of one never holds the
// memory of thousands.
type slabs [32]sync.Pool

// GetRecords returns room for n records.
func (s *slabs) GetRecords(n int) []kgo.Record {
	size := bits.Len(uint(max(n, 1) - 1))
	if records, ok := s[size].Get().(*[]kgo.Record); ok {
		return *records
	}
	return make([]kgo.Record, 1<<size)
}

// PutRecords takes it back, all zero.
func (s *slabs) PutRecords(records []kgo.Record) {
	s[bits.Len(uint(cap(records)))-1].Put(&records)
}
