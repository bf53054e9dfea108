package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

// folder is what a partition's folder holds.
type folder struct {
	bases     []int64 // of .log files
	snapshots []int64
	doomed    []string // leftovers to remove
	swaps     []string // cleaner output that is complete
	cleaned   int64    // lowest base of a .cleaned file, -1
}

// load finds the segments and the end of the log, once.
func (l *Log) load() error {
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	switch l.state.Load() {
	case loaded:
		return nil
	case closed:
		return ErrClosed
	case broken:
		return *l.failure.Load()
	}
	vouched, cleaned := l.found.recovery, l.cleaned.Load()
	err := l.loadHeld()
	if err == nil && l.copying {
		err = l.keepDurable(vouched)
	}
	if err == nil {
		l.epochs.assign(l.assigned, l.tail.end.Load())
		l.state.Store(loaded)
		// The checkpoints must not vouch for other records to come.
		if l.cleaned.Load() < cleaned {
			err = l.dir().saveCleaned(true)
		}
		if l.recovery.Load() < vouched {
			err = errors.Join(err, l.dir().saveRecoveryPoints(true))
		}
		return err
	}
	err = fmt.Errorf("load %s: %w", l.folder(), err)
	l.failure.Store(&err)
	l.state.Store(broken)
	var corrupt *CorruptionError
	if !errors.As(err, &corrupt) {
		l.dir().fail(err)
	}
	return err
}

// keepDurable drops what a copy has above the recovery point: lost power may have
// left holes there, and the original has it all.
func (l *Log) keepDurable(point int64) error {
	segs := *l.segments.Load()
	switch {
	case point >= l.tail.end.Load():
		return nil
	case point < segs[0].base:
		return l.restartAt(point)
	default:
		return l.truncateHeld(segs, point)
	}
}

func (l *Log) loadHeld() error {
	f, err := l.readFolder()
	if err != nil {
		return err
	}
	segs, err := l.openSegments(f)
	if err != nil {
		return err
	}
	lostEpochs, err := l.loadEpochs()
	if err != nil {
		return err
	}
	end, intact := int64(-1), false
	if l.found.clean && l.found.known {
		if end, err = l.findEnd(segs[len(segs)-1]); err != nil {
			return err
		}
		intact = end == l.found.recovery
		if !intact {
			l.dir().log.Warn("the log does not end where the clean stop said; it is checked", "partition", l.tp.String(), "end", end, "expected", l.found.recovery)
		}
	}
	if !intact {
		if segs, end, err = l.recover(segs); err != nil {
			return err
		}
	}
	if segs, end, err = l.applyStart(segs, end); err != nil {
		return err
	}
	l.epochs.truncateFromEnd(end)
	l.epochs.truncateFromStart(l.start.Load())
	if lostEpochs && l.found.recovery > l.start.Load() { // else there are no batches, or recovery has passed them all
		if err := l.rebuildEpochs(segs); err != nil {
			return err
		}
	}
	p, err := l.loadProducers(f.snapshots, segs, end, intact)
	if err != nil {
		return err
	}
	active := segs[len(segs)-1]
	active.active.Store(true)
	if size := active.size.Load(); size > reserveStep || size > 0 && l.config.Load().Preallocate {
		active.reserved.Store(true) // by the last run
	}
	l.recovery.Store(min(max(l.found.recovery, segs[0].base), end))
	l.flushed.Store(l.recovery.Load())
	l.cleaned.Store(min(l.cleaned.Load(), end))
	l.hw.Store(min(max(l.hw.Load(), l.start.Load()), end))
	if end > l.recovery.Load() {
		l.unsyncedAt.Store(l.dir().now().UnixMilli())
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.producers = p
	l.mu.jitter = jitter(l.config.Load())
	l.unstable.Store(p.firstUnstable(l.hw.Load()))
	l.publish(segs)
	l.tail.reset(active.base, active.size.Load(), end)
	return nil
}

// readFolder sorts the files and finishes what a crash interrupted.
func (l *Log) readFolder() (folder, error) {
	f := folder{cleaned: -1}
	entries, err := l.dir().fs.ReadDir(l.folder())
	if err != nil {
		return f, err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir():
		case strings.HasSuffix(name, deletedSuffix), strings.HasSuffix(name, tmpSuffix):
			f.doomed = append(f.doomed, name)
		case strings.HasSuffix(name, cleanedSuffix):
			f.doomed = append(f.doomed, name)
			if base, ok := parseOffsetName(strings.TrimSuffix(name, cleanedSuffix), logSuffix); ok && (f.cleaned < 0 || base < f.cleaned) {
				f.cleaned = base
			}
		case strings.HasSuffix(name, cutSuffix):
			if info, err := e.Info(); err == nil {
				age := l.dir().now().Sub(info.ModTime())
				l.dir().removeLater([]string{filepath.Join(l.folder(), name)}, max(keepCut-age, 0).Milliseconds())
			}
		case strings.HasSuffix(name, swapSuffix):
			f.swaps = append(f.swaps, name)
		default:
			if base, ok := parseOffsetName(name, logSuffix); ok {
				f.bases = append(f.bases, base)
			} else if offset, ok := parseOffsetName(name, snapshotSuffix); ok {
				f.snapshots = append(f.snapshots, offset)
			}
		}
	}
	if err := l.finishSwaps(&f); err != nil {
		return f, err
	}
	for _, name := range f.doomed {
		if err := l.dir().fs.Remove(filepath.Join(l.folder(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	slices.Sort(f.bases)
	f.bases = slices.Compact(f.bases)
	slices.Sort(f.snapshots)
	return f, nil
}

// finishSwaps completes a cleaner's replacement: a .swap file takes the place of
// the segments it was made from, unless cleaning of its range was not through
// (a .cleaned file at or below it), when the originals are still there.
func (l *Log) finishSwaps(f *folder) error {
	for _, name := range f.swaps {
		target := strings.TrimSuffix(name, swapSuffix)
		base, isLog := parseOffsetName(target, logSuffix)
		if !isLog {
			f.doomed = append(f.doomed, name) // indexes are rebuilt
			continue
		}
		if f.cleaned >= 0 && base >= f.cleaned {
			f.doomed = append(f.doomed, name)
			continue
		}
		next, err := l.endOf(name)
		if err != nil {
			return err
		}
		kept := f.bases[:0]
		for _, b := range f.bases {
			if b >= base && b < next || b == base {
				l.dir().log.Warn("a segment was replaced by the cleaner's output that a crash left behind", "partition", l.tp.String(), "segment", b)
				for _, suffix := range []string{logSuffix, indexSuffix, timeIndexSuffix, txnIndexSuffix} {
					if err := l.dir().fs.Remove(filepath.Join(l.folder(), offsetName(b, suffix))); err != nil && !errors.Is(err, fs.ErrNotExist) {
						return err
					}
				}
			} else {
				kept = append(kept, b)
			}
		}
		for _, suffix := range []string{indexSuffix, timeIndexSuffix} { // of the old segment, or made anew
			if err := l.dir().fs.Remove(filepath.Join(l.folder(), offsetName(base, suffix))); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := l.dir().fs.Rename(filepath.Join(l.folder(), name), filepath.Join(l.folder(), target)); err != nil {
			return err
		}
		f.bases = append(kept, base)
	}
	return nil
}

// endOf returns the offset after the last whole batch of a file.
func (l *Log) endOf(name string) (int64, error) {
	file, err := l.dir().fs.OpenFile(filepath.Join(l.folder(), name), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return 0, err
	}
	next := int64(-1)
	sc := scan(file, 0, size, make([]byte, scanWindow))
	for {
		if ok, err := sc.step(); err != nil || !ok {
			return next, nil
		}
		next = sc.header.LastOffset() + 1
	}
}

// openSegments makes the segments of the .log files, at least one.
func (l *Log) openSegments(f folder) ([]*segment, error) {
	now := l.dir().now().UnixMilli()
	var segs []*segment
	for _, base := range f.bases {
		s := newSegment(l.home.Load(), base, now)
		info, err := l.dir().fs.Stat(s.path())
		if err != nil {
			return nil, err
		}
		s.size.Store(info.Size())
		segs = append(segs, s)
	}
	if len(segs) > 0 {
		return segs, nil
	}
	if l.found.start > 0 { // its name is all that tells where the log begins
		s, err := l.createSegment(l.found.start, now)
		return []*segment{s}, err
	}
	return []*segment{l.emptySegment(l.found.start, now)}, nil
}

// findEnd walks the batches behind the last index entry of the active segment
// and returns the end of the log, -1 when there is something that is no batch.
// It notes the largest timestamp and how far the next index entry is.
func (l *Log) findEnd(s *segment) (int64, error) {
	start, ok, err := l.adoptUpTo(s, maxOffset)
	if err != nil || !ok {
		return -1, err
	}
	if s.size.Load() == 0 {
		return s.base, nil
	}
	ref, err := s.file.acquire()
	if err != nil {
		return -1, err
	}
	defer ref.release()
	buf := lookupBuffers.Get().(*[]byte)
	defer lookupBuffers.Put(buf)
	if err := s.readFirstTimestamp(ref, *buf); err != nil {
		return -1, err
	}
	end := s.base
	sc := scan(ref.file, start, s.size.Load(), *buf)
	for {
		ok, err := sc.step()
		if err != nil {
			return -1, nil // recovery says what it is
		}
		if !ok {
			return end, nil
		}
		if sc.header.LastOffset() < end {
			return -1, nil
		}
		end = sc.header.LastOffset() + 1
		s.sinceIndex += int(sc.size)
		if ts := sc.header.MaxTimestamp(); ts > s.maxTimestamp.Load() {
			s.maxTimestamp.Store(ts)
			s.maxOffset.Store(sc.header.LastOffset())
		}
	}
}

// adoptUpTo takes the index files of the last segment over, up to entries
// at most at offset, and returns the position of the last one: a good place to
// scan from. ok is false when the indexes are missing or can't be true.
func (l *Log) adoptUpTo(s *segment, offset int64) (start int64, ok bool, err error) {
	s.maxTimestamp.Store(-1)
	s.maxOffset.Store(-1)
	s.lastTimeEntry, s.firstTimestamp, s.sinceIndex = -1, -1, 0
	if s.size.Load() == 0 {
		s.offsets.fresh()
		s.times.fresh()
		s.knownMax.Store(true)
		return 0, true, nil
	}
	ok, err = s.adoptIndexes()
	if err != nil || !ok {
		return 0, false, err
	}
	n, err := s.offsets.search(func(e []byte) bool {
		return s.base+int64(binary.BigEndian.Uint32(e)) <= offset
	})
	if err != nil {
		return 0, false, err
	}
	s.offsets.keep(n)
	last := int64(0) // relative offset up to which time entries stay
	var e [timeEntry]byte
	if has, err := s.offsets.last(e[:]); err != nil {
		return 0, false, err
	} else if has {
		last, start = int64(binary.BigEndian.Uint32(e[:])), int64(binary.BigEndian.Uint32(e[4:]))
	}
	if offset < maxOffset {
		n, err := s.times.search(func(e []byte) bool { return int64(binary.BigEndian.Uint32(e[8:])) <= last })
		if err != nil {
			return 0, false, err
		}
		s.times.keep(n)
	}
	if has, err := s.times.last(e[:]); err != nil {
		return 0, false, err
	} else if has {
		s.lastTimeEntry = int64(binary.BigEndian.Uint64(e[:]))
		s.maxTimestamp.Store(s.lastTimeEntry)
		s.maxOffset.Store(s.base + int64(binary.BigEndian.Uint32(e[8:])))
	}
	s.knownMax.Store(true)
	return start, true, nil
}

func (s *segment) readFirstTimestamp(ref *FileRef, buf []byte) error {
	sc := scan(ref.file, 0, s.size.Load(), buf[:record.BatchHeaderSize])
	if ok, err := sc.step(); ok {
		s.firstTimestamp = sc.header.MaxTimestamp()
	} else if err != nil && !errors.Is(err, errTorn) {
		return nil // not a batch: found out elsewhere
	}
	return nil
}

// applyStart works out the first readable offset. A start beyond the end, which
// happens when the start's checkpoint survived and the records did not, begins
// the log anew there.
func (l *Log) applyStart(segs []*segment, end int64) ([]*segment, int64, error) {
	start := max(l.found.start, segs[0].base)
	if start > end {
		l.dir().log.Warn("the log start offset lies beyond the end; the log begins anew there", "partition", l.tp.String(), "start", start, "end", end)
		for _, s := range segs {
			s.close()
			if _, err := s.markDeleted(l.dir().fs); err != nil {
				return nil, 0, err
			}
		}
		s, err := l.createSegment(start, l.dir().now().UnixMilli())
		if err != nil {
			return nil, 0, err
		}
		segs, end = []*segment{s}, start
		// Were the old names to come back, they would lie below the recovery point.
		if err := l.dir().fs.SyncDir(l.folder()); err != nil {
			return nil, 0, err
		}
	}
	l.start.Store(start)
	l.startRaised.Store(start > segs[0].base)
	return segs, end, nil
}

// loadEpochs reads leader-epoch-checkpoint. It is no error, but told, when the file
// is damaged, missing or has no entries: the batches know their epochs.
func (l *Log) loadEpochs() (lost bool, err error) {
	name := filepath.Join(l.folder(), epochFile)
	data, err := vfs.ReadFile(l.dir().fs, name, maxSmallFile)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if err := l.epochs.parse(data); err != nil {
		l.epochs.markSaved([]epochStart{{epoch: -1}}, false) // the file holds something else
		l.dir().log.Warn("leader-epoch-checkpoint is damaged; it is rebuilt from the batches", "partition", l.tp.String(), "error", err)
		return true, nil
	}
	return l.epochs.latest() < 0, nil
}

// rebuildEpochs reads the epochs of all batches from the start offset on, unless
// the newest have none, as those of old formats: once a log has epochs, all that
// comes has one.
func (l *Log) rebuildEpochs(segs []*segment) error {
	some, err := l.newestHaveEpochs(segs)
	if err != nil || !some {
		return err
	}
	l.epochs.clear()
	return l.eachBatch(segs, l.start.Load(), func(s *segment, sc *scanner) error {
		if e := sc.header.LeaderEpoch(); e >= 0 {
			l.epochs.assign(e, max(sc.header.BaseOffset(), l.start.Load()))
		}
		return nil
	})
}

// newestHaveEpochs looks at the batches behind the last index entry of the last
// segment that has any.
func (l *Log) newestHaveEpochs(segs []*segment) (some bool, err error) {
	for i, s := range slices.Backward(segs) {
		if s.size.Load() == 0 {
			continue
		}
		if err := s.checkIndexes(); err != nil {
			return false, err
		}
		from, err := s.lastIndexed()
		if err != nil {
			return false, err
		}
		err = l.eachBatch(segs[i:i+1], from, func(_ *segment, sc *scanner) error {
			some = some || sc.header.LeaderEpoch() >= 0
			return nil
		})
		return some, err
	}
	return false, nil
}

// eachBatch calls f for the batches that reach from or beyond.
func (l *Log) eachBatch(segs []*segment, from int64, f func(*segment, *scanner) error) error {
	buf := scanBuffers.Get().(*[]byte)
	defer scanBuffers.Put(buf)
	for _, s := range segs[max(floorSegment(segs, from), 0):] {
		first, ok, err := s.locate(from, s.size.Load())
		var damage *CorruptionError
		if errors.As(err, &damage) {
			l.dir().log.Error("a segment is damaged below the recovery point; reads of it will fail", "partition", l.tp.String(), "error", err)
			continue
		}
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		ref, err := s.file.acquire()
		if err != nil {
			return err
		}
		sc := scan(ref.file, first.pos, s.size.Load(), *buf)
		for err == nil {
			var ok bool
			if ok, err = sc.step(); !ok {
				break // damage below the recovery point is named when it is read
			}
			err = f(s, &sc)
		}
		ref.release()
		var corrupt *record.Error
		if err != nil && !errors.Is(err, errTorn) && !errors.As(err, &corrupt) {
			return err
		}
	}
	return nil
}

// loadProducers reads the newest snapshot that can be read, and replays what
// came after it. After a clean stop without any snapshot there was no producer
// (Kafka takes none of old logs either).
func (l *Log) loadProducers(snapshots []int64, segs []*segment, end int64, intact bool) (*producers, error) {
	p, from, gone := newProducers(), segs[0].base, false
	l.snapshotAt = -1
	for _, offset := range slices.Backward(snapshots) {
		name := filepath.Join(l.folder(), offsetName(offset, snapshotSuffix))
		if offset >= segs[0].base && offset <= end {
			data, err := vfs.ReadFile(l.dir().fs, name, maxSmallFile)
			if err != nil {
				return nil, err
			}
			got, err := decodeProducers(data)
			if err == nil {
				p, from, l.snapshotAt = got, offset, offset
				p.snapshot = offset
				intact = false
				break
			}
			l.dir().log.Warn("a producer snapshot is damaged; an older one is used", "file", name, "error", err)
		}
		if err := l.dir().fs.Remove(name); err != nil {
			return nil, err
		}
		intact, gone = false, true
	}
	if gone { // if it came back after a crash, it would tell of another past
		if err := l.dir().fs.SyncDir(l.folder()); err != nil {
			return nil, err
		}
	}
	for _, s := range segs[max(floorSegment(segs, from), 0):] {
		if err := l.loadTxns(s, end); err != nil {
			return nil, err
		}
	}
	if intact || from >= end {
		return p, nil
	}
	return p, l.replay(p, segs, from)
}

// loadTxns reads a segment's transaction index; a damaged one is made anew.
func (l *Log) loadTxns(s *segment, end int64) error {
	err := s.txns.load(l.dir().fs)
	if errors.Is(err, errTxnIndex) {
		l.dir().log.Warn("a transaction index is damaged; it is rebuilt from the segment", "error", err)
		s.txns.reset(true)
		err = l.replay(newProducers(), []*segment{s}, s.base)
	}
	s.txns.truncate(end)
	return err
}

// replay applies the batches from an offset on to the producers.
func (l *Log) replay(p *producers, segs []*segment, from int64) error {
	return l.eachBatch(segs, from, func(s *segment, sc *scanner) error {
		h := sc.header
		if !h.HasProducerID() || h.BaseOffset() < from {
			return nil
		}
		var m marker
		if h.Control() {
			b, err := sc.whole()
			if err != nil {
				return err
			}
			if m, err = readMarker(b); err != nil {
				return nil // as a follower does
			}
		}
		done, ok := p.apply(h, m)
		if ok && done.aborted && !s.txns.has(done.txn.last) {
			s.txns.add(abortedTxn{done.txn.producer, done.txn.first, done.txn.last, done.stable})
		}
		return nil
	})
}
