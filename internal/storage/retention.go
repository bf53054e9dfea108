package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"barnabas/internal/vfs"
)

// DeleteRecordsTo raises the start offset to offset (at most the high watermark,
// else ErrOffsetOutOfRange) and returns the start offset, which never goes back.
// -1 means the high watermark. On a topic that is only compacted it is ErrPolicy.
// The new start survives a crash of the process from the moment of the answer.
func (l *Log) DeleteRecordsTo(offset int64) (int64, error) {
	if err := l.ready(); err != nil {
		return -1, err
	}
	if !l.config.Load().Delete {
		return -1, ErrPolicy
	}
	hw := l.hw.Load()
	if offset == -1 {
		offset = hw
	}
	if offset < 0 || offset > hw {
		return -1, fmt.Errorf("%w: the high watermark is %d, records up to %d were to be deleted", ErrOffsetOutOfRange, hw, offset)
	}
	err := l.RaiseStartOffset(offset)
	return l.start.Load(), err
}

// RaiseStartOffset is DeleteRecordsTo for a follower, which is told by its
// leader: no policy applies.
func (l *Log) RaiseStartOffset(offset int64) error {
	if err := l.ready(); err != nil {
		return err
	}
	l.lockIdle() // not while a move changes places
	raise := offset > l.start.Load() && offset <= l.tail.end.Load()
	if raise {
		l.start.Store(offset)
		l.startRaised.Store(true)
	}
	l.mu.Unlock()
	if !raise {
		return nil
	}
	l.epochs.truncateFromStart(offset)
	return l.dir().saveStarts(false)
}

// retain deletes what cleanup.policy=delete no longer wants, oldest segment
// first, and whatever lies below the start offset (Kafka's
// UnifiedLog.deleteOldSegments).
func (l *Log) retain(now int64) error {
	if l.state.Load() == unloaded {
		if may, err := l.mayExpire(now); err != nil || !may {
			return err
		}
	}
	if err := l.ready(); err != nil {
		return err
	}
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	if l.state.Load() != loaded {
		return nil
	}
	segs := *l.segments.Load()
	end := l.tail.end.Load()
	n, err := l.expired(now, segs, end)
	if err != nil || n == 0 {
		return err
	}
	if n == len(segs) { // the active segment too: it is rolled first
		switch rolled, err := l.rollForRetention(now, end); {
		case err != nil:
			return err
		case !rolled && n == 1:
			return nil
		case !rolled:
			n--
		}
	}
	if err := l.recallBeforeLoss(); err != nil {
		return err
	}
	l.lockIdle()
	segs = *l.segments.Load()
	gone, kept := segs[:n], segs[n:]
	l.publish(kept[:len(kept):len(kept)])
	if first := kept[0].base; first > l.start.Load() {
		l.start.Store(first)
	}
	l.startRaised.Store(l.start.Load() > kept[0].base)
	l.mu.Unlock()
	l.epochs.truncateFromStart(l.start.Load())
	l.dir().log.Info("old segments are deleted", "partition", l.tp.String(), "segments", n, "start", l.start.Load())
	if err := l.discard(gone); err != nil {
		l.dir().fail(err)
		return err
	}
	first := kept[0].base
	return l.removeSnapshots(func(offset int64) bool { return offset < first })
}

// mayExpire tells whether a log that is not loaded may have something to delete,
// by the sizes of its segments and by when the first was written last: a log that
// nobody uses is not loaded for retention before that.
func (l *Log) mayExpire(now int64) (bool, error) {
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	c := l.config.Load()
	if l.state.Load() != unloaded || !l.startRaised.Load() && (!c.Delete || c.RetentionMs < 0 && c.RetentionBytes < 0) {
		return l.state.Load() == loaded, nil
	}
	entries, err := l.dir().fs.ReadDir(l.folder())
	if err != nil {
		return false, err
	}
	var bases []int64
	var total, first, written int64
	for _, e := range entries { // by name, so by offset
		base, ok := parseOffsetName(e.Name(), logSuffix)
		if !ok {
			continue
		}
		if len(bases) == 0 || c.RetentionBytes >= 0 {
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return true, nil // somebody is at work
			}
			if err != nil {
				return false, err
			}
			if total += info.Size(); len(bases) == 0 {
				first, written = info.Size(), info.ModTime().UnixMilli()
			}
		}
		bases = append(bases, base)
	}
	switch {
	case len(bases) == 0:
		return false, nil
	case len(bases) > 1 && bases[1] <= l.start.Load():
		return true, nil
	case !c.Delete || first == 0 && len(bases) == 1:
		return false, nil
	}
	return c.RetentionMs >= 0 && now-written > c.RetentionMs || c.RetentionBytes >= 0 && total-c.RetentionBytes >= first, nil
}

// expired returns how many segments, from the oldest on, are to go. The last one
// counts as it is while the log ends at logEnd.
func (l *Log) expired(now int64, segs []*segment, logEnd int64) (int, error) {
	c := l.config.Load()
	hw, start := l.hw.Load(), l.start.Load()
	spare := int64(-1) // bytes beyond retention.bytes
	if c.Delete && c.RetentionBytes >= 0 {
		spare = -c.RetentionBytes
		for _, s := range segs {
			spare += s.size.Load()
		}
	}
	n := 0
	for i, s := range segs {
		end := logEnd
		if i+1 < len(segs) {
			end = segs[i+1].base
		} else if s.size.Load() == 0 {
			break // the last, empty segment stays
		}
		if end > hw {
			break
		}
		below := end <= start && i+1 < len(segs)
		big := spare >= 0 && spare >= s.size.Load()
		old := false
		if !below && !big && c.Delete && c.RetentionMs >= 0 {
			largest, err := s.largest(l.dir().fs)
			if err != nil {
				return 0, err
			}
			old = now-largest > c.RetentionMs
		}
		if !below && !big && !old {
			break
		}
		spare -= s.size.Load()
		n++
	}
	return n, nil
}

// rollForRetention begins an empty segment at the end, unless records have come
// since the log ended there: what was judged is not what there is.
func (l *Log) rollForRetention(now, end int64) (bool, error) {
	l.lockIdle()
	defer l.mu.Unlock()
	if l.tail.end.Load() != end {
		return false, nil
	}
	if a := l.active(); a.size.Load() == 0 && a.base == end { // of an append that rolled, and failed
		return true, nil
	}
	return true, l.rollLocked(end, now)
}

// discard takes segments that are no longer published off the disk: renamed
// now, removed after file.delete.delay.ms.
func (l *Log) discard(segs []*segment) error {
	for _, s := range segs {
		s.close()
	}
	if len(segs) == 0 {
		return nil
	}
	names, err := markAll(l.dir().fs, segs)
	l.namesNew.Store(true)
	l.dir().removeLater(names, l.config.Load().FileDeleteDelayMs)
	return err
}

func markAll(fsys vfs.FS, segs []*segment) ([]string, error) {
	var names []string
	var errs []error
	for _, s := range segs {
		more, err := s.markDeleted(fsys)
		names = append(names, more...)
		errs = append(errs, err)
	}
	return names, errors.Join(errs...)
}

// close ends the log: synced and with a snapshot at its end when flush is set.
func (l *Log) close(flush bool) error {
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	was := l.state.Load()
	if was != loaded {
		l.state.Store(closed)
		return nil
	}
	l.beginWork()
	defer l.endWork()
	var err error
	if flush {
		err = l.checkpointHeld(true)
	}
	l.state.Store(closed)
	for _, s := range *l.segments.Load() {
		s.close()
	}
	return err
}

// moveAside renames the folder of a closed log for deletion.
func (l *Log) moveAside() (string, error) {
	name := filepath.Join(l.dir().path, deleteFolderName(l.tp))
	return name, l.dir().fs.Rename(l.folder(), name)
}
