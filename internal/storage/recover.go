package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// keepCut is how long what recovery took off a log is kept aside.
const keepCut = 7 * 24 * time.Hour

// sameBootCheck is how many bytes at the end of a log have their checksums
// verified when only the process was killed: the page cache has survived, and
// just the last write can be torn. After lost power all are, from the recovery
// point on.
const sameBootCheck = 64 << 20

// maxOffset is beyond what any log gets to: a larger offset is damage.
const maxOffset = 1 << 62

// recover checks the log from the recovery point on, makes the indexes anew
// from there, and cuts at the first bad batch (invariant 5).
func (l *Log) recover(segs []*segment) ([]*segment, int64, error) {
	point := l.found.recovery
	i := max(floorSegment(segs, point), 0)
	end := segs[i].base
	for ; i < len(segs); i++ {
		s := segs[i]
		if s.base < end {
			return l.cutSegments(segs, i, end, fmt.Errorf("the file's name is below the end of the segment before, %d", end))
		}
		until := int64(-1)
		if i+1 < len(segs) {
			until = segs[i+1].base
		}
		if i > 0 && end < s.base {
			l.sayGap(s, end)
		}
		next, good, cause, err := l.recoverSegment(s, max(point, s.base), until)
		if err != nil {
			return nil, 0, err
		}
		end = max(next, s.base)
		s.dirty.Store(s.size.Load() > 0)
		if cause == nil {
			if ts := s.maxTimestamp.Load(); i+1 < len(segs) && ts > s.lastTimeEntry {
				s.times.appendTime(ts, int32(s.maxOffset.Load()-s.base))
			}
			continue
		}
		if err := l.cut(s, good, end, cause); err != nil {
			return nil, 0, err
		}
		if i+1 < len(segs) {
			return l.cutSegments(segs, i+1, end, errors.New("it follows a bad batch"))
		}
	}
	return segs, end, nil
}

// sayGap tells once that there are no records from an offset up to a segment's
// base, as when a segment's file was removed. Compaction leaves gaps, too.
func (l *Log) sayGap(s *segment, from int64) {
	if !l.config.Load().Compact && !s.gap.Swap(true) {
		l.dir().log.Warn("offsets have no records: a segment has gone, or the log was compacted once", "partition", l.tp.String(), "from", from, "up to", s.base, "folder", l.folder())
	}
}

// recoverSegment walks a segment; good is how many of its bytes are whole
// batches, cause why the next one is not. until is the base of the next segment.
func (l *Log) recoverSegment(s *segment, point, until int64) (end, good int64, cause, err error) {
	start, ok, err := l.adoptUpTo(s, point-1)
	if err != nil {
		return 0, 0, nil, err
	}
	if s.size.Load() == 0 {
		return s.base, 0, nil, nil
	}
	if !ok {
		s.offsets.replace(nil)
		s.times.replace(nil)
		start = 0
	}
	for again := true; again; { // each time an offset was restored
		end, good, cause, err = l.walk(s, start, until)
		again = err == errRestored
	}
	if err == nil && start > 0 && good == start {
		// The last entry led astray: the file itself decides.
		s.offsets.replace(nil)
		s.times.replace(nil)
		s.maxTimestamp.Store(-1)
		s.lastTimeEntry = -1
		end, good, cause, err = l.walk(s, 0, until)
	}
	s.knownMax.Store(true)
	return end, good, cause, err
}

// lastIndexed returns the offset of the last index entry, -1 when there is none.
// In a follower's index of Apache Kafka the entry may name an offset that lies
// some batches behind its position.
func (s *segment) lastIndexed() (int64, error) {
	var e [offsetEntry]byte
	has, err := s.offsets.last(e[:])
	if err != nil || !has {
		return -1, err
	}
	return s.base + int64(binary.BigEndian.Uint32(e[:])), nil
}

// walk goes over the batches from start on.
func (l *Log) walk(s *segment, start, until int64) (end, good int64, cause, err error) {
	ref, err := s.file.acquire()
	if err != nil {
		return 0, 0, nil, err
	}
	defer ref.release()
	window, scratch := scanBuffers.Get().(*[]byte), scanBuffers.Get().(*[]byte)
	defer scanBuffers.Put(window)
	defer scanBuffers.Put(scratch)
	if err := s.readFirstTimestamp(ref, *window); err != nil {
		return 0, 0, nil, err
	}
	size := s.size.Load()
	checkFrom := start
	if l.dir().sameBoot {
		checkFrom = max(start, size-sameBootCheck)
	}
	ix := newIndexer(int(l.config.Load().IndexIntervalBytes))
	if ix.after, err = s.lastIndexed(); err != nil {
		return 0, 0, nil, err
	}
	ix.maxTs, ix.maxOff, ix.lastTs = s.maxTimestamp.Load(), s.maxOffset.Load(), s.lastTimeEntry
	end = s.base
	sc := scan(ref.file, start, size, *window)
	before := passed{pos: -1}
	for {
		ok, serr := sc.step()
		if serr != nil {
			cause = serr
			break
		}
		if !ok {
			break
		}
		if cause, err = l.checkBatch(&sc, end, checkFrom, *scratch); cause == errOrder && err == nil {
			err = l.restore(s, ref, &sc, before, end, until, *scratch)
		}
		if err == errRestored {
			return 0, 0, nil, err
		}
		if cause != nil || err != nil {
			sc.next = sc.pos
			break
		}
		before = passed{sc.pos, sc.header.BaseOffset(), sc.header.LastOffset(), end}
		if sc.pos == start && start > 0 {
			before.before = before.base // what is in front of it was not walked
		}
		end = sc.header.LastOffset() + 1
		l.epochs.recovered(sc.header.LeaderEpoch(), sc.header.BaseOffset())
		ix.add(s.base, sc.header, sc.pos, sc.size)
	}
	if cause == nil && err == nil {
		if err = l.restoreLast(s, ref, before, until, *scratch); err != nil {
			return 0, 0, nil, err
		}
	}
	var perr *fs.PathError
	if errors.As(cause, &perr) { // the disk, not the bytes
		return 0, 0, nil, cause
	}
	s.offsets.extend(ix.offsets)
	s.times.extend(ix.times)
	s.sinceIndex, s.lastTimeEntry = ix.since, ix.lastTs
	s.maxTimestamp.Store(ix.maxTs)
	s.maxOffset.Store(ix.maxOff)
	return end, sc.next, cause, err
}

func (l *Log) checkBatch(sc *scanner, end, checkFrom int64, scratch []byte) (cause, err error) {
	h := sc.header
	if h.Magic() >= 2 && h.BaseOffset() < end || h.LastOffset() < end || h.LastOffset() < h.BaseOffset() || h.LastOffset() >= maxOffset {
		return errOrder, nil
	}
	if sc.next <= checkFrom {
		return nil, nil
	}
	err = sc.check(scratch)
	if errors.Is(err, errChecksum) || errors.Is(err, errOrder) {
		return err, nil
	}
	return nil, err
}

// cut takes what is behind good bytes off a segment and keeps it aside in
// <base>.log.<position>.cut, unless it is all zeros.
func (l *Log) cut(s *segment, good, end int64, cause error) error {
	size := s.size.Load()
	aside := fmt.Sprintf("%s.%d%s", s.path(), good, cutSuffix)
	kept, err := copyTail(l.dir(), s, good, size, aside)
	if err != nil {
		return err
	}
	if kept {
		l.dir().removeLater([]string{aside}, keepCut.Milliseconds())
	} else {
		aside = ""
	}
	l.dir().log.Warn("the log was cut at its first bad batch", "partition", l.tp.String(), "segment", s.base,
		"position", good, "bytes", size-good, "end", end, "below recovery point", end < l.found.recovery, "kept in", aside, "cause", cause)
	ref, err := s.file.acquire()
	if err != nil {
		return err
	}
	defer ref.release()
	// Were the bytes to come back after the next crash, in a segment that had been
	// rolled meanwhile, they would lie below the recovery point.
	if err := errors.Join(ref.file.Truncate(good), ref.file.Sync()); err != nil {
		return err
	}
	s.size.Store(good)
	return nil
}

// copyTail writes bytes [from, to) of a segment to a file; false when they are
// all zeros.
func copyTail(d *logDir, s *segment, from, to int64, name string) (bool, error) {
	ref, err := s.file.acquire()
	if err != nil {
		return false, err
	}
	defer ref.release()
	out, err := d.fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return false, err
	}
	buf := scanBuffers.Get().(*[]byte)
	defer scanBuffers.Put(buf)
	some := false
	for at := from; at < to && err == nil; {
		b := (*buf)[:min(int64(len(*buf)), to-at)]
		if _, err = ref.file.ReadAt(b, at); err != nil {
			break
		}
		for _, c := range b {
			some = some || c != 0
		}
		_, err = out.WriteAt(b, at-from)
		at += int64(len(b))
	}
	err = errors.Join(err, out.Close())
	if err == nil && !some {
		err = d.fs.Remove(name)
	}
	return some, err
}

// cutSegments sets whole segments aside, from index i on.
func (l *Log) cutSegments(segs []*segment, i int, end int64, cause error) ([]*segment, int64, error) {
	for _, s := range segs[i:] {
		aside := s.path() + ".0" + cutSuffix
		l.dir().log.Warn("a segment was set aside", "partition", l.tp.String(), "segment", s.base, "bytes", s.size.Load(), "end", end, "kept in", aside, "cause", cause)
		if err := l.dir().fs.Rename(s.path(), aside); err != nil {
			return nil, 0, err
		}
		l.dir().removeLater([]string{aside}, keepCut.Milliseconds())
		for _, suffix := range []string{indexSuffix, timeIndexSuffix, txnIndexSuffix} {
			name := filepath.Join(l.folder(), offsetName(s.base, suffix))
			if err := l.dir().fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, 0, err
			}
		}
		s.close()
	}
	if err := l.dir().fs.SyncDir(l.folder()); err != nil {
		return nil, 0, err
	}
	return segs[:i:i], end, nil
}
