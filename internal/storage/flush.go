package storage

import (
	"errors"
	"path/filepath"
	"time"

	"barnabas/internal/vfs"
)

// The background sync keeps the recovery point at most this far behind, so that
// recovery after a crash has a bounded piece of each log to read.
const (
	syncBytes = 64 << 20
	syncAfter = 60 * time.Second
)

// Flush makes everything appended so far durable and moves the recovery point.
func (l *Log) Flush() error {
	if err := l.ready(); err != nil {
		return err
	}
	return l.flushTo(l.tail.end.Load())
}

// flushTo syncs unless another call did it meanwhile: many appends a sync.
func (l *Log) flushTo(offset int64) error {
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	if l.recovery.Load() >= offset && !l.foldersNew.Load() {
		return nil
	}
	if l.state.Load() == closed {
		return ErrClosed
	}
	return l.flushHeld(false)
}

// flushHeld syncs, with maintenance held: records, then what goes with them,
// then the recovery point (invariant 4). The last one is a clean close, which
// leaves a snapshot at the end.
func (l *Log) flushHeld(last bool) error {
	if !l.dir.online() {
		return ErrOffline
	}
	l.mu.Lock()
	segs := *l.segments.Load()
	end := l.tail.end.Load()
	snapshots := l.mu.snapshots
	l.mu.snapshots = nil
	if last || len(l.mu.producers.byID) > 0 && end > l.recovery.Load() {
		snapshots = append(snapshots, pendingSnapshot{end, l.mu.producers.encode()})
	}
	l.unsynced.Store(0)
	l.unsyncedAt.Store(0)
	l.unflushed.Store(0)
	var dirty []*segment
	for _, s := range segs {
		if s.dirty.Swap(false) {
			dirty = append(dirty, s)
		}
	}
	l.mu.Unlock()

	for _, s := range dirty {
		if err := s.sync(); err != nil {
			l.dir.fail(err)
			return err
		}
	}
	if err := l.flushRest(segs, snapshots); err != nil {
		l.dir.fail(err)
		return err
	}
	l.recovery.Store(max(l.recovery.Load(), end))
	return nil
}

func (s *segment) sync() error {
	ref, err := s.file.acquire()
	if err != nil {
		return err
	}
	defer ref.release()
	return ref.file.Sync()
}

// flushRest writes indexes, snapshots and epochs, and syncs the folder when it
// has new names.
func (l *Log) flushRest(segs []*segment, snapshots []pendingSnapshot) error {
	fsys := l.dir.fs
	swap := func(f func()) {
		l.mu.Lock()
		f()
		l.mu.Unlock()
	}
	for _, s := range segs {
		if err := errors.Join(s.offsets.flush(fsys, swap), s.times.flush(fsys, swap), s.txns.flush(fsys)); err != nil {
			return err
		}
	}
	if err := l.writeSnapshots(segs, snapshots); err != nil {
		return err
	}
	fresh := l.foldersNew.Swap(false)
	if err := l.saveEpochs(true); err != nil {
		return err
	}
	if !fresh {
		return nil
	}
	if err := fsys.SyncDir(l.folder); err != nil {
		return err
	}
	return fsys.SyncDir(l.dir.path)
}

// writeSnapshots writes producer snapshots and removes those that are neither at
// a segment's base nor the newest, as Kafka does.
func (l *Log) writeSnapshots(segs []*segment, snapshots []pendingSnapshot) error {
	if len(snapshots) == 0 {
		return nil
	}
	for _, s := range snapshots {
		name := filepath.Join(l.folder, offsetName(s.offset, snapshotSuffix))
		if err := vfs.WriteFile(l.dir.fs, name, s.data, 0o644); err != nil {
			return err
		}
	}
	newest := snapshots[len(snapshots)-1].offset
	return l.removeSnapshots(func(offset int64) bool {
		i := floorSegment(segs, offset)
		return offset < newest && (i < 0 || segs[i].base != offset)
	})
}

// snapshotOffsets lists the snapshot files, the oldest first.
func (l *Log) snapshotOffsets() ([]int64, error) {
	entries, err := l.dir.fs.ReadDir(l.folder)
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

// removeSnapshots removes the snapshot files that doomed chooses.
func (l *Log) removeSnapshots(doomed func(offset int64) bool) error {
	offsets, err := l.snapshotOffsets()
	if err != nil {
		return err
	}
	for _, offset := range offsets {
		if doomed(offset) {
			if err := l.dir.fs.Remove(filepath.Join(l.folder, offsetName(offset, snapshotSuffix))); err != nil {
				return err
			}
		}
	}
	return nil
}

// saveEpochs writes leader-epoch-checkpoint if it changed.
func (l *Log) saveEpochs(durable bool) error {
	data, ticket := l.epochs.unsaved(durable)
	if data == nil {
		return nil
	}
	name := filepath.Join(l.folder, epochFile)
	if err := vfs.WriteFileAtomic(l.dir.fs, name, data, 0o644, durable); err != nil {
		return err
	}
	l.epochs.markSaved(ticket, durable)
	return nil
}
