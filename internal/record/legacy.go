package record

import "encoding/binary"

var be = binary.BigEndian

// Formats v0 (Kafka 0.8) and v1 (KIP-32, Kafka 0.10; class LegacyRecord):
//
//	 0  offset      int64   of the message; compressed: of the last one inside
//	 8  length      int32   bytes after this field
//	12  crc         uint32  CRC-32 (IEEE) of all from magic to the end
//	16  magic       int8    0 or 1
//	17  attributes  int8    bits 0-2 codec; v1: bit 3 timestamp type
//	18  timestamp   int64   v1 only; compressed: the largest one inside
//	    key length  int32   -1 for null
//	    key
//	    value length int32  -1 for null
//	    value               compressed: a whole set of the same format
//
// The messages inside a compressed one have absolute offsets in v0. In v1
// (KIP-31) they count from 0 and the wrapper's offset is that of the last, so
// absolute = wrapper + inner - last inner. Some versions of librdkafka send 0
// as the wrapper's offset; then the inner ones are taken as they are.
const (
	legacyCRCAt        = 12
	legacyAttributesAt = 17
	legacyTimestampAt  = 18

	legacyKeyAtV0  = 18
	legacyKeyAtV1  = 26
	legacyHeaderV0 = legacyKeyAtV0 + 8 // with both lengths
	legacyHeaderV1 = legacyKeyAtV1 + 8
)

// parseLegacy reads key and value of a v0 or v1 message.
func parseLegacy(b Batch, r *Record) error {
	at := legacyKeyAtV0
	if b.Magic() == 1 {
		at = legacyKeyAtV1
	}
	var ok bool
	if r.Key, at, ok = legacyBytes(b, at); ok {
		r.Value, _, ok = legacyBytes(b, at)
	}
	if !ok {
		return invalid("message at offset %d has lengths beyond its end", b.BaseOffset())
	}
	r.Headers = Headers{}
	r.Sequence = NoSequence
	return nil
}

func legacyBytes(b Batch, at int) ([]byte, int, bool) {
	if at+4 > len(b) {
		return nil, 0, false
	}
	n := int(b.i32(at))
	at += 4
	if n < 0 {
		return nil, at, true
	}
	if n > len(b)-at {
		return nil, 0, false
	}
	return b[at : at+n : at+n], at + n, true
}

func (b Batch) eachLegacy(limit int, f func(*Record) error) error {
	r := new(Record)
	if err := parseLegacy(b, r); err != nil {
		return err
	}
	r.Offset, r.Timestamp = b.BaseOffset(), b.MaxTimestamp()
	if !b.Compressed() {
		return f(r)
	}
	if r.Value == nil {
		return invalid("compressed message at offset %d has no value", b.BaseOffset())
	}
	s := getScratch()
	defer s.release()
	set, err := s.decompress(b.Codec(), b.Magic(), r.Value, limit)
	if err != nil {
		return err
	}
	base, err := b.innerBase(set)
	if err != nil {
		return err
	}
	inner := Split(set)
	for inner.Next() {
		m := inner.Batch()
		if err := m.Check(); err != nil {
			return err
		}
		if err := parseLegacy(m, r); err != nil {
			return err
		}
		r.Offset = base + m.BaseOffset()
		r.Timestamp = m.MaxTimestamp()
		if b.TimestampType() == LogAppendTime {
			r.Timestamp = b.MaxTimestamp()
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// innerBase checks the shape of the set inside a compressed message and returns
// what is added to the offsets in it.
func (b Batch) innerBase(set []byte) (int64, error) {
	last := int64(-1)
	n := 0
	inner := Split(set)
	for inner.Next() {
		m := inner.Batch()
		if m.Magic() != b.Magic() {
			return 0, invalid("message of magic %d inside a compressed one of magic %d", m.Magic(), b.Magic())
		}
		if m.Compressed() {
			return 0, invalid("compressed message inside a compressed message")
		}
		last = m.BaseOffset()
		n++
	}
	if err := inner.Err(); err != nil && err != ErrTorn {
		return 0, err
	}
	if n == 0 {
		return 0, invalid("compressed message without messages inside")
	}
	wrapper := b.BaseOffset()
	if b.Magic() == 0 || wrapper == 0 {
		return 0, nil
	}
	if wrapper < last {
		return 0, invalid("offset %d of a compressed message is below the last one inside, %d", wrapper, last)
	}
	return wrapper - last, nil
}

// appendLegacy appends a v0 or v1 message. The timestamp is not used by v0.
func appendLegacy(dst []byte, magic int8, attributes int8, offset, timestamp int64, key, value []byte) []byte {
	start := len(dst)
	size := legacyHeaderV0 + len(key) + len(value)
	if magic == 1 {
		size += 8
	}
	dst = be.AppendUint64(dst, uint64(offset))
	dst = be.AppendUint32(dst, uint32(size-entryOverhead))
	dst = append(dst, 0, 0, 0, 0, byte(magic), byte(attributes))
	if magic == 1 {
		dst = be.AppendUint64(dst, uint64(timestamp))
	}
	dst = appendLegacyBytes(dst, key)
	dst = appendLegacyBytes(dst, value)
	Batch(dst[start:]).UpdateCRC()
	return dst
}

func appendLegacyBytes(dst, p []byte) []byte {
	if p == nil {
		return be.AppendUint32(dst, 1<<32-1)
	}
	dst = be.AppendUint32(dst, uint32(len(p)))
	return append(dst, p...)
}
