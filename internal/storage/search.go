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
// with -3, KIP-734); found is false in an empty log.
func (l *Log) MaxTimestamp() (at TimestampOffset, found bool, err error) {
	return l.search(func(view tailView, segs []*segment) (TimestampOffset, bool, error) {
		var best *segment
		most := int64(-1)
		for _, seg := range segs {
			if seg.readable(view) == 0 {
				continue
			}
			if _, err := seg.largest(l.dir().fs); err != nil {
				return TimestampOffset{}, false, err
			}
			if ts := seg.maxTimestamp.Load(); ts > most {
				best, most = seg, ts
			}
		}
		if best == nil {
			return TimestampOffset{}, false, nil
		}
		return best.searchTime(most, l.start.Load(), best.readable(view))
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
	ok, err := s.times.floor(ts-1, e[:])
	if err != nil {
		return TimestampOffset{}, false, stale(err)
	}
	if ok { // up to this offset all are older than ts
		from = max(from, s.base+int64(binary.BigEndian.Uint32(e[8:])))
	}
	first, ok, err := s.locate(from, limit)
	if err != nil || !ok {
		return TimestampOffset{}, false, err
	}
	ref, err := s.file.acquire()
	if err != nil {
		return TimestampOffset{}, false, stale(err)
	}
	defer ref.release()
	buf := scanBuffers.Get().(*[]byte)
	defer scanBuffers.Put(buf)
	sc := scan(ref.file, first.pos, limit, *buf)
	for {
		ok, err := sc.step()
		if err != nil {
			return TimestampOffset{}, false, s.corrupt(-1, sc.next, err)
		}
		if !ok {
			return TimestampOffset{}, false, nil
		}
		if sc.header.MaxTimestamp() < ts || sc.header.LastOffset() < start {
			continue
		}
		at, err := s.recordAt(&sc, ts, start)
		if err == errFound {
			return at, true, nil
		}
		if err != nil {
			return TimestampOffset{}, false, s.corrupt(sc.header.BaseOffset(), sc.pos, err)
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
