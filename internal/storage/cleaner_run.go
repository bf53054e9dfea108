package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/record"
)

// cleanerRun is one cleaner thread: its table of keys and its buffers, which
// stay small until a log needs them.
type cleanerRun struct {
	cfg   *config.Broker
	stop  <-chan struct{}
	keys  *offsetMap
	batch []byte // the batch that is read
	out   []byte // batches to be written
	build record.Builder
	spent int64 // bytes since the throttle last looked
	since time.Time

	// of the log being cleaned
	job      cleaning
	now      int64
	txns     *cleanedTxns
	last     map[int64]lastRecord
	deleteMs int64
	legacyMs int64 // tombstones of old formats stay in segments changed after this
}

// lastRecord is what must stay of a producer so that its sequence is known.
type lastRecord struct {
	offset int64 // of its last batch, -1 when it sent none
	epoch  int16
}

func newCleanerRun(cfg *config.Broker, stop <-chan struct{}) *cleanerRun {
	bytes := cfg.Int64("log.cleaner.dedupe.buffer.size") / max(cfg.Int64("log.cleaner.threads"), 1)
	return &cleanerRun{cfg: cfg, stop: stop, keys: newOffsetMap(bytes, cfg.Float64("log.cleaner.io.buffer.load.factor"))}
}

// clean does one pass over a log.
func (r *cleanerRun) clean(job cleaning, now int64) error {
	l := job.log
	began := l.dir().now()
	defer r.keys.clear()
	*r = cleanerRun{cfg: r.cfg, stop: r.stop, keys: r.keys, batch: r.batch[:0], out: r.out[:0], build: r.build, since: began, job: job, now: now}
	r.deleteMs = l.config.Load().DeleteRetentionMs
	for _, s := range job.segments {
		if err := s.txns.load(l.dir().fs); err != nil {
			return err
		}
	}
	if err := r.readKeys(); err != nil {
		return err
	}
	end := r.keys.latest + 1
	if end <= job.firstDirty {
		return r.done(job.limit)
	}
	r.legacyMs = r.legacyHorizon()
	r.txns = newCleanedTxns()
	if err := l.recallBeforeLoss(); err != nil {
		return stale(err)
	}
	r.last = l.lastRecords()
	before, after := int64(0), int64(0)
	for _, group := range r.groups(end) {
		made, err := r.copyGroup(group)
		if err == nil {
			err = r.install(group, made)
		}
		if err != nil {
			return errors.Join(err, l.dropCleaned())
		}
		for _, s := range group {
			before += s.size.Load()
		}
		after += made.size.Load()
	}
	l.dir().log.Info("a log was compacted", "partition", l.tp.String(), "up to", end, "keys", r.keys.used,
		"bytes before", before, "bytes after", after, "took", l.dir().now().Sub(began).Round(time.Millisecond))
	return r.done(end)
}

func (r *cleanerRun) done(end int64) error {
	l := r.job.log
	l.cleaned.Store(end)
	if l.changes.Load() != r.job.changes {
		l.cleaned.Store(min(end, l.tail.end.Load()))
	}
	return l.dir().saveCleaned(true)
}

// moved tells whether the work has become worthless.
func (r *cleanerRun) moved() error {
	select {
	case <-r.stop:
		return errMoved
	default:
	}
	l := r.job.log
	if l.state.Load() != loaded || l.changes.Load() != r.job.changes || l.move.Load() != nil || !l.dir().online() {
		return errMoved
	}
	return nil
}

// readKeys fills the table with the last offset of each key in the dirty part,
// as far as there is room.
func (r *cleanerRun) readKeys() error {
	segs := r.job.segments
	txns := newCleanedTxns()
	txns.add(segs, r.job.firstDirty, r.job.limit)
	full := errors.New("full")
	for i := max(floorSegment(segs, r.job.firstDirty), 0); i < len(segs) && segs[i].base < r.job.limit; i++ {
		err := r.each(segs[i], func(b record.Batch) error {
			if b.BaseOffset() >= r.job.limit || b.Magic() < 2 && b.LastOffset() >= r.job.limit {
				return full
			}
			if b.Control() {
				txns.control(b)
			} else if !txns.data(b) {
				if err := b.Each(0, func(x *record.Record) error {
					if x.Key == nil || x.Offset < r.job.firstDirty {
						return nil
					}
					if !r.keys.put(x.Key, x.Offset) {
						return full
					}
					r.keys.latest = x.Offset
					return nil
				}); err != nil {
					return err
				}
			}
			if b.LastOffset() >= r.job.firstDirty {
				r.keys.latest = b.LastOffset()
			}
			return nil
		})
		if err == full {
			if r.keys.used == 0 && r.keys.latest < r.job.firstDirty {
				return nil
			}
			break
		}
		if err != nil {
			return err
		}
		next := r.job.next
		if i+1 < len(segs) {
			next = segs[i+1].base
		}
		r.keys.latest = max(r.keys.latest, min(next, r.job.limit)-1) // a gap at the segment's end
	}
	return nil
}

// each calls f for the batches of a segment, read whole and checked.
func (r *cleanerRun) each(s *segment, f func(record.Batch) error) error {
	if s.size.Load() == 0 {
		return nil
	}
	ref, err := s.file.acquire()
	if err != nil {
		return stale(err)
	}
	defer ref.release()
	window := scanBuffers.Get().(*[]byte)
	defer scanBuffers.Put(window)
	sc := scan(ref.file, 0, s.size.Load(), *window)
	for {
		ok, err := sc.step()
		if err != nil {
			return s.corrupt(-1, sc.next, err)
		}
		if !ok {
			return nil
		}
		if int64(cap(r.batch)) < sc.size {
			r.batch = make([]byte, sc.size)
		}
		b := record.Batch(r.batch[:sc.size])
		if _, err := ref.file.ReadAt(b, sc.pos); err != nil {
			return err
		}
		if err := b.Check(); err != nil {
			return s.corrupt(b.BaseOffset(), sc.pos, err)
		}
		if err := f(b); err != nil {
			return err
		}
		if err := r.throttle(sc.size); err != nil {
			return err
		}
	}
}

// throttle keeps to log.cleaner.io.max.bytes.per.second, and looks whether to go
// on.
func (r *cleanerRun) throttle(n int64) error {
	if err := r.moved(); err != nil {
		return err
	}
	r.spent += n
	most := r.cfg.Float64("log.cleaner.io.max.bytes.per.second")
	if most > 1e15 || float64(r.spent) < most/10 {
		return nil
	}
	now := r.job.log.dir().now()
	ahead := time.Duration(float64(r.spent)/most*1e9) - now.Sub(r.since)
	r.spent, r.since = 0, now
	if ahead < time.Millisecond {
		return nil
	}
	t := time.NewTimer(ahead)
	defer t.Stop()
	select {
	case <-r.stop:
		return errMoved
	case <-t.C:
		r.since = r.job.log.dir().now()
		return nil
	}
}

// legacyHorizon: tombstones and markers of old formats have no time of their
// own; that of the last clean segment stands for it.
func (r *cleanerRun) legacyHorizon() int64 {
	horizon := int64(0)
	for _, s := range r.job.segments {
		if s.base >= r.job.firstDirty {
			break
		}
		if info, err := r.job.log.dir().fs.Stat(s.path()); err == nil {
			horizon = info.ModTime().UnixMilli() - r.deleteMs
		}
	}
	return horizon
}

// lastRecords copies what the producer state needs to find in the log.
func (l *Log) lastRecords() map[int64]lastRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[int64]lastRecord, len(l.mu.producers.byID))
	for id, p := range l.mu.producers.byID {
		at := lastRecord{-1, p.epoch}
		if p.n > 0 {
			at.offset = p.batches[p.n-1].lastOffset
		}
		out[id] = at
	}
	return out
}

// groups puts neighbouring segments together as long as they fit one.
func (r *cleanerRun) groups(end int64) [][]*segment {
	c := r.job.log.config.Load()
	segs := r.job.segments
	for len(segs) > 0 && segs[len(segs)-1].base >= end {
		segs = segs[:len(segs)-1]
	}
	var groups [][]*segment
	for i := 0; i < len(segs); {
		from, size := i, int64(0)
		var offsets, times int
		for ; i < len(segs); i++ {
			s := segs[i]
			last := r.endOf(s) - 1
			if i > from && (size+s.size.Load() > int64(c.SegmentBytes) || last-segs[from].base > math.MaxInt32 ||
				(offsets+s.offsets.count())*offsetEntry > int(c.SegmentIndexBytes) || (times+s.times.count())*timeEntry > int(c.SegmentIndexBytes)) {
				break
			}
			size += s.size.Load()
			offsets += s.offsets.count()
			times += s.times.count()
		}
		groups = append(groups, segs[from:i])
	}
	return groups
}

// endOf is where the next segment begins.
func (r *cleanerRun) endOf(s *segment) int64 {
	if i := floorSegment(r.job.segments, s.base) + 1; i < len(r.job.segments) {
		return r.job.segments[i].base
	}
	return r.job.next
}

// dropCleaned removes what a pass left unfinished.
func (l *Log) dropCleaned() error {
	entries, err := l.dir().fs.ReadDir(l.folder())
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the partition has gone
		}
		return err
	}
	for _, e := range entries {
		if bytes.HasSuffix([]byte(e.Name()), []byte(cleanedSuffix)) {
			if err := l.dir().fs.Remove(filepath.Join(l.folder(), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove what the cleaner left: %w", err)
			}
		}
	}
	return nil
}
