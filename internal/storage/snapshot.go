package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// A producer snapshot, NNN.snapshot (Kafka's ProducerStateManager), says what
// was known of each idempotent producer up to offset NNN, big-endian:
//
//	 0  version  int16   1
//	 2  crc      uint32  CRC-32C of all that follows
//	 6  count    int32
//	10  for each producer, 46 bytes:
//	     id                       int64
//	     epoch                    int16
//	     last sequence            int32   -1: no batch is known
//	     last offset              int64   -1
//	     offset delta             int32   last offset less first, of that batch
//	     timestamp                int64
//	     coordinator epoch        int32   -1
//	     first offset of its open transaction  int64   -1
const (
	snapshotHeader = 10
	snapshotEntry  = 46
)

var errSnapshot = errors.New("malformed producer snapshot")

// encode returns the snapshot's bytes.
func (p *producers) encode() []byte {
	b := make([]byte, snapshotHeader, snapshotHeader+len(p.byID)*snapshotEntry)
	binary.BigEndian.PutUint16(b, 1)
	binary.BigEndian.PutUint32(b[6:], uint32(len(p.byID)))
	ids := make([]int64, 0, len(p.byID))
	for id := range p.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		e := p.byID[id]
		last := producerBatch{lastSeq: -1, lastOffset: -1, timestamp: e.lastTimestamp}
		if e.n > 0 {
			last = e.batches[e.n-1]
		}
		b = binary.BigEndian.AppendUint64(b, uint64(id))
		b = binary.BigEndian.AppendUint16(b, uint16(e.epoch))
		b = binary.BigEndian.AppendUint32(b, uint32(last.lastSeq))
		b = binary.BigEndian.AppendUint64(b, uint64(last.lastOffset))
		b = binary.BigEndian.AppendUint32(b, uint32(last.delta))
		b = binary.BigEndian.AppendUint64(b, uint64(e.lastTimestamp))
		b = binary.BigEndian.AppendUint32(b, uint32(e.coordinatorEpoch))
		b = binary.BigEndian.AppendUint64(b, uint64(e.txnFirst))
	}
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b
}

// decodeProducers reads a snapshot.
func decodeProducers(b []byte) (*producers, error) {
	if len(b) < snapshotHeader {
		return nil, fmt.Errorf("%w: %d bytes", errSnapshot, len(b))
	}
	if v := binary.BigEndian.Uint16(b); v != 1 {
		return nil, fmt.Errorf("%w: version %d", errSnapshot, v)
	}
	if crc32.Checksum(b[6:], castagnoli) != binary.BigEndian.Uint32(b[2:]) {
		return nil, fmt.Errorf("%w: %w", errSnapshot, errChecksum)
	}
	n := int64(binary.BigEndian.Uint32(b[6:]))
	if n*snapshotEntry != int64(len(b)-snapshotHeader) {
		return nil, fmt.Errorf("%w: %d producers in %d bytes", errSnapshot, n, len(b))
	}
	p := newProducers()
	for b = b[snapshotHeader:]; len(b) > 0; b = b[snapshotEntry:] {
		u64 := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }
		u32 := func(i int) int32 { return int32(binary.BigEndian.Uint32(b[i:])) }
		e := &producer{
			epoch: int16(binary.BigEndian.Uint16(b[8:])), lastTimestamp: u64(26),
			coordinatorEpoch: u32(34), txnFirst: u64(38),
		}
		if last := (producerBatch{lastSeq: u32(10), lastOffset: u64(14), delta: u32(22), timestamp: u64(26)}); last.lastOffset >= 0 {
			e.batches[0], e.n = last, 1
		}
		id := u64(0)
		p.put(id, e)
		if e.txnFirst >= 0 {
			p.open(id, e.txnFirst)
		}
	}
	return p, nil
}
