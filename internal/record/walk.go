package record

import "math"

// walk checks the records of a v2 batch in one pass: that each is well formed
// and that they have the offset deltas 0, 1, 2 and so on. It is what a leader
// does with every record, so it reads lengths and skips the rest.
type walk struct {
	// in
	baseTimestamp int64
	// earliest and latest are the bounds of timestamps, both allowed.
	earliest, latest int64

	// out
	maxTimestamp int64
	maxDelta     int32
	nullKey      bool // some record has no key
	outOfBounds  bool // some timestamp is neither NoTimestamp nor in bounds
}

// newWalk returns a walk without bounds on timestamps.
func newWalk(baseTimestamp int64) walk {
	return walk{baseTimestamp: baseTimestamp, earliest: math.MinInt64, latest: math.MaxInt64,
		maxTimestamp: NoTimestamp, maxDelta: -1}
}

// run walks count records that fill p.
func (w *walk) run(p []byte, count int32) error {
	maxTimestamp, maxDelta := w.maxTimestamp, w.maxDelta
	base, earliest, latest := w.baseTimestamp, w.earliest, w.latest
	at := 0
	for i := int32(0); i < count; i++ {
		n, q := varint(p, at)
		if q < 0 || n < minRecordSize-1 || int(n) > len(p)-q {
			return badRecord(p, at, i)
		}
		next := q + int(n)
		q++ // attributes
		delta, q := varlong(p, q)
		if q < 0 {
			return badRecord(p, at, i)
		}
		offset, q := varint(p, q)
		if q < 0 {
			return badRecord(p, at, i)
		}
		if offset != i {
			return invalid("record %d has the offset delta %d", i, offset)
		}
		if n, q = varint(p, q); q < 0 || int(n) > len(p)-q {
			return badRecord(p, at, i)
		}
		if n < 0 {
			w.nullKey = true
			n = 0
		}
		if n, q = varint(p, q+int(n)); q < 0 || int(n) > len(p)-q {
			return badRecord(p, at, i)
		}
		if n > 0 {
			q += int(n)
		}
		if n, q = varint(p, q); q < 0 || n < 0 {
			return badRecord(p, at, i)
		}
		if n > 0 {
			q = checkHeaders(p, q, n)
		}
		if q != next {
			return badRecord(p, at, i)
		}
		at = next

		timestamp := base + delta
		if timestamp > maxTimestamp {
			maxTimestamp, maxDelta = timestamp, i
		}
		if (timestamp < earliest || timestamp > latest) && timestamp != NoTimestamp {
			w.outOfBounds = true
		}
	}
	w.maxTimestamp, w.maxDelta = maxTimestamp, maxDelta
	if at != len(p) {
		return invalid("batch has %d bytes after its %d records", len(p)-at, count)
	}
	return nil
}
