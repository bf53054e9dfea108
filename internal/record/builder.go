package record

import "slices"

// Producer are the fields of an idempotent producer.
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32 // of the first record; NoSequence for control batches
}

// BatchOptions describe a v2 batch to build. LeaderEpoch is NoLeaderEpoch from
// a producer.
type BatchOptions struct {
	BaseOffset  int64
	LeaderEpoch int32
	// Codec compresses the records, at Level or, if that is 0 or DefaultLevel,
	// at the codec's default.
	Codec Codec
	Level int
	// AppendTime, unless 0, makes the batch one of LogAppendTime.
	AppendTime int64
	// Producer is nil for none.
	Producer      *Producer
	Transactional bool
	Control       bool
	// DeleteHorizon, unless 0, is written as Kafka's cleaner does (KIP-534).
	DeleteHorizon int64
}

// Builder makes one v2 batch.
type Builder struct {
	o BatchOptions
	// buf has room for the header, then the records, not compressed.
	buf           []byte
	count         int32
	lastDelta     int32
	baseTimestamp int64
	maxTimestamp  int64
	maxDelta      int32
}

// NewBuilder returns a Builder without records.
func NewBuilder(o BatchOptions) *Builder {
	b := &Builder{}
	b.Reset(o)
	return b
}

// Reset makes b as new, for another batch, and keeps its memory. The batch
// that was built before must not be used after.
func (b *Builder) Reset(o BatchOptions) {
	buf := b.buf
	if cap(buf) < BatchHeaderSize {
		buf = make([]byte, BatchHeaderSize, 512)
	}
	*b = Builder{o: o, buf: buf[:BatchHeaderSize], lastDelta: -1, maxTimestamp: NoTimestamp, maxDelta: -1}
}

// Append adds a record at the offset after the last one. key and value are nil
// for null.
func (b *Builder) Append(timestamp int64, key, value []byte, headers ...Header) {
	delta := b.lastDelta + 1
	size, timestampDelta := b.begin(delta, timestamp)
	size += bytesSize(key) + bytesSize(value) + varintSize(int32(len(headers)))
	for _, h := range headers {
		size += varintSize(int32(len(h.Key))) + len(h.Key) + bytesSize(h.Value)
	}
	b.head(size, timestampDelta, delta, key, value)
	b.buf = appendVarint(b.buf, int32(len(headers)))
	for _, h := range headers {
		b.buf = appendVarint(b.buf, int32(len(h.Key)))
		b.buf = append(b.buf, h.Key...)
		b.buf = appendVarbytes(b.buf, h.Value)
	}
}

// AppendRecord adds a record of another batch with its headers, at its own
// offset, which is larger than the last one and at least the base offset. It
// leaves gaps, as compaction does.
func (b *Builder) AppendRecord(r *Record) {
	delta := int32(r.Offset - b.o.BaseOffset)
	size, timestampDelta := b.begin(delta, r.Timestamp)
	size += bytesSize(r.Key) + bytesSize(r.Value) + varintSize(int32(r.Headers.count)) + len(r.Headers.raw)
	b.head(size, timestampDelta, delta, r.Key, r.Value)
	b.buf = appendVarint(b.buf, int32(r.Headers.count))
	b.buf = append(b.buf, r.Headers.raw...)
}

// begin counts a record and returns the size of the fixed part of its body.
func (b *Builder) begin(delta int32, timestamp int64) (size int, timestampDelta int64) {
	if b.count == 0 {
		b.baseTimestamp = timestamp
		if b.o.DeleteHorizon != 0 {
			b.baseTimestamp = b.o.DeleteHorizon
		}
	}
	if timestamp > b.maxTimestamp {
		b.maxTimestamp, b.maxDelta = timestamp, delta
	}
	b.count++
	b.lastDelta = delta
	timestampDelta = timestamp - b.baseTimestamp
	return 1 + varlongSize(timestampDelta) + varintSize(delta), timestampDelta
}

func (b *Builder) head(size int, timestampDelta int64, delta int32, key, value []byte) {
	b.buf = appendVarint(b.buf, int32(size))
	b.buf = append(b.buf, 0)
	b.buf = appendVarlong(b.buf, timestampDelta)
	b.buf = appendVarint(b.buf, delta)
	b.buf = appendVarbytes(b.buf, key)
	b.buf = appendVarbytes(b.buf, value)
}

func bytesSize(p []byte) int {
	if p == nil {
		return 1
	}
	return varintSize(int32(len(p))) + len(p)
}

func appendVarbytes(dst, p []byte) []byte {
	if p == nil {
		return appendVarint(dst, -1)
	}
	dst = appendVarint(dst, int32(len(p)))
	return append(dst, p...)
}

// KeepLastOffset makes offset the last one of the batch even if no record has
// it, as compaction does so that offsets and sequence numbers stay known.
func (b *Builder) KeepLastOffset(offset int64) {
	b.lastDelta = max(b.lastDelta, int32(offset-b.o.BaseOffset))
}

// Count returns how many records there are.
func (b *Builder) Count() int { return int(b.count) }

// Size returns the size of the batch so far, before compression.
func (b *Builder) Size() int { return len(b.buf) }

// Build returns the bytes of the batch, with its CRC. Without compression they
// are the Builder's own, so that it can only be used again after Reset. The
// error is that of a codec that does not exist.
func (b *Builder) Build() (Batch, error) {
	out := b.buf
	if b.o.Codec != None {
		out = make([]byte, BatchHeaderSize, BatchHeaderSize+len(b.buf)/2+64)
		var err error
		if out, err = compress(out, b.o.Codec, b.o.Level, 2, b.buf[BatchHeaderSize:]); err != nil {
			return nil, err
		}
	}
	b.writeHeader(out)
	return Batch(slices.Clip(out)), nil
}

func (b *Builder) writeHeader(out Batch) {
	attributes := int16(b.o.Codec)
	maxTimestamp := b.maxTimestamp
	if b.o.AppendTime != 0 {
		attributes |= logAppendTimeBit
		maxTimestamp = b.o.AppendTime
	}
	if b.o.Transactional {
		attributes |= transactionalBit
	}
	if b.o.Control {
		attributes |= controlBit
	}
	baseTimestamp := b.baseTimestamp
	if b.o.DeleteHorizon != 0 {
		attributes |= deleteHorizonBit
		baseTimestamp = b.o.DeleteHorizon
	} else if b.count == 0 {
		baseTimestamp = NoTimestamp
	}
	p := Producer{NoProducerID, NoProducerEpoch, NoSequence}
	if b.o.Producer != nil {
		p = *b.o.Producer
	}
	out.putI64(offsetAt, b.o.BaseOffset)
	out.putI32(lengthAt, int32(len(out)-entryOverhead))
	out.putI32(leaderEpochAt, b.o.LeaderEpoch)
	out[magicAt] = 2
	out.putI16(attributesAt, attributes)
	out.putI32(lastOffsetDeltaAt, max(b.lastDelta, 0))
	out.putI64(baseTimestampAt, baseTimestamp)
	out.putI64(maxTimestampAt, maxTimestamp)
	out.putI64(producerIDAt, p.ID)
	out.putI16(producerEpochAt, p.Epoch)
	out.putI32(baseSequenceAt, p.Sequence)
	out.putI32(countAt, b.count)
	out.UpdateCRC()
}
