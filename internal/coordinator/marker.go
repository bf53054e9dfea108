package coordinator

import (
	"encoding/binary"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

// AppendMarker writes the end of a transaction to a partition of users' records
// and returns the offset after it.
func AppendMarker(p *replica.Partition, m Marker, now time.Time) (end int64, code wire.Code) {
	b := record.NewBuilder(markerOptions(m))
	key, value := markerBytes(m)
	b.Append(now.UnixMilli(), key, value)
	set, err := b.Build()
	if err != nil {
		return 0, wire.UnknownServerError
	}
	info, err := p.Append(storage.AppendRequest{Records: set, LogAppendTime: -1, Origin: storage.Coordinator}, true)
	return info.LastOffset + 1, storage.Code(err)
}

func markerOptions(m Marker) record.BatchOptions {
	return record.BatchOptions{
		LeaderEpoch: record.NoLeaderEpoch, Control: true, Transactional: true,
		Producer: &record.Producer{ID: m.ID, Epoch: m.Epoch, Sequence: record.NoSequence},
	}
}

// markerBytes encodes an end transaction marker:
//
//	key    version int16 0 | type int16: 0 abort, 1 commit
//	value  version int16 0 | coordinator epoch int32
func markerBytes(m Marker) (key, value []byte) {
	key, value = make([]byte, 4), make([]byte, 6)
	if m.Commit {
		key[3] = 1
	}
	binary.BigEndian.PutUint32(value[2:], uint32(m.CoordinatorEpoch))
	return key, value
}

// markerOf reads what markerBytes wrote.
func markerOf(b record.Batch, r *record.Record) (Marker, bool) {
	if len(r.Key) < 4 || len(r.Value) < 6 {
		return Marker{}, false
	}
	kind := binary.BigEndian.Uint16(r.Key[2:])
	return Marker{
		Producer: Producer{b.ProducerID(), b.ProducerEpoch()}, Commit: kind == 1,
		CoordinatorEpoch: int32(binary.BigEndian.Uint32(r.Value[2:])),
	}, kind <= 1
}
