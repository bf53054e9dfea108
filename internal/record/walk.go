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
	at, size := 0, 0
	for i := int32(0); i < count; i++ {
		delta, keyed, next := quick(p, at, i)
		alike := next-at == size // two records in a row: there may be more
		if next < 0 {
			var err error
			if delta, keyed, next, err = careful(p, at, i); err != nil {
				return err
			}
		}
		w.nullKey = w.nullKey || !keyed
		w.timestamp(w.baseTimestamp+delta, i)
		if alike {
			i, next = w.runAlike(p, at, next, i, count)
		}
		size = next - at
		at = next
	}
	if at != len(p) {
		return invalid("batch has %d bytes after its %d records", len(p)-at, count)
	}
	return nil
}

// timestamp takes account of the timestamp of record i.
func (w *walk) timestamp(ms int64, i int32) {
	if ms > w.maxTimestamp {
		w.maxTimestamp, w.maxDelta = ms, i
	}
	if (ms < w.earliest || ms > w.latest) && ms != NoTimestamp {
		w.outOfBounds = true
	}
}

// window is how many bytes quick looks at in one place: more than five lengths
// of three bytes take.
const window = 16 // a power of two

// quick is careful for records as most are: without headers, with a value, with
// numbers of up to three bytes, and not at the end of the batch. For others,
// good or bad, next is -1.
func quick(p []byte, at int, i int32) (delta int64, keyed bool, next int) {
	if len(p)-at < window {
		return 0, false, -1
	}
	b := (*[window]byte)(p[at:])
	n, k := short(b, 0)
	next = at + k + int(n>>1)
	d, k := short(b, k+1) // behind the attributes
	offset, k := short(b, k)
	keySize, k := short(b, k)
	key := int(keySize >> 1)
	keyed = keySize != 1
	if !keyed {
		key = 0
	} else if keySize&1 != 0 {
		return 0, false, -1
	}
	q := at + k + key
	if k > window || len(p)-q < window {
		return 0, false, -1
	}
	size, k := short((*[window]byte)(p[q:]), 0)
	end := q + k + int(size>>1) // of the value: the number of headers follows
	if (n|offset|size)&1 != 0 || offset>>1 != uint32(i) || k > window || end+1 != next || next > len(p) || p[end] != 0 {
		return 0, false, -1
	}
	return int64(d>>1) ^ -int64(d&1), keyed, next
}

// short reads a varint of up to three bytes, without undoing the zig-zag, and
// returns the position after it, which is beyond the window for a longer one.
func short(b *[window]byte, k int) (uint32, int) {
	u := uint32(b[k&(window-1)])
	if u < 0x80 {
		return u, k + 1
	}
	u += uint32(b[(k+1)&(window-1)])<<7 - 0x80
	if u < 0x4000 {
		return u, k + 2
	}
	u += uint32(b[(k+2)&(window-1)])<<14 - 0x4000
	if u < 0x200000 {
		return u, k + 3
	}
	return 0, k + 16*window
}

// careful reads one record at p[at:], which must have the offset delta i.
func careful(p []byte, at int, i int32) (delta int64, keyed bool, next int, err error) {
	n, q := varint(p, at)
	if q < 0 || n < minRecordSize-1 || int(n) > len(p)-q {
		return 0, false, 0, badRecord(p, at, i)
	}
	next = q + int(n)
	q++ // attributes
	delta, q = varlong(p, q)
	if q < 0 {
		return 0, false, 0, badRecord(p, at, i)
	}
	offset, q := varint(p, q)
	if q < 0 {
		return 0, false, 0, badRecord(p, at, i)
	}
	if offset != i {
		return 0, false, 0, invalid("record %d has the offset delta %d", i, offset)
	}
	if n, q = varint(p, q); q < 0 || int(n) > len(p)-q {
		return 0, false, 0, badRecord(p, at, i)
	}
	keyed = n >= 0
	if n, q = varint(p, q+int(max(n, 0))); q < 0 || int(n) > len(p)-q {
		return 0, false, 0, badRecord(p, at, i)
	}
	if n, q = varint(p, q+int(max(n, 0))); q < 0 || n < 0 {
		return 0, false, 0, badRecord(p, at, i)
	}
	if n > 0 {
		q = checkHeaders(p, q, n)
	}
	if q != next {
		return 0, false, 0, badRecord(p, at, i)
	}
	return delta, keyed, next, nil
}
