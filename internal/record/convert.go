package record

import (
	"errors"
	"slices"
	"sync"

	"barnabas/internal/wire"
)

// ConvertOptions are for ConvertDown.
type ConvertOptions struct {
	// Magic is the format to convert to: 0 for Fetch v0 and v1, 1 for v2 and v3.
	Magic int8
	// FirstOffset is the offset that the client asked for. Records of an
	// uncompressed entry before it are dropped, since each becomes an entry of
	// its own and some versions of librdkafka rely on it.
	FirstOffset int64
	// DecompressLimit bounds the decompressed bytes of an entry; 0 is 32 MiB or
	// 16 times the entry's size, whichever is more, and at most DefaultLimit: what
	// is converted has to be held as a whole.
	DecompressLimit int
}

// limit is how much an entry may decompress to.
func (o *ConvertOptions) limit(b Batch) int {
	if o.DecompressLimit > 0 {
		return o.DecompressLimit
	}
	return min(max(convertLimit, 16*len(b)), DefaultLimit)
}

const (
	convertLimit = 32 << 20
	// convertAtOnce is up to what size entries are converted side by side.
	convertAtOnce = maxPooledScratch
)

// converting is held by whoever converts an entry larger than convertAtOnce, so
// that old fetches of highly compressed batches take memory for one of them.
var converting sync.Mutex

// ConvertDown returns the set in an older format, for an old fetch (Kafka's
// RecordsUtil.downConvert). Entries of that format or an older one are copied.
// Control batches and headers are dropped. A compressed batch becomes one
// wrapper of the same codec. A torn tail is dropped. The result never aliases
// set; it is empty if no record is left.
//
// An [Error] with UnsupportedCompressionType means that the set has a zstd
// batch, which older formats can't hold; others mean that the set is corrupt.
// What was converted before the bad entry is returned with the error.
func ConvertDown(set []byte, o ConvertOptions) ([]byte, error) {
	if o.Magic < 0 || o.Magic > 1 {
		return slices.Clone(set), nil
	}
	var out []byte
	s := Split(set)
	for s.Next() {
		b := s.Batch()
		next, err := appendOlder(out, b, &o)
		if err != nil {
			if e, ok := err.(*Error); ok {
				e.Position = s.Position()
			}
			return out, err
		}
		out = next
	}
	if err := s.Err(); err != ErrTorn {
		return out, err
	}
	return out, nil
}

// appendOlder appends what an entry becomes.
func appendOlder(out []byte, b Batch, o *ConvertOptions) ([]byte, error) {
	switch {
	case b.Control():
		return out, nil
	case b.Codec() == Zstd:
		return nil, &Error{Code: wire.UnsupportedCompressionType,
			Message: "a zstd batch can't be converted to an older format"}
	case b.Magic() <= o.Magic:
		return append(out, b...), nil
	case b.Compressed():
		return appendWrapper(out, b, o)
	}
	attributes := legacyAttributes(b, o.Magic)
	err := b.each(o.limit(b), func(r *Record) error {
		if r.Offset >= o.FirstOffset {
			out = appendLegacy(out, o.Magic, attributes, r.Offset, r.Timestamp, r.Key, r.Value)
		}
		return nil
	})
	return out, err
}

// legacyAttributes returns the attributes of a message made from b, less the
// codec.
func legacyAttributes(b Batch, magic int8) int8 {
	if magic > 0 && b.TimestampType() == LogAppendTime {
		return logAppendTimeBit
	}
	return 0
}

// appendWrapper appends one compressed message that holds the records of b.
func appendWrapper(out []byte, b Batch, o *ConvertOptions) ([]byte, error) {
	limit := o.limit(b)
	small, err := appendWrapperOf(out, b, o.Magic, min(limit, convertAtOnce), 0)
	if limit <= convertAtOnce || !errors.Is(err, ErrDecompressedTooLarge) {
		return small, err
	}
	converting.Lock()
	defer converting.Unlock()
	size := 0 // known beforehand, the memory need not grow by doubling
	if err := b.each(limit, func(r *Record) error {
		size += len(r.Key) + len(r.Value) + entryOverhead + legacyHeader
		return nil
	}); err != nil {
		return out, err
	}
	return appendWrapperOf(out, b, o.Magic, limit, size)
}

// legacyHeader is more than a message has besides its key and value.
const legacyHeader = 22

func appendWrapperOf(out []byte, b Batch, magic int8, limit, size int) ([]byte, error) {
	attributes := legacyAttributes(b, magic)
	inner := getScratch()
	defer inner.release()
	set := slices.Grow(inner.b[:0], size)
	var base, last int64
	timestamp := NoTimestamp
	n := 0
	err := b.each(limit, func(r *Record) error {
		if n == 0 && magic > 0 {
			base = r.Offset
		}
		n++
		last, timestamp = r.Offset, max(timestamp, r.Timestamp)
		set = appendLegacy(set, magic, attributes, r.Offset-base, r.Timestamp, r.Key, r.Value)
		return nil
	})
	inner.b = set
	if err != nil || n == 0 {
		return out, err
	}
	value := getScratch()
	defer value.release()
	if value.b, err = compress(value.b[:0], b.Codec(), DefaultLevel, magic, set); err != nil {
		return out, err
	}
	return appendLegacy(out, magic, attributes|int8(b.Codec()), last, timestamp, nil, value.b), nil
}

// Message is one message of a v0 or v1 set to build.
type Message struct {
	Offset    int64
	Timestamp int64
	// Key and Value are nil for null.
	Key, Value []byte
}

// BuildMessageSet makes a set of format v0 or v1, as old clients send and old
// brokers keep it. With a codec it is one compressed message, with the inner
// offsets of its format. It is for tests and tools; the broker stores v2 only.
func BuildMessageSet(magic int8, codec Codec, messages ...Message) ([]byte, error) {
	var set []byte
	var base, last int64
	timestamp := NoTimestamp
	for i, m := range messages {
		if i == 0 && magic > 0 && codec != None {
			base = m.Offset
		}
		last, timestamp = m.Offset, max(timestamp, m.Timestamp)
		set = appendLegacy(set, magic, 0, m.Offset-base, m.Timestamp, m.Key, m.Value)
	}
	if codec == None || len(messages) == 0 {
		return set, nil
	}
	value, err := compress(nil, codec, DefaultLevel, magic, set)
	if err != nil {
		return nil, err
	}
	return appendLegacy(nil, magic, int8(codec), last, timestamp, nil, value), nil
}
