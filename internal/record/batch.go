package record

import (
	"encoding/binary"
	"hash/crc32"
)

// Batch is the bytes of one whole entry of a set, of any format, as a
// [Splitter] hands it out. Its accessors read the header in place and its
// setters write it; both take an entry that is whole (a Splitter's are) and
// have no meaning on anything shorter.
//
// Format v2 (KIP-98, Kafka 0.11; class DefaultRecordBatch):
//
//	 0  base offset        int64
//	 8  length             int32   bytes after this field, at least 49
//	12  leader epoch       int32   -1 from a producer
//	16  magic              int8    2
//	17  crc                uint32  CRC-32C of all from attributes to the end
//	21  attributes         int16   bits 0-2 codec, 3 timestamp type,
//	                               4 transactional, 5 control, 6 delete horizon
//	23  last offset delta  int32
//	27  base timestamp     int64   with bit 6: the delete horizon
//	35  max timestamp      int64   the append time when bit 3 is set
//	43  producer id        int64   -1 for none
//	51  producer epoch     int16
//	53  base sequence      int32
//	57  record count       int32
//	61  records            compressed as one piece if there is a codec
//
// and each record in it (class DefaultRecord):
//
//	length          varint   bytes after this field
//	attributes      int8     no bit is used
//	timestamp delta varlong  to the base timestamp
//	offset delta    varint   to the base offset
//	key length      varint   -1 for null
//	key
//	value length    varint   -1 for null
//	value
//	header count    varint
//	  key length    varint   0 or more
//	  key
//	  value length  varint   -1 for null
//	  value
//
// where a varint is zig-zag, little end first, 7 bits a byte.
type Batch []byte

const (
	offsetAt      = 0
	lengthAt      = 8
	magicAt       = 16
	entryOverhead = 12 // offset and length
	upToMagic     = 17

	leaderEpochAt     = 12
	crcAt             = 17
	attributesAt      = 21
	lastOffsetDeltaAt = 23
	baseTimestampAt   = 27
	maxTimestampAt    = 35
	producerIDAt      = 43
	producerEpochAt   = 51
	baseSequenceAt    = 53
	countAt           = 57

	// BatchHeaderSize is the size of a v2 batch without its records.
	BatchHeaderSize = 61
)

// MinEntryPrefix is how many bytes from the start of an entry tell its size and
// its format: offset, length, and all up to the magic byte.
const MinEntryPrefix = upToMagic

const (
	codecMask         = 0x07
	logAppendTimeBit  = 0x08
	transactionalBit  = 0x10
	controlBit        = 0x20
	deleteHorizonBit  = 0x40
	knownAttributes   = codecMask | logAppendTimeBit | transactionalBit | controlBit | deleteHorizonBit
	minRecordSize     = 7 // length, attributes, two deltas, two lengths, header count
	minEntryLengthV0  = 14
	minBatchLengthV2  = BatchHeaderSize - entryOverhead
	maxSequenceNumber = 1<<31 - 1
)

// What stands in a header for "none".
const (
	NoTimestamp     int64 = -1
	NoProducerID    int64 = -1
	NoProducerEpoch int16 = -1
	NoSequence      int32 = -1
	NoLeaderEpoch   int32 = -1
)

// TimestampType tells what a timestamp means.
type TimestampType int8

// CreateTime is the time that the producer gave, LogAppendTime that of the
// broker. NoTimestampType is that of format v0, which has no timestamps.
const (
	NoTimestampType TimestampType = -1
	CreateTime      TimestampType = 0
	LogAppendTime   TimestampType = 1
)

// String returns Kafka's name: NoTimestampType, CreateTime or LogAppendTime.
func (t TimestampType) String() string {
	switch t {
	case CreateTime:
		return "CreateTime"
	case LogAppendTime:
		return "LogAppendTime"
	}
	return "NoTimestampType"
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (b Batch) i64(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
func (b Batch) i32(at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) }
func (b Batch) i16(at int) int16 { return int16(binary.BigEndian.Uint16(b[at:])) }

func (b Batch) putI64(at int, v int64) { binary.BigEndian.PutUint64(b[at:], uint64(v)) }
func (b Batch) putI32(at int, v int32) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
func (b Batch) putI16(at int, v int16) { binary.BigEndian.PutUint16(b[at:], uint16(v)) }

// Magic returns the format: 0, 1 or 2.
func (b Batch) Magic() int8 { return int8(b[magicAt]) }

// Size returns the size of the entry in bytes, as its header has it.
func (b Batch) Size() int { return entryOverhead + int(b.i32(lengthAt)) }

// BaseOffset returns the offset of the first record of a v2 batch. The header
// of a v0 or v1 entry has only the offset of its last message, which is the
// same unless it is compressed; that is returned then. [Batch.Each] tells the
// offsets of all.
func (b Batch) BaseOffset() int64 { return b.i64(offsetAt) }

// LastOffset returns the offset of the last record (of a compacted batch: that
// of the last one it once had).
func (b Batch) LastOffset() int64 {
	if b.Magic() < 2 {
		return b.i64(offsetAt)
	}
	return b.i64(offsetAt) + int64(b.i32(lastOffsetDeltaAt))
}

// NextOffset returns the offset after the last one.
func (b Batch) NextOffset() int64 { return b.LastOffset() + 1 }

// LastOffsetDelta returns the last offset less the base offset; 0 before v2.
func (b Batch) LastOffsetDelta() int32 {
	if b.Magic() < 2 {
		return 0
	}
	return b.i32(lastOffsetDeltaAt)
}

// LeaderEpoch returns the epoch of the leader that appended the batch, or
// NoLeaderEpoch before v2.
func (b Batch) LeaderEpoch() int32 {
	if b.Magic() < 2 {
		return NoLeaderEpoch
	}
	return b.i32(leaderEpochAt)
}

// Attributes returns the attribute bits; those of v0 and v1 are one byte.
func (b Batch) Attributes() int16 {
	if b.Magic() < 2 {
		return int16(b[legacyAttributesAt])
	}
	return b.i16(attributesAt)
}

// Codec returns how the records are compressed. The value may be one that no
// codec has (5 to 7).
func (b Batch) Codec() Codec { return Codec(b.Attributes() & codecMask) }

// Compressed tells whether there is a codec.
func (b Batch) Compressed() bool { return b.Codec() != None }

// TimestampType tells what the timestamps of the entry mean.
func (b Batch) TimestampType() TimestampType {
	switch {
	case b.Magic() == 0:
		return NoTimestampType
	case b.Attributes()&logAppendTimeBit != 0:
		return LogAppendTime
	}
	return CreateTime
}

// Transactional tells whether the records belong to a transaction.
func (b Batch) Transactional() bool {
	return b.Magic() >= 2 && b.i16(attributesAt)&transactionalBit != 0
}

// Control tells whether the batch holds control records, such as transaction
// markers, which no consumer sees.
func (b Batch) Control() bool {
	return b.Magic() >= 2 && b.i16(attributesAt)&controlBit != 0
}

// DeleteHorizon returns the time, in milliseconds, from which the cleaner may
// drop the tombstones and markers of the batch, and whether it has one
// (KIP-534).
func (b Batch) DeleteHorizon() (int64, bool) {
	if b.Magic() < 2 || b.i16(attributesAt)&deleteHorizonBit == 0 {
		return 0, false
	}
	return b.i64(baseTimestampAt), true
}

// BaseTimestamp returns what the timestamp deltas of a v2 batch are relative
// to, and before v2 the timestamp of the entry.
func (b Batch) BaseTimestamp() int64 {
	if b.Magic() < 2 {
		return b.MaxTimestamp()
	}
	return b.i64(baseTimestampAt)
}

// MaxTimestamp returns the largest timestamp, in milliseconds since 1970, or
// NoTimestamp for v0.
func (b Batch) MaxTimestamp() int64 {
	switch b.Magic() {
	case 0:
		return NoTimestamp
	case 1:
		return b.i64(legacyTimestampAt)
	}
	return b.i64(maxTimestampAt)
}

// ProducerID returns the id of the idempotent producer, or NoProducerID.
func (b Batch) ProducerID() int64 {
	if b.Magic() < 2 {
		return NoProducerID
	}
	return b.i64(producerIDAt)
}

// HasProducerID tells whether an idempotent producer wrote the batch.
func (b Batch) HasProducerID() bool { return b.ProducerID() > NoProducerID }

// ProducerEpoch returns the producer's epoch, or NoProducerEpoch.
func (b Batch) ProducerEpoch() int16 {
	if b.Magic() < 2 {
		return NoProducerEpoch
	}
	return b.i16(producerEpochAt)
}

// BaseSequence returns the sequence number of the first record, or NoSequence.
func (b Batch) BaseSequence() int32 {
	if b.Magic() < 2 {
		return NoSequence
	}
	return b.i32(baseSequenceAt)
}

// LastSequence returns the sequence number of the last record, or NoSequence.
func (b Batch) LastSequence() int32 {
	base := b.BaseSequence()
	if base == NoSequence {
		return NoSequence
	}
	return AddSequence(base, b.LastOffsetDelta())
}

// AddSequence returns the sequence number that is n after seq. Numbers wrap
// from 2^31-1 to 0.
func AddSequence(seq, n int32) int32 {
	if seq > maxSequenceNumber-n {
		return n - (maxSequenceNumber - seq) - 1
	}
	return seq + n
}

// Count returns the record count in the header of a v2 batch, and -1 for a v0
// or v1 entry, whose header has none.
func (b Batch) Count() int32 {
	if b.Magic() < 2 {
		return -1
	}
	return b.i32(countAt)
}

// SetBaseOffset writes the offset of the first record of a v2 batch (of the
// last message of a v0 or v1 entry). It is outside the CRC.
func (b Batch) SetBaseOffset(offset int64) { b.putI64(offsetAt, offset) }

// SetLastOffset moves the batch so that its last record has this offset.
func (b Batch) SetLastOffset(offset int64) {
	b.putI64(offsetAt, offset-int64(b.LastOffsetDelta()))
}

// SetLeaderEpoch writes the leader epoch of a v2 batch. It is outside the CRC.
func (b Batch) SetLeaderEpoch(epoch int32) {
	if b.Magic() >= 2 {
		b.putI32(leaderEpochAt, epoch)
	}
}

// SetMaxTimestamp writes the timestamp type and the largest timestamp of a v2
// batch, and the CRC anew if one of them changed. With LogAppendTime each
// record of the batch has that timestamp.
func (b Batch) SetMaxTimestamp(t TimestampType, timestamp int64) {
	if b.TimestampType() == t && b.i64(maxTimestampAt) == timestamp {
		return
	}
	attributes := b.i16(attributesAt) & (knownAttributes &^ logAppendTimeBit)
	if t == LogAppendTime {
		attributes |= logAppendTimeBit
	}
	b.putI16(attributesAt, attributes)
	b.putI64(maxTimestampAt, timestamp)
	b.UpdateCRC()
}

// CRC returns the checksum that the entry carries.
func (b Batch) CRC() uint32 {
	if b.Magic() < 2 {
		return binary.BigEndian.Uint32(b[legacyCRCAt:])
	}
	return binary.BigEndian.Uint32(b[crcAt:])
}

// ComputeCRC returns the checksum that the entry should carry: CRC-32C from the
// attributes on for v2, CRC-32 (IEEE) from the magic byte on before.
func (b Batch) ComputeCRC() uint32 {
	if b.Magic() < 2 {
		return crc32.ChecksumIEEE(b[magicAt:])
	}
	return crc32.Checksum(b[attributesAt:], castagnoli)
}

// UpdateCRC writes the checksum anew.
func (b Batch) UpdateCRC() {
	at := crcAt
	if b.Magic() < 2 {
		at = legacyCRCAt
	}
	binary.BigEndian.PutUint32(b[at:], b.ComputeCRC())
}

// Check verifies what the header alone can tell and the checksum: the size of
// the entry, the CRC. The error is an [Error] with CorruptMessage. It does not
// look at the records; [Batch.Each] does.
func (b Batch) Check() error {
	if err := b.checkSize(); err != nil {
		return err
	}
	if stored, computed := b.CRC(), b.ComputeCRC(); stored != computed {
		return corrupt("record is corrupt (stored crc = %d, computed crc = %d)", stored, computed)
	}
	return nil
}

func (b Batch) checkSize() error {
	least := legacyHeaderV0
	if len(b) >= upToMagic {
		switch b.Magic() {
		case 1:
			least = legacyHeaderV1
		case 2:
			least = BatchHeaderSize
		}
	}
	if len(b) < least {
		return corrupt("record is corrupt: its size of %d bytes is below the least of %d", len(b), least)
	}
	return nil
}

// AssignOffsets patches offsets and leader epoch into the batches of a set that
// Validate returned: the first record gets base. It changes 12 bytes a batch
// and no CRC (invariant 5).
func AssignOffsets(set []byte, base int64, leaderEpoch int32) {
	s := Split(set)
	for s.Next() {
		b := s.Batch()
		b.SetBaseOffset(base)
		b.SetLeaderEpoch(leaderEpoch)
		base += int64(b.LastOffsetDelta()) + 1
	}
}
