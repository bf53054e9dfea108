package storage

import (
	"encoding/binary"
	"fmt"
	"os"
)

// TruncateTo drops all batches that reach offset or beyond; the end becomes
// offset, or the start of the batch that offset lies inside of.
func (l *Log) TruncateTo(offset int64) error {
	if err := l.ready(); err != nil {
		return err
	}
	if end := l.EndOffset(); offset >= end {
		// An epoch without records, begun here as the leader before another
		// was elected, must not stay the latest (invariant 14).
		l.epochs.truncateFromEnd(end)
		return nil
	}
	l.cutCopy(offset)
	cleaned := l.cleaned.Load()
	err := l.truncate(offset)
	if err == nil && l.cleaned.Load() != cleaned {
		err = l.dir().saveCleaned(false)
	}
	if err != nil || l.recovery.Load() < l.tail.end.Load() {
		return err
	}
	// The recovery point is now the end: what was cut must not come back below
	// it, and the checkpoint must not vouch for other records to come.
	if err := l.checkpoint(); err != nil {
		return err
	}
	return l.dir().saveRecoveryPoints(true)
}

func (l *Log) truncate(offset int64) error {
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	l.beginWork()
	defer l.endWork()
	if l.state.Load() != loaded {
		return ErrClosed
	}
	if offset < 0 {
		return fmt.Errorf("%w: truncate to %d", ErrOffsetOutOfRange, offset)
	}
	segs := *l.segments.Load()
	if offset >= l.tail.end.Load() {
		return nil
	}
	if offset < segs[0].base {
		return l.restartAt(offset)
	}
	err := l.truncateHeld(segs, offset)
	if err != nil {
		l.dir().fail(err)
	}
	return err
}

func (l *Log) truncateHeld(segs []*segment, offset int64) error {
	n := floorSegment(segs, offset) + 1
	gone, segs := segs[n:], segs[:n:n]
	active := segs[n-1]
	size, whole := active.size.Load(), offset // whole batches end here
	at, ok, err := active.locate(offset, size)
	if err != nil {
		return err
	}
	if ok {
		size, whole = at.pos, min(offset, at.base)
	}
	// Readers first: nothing they may still find is taken away under them.
	l.mu.Lock()
	l.publish(segs)
	l.tail.reset(active.base, size, whole)
	l.recovery.Store(min(l.recovery.Load(), whole))
	l.flushed.Store(min(l.flushed.Load(), whole))
	l.hw.Store(min(l.hw.Load(), whole))
	l.cleaned.Store(min(l.cleaned.Load(), whole))
	l.cutTo.Store(min(l.cutTo.Load(), whole))
	l.changes.Add(1)
	l.mu.Unlock()

	if err := l.discard(gone); err != nil {
		return err
	}
	if err := l.cutActive(active, size, whole); err != nil {
		return err
	}
	active.active.Store(true)
	l.epochs.truncateFromEnd(whole)
	if l.start.Load() > whole {
		l.start.Store(whole)
	}
	return l.reloadProducers(segs, whole)
}

// cutActive shortens a segment and its indexes.
func (l *Log) cutActive(s *segment, size, offset int64) error {
	flag := os.O_RDWR
	if size == 0 { // it may have had no record yet, and so no file
		flag |= os.O_CREATE
		l.namesNew.Store(true)
	}
	ref, err := s.file.acquireFlag(flag)
	if err != nil {
		return err
	}
	defer ref.release()
	if err := ref.file.Truncate(size); err != nil {
		return err
	}
	s.size.Store(size)
	s.room = 0
	s.dirty.Store(true)
	if err := s.checkIndexes(); err != nil {
		return err
	}
	last := int64(-1)
	n, err := s.offsets.search(func(e []byte) bool {
		return s.base+int64(binary.BigEndian.Uint32(e)) < offset && int64(binary.BigEndian.Uint32(e[4:])) < size
	})
	if err != nil {
		return err
	}
	s.offsets.keep(n)
	var e [timeEntry]byte
	if has, err := s.offsets.last(e[:]); err != nil {
		return err
	} else if has {
		last = int64(binary.BigEndian.Uint32(e[:]))
	}
	n, err = s.times.search(func(e []byte) bool { return int64(binary.BigEndian.Uint32(e[8:])) <= last })
	if err != nil {
		return err
	}
	s.times.keep(n)
	s.txns.truncate(offset)
	// Entries of what is gone must not be found in the files after a crash.
	swap := func(f func()) { f() } // busy keeps appends out
	if _, err := s.offsets.flush(l.dir().syncFile, swap); err != nil {
		return err
	}
	if _, err := s.times.flush(l.dir().syncFile, swap); err != nil {
		return err
	}
	if _, err = l.findEnd(s); err != nil {
		return err
	}
	// The time index covers all up to the recovery point, which may be here.
	l.timeEntryLocked(s)
	_, err = s.times.flush(l.dir().syncFile, swap)
	return err
}

// reloadProducers makes the producer state that of an earlier end.
func (l *Log) reloadProducers(segs []*segment, end int64) error {
	l.mu.Lock()
	kept := l.mu.snapshots[:0]
	for _, s := range l.mu.snapshots {
		if s.offset <= end {
			kept = append(kept, s)
		}
	}
	l.mu.snapshots = kept
	l.mu.Unlock()
	if err := l.writeSnapshots(segs, kept); err != nil {
		return err
	}
	offsets, err := l.snapshotOffsets()
	if err != nil {
		return err
	}
	p, err := l.loadProducers(offsets, segs, end, false)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.snapshots = nil
	l.mu.producers = p
	l.unstable.Store(p.firstUnstable(l.hw.Load()))
	return nil
}

// TruncateFullyAndStartAt drops everything; start and end become offset.
func (l *Log) TruncateFullyAndStartAt(offset int64) error {
	if err := l.ready(); err != nil {
		return err
	}
	if offset < 0 {
		return fmt.Errorf("%w: start at %d", ErrOffsetOutOfRange, offset)
	}
	l.cutCopy(0)
	if err := l.restart(offset); err != nil {
		return err
	}
	// On the disk before the checkpoint says so.
	if err := l.checkpoint(); err != nil {
		return err
	}
	return l.dir().saveRecoveryPoints(true)
}

func (l *Log) restart(offset int64) error {
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	l.beginWork()
	defer l.endWork()
	if l.state.Load() != loaded {
		return ErrClosed
	}
	err := l.restartAt(offset)
	if err != nil {
		l.dir().fail(err)
	}
	return err
}

// restartAt replaces all segments by an empty one, with maintenance held and
// appends kept out.
func (l *Log) restartAt(offset int64) error {
	old := *l.segments.Load()
	for _, s := range old {
		s.close()
	}
	names, err := markAll(l.dir().fs, old)
	if err != nil {
		return err
	}
	seg, err := l.createSegment(offset, l.dir().now().UnixMilli())
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.publish([]*segment{seg})
	l.tail.reset(offset, 0, offset)
	l.mu.producers = newProducers()
	l.mu.snapshots = nil
	l.unstable.Store(-1)
	l.start.Store(offset)
	l.hw.Store(offset)
	l.recovery.Store(offset)
	l.flushed.Store(offset)
	l.startRaised.Store(false)
	l.cleaned.Store(-1)
	l.cutTo.Store(0)
	l.changes.Add(1)
	l.mu.Unlock()
	l.epochs.clear()
	l.snapshotAt = -1
	l.dir().removeLater(names, l.config.Load().FileDeleteDelayMs)
	if err := l.removeSnapshots(func(int64) bool { return true }); err != nil {
		return err
	}
	return l.dir().fs.SyncDir(l.folder())
}
