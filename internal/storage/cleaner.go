package storage

import (
	"errors"
	"math"
	"sync"
	"time"

	"barnabas/internal/wire"
)

// The cleaner compacts logs whose cleanup.policy has "compact": of each key it
// keeps the last record (Kafka's LogCleaner, LogCleanerManager and Cleaner). It
// copies the segments below the active one into new ones without the records
// that a later one supersedes, and swaps them in:
//
//	B.log.cleaned    being written; dropped by a start that finds it
//	B.log.swap       complete and synced; a start puts it in place of the
//	                 segments it was made from, unless a .cleaned file at or
//	                 below B says that the renames had not all been done
//	B.log            the new segment; the old ones are *.deleted
//
// Copying takes no lock. What changes the segments meanwhile (truncation,
// retention, the end of the log) makes the copy worthless; it is then dropped.
type cleaner struct {
	m *Manager

	// mu guards the choice of logs; a leaf.
	mu struct {
		sync.Mutex
		busy  map[*Log]bool
		aside map[*Log]error // could not be cleaned; not tried again
	}
}

func newCleaner(m *Manager) *cleaner {
	k := &cleaner{m: m}
	k.mu.busy, k.mu.aside = map[*Log]bool{}, map[*Log]error{}
	return k
}

// errMoved: the log was truncated, deleted or closed under the cleaner.
var errMoved = errors.New("the log was changed under the cleaner")

// start begins the threads; they end when the manager stops.
func (k *cleaner) start() {
	b := k.m.o.Config
	if !b.Bool("log.cleaner.enable") {
		return
	}
	for range b.Int("log.cleaner.threads") {
		k.m.wg.Go(func() {
			run := newCleanerRun(k.m.o.Config, k.m.stop)
			for {
				if k.once(run, k.m.o.Now()) {
					continue
				}
				rest := time.NewTimer(max(k.m.o.Config.Duration("log.cleaner.backoff.ms"), time.Millisecond))
				select {
				case <-k.m.stop:
					rest.Stop()
					return
				case <-rest.C:
				}
			}
		})
	}
}

// once cleans the log that needs it most; false when none does.
func (k *cleaner) once(run *cleanerRun, now time.Time) bool {
	job, ok := k.choose(now.UnixMilli())
	if !ok {
		return false
	}
	err := run.clean(job, now.UnixMilli())
	l := job.log
	k.mu.Lock()
	delete(k.mu.busy, l)
	bad := err != nil && !errors.Is(err, errMoved) && !errors.Is(err, ErrClosed) && !errors.Is(err, errStale)
	if bad {
		k.mu.aside[l] = err
	}
	k.mu.Unlock()
	if bad {
		l.dir().log.Error("the cleaner leaves a partition alone from now on", "partition", l.tp.String(), "error", err)
	}
	return err == nil || bad
}

// forget drops what is known of a log that was deleted.
func (k *cleaner) forget(l *Log) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.mu.aside, l)
}

// choose picks the log with the largest share of records not cleaned yet, among
// those beyond min.cleanable.dirty.ratio or overdue by max.compaction.lag.ms.
func (k *cleaner) choose(now int64) (cleaning, bool) {
	var best cleaning
	found := false
	for _, l := range k.m.Logs() {
		if !l.config.Load().Compact || !l.dir().online() || l.move.Load() != nil {
			continue
		}
		k.mu.Lock()
		skip := k.mu.busy[l] || k.mu.aside[l] != nil
		k.mu.Unlock()
		if skip {
			continue
		}
		if l.state.Load() == unloaded && !l.mayBeCleaned() {
			continue
		}
		job, ok := l.cleanable(now)
		if ok && (!found || job.ratio > best.ratio) {
			best, found = job, true
		}
	}
	if !found {
		return best, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.busy[best.log] {
		return best, false
	}
	k.mu.busy[best.log] = true
	return best, true
}

// mayBeCleaned tells whether a log that is not loaded has a segment, other than its
// last, that was not cleaned: one that nobody uses is not loaded to find that out.
func (l *Log) mayBeCleaned() bool {
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	if l.state.Load() != unloaded {
		return true
	}
	entries, err := l.dir().fs.ReadDir(l.folder())
	if err != nil {
		return true // who loads it says why
	}
	var bases []int64
	for _, e := range entries {
		if base, ok := parseOffsetName(e.Name(), logSuffix); ok {
			bases = append(bases, base)
		}
	}
	return len(bases) > 1 && bases[len(bases)-1] > l.cleaned.Load()
}

// cleaning is a log to clean.
type cleaning struct {
	log        *Log
	segments   []*segment // all but the active one
	next       int64      // where the active one begins
	changes    uint64     // Log.changes at the time
	firstDirty int64      // below it the log was cleaned before
	limit      int64      // from here on it may not be cleaned yet
	ratio      float64
}

// cleanable tells whether the log should be cleaned, and up to where it may be:
// below the last stable offset, the active segment, and records younger than
// min.compaction.lag.ms.
func (l *Log) cleanable(now int64) (cleaning, bool) {
	if l.ready() != nil {
		return cleaning{}, false
	}
	c := l.config.Load()
	job := cleaning{log: l, changes: l.changes.Load()}
	segs := *l.segments.Load()
	job.segments, job.next = segs[:len(segs)-1], segs[len(segs)-1].base
	job.firstDirty = l.cleaned.Load()
	if start := l.start.Load(); job.firstDirty < start || job.firstDirty > l.tail.end.Load() {
		job.firstDirty = start
	}
	job.limit = min(l.LastStableOffset(), job.next)
	dirty := job.segments[min(max(floorSegment(job.segments, job.firstDirty), 0), len(job.segments)):]
	if c.MinCompactionLagMs > 0 {
		for _, s := range dirty {
			if largest, err := s.largest(l.dir().fs); err != nil || largest > now-c.MinCompactionLagMs {
				job.limit = min(job.limit, s.base)
				break
			}
		}
	}
	var clean, cleanable int64
	for _, s := range job.segments {
		if s.base < job.firstDirty {
			clean += s.size.Load()
		}
	}
	overdue := false
	for _, s := range dirty {
		if s.base < job.limit && job.firstDirty < job.limit {
			cleanable += s.size.Load()
			overdue = overdue || s.overdue(c.MaxCompactionLagMs, now)
		}
	}
	if cleanable == 0 {
		return job, false
	}
	job.ratio = float64(cleanable) / float64(clean+cleanable)
	return job, overdue || job.ratio > c.MinCleanableDirtyRatio
}

// overdue tells whether the segment's first batch is older than
// max.compaction.lag.ms.
func (s *segment) overdue(lag, now int64) bool {
	if lag == math.MaxInt64 {
		return false
	}
	ref, err := s.file.acquire()
	if err != nil {
		return false
	}
	defer ref.release()
	buf := lookupBuffers.Get().(*[]byte)
	defer lookupBuffers.Put(buf)
	sc := scan(ref.file, 0, s.size.Load(), *buf)
	ok, err := sc.step()
	return ok && err == nil && sc.header.MaxTimestamp() > 0 && now-sc.header.MaxTimestamp() > lag
}

// saveCleaned writes cleaner-offset-checkpoint: up to where logs were cleaned.
func (d *logDir) saveCleaned(durable bool) error {
	return d.save(&d.cleaned, durable, func(l *Log) (int64, bool) {
		at := l.cleaned.Load()
		return at, at >= 0
	})
}

// cleanedBefore takes over what cleaner-offset-checkpoint says.
func cleanedBefore(found map[wire.TopicPartition]int64, tp wire.TopicPartition) int64 {
	if at, ok := found[tp]; ok {
		return at
	}
	return -1
}
