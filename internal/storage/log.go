package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"barnabas/internal/config"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// Log is one partition on this broker. All methods may be called from any
// goroutine. The first call that needs the files loads them.
type Log struct {
	tp   wire.TopicPartition
	home atomic.Pointer[home] // changes when the log has moved

	visible bool // consumers see only what is on the disk
	copying bool // a copy under way, see move: rolled where the original was

	config  atomic.Pointer[config.Topic]
	topicID atomic.Pointer[wire.UUID] // nil: not read yet
	state   atomic.Int32
	failure atomic.Pointer[error] // why loading failed

	// what readers use
	segments atomic.Pointer[[]*segment] // by base offset; the last is active
	tail     tail
	start    atomic.Int64 // first readable offset
	hw       atomic.Int64 // high watermark
	recovery atomic.Int64 // recovery point
	flushed  atomic.Int64 // up to here the records are on the disk
	unstable atomic.Int64 // first offset of a transaction that is not decided, -1
	epochs   epochs

	// what is not on the disk yet
	unsynced    atomic.Int64 // bytes appended since the last sync
	unsyncedAt  atomic.Int64 // ms of the first of them, 0: none
	unflushed   atomic.Int64 // records appended since the last sync
	queued      atomic.Bool  // waits for the directory's flusher
	namesNew    atomic.Bool  // names in the folder were not synced
	folderNew   atomic.Bool  // nor was the folder's own
	startRaised atomic.Bool  // DeleteRecords moved start above the first segment

	move    atomic.Pointer[move] // a copy of it is being made; nil: none
	cleaned atomic.Int64         // the cleaner was through up to here, -1: never
	changes atomic.Uint64        // counts truncations, for the cleaner
	cutTo   atomic.Int64         // the lowest end since a move last looked

	// found is what the checkpoints of the last run said.
	found foundOffsets

	// maintenance orders loading, syncing, truncating, deleting and closing. It
	// is held over I/O, and taken by nobody who appends to or reads a loaded log.
	maintenance sync.Mutex

	// snapshotAt is the offset of the newest producer snapshot in the folder, -1
	// when there is none. Guarded by maintenance.
	snapshotAt int64

	// assigned is the newest epoch given to AssignEpoch before the log was loaded,
	// -1 for none. Guarded by maintenance.
	assigned int32

	// mu is the append lock; see the package comment.
	mu struct {
		sync.Mutex
		idle      sync.Cond // signalled when busy ends
		busy      bool      // the end of the log is being moved by hand
		producers *producers
		snapshots []pendingSnapshot // taken at rolls, not written yet
		jitter    int64             // of the active segment, ms
	}
}

// home is where a log lies.
type home struct {
	dir    *logDir
	folder string // the partition's folder
}

func (l *Log) dir() *logDir   { return l.home.Load().dir }
func (l *Log) folder() string { return l.home.Load().folder }

type pendingSnapshot struct {
	offset int64
	data   []byte
}

// foundOffsets is what the checkpoints say of a log before it is loaded.
type foundOffsets struct {
	clean    bool  // the directory was left by a clean stop
	known    bool  // recovery is from a checkpoint
	recovery int64 // recovery point
	start    int64 // log start offset, 0 when not said
}

// The states of a log.
const (
	unloaded int32 = iota
	loaded
	broken // could not be loaded
	closed
)

var noSegments = new([]*segment)

func newLog(tp wire.TopicPartition, at home, c *config.Topic) *Log {
	l := &Log{tp: tp}
	l.home.Store(&at)
	l.config.Store(c)
	l.mu.idle.L = &l.mu
	l.mu.producers = newProducers()
	l.epochs.mu.synced = true
	l.snapshotAt, l.assigned = -1, -1
	l.unstable.Store(-1)
	l.cutTo.Store(math.MaxInt64)
	l.cleaned.Store(-1)
	l.segments.Store(noSegments)
	return l
}

// trust takes over what the checkpoints say, until the log is loaded.
func (l *Log) trust(f foundOffsets, highWatermark int64) {
	l.found = f
	l.recovery.Store(f.recovery)
	l.flushed.Store(f.recovery)
	l.start.Store(f.start)
	l.startRaised.Store(f.start > 0)
	l.hw.Store(highWatermark)
}

// Partition returns the topic and partition.
func (l *Log) Partition() wire.TopicPartition { return l.tp }

// Dir returns the log directory that holds the partition.
func (l *Log) Dir() string { return l.dir().path }

// Config returns the topic's configuration in force.
func (l *Log) Config() *config.Topic { return l.config.Load() }

// SetConfig replaces the topic's configuration; it takes effect at the next
// append, roll or round of retention.
func (l *Log) SetConfig(c *config.Topic) { l.config.Store(c) }

// Err returns nil while the log can be used: else ErrOffline, ErrClosed, or why
// it could not be loaded.
func (l *Log) Err() error {
	if l.state.Load() == unloaded && l.dir().online() {
		return nil
	}
	return l.ready()
}

// ready loads the log if need be and tells whether it can be used.
func (l *Log) ready() error {
	if l.state.Load() == unloaded && l.dir().online() {
		return l.load()
	}
	return l.readyLoaded()
}

func (l *Log) readyLoaded() error {
	switch l.state.Load() {
	case closed:
		return ErrClosed
	case broken:
		return *l.failure.Load()
	}
	if !l.dir().online() {
		return fmt.Errorf("%w: %s", ErrOffline, l.dir().path)
	}
	return nil
}

// StartOffset returns the first offset that may be read.
func (l *Log) StartOffset() int64 {
	if l.ready() != nil {
		return l.found.start
	}
	return l.start.Load()
}

// EndOffset returns the offset that the next record will get (LEO). After a
// clean stop it is known without loading the log.
func (l *Log) EndOffset() int64 {
	if l.state.Load() == unloaded && l.found.clean && l.found.known {
		return l.found.recovery
	}
	_ = l.ready() // what is known then counts
	return l.tail.end.Load()
}

// CommitEnd returns up to where this replica's records may count as replicated:
// the end, or with flush.messages=1 (and for topics of log.flush.visible.topics)
// what is on the disk.
func (l *Log) CommitEnd() int64 {
	if l.flushFirst(l.config.Load()) && l.ready() == nil {
		return l.flushed.Load()
	}
	return l.EndOffset()
}

// flushFirst tells whether each append waits for the sync that covers it.
func (l *Log) flushFirst(c *config.Topic) bool { return c.FlushMessages <= 1 || l.visible }

// HighWatermark returns what SetHighWatermark was last told, at first what the
// checkpoint says (0 without one), never outside of start and end.
func (l *Log) HighWatermark() int64 { return l.hw.Load() }

// SetHighWatermark tells the log up to where (exclusive) it is replicated. The
// log writes it to replication-offset-checkpoint every few seconds and deletes
// no segment above it. It may go back (a new follower's).
func (l *Log) SetHighWatermark(offset int64) {
	if l.hw.Swap(offset) != offset {
		l.highWatermarkMoved()
	}
}

// RaiseHighWatermark is SetHighWatermark for a leader's, which never goes back:
// of calls at the same time the largest offset counts.
func (l *Log) RaiseHighWatermark(offset int64) {
	for old := l.hw.Load(); offset > old; old = l.hw.Load() {
		if l.hw.CompareAndSwap(old, offset) {
			l.highWatermarkMoved()
			return
		}
	}
}

// highWatermarkMoved finds which transactions are open below it.
func (l *Log) highWatermarkMoved() {
	if l.unstable.Load() < 0 {
		return
	}
	l.mu.Lock()
	l.unstable.Store(l.mu.producers.firstUnstable(l.hw.Load()))
	l.mu.Unlock()
}

// LastStableOffset returns the first offset of the earliest transaction that is
// still open below the high watermark, or the high watermark; never less than
// the start.
func (l *Log) LastStableOffset() int64 {
	_ = l.ready()
	hw := l.hw.Load()
	if first := l.unstable.Load(); first >= 0 {
		return min(hw, max(first, l.start.Load()))
	}
	return hw
}

// AbortedTransactions returns the aborted transactions with records in
// [from, upTo), for read_committed. ErrOffsetOutOfRange: the log does not go back
// to from any more, and with its records what is known of them is gone.
func (l *Log) AbortedTransactions(from, upTo int64) ([]AbortedTxn, error) {
	if err := l.ready(); err != nil {
		return nil, err
	}
	var out []AbortedTxn
	segs := *l.segments.Load()
	for i := max(floorSegment(segs, from), 0); i < len(segs); i++ {
		if err := segs[i].txns.load(l.dir().fs); err != nil {
			return nil, err
		}
		var done bool
		if out, done = segs[i].txns.collect(out, from, upTo); done {
			break
		}
	}
	if from < l.start.Load() { // which rises before segments go
		return nil, ErrOffsetOutOfRange
	}
	return out, nil
}

// RecoveryPoint returns the offset up to which the log is on the disk with all
// that goes with it: recovery after a crash begins there.
func (l *Log) RecoveryPoint() int64 {
	return l.recovery.Load()
}

// FlushedOffset returns the offset up to which the records are on the disk; it is
// never below RecoveryPoint.
func (l *Log) FlushedOffset() int64 {
	_ = l.ready()
	return l.flushed.Load()
}

// Size returns the bytes of all segments.
func (l *Log) Size() int64 {
	_ = l.ready()
	var n int64
	for _, s := range *l.segments.Load() {
		n += s.size.Load()
	}
	return n
}

// SegmentTime is where a segment starts and when its file was last written, in
// milliseconds.
type SegmentTime struct{ Start, Modified int64 }

// SegmentTimes lists the segments, the oldest first, for ListOffsets v0. Empty
// ones but the first are left out.
func (l *Log) SegmentTimes() ([]SegmentTime, error) {
	if err := l.ready(); err != nil {
		return nil, err
	}
	var times []SegmentTime
	for i, s := range *l.segments.Load() {
		if i > 0 && s.size.Load() == 0 {
			continue
		}
		info, err := l.dir().fs.Stat(s.path())
		if errors.Is(err, fs.ErrNotExist) {
			if s.size.Load() == 0 { // not made yet
				times = append(times, SegmentTime{max(s.base, l.start.Load()), s.created})
			}
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		times = append(times, SegmentTime{max(s.base, l.start.Load()), info.ModTime().UnixMilli()})
	}
	return times, nil
}

// LatestEpoch returns the newest leader epoch known, or -1.
func (l *Log) LatestEpoch() int32 {
	_ = l.ready()
	return l.epochs.latest()
}

// EpochForOffset returns the leader epoch of an offset, or -1.
func (l *Log) EpochForOffset(offset int64) int32 {
	_ = l.ready()
	return l.epochs.forOffset(offset)
}

// AssignEpoch notes that a leader epoch begins at the end of the log, with or
// without a record to come; the epoch that is the latest already changes
// nothing. The file is written within a second or so.
func (l *Log) AssignEpoch(epoch int32) error {
	if l.assignUnloaded(epoch) {
		return nil
	}
	if err := l.ready(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs.assign(epoch, l.tail.end.Load())
	l.dir().touched.Store(true)
	return nil
}

// assignUnloaded notes the epoch for the time when the log is loaded, if a clean
// stop vouches for its end: a broker that becomes the leader of thousands of
// partitions opens none of them.
func (l *Log) assignUnloaded(epoch int32) bool {
	if l.state.Load() != unloaded || !l.found.clean || !l.found.known {
		return false
	}
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	if l.state.Load() != unloaded || !l.dir().online() {
		return false
	}
	l.assigned = max(l.assigned, epoch)
	return true
}

// EndOffsetForEpoch answers OffsetForLeaderEpoch as Kafka's LeaderEpochFileCache
// does: the end offset of the largest epoch not above the one asked for.
func (l *Log) EndOffsetForEpoch(epoch int32) EpochEnd {
	if l.ready() != nil {
		return EpochEnd{-1, -1}
	}
	return l.epochs.endFor(epoch, l.tail.end.Load())
}

// TopicID returns the id in partition.metadata, zero when there is none.
func (l *Log) TopicID() wire.UUID {
	if id := l.topicID.Load(); id != nil {
		return *id
	}
	id, err := readPartitionFile(l.dir().fs, l.folder())
	if err != nil {
		l.dir().log.Warn("partition.metadata can't be read; it counts as missing", "partition", l.tp.String(), "error", err)
	}
	l.topicID.CompareAndSwap(nil, &id)
	return *l.topicID.Load()
}

// SetTopicID stores the topic's id in partition.metadata when there is none
// yet; ErrInconsistentTopicID when there is another.
func (l *Log) SetTopicID(id wire.UUID) error {
	has := l.TopicID()
	if has == id || id.IsZero() {
		return nil
	}
	if !has.IsZero() {
		return fmt.Errorf("%w: %s is topic %s, not %s", ErrInconsistentTopicID, l.folder(), has, id)
	}
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	if l.state.Load() == closed {
		return ErrClosed
	}
	if err := writePartitionFile(l.dir().fs, l.folder(), id); err != nil {
		return err
	}
	l.topicID.Store(&id)
	l.namesNew.Store(true)
	return nil
}

// partition.metadata, text:
//
//	version: 0
//	topic_id: 22 characters of base64url
const partitionFileVersion = "0"

func readPartitionFile(fsys vfs.FS, folder string) (wire.UUID, error) {
	data, err := vfs.ReadFile(fsys, filepath.Join(folder, partitionFile), 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return wire.UUID{}, nil
	}
	if err != nil {
		return wire.UUID{}, err
	}
	var version, id string
	for _, line := range strings.Split(string(data), "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "version":
			version = strings.TrimSpace(value)
		case "topic_id":
			id = strings.TrimSpace(value)
		}
	}
	if version != partitionFileVersion {
		return wire.UUID{}, fmt.Errorf("%s: unknown version %.20q", partitionFile, version)
	}
	return wire.ParseUUID(id)
}

func writePartitionFile(fsys vfs.FS, folder string, id wire.UUID) error {
	text := "version: " + partitionFileVersion + "\ntopic_id: " + id.String()
	return vfs.WriteFile(fsys, filepath.Join(folder, partitionFile), []byte(text), 0o644)
}

// lockIdle takes mu when nobody moves the end of the log by hand.
func (l *Log) lockIdle() {
	l.mu.Lock()
	for l.mu.busy {
		l.mu.idle.Wait()
	}
}

// beginWork keeps appends out without holding mu; endWork lets them in again.
func (l *Log) beginWork() {
	l.lockIdle()
	l.mu.busy = true
	l.mu.Unlock()
}

func (l *Log) endWork() {
	l.mu.Lock()
	l.mu.busy = false
	l.mu.idle.Broadcast()
	l.mu.Unlock()
}

// floorSegment returns the index of the segment that could hold offset, -1 when
// all begin above it.
func floorSegment(segs []*segment, offset int64) int {
	lo, hi := 0, len(segs)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if segs[mid].base <= offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

func (l *Log) active() *segment {
	segs := *l.segments.Load()
	return segs[len(segs)-1]
}
