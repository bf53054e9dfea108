package record

import (
	"errors"
	"fmt"
	"math"

	"barnabas/internal/wire"
)

// Origin is who appends (Kafka's AppendOrigin).
type Origin int8

// A client may not write control batches and must number its batches from 0; a
// coordinator, inside the broker, may write control batches.
const (
	OriginClient Origin = iota
	OriginCoordinator
)

// ValidateOptions are the rules of one append by a leader. The zero value
// accepts no limit and no timestamp bounds; set what the topic has.
type ValidateOptions struct {
	// Version is the version of the Produce request, which decides the formats
	// that are allowed. Coordinators use the newest, 11.
	Version int16
	Origin  Origin
	// Now is the broker's time in milliseconds since 1970.
	Now int64
	// Codec is compression.type; ProducerCodec keeps what came. Level is the
	// level for that codec, or DefaultLevel.
	Codec Codec
	Level int
	// TimestampType is message.timestamp.type.
	TimestampType TimestampType
	// BeforeMaxMs and AfterMaxMs are message.timestamp.before.max.ms and
	// message.timestamp.after.max.ms. Both are always applied (to CreateTime);
	// Kafka's default for the first, 2^63-1, is no bound.
	BeforeMaxMs, AfterMaxMs int64
	// Compacted topics take no record without a key.
	Compacted bool
	// MaxBatchBytes is max.message.bytes, checked on what came and again on
	// what a conversion made. 0 is no limit.
	MaxBatchBytes int
	// MaxRecords bounds the records of the set; 0 is no limit.
	MaxRecords int
	// DecompressLimit bounds the decompressed bytes; 0 is DefaultLimit.
	DecompressLimit int

	// stream walks through compressed records without holding them, or returns
	// errNoStream.
	stream bool
}

// Validated is a set that may be appended, with the facts that the log needs.
type Validated struct {
	// Set is one v2 batch with base offset 0 (invariant 1), or empty if the
	// given set was, which only Produce v0 to v2 may send.
	Set []byte
	// Aliases tells that Set is part of the given set, changed in place.
	Aliases bool
	// Records is the number of records; LastOffsetDelta is one less.
	Records         int32
	LastOffsetDelta int32
	// MaxTimestamp is the largest timestamp in milliseconds, and
	// MaxTimestampDelta the offset delta of the first record that has it, -1 if
	// no record has one. With LogAppendTime it is Now, at the first record.
	MaxTimestamp      int64
	MaxTimestampDelta int32
	// LogAppendTime is Now for a topic with LogAppendTime, else NoTimestamp: it
	// is what the Produce response says.
	LogAppendTime int64
	// Codec is that of Set.
	Codec Codec
	// The producer's fields; LastSequence is that of the last record.
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	LastSequence  int32
	Transactional bool
	Control       bool
	// Converted is how many records were rebuilt: from an older format or for
	// another codec. 0 for a set that is stored as it came.
	Converted int32
}

// Validate checks a set as the leader of a partition does before it appends it
// (Kafka's LogValidator and UnifiedLog.analyzeAndValidateRecords, and
// ProduceRequest.validateRecords; the format of the log is v2). It may change
// set in place: timestamp type and maximum timestamp, with the CRC. The error
// is an [Error]; set has no use then.
//
// A batch of v2 that is stored as it came costs no allocation (invariant 2).
//
// A set that decompresses to more than 8 MiB is checked as it is decompressed, or,
// where its records are needed as a whole, while at most one other such set is;
// Validate waits for its turn (invariant 6).
func Validate(set []byte, o ValidateOptions) (Validated, error) {
	limit := o.DecompressLimit
	if limit <= 0 {
		limit = DefaultLimit
	}
	o.DecompressLimit = min(limit, commonLimit)
	v, err := validate(set, o)
	if limit <= commonLimit || !errors.Is(err, ErrDecompressedTooLarge) {
		return v, err
	}
	// A failed validation changed nothing, so it can be done again.
	o.DecompressLimit, o.stream = limit, true
	if v, err = validate(set, o); err != errNoStream {
		return v, err
	}
	o.stream = false
	large <- struct{}{}
	defer func() { <-large }()
	return validate(set, o)
}

// commonLimit is what anyone may decompress to; large is held by those who need
// more.
const commonLimit = 8 << 20

var large = make(chan struct{}, 2)

func validate(set []byte, o ValidateOptions) (Validated, error) {
	first, n, source, err := scan(set, &o)
	if err != nil {
		return Validated{}, err
	}
	switch {
	case n == 0:
		return Validated{MaxTimestamp: NoTimestamp, MaxTimestampDelta: -1, LogAppendTime: NoTimestamp,
			ProducerID: NoProducerID, ProducerEpoch: NoProducerEpoch,
			BaseSequence: NoSequence, LastSequence: NoSequence}, nil
	case n > 1 && (first.Magic() >= 2 || source != None):
		return Validated{}, invalid("a compressed or v2 set has more than one batch")
	case first.Magic() >= 2:
		return validateV2(first, &o)
	}
	return validateLegacy(set, source, o)
}

// scan checks the entries of a set as far as their headers and their checksums
// go. It returns the first, how many there are, and the codec of the last that
// is compressed.
func scan(set []byte, o *ValidateOptions) (first Batch, n int, source Codec, err error) {
	if o.Version >= 3 {
		if err := checkSingle(set, o); err != nil {
			return nil, 0, None, err
		}
	}
	s := Split(set)
	for s.Next() {
		b := s.Batch()
		n++
		if n == 1 {
			first = b
		}
		if err := checkEntry(b, first, o); err != nil {
			err.Position = s.Position()
			return nil, 0, None, err
		}
		if c := b.Codec(); c != None {
			source = c
		}
	}
	if err := s.Err(); err != nil && err != ErrTorn {
		return nil, 0, None, err
	}
	return first, n, source, nil
}

// checkSingle checks that a set of Produce v3 or later is one v2 batch, with a
// codec that the version may use (ProduceRequest.validateRecords).
func checkSingle(set []byte, o *ValidateOptions) error {
	s := Split(set)
	if !s.Next() {
		if err := s.Err(); err != nil && err != ErrTorn {
			return err
		}
		return invalid("Produce v%d needs one batch for each partition, this has none", o.Version)
	}
	b := s.Batch()
	if b.Magic() != 2 {
		return invalid("Produce v%d needs format v2, this is v%d", o.Version, b.Magic())
	}
	if b.Codec() == Zstd && o.Version < 7 {
		return &Error{Code: wire.UnsupportedCompressionType,
			Message: fmt.Sprintf("zstd needs Produce v7, this is v%d", o.Version)}
	}
	if s.Next() {
		return invalid("Produce v%d needs one batch for each partition, this has more", o.Version)
	}
	if err := s.Err(); err != nil && err != ErrTorn {
		return err
	}
	return nil
}

// checkEntry checks one entry of a set by itself, in the order in which Kafka
// does.
func checkEntry(b, first Batch, o *ValidateOptions) *Error {
	if o.Origin == OriginClient && b.Magic() >= 2 && b.BaseOffset() != 0 {
		return invalid("base offset of the batch is %d, it should be 0", b.BaseOffset())
	}
	if o.MaxBatchBytes > 0 && len(b) > o.MaxBatchBytes {
		return tooLarge(len(b), o)
	}
	if err := b.Check(); err != nil {
		return err.(*Error)
	}
	if b.Magic() != first.Magic() {
		return invalid("magic %d of a batch differs from the first one's, %d", b.Magic(), first.Magic())
	}
	return nil
}

func tooLarge(size int, o *ValidateOptions) *Error {
	return &Error{Code: wire.MessageTooLarge,
		Message: fmt.Sprintf("batch of %d bytes exceeds the maximum of %d", size, o.MaxBatchBytes)}
}

// checkHeader checks the header of a v2 batch against itself.
func checkHeader(b Batch, o *ValidateOptions) *Error {
	count, delta := b.Count(), b.LastOffsetDelta()
	switch {
	case delta < 0:
		return invalid("batch has the last offset delta %d", delta)
	case count <= 0:
		return invalid("batch has the record count %d", count)
	case delta != count-1:
		return invalid("last offset delta %d does not fit the record count %d", delta, count)
	case o.MaxRecords > 0 && int(count) > o.MaxRecords:
		return invalid("batch of %d records exceeds the maximum of %d", count, o.MaxRecords)
	case !b.Codec().Known():
		return invalid("unknown compression type %d", b.Codec())
	}
	if o.Origin == OriginClient {
		if b.Control() {
			return invalid("clients are not allowed to write control records")
		}
		if b.HasProducerID() && b.BaseSequence() < 0 {
			return invalid("sequence number %d of producer id %d is not valid", b.BaseSequence(), b.ProducerID())
		}
	}
	return nil
}

func validateV2(b Batch, o *ValidateOptions) (Validated, error) {
	if err := checkHeader(b, o); err != nil {
		return Validated{}, err
	}
	source := b.Codec()
	records := []byte(b[BatchHeaderSize:])
	if source != None && !o.stream {
		s := getScratch()
		defer s.release()
		var err error
		if records, err = s.decompress(source, 2, records, o.DecompressLimit); err != nil {
			return Validated{}, err
		}
	}
	w := newWalk(b.BaseTimestamp())
	if o.TimestampType != LogAppendTime {
		w.earliest, w.latest = o.bounds()
	}
	appendTimeSet := b.TimestampType() == LogAppendTime
	if o.stream {
		if o.Codec != ProducerCodec && o.Codec != source || appendTimeSet {
			return Validated{}, errNoStream
		}
		if err := w.runCompressed(source, records, o.DecompressLimit, b.Count()); err != nil {
			return Validated{}, err
		}
		if w.outOfBounds || w.nullKey && o.Compacted {
			return Validated{}, errNoStream
		}
	} else if err := w.run(records, b.Count()); err != nil {
		return Validated{}, err
	}
	if w.outOfBounds || appendTimeSet || w.nullKey && o.Compacted {
		if err := rejected(b, records, *o); err != nil {
			return Validated{}, err
		}
	}
	if appendTimeSet {
		// Such a batch has one time for all its records.
		w.maxTimestamp, w.maxDelta = NoTimestamp, -1
		if b.MaxTimestamp() > NoTimestamp {
			w.maxTimestamp, w.maxDelta = b.MaxTimestamp(), 0
		}
	}

	target := o.Codec
	if target == ProducerCodec || source == None && b.Control() {
		target = source
	}
	converted := int32(0)
	aliases := true
	if target != source {
		var err error
		if appendTimeSet {
			b, err = retime(b, records, target, o)
		} else {
			b, err = recompress(b, records, target, o)
		}
		if err != nil {
			return Validated{}, err
		}
		converted, aliases = b.Count(), false
	}
	v := o.facts(b, w.maxTimestamp, w.maxDelta)
	v.Aliases, v.Converted = aliases, converted
	b.SetMaxTimestamp(o.TimestampType, v.MaxTimestamp)
	return v, nil
}

// bounds returns the first and the last timestamp that are allowed.
func (o *ValidateOptions) bounds() (earliest, latest int64) {
	earliest, latest = o.Now-o.BeforeMaxMs, o.Now+o.AfterMaxMs
	if latest < o.Now {
		latest = math.MaxInt64
	}
	return earliest, latest
}

// facts returns the result for a batch that is stored.
func (o *ValidateOptions) facts(b Batch, maxTimestamp int64, maxDelta int32) Validated {
	v := Validated{
		Set:               b,
		Records:           b.Count(),
		LastOffsetDelta:   b.LastOffsetDelta(),
		MaxTimestamp:      maxTimestamp,
		MaxTimestampDelta: maxDelta,
		LogAppendTime:     NoTimestamp,
		Codec:             b.Codec(),
		ProducerID:        b.ProducerID(),
		ProducerEpoch:     b.ProducerEpoch(),
		BaseSequence:      b.BaseSequence(),
		LastSequence:      b.LastSequence(),
		Transactional:     b.Transactional(),
		Control:           b.Control(),
	}
	if o.TimestampType == LogAppendTime {
		v.MaxTimestamp, v.MaxTimestampDelta, v.LogAppendTime = o.Now, 0, o.Now
	}
	return v
}

// recompress returns the batch with its records, which are given decompressed,
// under another codec. The records keep their bytes.
func recompress(b Batch, records []byte, target Codec, o *ValidateOptions) (Batch, error) {
	out := make([]byte, BatchHeaderSize, BatchHeaderSize+len(records)/2+64)
	copy(out, b)
	out, err := compress(out, target, o.Level, 2, records)
	if err != nil {
		return nil, err
	}
	if o.MaxBatchBytes > 0 && len(out) > o.MaxBatchBytes {
		return nil, tooLarge(len(out), o)
	}
	n := Batch(out)
	n.putI32(lengthAt, int32(len(out)-entryOverhead))
	n.putI16(attributesAt, b.i16(attributesAt)&(transactionalBit|controlBit)|int16(target))
	n.UpdateCRC()
	return n, nil
}

// retime is recompress for a batch whose producer claimed LogAppendTime on a
// topic of CreateTime: each record gets the timestamp that it would be read with.
func retime(b Batch, records []byte, target Codec, o *ValidateOptions) (Batch, error) {
	options := BatchOptions{LeaderEpoch: NoLeaderEpoch, Codec: target, Level: o.Level,
		Producer:      &Producer{b.ProducerID(), b.ProducerEpoch(), b.BaseSequence()},
		Transactional: b.Transactional(), Control: b.Control()}
	builder := NewBuilder(options)
	var r Record
	at := 0
	for i := int32(0); i < b.Count(); i++ {
		_, _, next := parseV2(records, at, &r)
		if next < 0 {
			return nil, badRecord(records, at, i)
		}
		at = next
		r.Offset, r.Timestamp = int64(i), b.MaxTimestamp()
		builder.AppendRecord(&r)
	}
	out, err := builder.Build()
	if err == nil && o.MaxBatchBytes > 0 && len(out) > o.MaxBatchBytes {
		return nil, tooLarge(len(out), o)
	}
	return out, err
}

// rejections collects the records of a batch that are not accepted.
type rejections struct {
	o         *ValidateOptions
	batchType TimestampType
	errors    []RecordError
	total     int
	timestamp bool // one of them for its timestamp
}

// check looks at one record, as LogValidator.validateRecord does.
func (j *rejections) check(index int32, offset, timestamp int64, hasKey bool) {
	switch {
	case j.o.Compacted && !hasKey:
		j.add(index, "a compacted topic does not accept a record without a key")
	case j.o.TimestampType != LogAppendTime && timestamp != NoTimestamp:
		earliest, latest := j.o.bounds()
		if timestamp < earliest || timestamp > latest {
			j.timestamp = true
			j.add(index, "timestamp %d of the record with offset %d is out of range [%d, %d]",
				timestamp, offset, earliest, latest)
		}
	case j.batchType == LogAppendTime:
		j.timestamp = true
		j.add(index, "a producer may not set the timestamp type LogAppendTime")
	}
}

func (j *rejections) add(index int32, format string, args ...any) {
	j.total++
	if len(j.errors) < MaxRecordErrors {
		j.errors = append(j.errors, RecordError{index, fmt.Sprintf(format, args...)})
	}
}

func (j *rejections) err() error {
	if j.total == 0 {
		return nil
	}
	if j.timestamp {
		return &Error{Code: wire.InvalidTimestamp, Records: j.errors,
			Message: "one or more records have been rejected due to invalid timestamp"}
	}
	return &Error{Code: wire.InvalidRecord, Records: j.errors,
		Message: fmt.Sprintf("one or more records have been rejected due to %d record errors in total, the first: %s",
			j.total, j.errors[0].Message)}
}

// rejected looks at each record of a batch of which some may be not acceptable.
func rejected(b Batch, records []byte, o ValidateOptions) error {
	j := rejections{o: &o, batchType: b.TimestampType()}
	var r Record
	at := 0
	for i := int32(0); i < b.Count(); i++ {
		delta, _, next := parseV2(records, at, &r)
		if next < 0 {
			return badRecord(records, at, i)
		}
		at = next
		timestamp := b.BaseTimestamp() + delta
		if j.batchType == LogAppendTime {
			timestamp = b.MaxTimestamp()
		}
		j.check(i, int64(i), timestamp, r.Key != nil)
	}
	return j.err()
}

// validateLegacy makes one v2 batch of the messages of a v0 or v1 set.
func validateLegacy(set []byte, source Codec, o ValidateOptions) (Validated, error) {
	if o.stream {
		return Validated{}, errNoStream
	}
	options := BatchOptions{LeaderEpoch: NoLeaderEpoch, Codec: o.Codec, Level: o.Level}
	if o.Codec == ProducerCodec {
		options.Codec = source
	}
	if o.TimestampType == LogAppendTime {
		options.AppendTime = o.Now
	}
	builder := NewBuilder(options)
	s := Split(set)
	for s.Next() {
		b := s.Batch()
		j := rejections{o: &o, batchType: b.TimestampType()}
		index := int32(0)
		err := b.each(o.DecompressLimit, func(r *Record) error {
			j.check(index, r.Offset, r.Timestamp, r.Key != nil)
			index++
			if o.MaxRecords > 0 && builder.Count() >= o.MaxRecords {
				return invalid("set exceeds the maximum of %d records", o.MaxRecords)
			}
			if j.total == 0 {
				builder.Append(r.Timestamp, r.Key, r.Value)
			}
			return nil
		})
		if err == nil {
			err = j.err()
		}
		if err != nil {
			return Validated{}, err
		}
	}
	batch, err := builder.Build()
	if err != nil {
		return Validated{}, err
	}
	if o.MaxBatchBytes > 0 && len(batch) > o.MaxBatchBytes {
		return Validated{}, tooLarge(len(batch), &o)
	}
	v := o.facts(batch, builder.maxTimestamp, builder.maxDelta)
	v.Converted = v.Records
	return v, nil
}
