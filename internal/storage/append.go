package storage

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"barnabas/internal/config"
	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

// Origin says who appends, for the checks of producer state.
type Origin uint8

// The origins, as Kafka's AppendOrigin has them.
const (
	Client      Origin = iota // all checks
	Coordinator               // group and transaction coordinators: epochs, not sequences
)

// AppendRequest is a validated set of records on its way into the log.
type AppendRequest struct {
	// Records is one or more v2 batches, as record.Validate left them: checked,
	// with offsets that count from 0. Append writes the offsets and the leader
	// epoch into them and keeps no reference. Only a set of one batch may have a
	// producer id.
	Records []byte
	// LeaderEpoch goes into each batch.
	LeaderEpoch int32
	// LogAppendTime is the time the broker gave the records (ms), or -1 for
	// CreateTime.
	LogAppendTime int64
	Origin        Origin
	// Verified is the end of the log, plus one, when it began to be verified that
	// the producer's transaction has the partition: the set is refused if the
	// transaction has been ended since (KIP-890). 0: it was not verified.
	Verified int64
}

// AppendInfo says where a set went.
type AppendInfo struct {
	FirstOffset    int64
	LastOffset     int64
	MaxTimestamp   int64 // largest of the set, -1 when it has none
	LogAppendTime  int64 // -1 for CreateTime; for a duplicate, the timestamp of the batch kept
	LogStartOffset int64
	// Duplicate: an idempotent producer sent the set before; nothing was
	// appended, and the offsets are those of then.
	Duplicate bool
}

// summary is what one walk over a set tells.
type summary struct {
	first, last int64 // offsets; from 0 in a leader's set
	maxTs       int64
	maxTsLast   int64 // last offset of the batch with the largest timestamp
	epoch       int32 // the last batch's
	batches     int
	producer    bool // a batch has a producer id
	control     bool
}

// Append writes a leader's set at the end of the log, in the page cache; it is
// readable when the call returns. Sets of one log are appended in the order in
// which they got the lock. Errors: ErrClosed, ErrOffline, ErrBatchTooLarge,
// ErrOutOfOrderSequence, ErrProducerFenced, ErrInvalidTxnState,
// ErrCoordinatorFenced, ErrInvalidBatch, or what the file system said.
func (l *Log) Append(req AppendRequest) (AppendInfo, error) {
	if err := l.ready(); err != nil {
		return AppendInfo{}, err
	}
	sum, err := summarize(req.Records, true)
	if err != nil {
		return AppendInfo{}, err
	}
	var m marker
	if sum.control {
		if m, err = readMarker(record.Batch(req.Records)); err != nil {
			return AppendInfo{}, fmt.Errorf("%w: %w", ErrInvalidBatch, err)
		}
	}
	l.lockIdle()
	info, err := l.appendLocked(req, sum, m)
	l.mu.Unlock()
	if err != nil {
		return info, err
	}
	return info, l.afterAppend(info, len(req.Records))
}

func (l *Log) appendLocked(req AppendRequest, sum summary, m marker) (AppendInfo, error) {
	info := AppendInfo{MaxTimestamp: sum.maxTs, LogAppendTime: req.LogAppendTime, LogStartOffset: l.start.Load()}
	if l.state.Load() != loaded {
		return info, ErrClosed
	}
	if l.dir().full.Load() {
		return info, fmt.Errorf("%w: %s", ErrDiskFull, l.dir().path)
	}
	if sum.producer {
		b := record.Batch(req.Records)
		if req.Origin == Client && !b.Control() {
			if old, ok := l.mu.producers.duplicate(b); ok {
				info.FirstOffset, info.LastOffset = old.firstOffset(), old.lastOffset
				info.LogAppendTime, info.Duplicate = old.timestamp, true
				return info, nil
			}
			if l.mu.producers.mayRepeat(b) {
				l.recallLocked()
				return l.appendLocked(req, sum, m)
			}
		}
		if err := l.mu.producers.check(b, m, req.Origin, req.Verified); err != nil {
			return info, err
		}
	}
	base := l.tail.end.Load()
	sum.first, sum.last, sum.maxTsLast = base, base+sum.last, base+sum.maxTsLast
	sum.epoch = req.LeaderEpoch
	if err := l.rollIfNeededLocked(len(req.Records), sum); err != nil {
		return info, err
	}
	record.AssignOffsets(req.Records, base, req.LeaderEpoch)
	if err := l.writeLocked(req.Records, sum); err != nil {
		return info, err
	}
	if req.LeaderEpoch >= 0 {
		l.epochs.assign(req.LeaderEpoch, base)
	}
	if sum.producer {
		l.applyLocked(record.Batch(req.Records), m)
	}
	info.FirstOffset, info.LastOffset = sum.first, sum.last
	return info, nil
}

// AppendFollower writes what a leader sent: whole batches of any format, with
// offsets and epochs given. The first must not lie below the end of the log
// (ErrUnexpectedOffset); gaps are what compaction leaves. Checksums are
// verified here, producers' sequences are not.
func (l *Log) AppendFollower(set []byte) (AppendInfo, error) {
	if err := l.ready(); err != nil {
		return AppendInfo{}, err
	}
	for s := record.Split(set); s.Next(); {
		if err := s.Batch().Check(); err != nil {
			return AppendInfo{}, fmt.Errorf("%w: %w", ErrInvalidBatch, err)
		}
	}
	sum, err := summarize(set, false)
	if err != nil {
		return AppendInfo{}, err
	}
	l.lockIdle()
	info, err := l.appendFollowerLocked(set, sum)
	l.mu.Unlock()
	if err != nil {
		return info, err
	}
	return info, l.afterAppend(info, len(set))
}

func (l *Log) appendFollowerLocked(set []byte, sum summary) (AppendInfo, error) {
	info := AppendInfo{FirstOffset: sum.first, LastOffset: sum.last, MaxTimestamp: sum.maxTs, LogAppendTime: -1, LogStartOffset: l.start.Load()}
	if l.state.Load() != loaded {
		return info, ErrClosed
	}
	if l.dir().full.Load() {
		return info, fmt.Errorf("%w: %s", ErrDiskFull, l.dir().path)
	}
	if end := l.tail.end.Load(); sum.first < end {
		return info, fmt.Errorf("%w: the set begins at %d, the log ends at %d", ErrUnexpectedOffset, sum.first, end)
	}
	if err := l.rollIfNeededLocked(len(set), sum); err != nil {
		return info, err
	}
	if err := l.writeLocked(set, sum); err != nil {
		return info, err
	}
	for s := record.Split(set); s.Next(); {
		b := s.Batch()
		if b.LeaderEpoch() >= 0 {
			l.epochs.assign(b.LeaderEpoch(), b.BaseOffset())
		}
		if b.HasProducerID() {
			m, err := marker{}, error(nil)
			if b.Control() {
				m, err = readMarker(b)
			}
			if err == nil {
				l.applyLocked(b, m)
			}
		}
	}
	return info, nil
}

// summarize walks a set. A leader's must be v2 throughout.
func summarize(set []byte, leader bool) (summary, error) {
	sum := summary{maxTs: -1, maxTsLast: -1, epoch: -1}
	next := int64(0)
	s := record.Split(set)
	for s.Next() {
		b := s.Batch()
		if leader {
			if b.Magic() < 2 || b.LastOffsetDelta() < 0 {
				return sum, fmt.Errorf("%w: not a batch of format v2", ErrInvalidBatch)
			}
			if sum.batches == 0 {
				sum.first = 0
			}
			next += int64(b.LastOffsetDelta()) + 1
			sum.last = next - 1
		} else {
			if sum.batches == 0 {
				sum.first = b.BaseOffset()
			} else if b.BaseOffset() <= sum.last {
				return sum, fmt.Errorf("%w: %w", ErrInvalidBatch, errOrder)
			}
			sum.last = b.LastOffset()
			if sum.last < sum.first || sum.last >= maxOffset {
				return sum, fmt.Errorf("%w: %w", ErrInvalidBatch, errOrder)
			}
		}
		if ts := b.MaxTimestamp(); ts > sum.maxTs {
			sum.maxTs, sum.maxTsLast = ts, sum.last
		}
		sum.epoch = b.LeaderEpoch()
		sum.producer = sum.producer || b.HasProducerID()
		sum.control = sum.control || b.Control()
		sum.batches++
	}
	if err := s.Err(); err != nil {
		return sum, fmt.Errorf("%w: %w", ErrInvalidBatch, err)
	}
	if sum.batches == 0 || leader && sum.batches > 1 && (sum.producer || sum.control) {
		return sum, fmt.Errorf("%w: %d batches", ErrInvalidBatch, sum.batches)
	}
	return sum, nil
}

// writeLocked puts the set behind the active segment's bytes and publishes it.
func (l *Log) writeLocked(set []byte, sum summary) error {
	seg := l.active()
	ref := seg.file.cached()
	if ref == nil {
		var err error
		if ref, err = l.openActiveLocked(seg); err != nil {
			l.dir().complain(l.tp, err)
			return err
		}
	}
	defer ref.release()
	pos := seg.size.Load()
	if end := pos + int64(len(set)); end > max(seg.room, reserveStep) {
		l.reserveAheadLocked(seg, ref, pos, end)
	}
	if sum.producer && l.unstable.Load() < 0 && record.Batch(set).Transactional() {
		l.unstable.Store(sum.first) // before the high watermark can reach it
	}
	if n, err := ref.file.WriteAt(set, pos); err != nil || n < len(set) {
		l.unstable.Store(l.mu.producers.firstUnstable(l.hw.Load()))
		return l.cutBackLocked(ref, seg, pos, err)
	}
	if !seg.dirty.Load() {
		seg.dirty.Store(true)
	}
	at := pos
	for s := record.Split(set); s.Next(); {
		l.indexLocked(seg, at, s.Batch())
		at += int64(len(s.Batch()))
	}
	seg.size.Store(pos + int64(len(set)))

	l.tail.begin()
	at = pos
	for s := record.Split(set); s.Next(); {
		b := s.Batch()
		l.tail.put(b.BaseOffset(), b.LastOffset(), at)
		at += int64(len(b))
	}
	l.tail.size.Store(pos + int64(len(set)))
	l.tail.end.Store(sum.last + 1)
	l.tail.done()
	return nil
}

// indexLocked keeps the segment's indexes and largest timestamp as Kafka's
// LogSegment.append does, but batch by batch: in a set of several, as a follower
// gets them, Kafka 3.9 names the last offset of the set and the place where the
// set begins.
func (l *Log) indexLocked(seg *segment, pos int64, b record.Batch) {
	ts, last := b.MaxTimestamp(), b.LastOffset()
	if pos == 0 {
		seg.firstTimestamp = ts
	}
	if ts > seg.maxTimestamp.Load() {
		seg.maxTimestamp.Store(ts)
		seg.maxOffset.Store(last)
	}
	if seg.sinceIndex > int(l.config.Load().IndexIntervalBytes) {
		seg.offsets.appendOffset(int32(last-seg.base), int32(pos))
		l.timeEntryLocked(seg)
		seg.sinceIndex = 0
	}
	seg.sinceIndex += len(b)
}

// timeEntryLocked adds the largest timestamp so far if it is larger than the
// last entry's.
func (l *Log) timeEntryLocked(seg *segment) {
	ts := seg.maxTimestamp.Load()
	if ts > seg.lastTimeEntry {
		seg.times.appendTime(ts, int32(seg.maxOffset.Load()-seg.base))
		seg.lastTimeEntry = ts
	}
}

// openActiveLocked makes the active segment's file at its first record, or opens
// it again after it was closed to make room for others, without holding mu over
// it.
func (l *Log) openActiveLocked(seg *segment) (*FileRef, error) {
	l.mu.busy = true
	l.mu.Unlock()
	flag := os.O_RDWR
	if seg.size.Load() == 0 {
		flag |= os.O_CREATE
		l.namesNew.Store(true)
	}
	ref, err := seg.file.acquireFlag(flag)
	if err == nil && flag&os.O_CREATE != 0 {
		l.reserve(seg, ref)
	}
	l.mu.Lock()
	l.mu.busy = false
	l.mu.idle.Broadcast()
	return ref, err
}

// cutBackLocked undoes a failed write (invariant 2).
func (l *Log) cutBackLocked(ref *FileRef, seg *segment, pos int64, cause error) error {
	if cause == nil {
		cause = errors.New("short write")
	}
	err := fmt.Errorf("append to %s: %w", seg.path(), cause)
	if terr := ref.file.Truncate(pos); terr != nil {
		err = errors.Join(err, terr)
		l.dir().fail(err)
		return err
	}
	seg.room = 0
	l.dir().complain(l.tp, err)
	return err
}

func (l *Log) applyLocked(b record.Batch, m marker) {
	done, ok := l.mu.producers.apply(b, m)
	if ok && done.aborted {
		l.active().txns.add(abortedTxn{done.txn.producer, done.txn.first, done.txn.last, done.stable})
	}
	if ok || b.Transactional() || l.unstable.Load() >= 0 {
		l.unstable.Store(l.mu.producers.firstUnstable(l.hw.Load()))
	}
}

// afterAppend hands the log to the flusher when enough has gathered, and waits
// for it where flush.messages says so.
func (l *Log) afterAppend(info AppendInfo, bytes int) error {
	if info.Duplicate { // the first may still be waiting
		if l.flushFirst(l.config.Load()) {
			return l.flushTo(info.LastOffset + 1)
		}
		return nil
	}
	l.dir().wrote(bytes)
	n := l.unflushed.Add(info.LastOffset - info.FirstOffset + 1)
	if l.unsyncedAt.Load() == 0 {
		l.unsyncedAt.CompareAndSwap(0, l.dir().now().UnixMilli())
		l.dir().touched.Store(true)
	}
	if c := l.config.Load(); n >= c.FlushMessages || l.visible {
		return l.flushTo(info.LastOffset + 1)
	}
	if l.unsynced.Load() >= syncBytes {
		l.dir().enqueue(l)
	}
	return nil
}

// rollIfNeededLocked begins a new segment when the set does not fit the active
// one (Kafka's LogSegment.shouldRoll).
func (l *Log) rollIfNeededLocked(size int, sum summary) error {
	c := l.config.Load()
	if size > int(c.SegmentBytes) && !l.copying {
		return fmt.Errorf("%w: %d bytes, segment.bytes is %d", ErrBatchTooLarge, size, c.SegmentBytes)
	}
	seg := l.active()
	now := l.dir().now().UnixMilli()
	l.unsynced.Add(int64(size))
	if !l.shouldRollLocked(seg, c, int64(size), sum, now) {
		return nil
	}
	return l.rollLocked(max(sum.first, l.tail.end.Load()), now)
}

func (l *Log) shouldRollLocked(seg *segment, c *config.Topic, size int64, sum summary, now int64) bool {
	have := seg.size.Load()
	switch {
	case sum.last-seg.base > math.MaxInt32:
		return true
	case have == 0, l.copying:
		return false
	case have > int64(c.SegmentBytes)-size:
		return true
	case seg.offsets.count() >= int(c.SegmentIndexBytes)/offsetEntry,
		seg.times.count() >= int(c.SegmentIndexBytes)/timeEntry-1:
		return true
	}
	waited := now - seg.created
	if seg.firstTimestamp >= 0 && sum.maxTs >= 0 {
		waited = sum.maxTs - seg.firstTimestamp
	}
	return waited > c.SegmentMs-l.mu.jitter
}

// rollLocked seals the active segment and begins one at base, which lies at the
// end or, after a gap, beyond. The log ends at base from then on, as a start would
// find it: if the write that comes next fails, no later one lies below its
// segment's base. The file is made while mu is free and busy keeps appends out.
func (l *Log) rollLocked(base, now int64) error {
	if base <= l.active().base {
		return fmt.Errorf("%w: a segment can't hold its offsets", ErrInvalidBatch)
	}
	l.mu.busy = true
	l.mu.Unlock()
	next, err := l.createSegment(base, now)
	l.mu.Lock()
	l.mu.busy = false
	l.mu.idle.Broadcast()
	if err != nil {
		return err
	}
	old := l.active()
	l.timeEntryLocked(old)
	old.knownMax.Store(true)
	old.active.Store(false)
	l.mu.snapshots = append(l.mu.snapshots, pendingSnapshot{base, l.mu.producers.encode()})
	l.mu.jitter = jitter(l.config.Load())
	segs := *l.segments.Load()
	l.publish(append(segs[:len(segs):len(segs)], next))
	l.tail.reset(base, 0, base)
	l.dir().enqueue(l)
	return nil
}

func jitter(c *config.Topic) int64 {
	if most := min(c.SegmentJitterMs, c.SegmentMs); most > 0 {
		return rand.Int64N(most)
	}
	return 0
}

// createSegment makes an empty segment with its file.
func (l *Log) createSegment(base, now int64) (*segment, error) {
	seg := l.emptySegment(base, now)
	ref, err := seg.file.acquireFlag(os.O_RDWR | os.O_CREATE | os.O_TRUNC)
	if err != nil {
		return nil, fmt.Errorf("new segment: %w", err)
	}
	l.reserve(seg, ref)
	ref.release()
	l.namesNew.Store(true)
	return seg, nil
}

// reserve gives a new segment its room on the disk at once (preallocate). Apache
// Kafka makes the file as long; here a crash leaves no zeros that a start would
// have to read. Without room, records find out.
func (l *Log) reserve(seg *segment, ref *FileRef) {
	if c := l.config.Load(); c.Preallocate && ref.file.Reserve(0, int64(c.SegmentBytes)) == nil {
		seg.reserved.Store(true)
		seg.room = int64(c.SegmentBytes)
	}
}

// reserveStep is how much room an active segment of this size and more gets at a
// time, before its records come.
const reserveStep = 4 << 20

// reserveAheadLocked gives the active segment room for the records up to end and a
// step more. A file system that has the room already does about a third less for
// each page that is written. Without room, the write finds out. What is reserved
// counts as written to the disk, and is not asked for where that gets full.
func (l *Log) reserveAheadLocked(seg *segment, ref *FileRef, pos, end int64) {
	seg.room = (end/reserveStep + 1) * reserveStep
	if l.dir().tight.Load() {
		return
	}
	seg.reserved.Store(true)
	l.dir().sinceCheck.Add(seg.room - pos)
	if ref.file.Reserve(pos, seg.room-pos) != nil {
		seg.room = math.MaxInt64 // it is not asked for again
	}
}

// unreserve gives back the room that a segment has not used. When the file was
// changed stays as it was: retention goes by it where records have no time.
func (s *segment) unreserve(fsys vfs.FS) error {
	if !s.reserved.Swap(false) {
		return nil
	}
	ref, err := s.file.acquire()
	if err != nil {
		return err
	}
	defer ref.release()
	info, err := fsys.Stat(s.path())
	if err != nil {
		return err
	}
	if err := ref.file.Truncate(s.size.Load()); err != nil {
		return err
	}
	return fsys.SetModTime(s.path(), info.ModTime())
}

// emptySegment makes a segment whose file comes with its first record: most
// partitions of a large cluster are idle.
func (l *Log) emptySegment(base, now int64) *segment {
	seg := newSegment(l.home.Load(), base, now)
	seg.offsets.fresh()
	seg.times.fresh()
	seg.txns.reset(false)
	seg.knownMax.Store(true)
	seg.active.Store(true)
	return seg
}

// publish replaces the list of segments that readers see.
func (l *Log) publish(segs []*segment) { l.segments.Store(&segs) }
