package record

import "errors"

// Each calls f for each record of the entry, in order. The Record is the same
// one each time and aliases buffers that are used again: f copies what it
// keeps. An error of f ends the walk and is returned as it is.
//
// A compressed entry is decompressed first, up to limit bytes (0: DefaultLimit).
// One that decompresses to more than 8 MiB waits for its turn, as in [Validate], and
// keeps it until f has seen the last record: f must not read another entry.
// The lengths of each record, the record count and, inside compressed v0 and
// v1 entries, the CRCs are checked; the CRC of the entry itself is not (see
// [Batch.Check]). What is wrong is an [Error]. Nothing is allocated for a
// record.
func (b Batch) Each(limit int, f func(*Record) error) error {
	if limit <= 0 {
		limit = DefaultLimit
	}
	err := b.each(min(limit, commonLimit), f)
	if limit <= commonLimit || !errors.Is(err, ErrDecompressedTooLarge) {
		return err
	}
	large <- struct{}{}
	defer func() { <-large }()
	return b.each(limit, f)
}

// each is Each for those who have a turn, or a small limit.
func (b Batch) each(limit int, f func(*Record) error) error {
	if err := b.checkSize(); err != nil {
		return err
	}
	if b.Magic() < 2 {
		return b.eachLegacy(limit, f)
	}
	return b.eachV2(limit, f)
}

// Each calls f for each record of each whole entry of the set, with the entry.
// It ends without an error at a torn tail, as a consumer does, and with an
// [Error] at one that can't be an entry. See [Batch.Each].
func Each(set []byte, limit int, f func(Batch, *Record) error) error {
	s := Split(set)
	var b Batch
	call := func(r *Record) error { return f(b, r) }
	for s.Next() {
		b = s.Batch()
		if err := b.Each(limit, call); err != nil {
			if e, ok := err.(*Error); ok {
				e.Position = s.Position()
			}
			return err
		}
	}
	if err := s.Err(); err != ErrTorn {
		return err
	}
	return nil
}

func (b Batch) eachV2(limit int, f func(*Record) error) error {
	p := []byte(b[BatchHeaderSize:])
	if c := b.Codec(); c != None {
		s := getScratch()
		defer s.release()
		var err error
		if p, err = s.decompress(c, 2, p, limit); err != nil {
			return err
		}
	}
	count := b.Count()
	if count < 0 {
		return invalid("record count %d is negative", count)
	}
	baseOffset, baseTimestamp, baseSequence := b.BaseOffset(), b.BaseTimestamp(), b.BaseSequence()
	appendTime := b.TimestampType() == LogAppendTime
	r := new(Record)
	at := 0
	for i := int32(0); i < count; i++ {
		timestampDelta, offsetDelta, next := parseV2(p, at, r)
		if next < 0 {
			return badRecord(p, at, i)
		}
		at = next
		r.Offset = baseOffset + int64(offsetDelta)
		r.Timestamp = baseTimestamp + timestampDelta
		if appendTime {
			r.Timestamp = b.MaxTimestamp()
		}
		r.Sequence = NoSequence
		if baseSequence >= 0 {
			r.Sequence = AddSequence(baseSequence, offsetDelta)
		}
		if err := f(r); err != nil {
			return err
		}
	}
	if at != len(p) {
		return invalid("batch has %d bytes after its %d records", len(p)-at, count)
	}
	return nil
}

// parseV2 reads the record at p[at:] into r, all but offset, timestamp and
// sequence, and returns its deltas and where it ends, or -1 if it is not well
// formed.
func parseV2(p []byte, at int, r *Record) (timestampDelta int64, offsetDelta int32, next int) {
	n, q := varint(p, at)
	if q < 0 || n < 0 || int(n) > len(p)-q {
		return 0, 0, -1
	}
	next = q + int(n)
	p = p[:next]
	timestampDelta, q = varlong(p, q+1) // after the attributes
	if q < 0 {
		return 0, 0, -1
	}
	if offsetDelta, q = varint(p, q); q < 0 {
		return 0, 0, -1
	}
	if r.Key, q = varbytes(p, q); q < 0 {
		return 0, 0, -1
	}
	if r.Value, q = varbytes(p, q); q < 0 {
		return 0, 0, -1
	}
	if n, q = varint(p, q); q < 0 || n < 0 || int(n) > next-q {
		return 0, 0, -1
	}
	r.Headers = Headers{count: int(n), raw: p[q:]}
	if checkHeaders(p, q, n) != next {
		return 0, 0, -1
	}
	return timestampDelta, offsetDelta, next
}

// varbytes reads a length and that many bytes; a negative length is null.
func varbytes(p []byte, at int) ([]byte, int) {
	n, q := varint(p, at)
	if q < 0 || int(n) > len(p)-q {
		return nil, -1
	}
	if n < 0 {
		return nil, q
	}
	end := q + int(n)
	return p[q:end:end], end
}

// checkHeaders returns where n headers that begin at p[at:] end, or -1 if they
// do not.
func checkHeaders(p []byte, at int, n int32) int {
	for ; n > 0; n-- {
		k, q := varint(p, at)
		if q < 0 || k < 0 || int(k) > len(p)-q {
			return -1
		}
		v, q := varint(p, q+int(k))
		if q < 0 || int(v) > len(p)-q {
			return -1
		}
		at = q + int(max(v, 0))
	}
	return at
}

func badRecord(p []byte, at int, index int32) error {
	if n, q := varint(p, at); q < 0 || n >= 0 && int(n) > len(p)-q {
		return invalid("record %d goes beyond the end of its batch", index)
	}
	return invalid("record %d has lengths that don't fit together", index)
}
