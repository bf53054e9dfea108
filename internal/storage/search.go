package storage

import (
	"encoding/binary"
	"errors"

	"barnabas/internal/record"
)

// errFound ends a walk over records.
var errFound = errors.New("found")

// OffsetForTimestamp finds the first record with a timestamp (ms) of at least
// ts, as ListOffsets means it; found is false when there is none.
func (l *Log) OffsetForTimestamp(ts int64) (at TimestampOffset, found bool, err error) {
	return l.search(func(view tailView, segs []*segment) (TimestampOffset, bool, error) {
		for _, seg := range segs {
			if seg.readable(view) == 0 {
				continue
			}
			largest, err := seg.largest(l.dir().fs)
			if err != nil {
				return TimestampOffset{}, false, err
			}
			if largest < ts {
				continue
			}
			at, ok, err := seg.searchTime(ts, l.start.Load(), seg.readable(view))
			if ok || err != nil {
				return at, ok, err
			}
		}
		return TimestampOffset{}, false, nil
	})
}

// MaxTimestamp finds the first record with the largest timestamp (ListOffsets
// with -3, KIP-734); found is false in an empty log. Kafka finds none, or names
// one that is gone, where DeleteRecords or compaction took that record away; this
// looks at those that are left.
func (l *Log) MaxTimestamp() (at TimestampOffset, found bool, err error) {
	return l.search(func(view tailView, segs []*segment) (TimestampOffset, bool, error) {
		largest, start := make([]int64, len(segs)), l.start.Load()
		for i, seg := range segs {
			if largest[i] = -1; seg.readable(view) > 0 {
				if _, err := seg.largest(l.dir().fs); err != nil {
					return TimestampOffset{}, false, err
				}
				largest[i] = seg.maxTimestamp.Load()
			}
		}
		for {
			best, most := -1, int64(-1)
			for i, ts := range largest {
				if ts > most {
					best, most = i, ts
				}
			}
			if best < 0 {
				return TimestampOffset{}, false, nil
			}
			seg := segs[best]
			at, found, err := seg.searchTime(most, start, seg.readable(view))
			if found || err != nil {
				return at, found, err
			}
			left, err := seg.largestFrom(start, seg.readable(view))
			if err != nil {
				return TimestampOffset{}, false, err
			}
			largest[best] = min(left, most-1)
		}
	})
}

// search runs a search again when retention took a segment away under it.
func (l *Log) search(try func(tailView, []*segment) (TimestampOffset, bool, error)) (TimestampOffset, bool, error) {
	if err := l.ready(); err != nil {
		return TimestampOffset{}, false, err
	}
	for range 3 {
		view, segs := l.published(-1, -1)
		for len(segs) > 0 && segs[len(segs)-1].base > view.base {
			segs = segs[:len(segs)-1]
		}
		at, ok, err := try(view, segs)
		if err != errStale {
			return at, ok, err
		}
		if err := l.waitForMaintenance(); err != nil {
			return TimestampOffset{}, false, err
		}
	}
	return TimestampOffset{}, false, l.missing(-1)
}

// searchTime finds the first record at or after start with a timestamp of at
// least ts, among the first limit bytes.
func (s *segment) searchTime(ts, start, limit int64) (TimestampOffset, bool, error) {
	if err := s.checkIndexes(); err != nil {
		return TimestampOffset{}, false, err
	}
	from := start
	var e [timeEntry]byte
	ok, err := s.times.floor(timestampOf, ts-1, e[:])
	if err != nil {
		return TimestampOffset{}, false, stale(err)
	}
	if ok { // up to this offset all are older than ts
		from = max(from, s.base+int64(binary.BigEndian.Uint32(e[8:])))
	}
	at, found := TimestampOffset{}, false
	err = s.scanFrom(from, limit, func(sc *scanner) error {
		if sc.header.MaxTimestamp() < ts || sc.header.LastOffset() < start {
			return nil
		}
		at, err = s.recordAt(sc, ts, start)
		found = err == errFound
		return err
	})
	return at, found, err
}

// largestFrom returns the largest timestamp at or after an offset, among the
// first limit bytes; -1 if there is none.
func (s *segment) largestFrom(start, limit int64) (largest int64, err error) {
	largest = -1
	err = s.scanFrom(start, limit, func(sc *scanner) error {
		if sc.header.MaxTimestamp() <= largest || sc.header.LastOffset() < start {
			return nil
		}
		b, err := sc.whole()
		if err != nil {
			return err
		}
		return b.Each(0, func(r *record.Record) error {
			if r.Offset >= start { // a batch that compaction emptied keeps its timestamp
				largest = max(largest, r.Timestamp)
			}
			return nil
		})
	})
	return largest, err
}

// scanFrom calls f with each batch from the one that holds an offset on, among
// the first limit bytes, until it says errFound.
func (s *segment) scanFrom(from, limit int64, f func(*scanner) error) error {
	first, ok, err := s.locate(from, limit)
	if err != nil || !ok {
		return err
	}
	ref, err := s.file.acquire()
	if err != nil {
		return stale(err)
	}
	defer ref.release()
	buf := scanBuffers.Get().(*[]byte)
	defer scanBuffers.Put(buf)
	sc := scan(ref.file, first.pos, limit, *buf)
	for {
		ok, err := sc.step()
		if err != nil {
			return s.corrupt(-1, sc.next, err)
		}
		if !ok {
			return nil
		}
		switch err := f(&sc); err {
		case nil:
		case errFound:
			return nil
		default:
			return s.corrupt(sc.header.BaseOffset(), sc.pos, err)
		}
	}
}

// recordAt looks into a batch; errFound is success.
func (s *segment) recordAt(sc *scanner, ts, start int64) (TimestampOffset, error) {
	b, err := sc.whole()
	if err != nil {
		return TimestampOffset{}, err
	}
	at := TimestampOffset{LeaderEpoch: b.LeaderEpoch()}
	err = b.Each(0, func(r *record.Record) error {
		if r.Timestamp >= ts && r.Offset >= start {
			at.Timestamp, at.Offset = r.Timestamp, r.Offset
			return errFound
		}
		return nil
	})
	return at, err
}
