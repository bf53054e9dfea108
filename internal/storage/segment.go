package storage

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"sync/atomic"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

// segment is one .log file with its indexes.
type segment struct {
	location
	file    handle
	offsets index
	times   index
	txns    txnIndex
	size    atomic.Int64 // bytes of the .log file that count
	created int64        // ms; when this process made or found it

	// largest timestamp and the last offset of its batch, for the time index;
	// -1: not known, or there is none. Written under Log.mu.
	maxTimestamp atomic.Int64
	maxOffset    atomic.Int64
	knownMax     atomic.Bool // the two are right

	// of the active segment, guarded by Log.mu
	firstTimestamp int64 // of the first batch, -1 while there is none
	sinceIndex     int   // bytes since the last index entry
	lastTimeEntry  int64 // timestamp of the last time index entry, -1
	room           int64 // up to where this process reserved room on the disk

	active   atomic.Bool // appends go here; its indexes are not rebuilt by readers
	reserved atomic.Bool // there may be room on the disk beyond its end

	dirty   atomic.Bool // the .log file has bytes that were not synced
	gap     atomic.Bool // the gap in front of it was told of
	rebuilt atomic.Bool // the index was rebuilt once; not again for long scans
}

func newSegment(at *home, base, now int64) *segment {
	s := &segment{created: now, firstTimestamp: -1, lastTimeEntry: -1}
	s.base = base
	s.home.Store(at)
	s.file.at, s.file.suffix = &s.location, logSuffix
	s.offsets.init(&s.location, indexSuffix, offsetEntry)
	s.times.init(&s.location, timeIndexSuffix, timeEntry)
	s.txns.at = &s.location
	s.maxTimestamp.Store(-1)
	s.maxOffset.Store(-1)
	return s
}

func (s *segment) path() string { return s.file.path() }

func (s *segment) corrupt(offset, pos int64, cause error) error {
	return &CorruptionError{Path: s.path(), Segment: s.base, Offset: offset, Pos: pos, Cause: cause}
}

// close ends the handles; slices in use stay readable.
func (s *segment) close() {
	s.file.close()
	s.offsets.close()
	s.times.close()
}

var errStale = errors.New("the segment has gone") // internal: look again

// stale turns "no such file" of a segment that was deleted under a reader into
// errStale.
func stale(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrClosed) {
		return errStale
	}
	return err
}

// place is where a batch lies.
type place struct {
	pos, size  int64
	base, last int64
}

// locate finds the first batch that reaches offset, among the first limit bytes;
// false when all end below it.
func (s *segment) locate(offset, limit int64) (place, bool, error) {
	if limit == 0 {
		return place{}, false, nil // the file may not have been made yet
	}
	start, err := s.floor(offset)
	if err != nil {
		return place{}, false, err
	}
	at, ok, hops, err := s.find(start, offset, limit)
	lost := start > 0 && (start >= limit || err != nil && !errors.Is(err, errStale) || ok && at.pos == start && at.base > offset)
	far := hops > 4096 && s.rebuilt.CompareAndSwap(false, true)
	if !lost && !far {
		return at, ok, err
	}
	// The index does not lead to a batch, or leads far off: it is no help.
	start = 0
	if !s.active.Load() {
		if err := s.rebuildIndexes(limit); err != nil {
			return place{}, false, err
		}
		if start, err = s.floor(offset); err != nil {
			return place{}, false, err
		}
	}
	at, ok, _, err = s.find(start, offset, limit)
	return at, ok, err
}

// floor returns the position of the index entry for offset, or 0.
func (s *segment) floor(offset int64) (int64, error) {
	if err := s.checkIndexes(); err != nil {
		return 0, err
	}
	var e [offsetEntry]byte
	ok, err := s.offsets.floor(relativeOf, min(offset-s.base, 1<<31-1), e[:])
	if err != nil || !ok {
		return 0, stale(err)
	}
	return positionOf(e[:]), nil
}

func (s *segment) find(start, offset, limit int64) (place, bool, int, error) {
	ref, err := s.file.acquire()
	if err != nil {
		return place{}, false, 0, stale(err)
	}
	defer ref.release()
	buf := lookupBuffers.Get().(*[]byte)
	defer lookupBuffers.Put(buf)
	sc := scan(ref.file, start, limit, *buf)
	for {
		ok, err := sc.step()
		if err != nil {
			return place{}, false, sc.hops, s.corrupt(offset, sc.next, err)
		}
		if !ok {
			return place{}, false, sc.hops, nil
		}
		if last := sc.header.LastOffset(); last >= offset {
			return place{sc.pos, sc.size, sc.header.BaseOffset(), last}, true, sc.hops, nil
		}
	}
}

// checkIndexes looks at the index files when they are first used, and rebuilds
// what can't be right.
func (s *segment) checkIndexes() error {
	if s.offsets.state.Load().known && s.times.state.Load().known {
		return nil
	}
	s.offsets.check.Lock()
	defer s.offsets.check.Unlock()
	if s.offsets.state.Load().known && s.times.state.Load().known {
		return nil
	}
	good, err := s.adoptIndexes()
	if err != nil {
		return stale(err)
	}
	if good {
		return nil
	}
	return s.rebuildIndexesLocked(s.size.Load())
}

// adoptIndexes takes the files over if the last entry of each can be true.
func (s *segment) adoptIndexes() (bool, error) {
	good, err := s.offsets.adopt()
	if err != nil {
		return false, err
	}
	goodTimes, err := s.times.adopt()
	if err != nil {
		return false, err
	}
	var e [timeEntry]byte
	if good {
		ok, err := s.offsets.last(e[:])
		if err != nil {
			return false, err
		}
		good = !ok || int64(binary.BigEndian.Uint32(e[4:])) < s.size.Load()
	}
	if !good || !goodTimes {
		s.offsets.state.Store(unknown)
		s.times.state.Store(unknown)
	}
	return good && goodTimes, nil
}

func (s *segment) rebuildIndexes(limit int64) error {
	s.offsets.check.Lock()
	defer s.offsets.check.Unlock()
	return s.rebuildIndexesLocked(limit)
}

// rebuildInterval is the spacing of entries of an index that is rebuilt by a
// reader: Kafka's default of index.interval.bytes.
const rebuildInterval = 4096

// rebuildIndexesLocked makes both indexes from the batches; offsets.check is
// held. The files are written by the next flush.
func (s *segment) rebuildIndexesLocked(limit int64) error {
	ref, err := s.file.acquire()
	if err != nil {
		return stale(err)
	}
	defer ref.release()
	buf := scanBuffers.Get().(*[]byte)
	defer scanBuffers.Put(buf)
	ix := newIndexer(rebuildInterval)
	sc := scan(ref.file, 0, limit, *buf)
	for {
		ok, err := sc.step()
		if err != nil || !ok {
			break // what is behind a bad batch has no entries: it can't be reached
		}
		ix.add(s.base, sc.header, sc.pos, sc.size)
	}
	ix.finish(s.base)
	s.offsets.replace(ix.offsets)
	s.times.replace(ix.times)
	return nil
}

// indexer makes index entries as Kafka's LogSegment.append does.
type indexer struct {
	interval       int
	since          int
	after          int64 // no entries up to this offset: there are some
	maxTs, maxOff  int64
	lastTs         int64 // of the last time entry
	offsets, times []byte
}

func newIndexer(interval int) *indexer {
	return &indexer{interval: interval, after: -1, maxTs: -1, maxOff: -1, lastTs: -1}
}

func (ix *indexer) add(base int64, h record.Batch, pos, size int64) {
	if ts := h.MaxTimestamp(); ts > ix.maxTs {
		ix.maxTs, ix.maxOff = ts, h.LastOffset()
	}
	if ix.since > ix.interval && h.LastOffset() > ix.after {
		ix.offsets = binary.BigEndian.AppendUint32(ix.offsets, uint32(h.LastOffset()-base))
		ix.offsets = binary.BigEndian.AppendUint32(ix.offsets, uint32(pos))
		ix.addTime(base)
		ix.since = 0
	}
	ix.since += int(size)
}

func (ix *indexer) addTime(base int64) {
	if ix.maxTs <= ix.lastTs {
		return
	}
	ix.times = binary.BigEndian.AppendUint64(ix.times, uint64(ix.maxTs))
	ix.times = binary.BigEndian.AppendUint32(ix.times, uint32(ix.maxOff-base))
	ix.lastTs = ix.maxTs
}

// finish adds the last time entry, which a rolled segment has.
func (ix *indexer) finish(base int64) { ix.addTime(base) }

// largest returns the segment's largest timestamp as retention and searches by
// time need it: that of the time index, else the file's time of change.
func (s *segment) largest(fsys vfs.FS) (int64, error) {
	if ts := s.maxTimestamp.Load(); s.knownMax.Load() && ts >= 0 {
		return ts, nil
	}
	if !s.knownMax.Load() {
		if err := s.checkIndexes(); err != nil {
			return 0, err
		}
		var e [timeEntry]byte
		ok, err := s.times.last(e[:])
		if err != nil {
			return 0, stale(err)
		}
		if ok {
			s.maxOffset.Store(s.base + int64(binary.BigEndian.Uint32(e[8:])))
			s.maxTimestamp.Store(int64(binary.BigEndian.Uint64(e[:])))
		}
		s.knownMax.Store(true)
		if ok {
			return s.maxTimestamp.Load(), nil
		}
	}
	info, err := fsys.Stat(s.path())
	if err != nil {
		return 0, stale(err)
	}
	return info.ModTime().UnixMilli(), nil
}

// remove renames the segment's files out of the way, so that a start that finds
// them deletes them, and returns the new names. close must have been called.
func (s *segment) markDeleted(fsys vfs.FS) ([]string, error) {
	var names []string
	var errs []error
	for _, suffix := range []string{logSuffix, indexSuffix, timeIndexSuffix, txnIndexSuffix} {
		name := s.name(suffix)
		err := fsys.Rename(name, name+deletedSuffix)
		if err == nil {
			names = append(names, name+deletedSuffix)
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return names, errors.Join(errs...)
}
