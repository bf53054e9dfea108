package record

// Producer are the fields of an idempotent producer.
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32 // of the first record; NoSequence for control batches
}

// BatchOptions describe a v2 batch to build.
type BatchOptions struct {
	BaseOffset  int64
	LeaderEpoch int32
	// Codec compresses the records, at Level or, if 0, at the codec's default.
	Codec Codec
	Level int
	// AppendTime, unless 0, makes the batch one of LogAppendTime.
	AppendTime int64
	// Producer is nil for none.
	Producer      *Producer
	Transactional bool
	Control       bool
	// DeleteHorizon, unless 0, is written as Kafka's cleaner does.
	DeleteHorizon int64
}

// Builder makes one v2 batch.
type Builder struct {
	o             BatchOptions
	buf           []byte
	count         int32
	lastDelta     int32
	baseTimestamp int64
	maxTimestamp  int64
	maxDelta      int32
}

// NewBuilder returns a Builder without records.
func NewBuilder(o BatchOptions) *Builder {
	return &Builder{o: o, lastDelta: -1, maxTimestamp: NoTimestamp, maxDelta: -1}
}

// Append adds a record at the offset after the last one. key and value are nil
// for null.
func (b *Builder) Append(timestamp int64, key, value []byte, headers ...Header) {
	b.AppendAt(b.o.BaseOffset+int64(b.lastDelta)+1, timestamp, key, value, headers...)
}

// AppendAt adds a record at an offset that is larger than the last one and at
// least the base offset, which leaves gaps as compaction does.
func (b *Builder) AppendAt(offset, timestamp int64, key, value []byte, headers ...Header) {
}

// Count returns how many records there are.
func (b *Builder) Count() int { return int(b.count) }

// Size returns the size of the batch so far, before compression.
func (b *Builder) Size() int { return BatchHeaderSize + len(b.buf) }

// Build returns the bytes of the batch, with its CRC. The Builder can't be used
// after.
func (b *Builder) Build() (Batch, error) { return nil, errTODO }
