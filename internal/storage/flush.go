package storage

import (
	"path/filepath"
	"time"

	"barnabas/internal/vfs"
)

// The background sync keeps the recovery point at most this far behind, so that
// recovery after a crash has a bounded piece of each log to read.
const (
	syncBytes = 16 << 20
	syncAfter = 60 * time.Second
)

// snapshotWorth is from how many bytes on a segment gets a producer snapshot also
// when there are no producers, so that a start need not look for them.
const snapshotWorth = 1 << 20

// Flush makes the records appended so far durable: [Log.FlushedOffset] is then
// the end of the log at the time of the call, or beyond. Many calls at a time
// share a sync.
func (l *Log) Flush() error {
	if err := l.ready(); err != nil {
		return err
	}
	return l.flushTo(l.tail.end.Load())
}

func (l *Log) flushTo(offset int64) error {
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	if l.flushed.Load() >= offset {
		return nil
	}
	if l.state.Load() != loaded {
		return ErrClosed
	}
	_, err := l.syncHeld(nil)
	return err
}

// syncHeld syncs the records, and the names of new files, with maintenance held.
// rest, if given, writes more files before the names are synced. It returns up
// to where the records are durable.
func (l *Log) syncHeld(rest func() error) (int64, error) {
	if !l.dir().online() {
		return 0, ErrOffline
	}
	l.mu.Lock()
	segs := *l.segments.Load()
	end := l.tail.end.Load()
	l.unflushed.Store(0)
	var dirty []*segment
	for _, s := range segs {
		if s.dirty.Swap(false) {
			dirty = append(dirty, s)
		}
	}
	l.mu.Unlock()
	err := l.syncSegments(dirty)
	if err == nil && rest != nil {
		err = rest()
	}
	if err == nil && l.namesNew.Swap(false) {
		err = l.dir().syncDir(l.folder())
	}
	if err == nil && l.folderNew.Swap(false) {
		err = l.dir().syncDir(l.dir().path)
	}
	if err != nil {
		l.dir().fail(err)
		return 0, err
	}
	l.flushed.Store(max(l.flushed.Load(), end))
	return end, nil
}

func (l *Log) syncSegments(segs []*segment) error {
	for _, s := range segs {
		ref, err := s.file.acquire()
		if err != nil {
			return err
		}
		err = l.dir().syncFile(ref.file)
		ref.release()
		if err != nil {
			return err
		}
	}
	return nil
}

// checkpoint syncs the log with all that goes with its records, and moves the
// recovery point (invariant 4).
func (l *Log) checkpoint() error {
	if err := l.ready(); err != nil {
		return err
	}
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	if l.state.Load() != loaded {
		return ErrClosed
	}
	return l.checkpointHeld(false)
}

// checkpointHeld is checkpoint with maintenance held. The last one of a clean
// stop leaves a producer snapshot at the end, unless there never was a producer:
// where there is no snapshot at all, a start after it knows that.
func (l *Log) checkpointHeld(last bool) error {
	l.mu.Lock()
	l.timeEntryLocked(l.active()) // the time index covers all up to the recovery point
	segs := *l.segments.Load()
	end := l.tail.end.Load()
	snapshots := l.mu.snapshots
	l.mu.snapshots = nil
	known := len(l.mu.producers.byID) > 0 || l.snapshotAt >= 0 || len(snapshots) > 0 || l.active().size.Load() > snapshotWorth
	if known && (last || end > l.recovery.Load()) && end != l.snapshotAt && end > segs[0].base {
		snapshots = append(snapshots, pendingSnapshot{end, l.mu.producers.encode()})
	}
	l.unsynced.Store(0)
	l.unsyncedAt.Store(0)
	l.mu.Unlock()
	for _, s := range segs {
		if last || !s.active.Load() {
			if err := s.unreserve(l.dir().fs); err != nil {
				l.dir().fail(err)
				return err
			}
		}
	}
	if _, err := l.syncHeld(func() error { return l.writeRest(segs, snapshots) }); err != nil {
		return err
	}
	l.recovery.Store(max(l.recovery.Load(), end))
	return nil
}

// writeRest writes and syncs indexes and epochs; snapshots have a checksum and
// need no sync.
func (l *Log) writeRest(segs []*segment, snapshots []pendingSnapshot) error {
	swap := func(f func()) {
		l.mu.Lock()
		f()
		l.mu.Unlock()
	}
	for _, s := range segs {
		if s.size.Load() == 0 && len(segs) == 1 {
			continue // its file may not have been made yet
		}
		made, err := s.offsets.flush(l.dir().syncFile, swap)
		if err == nil {
			_, err = s.times.flush(l.dir().syncFile, swap)
		}
		if err == nil {
			var txns bool
			txns, err = s.txns.flush(l.dir())
			made = made || txns
		}
		if made {
			l.namesNew.Store(true)
		}
		if err != nil {
			return err
		}
	}
	if err := l.writeSnapshots(segs, snapshots); err != nil {
		return err
	}
	return l.saveEpochs(true)
}

// writeSnapshots writes producer snapshots and removes those that are neither at
// a segment's base nor the newest, as Kafka does.
func (l *Log) writeSnapshots(segs []*segment, snapshots []pendingSnapshot) error {
	if len(snapshots) == 0 {
		return nil
	}
	for _, s := range snapshots {
		name := filepath.Join(l.folder(), offsetName(s.offset, snapshotSuffix))
		if err := vfs.WriteFile(l.dir().fs, name, s.data, 0o644); err != nil {
			return err
		}
	}
	newest := snapshots[len(snapshots)-1].offset
	l.snapshotAt = newest
	return l.removeSnapshots(func(offset int64) bool {
		i := floorSegment(segs, offset)
		return offset < newest && (i < 0 || segs[i].base != offset)
	})
}

// snapshotOffsets lists the snapshot files, the oldest first.
func (l *Log) snapshotOffsets() ([]int64, error) {
	entries, err := l.dir().fs.ReadDir(l.folder())
	if err != nil {
		return nil, err
	}
	var offsets []int64
	for _, e := range entries {
		if offset, ok := parseOffsetName(e.Name(), snapshotSuffix); ok {
			offsets = append(offsets, offset)
		}
	}
	return offsets, nil
}

// removeSnapshots removes the snapshot files that doomed chooses. The caller
// syncs the folder where one that came back would do harm.
func (l *Log) removeSnapshots(doomed func(offset int64) bool) error {
	offsets, err := l.snapshotOffsets()
	if err != nil {
		return err
	}
	for _, offset := range offsets {
		if doomed(offset) {
			if err := l.dir().fs.Remove(filepath.Join(l.folder(), offsetName(offset, snapshotSuffix))); err != nil {
				return err
			}
		}
	}
	return nil
}

// saveEpochs writes leader-epoch-checkpoint if it changed.
func (l *Log) saveEpochs(durable bool) error {
	data, entries := l.epochs.unsaved(durable, l.tail.end.Load())
	if data == nil {
		return nil
	}
	name := filepath.Join(l.folder(), epochFile)
	durable = durable && !l.dir().bulk.Load()
	if err := vfs.ReplaceFile(l.dir().fs, name, data, 0o644, durable); err != nil {
		return err
	}
	if durable {
		l.namesNew.Store(true) // the folder is synced next
	}
	l.epochs.markSaved(entries, durable)
	return nil
}
