package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"sync/atomic"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// A move takes a partition's log to another log directory while it is in use
// (KIP-113, AlterReplicaLogDirs). The batches are copied, segment by segment,
// into the folder topic-P.<32 hex digits>-future there, which a restart goes on
// with. When the copy has caught up, appends wait while the rest is copied and
// synced, and the folders take new names:
//
//	copy       topic-P.X-future  ->  topic-P           with .barnabas_moved in it
//	original   topic-P           ->  topic-P.Y-delete
//
// A crash between the two leaves two folders topic-P, as it does in Kafka; the
// mark tells a start which one counts. The Log goes on with the copy's segments
// and the state that it has in memory: nobody who uses it notices.
type move struct {
	log, copy *Log
	stop      chan struct{} // closed when the move is called off; guarded by Manager.changing
	stuck     atomic.Bool   // it has given up
	seen      uint64        // log.changes when the copy was last compared with the log
	agreed    bool
	buf       []byte
}

// moveChunk is how much is copied at a time.
const moveChunk = 1 << 20

// Prefer makes the log of a partition that this broker does not have yet be made
// in a certain directory: ErrNoSuchDir when it is none of the broker's, ErrOffline
// when it failed.
func (m *Manager) Prefer(tp wire.TopicPartition, dir string) error {
	d, err := m.dirNamed(dir)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.mu.logs[tp]; l != nil && l.dir() == d {
		return nil
	}
	if mv := m.mu.moves[tp]; mv != nil && mv.copy.dir() == d {
		return nil
	}
	m.mu.preferred[tp] = d
	return nil
}

func (m *Manager) dirNamed(path string) (*logDir, error) {
	for _, d := range m.dirs {
		if d.path != path {
			continue
		}
		if !d.online() {
			return nil, fmt.Errorf("%w: %s", ErrOffline, path)
		}
		return d, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrNoSuchDir, path)
}

// Move begins to move a partition's log to another log directory; a move to
// somewhere else that is under way is called off. Moving it to where it is does
// no more than that. Errors: ErrNoSuchDir, ErrOffline, ErrNotFound, or what the
// log or the file system said.
func (m *Manager) Move(tp wire.TopicPartition, dir string) error {
	d, err := m.dirNamed(dir)
	if err != nil {
		return err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	if m.closed.Load() {
		return ErrClosed
	}
	l, ok := m.Log(tp)
	if !ok {
		return ErrNotFound
	}
	if err := l.ready(); err != nil {
		return err
	}
	if mv := m.moveOf(tp); mv != nil {
		if mv.copy.dir() == d && !mv.stuck.Load() {
			return nil
		}
		if err := m.callOff(mv); err != nil {
			return err
		}
	}
	if l.dir() == d {
		return nil
	}
	c, err := newEmptyLog(tp, home{d, filepath.Join(d.path, futureFolderName(tp))}, l.TopicID(), l.config.Load())
	if err != nil {
		d.fail(err)
		return err
	}
	m.o.Logger.Info("a partition is being moved to another log directory", "partition", tp.String(), "from", l.dir().path, "to", d.path)
	m.beginMove(l, c)
	return nil
}

// beginMove starts to copy, with changing held.
func (m *Manager) beginMove(l, c *Log) {
	c.copying = true
	mv := &move{log: l, copy: c, stop: make(chan struct{})}
	l.move.Store(mv)
	m.mu.Lock()
	m.mu.moves[l.tp] = mv
	delete(m.mu.preferred, l.tp)
	m.mu.Unlock()
	if !m.o.Manual {
		m.wg.Go(func() { m.runMove(mv) })
	}
}

// resumeMoves goes on with the copies that the last run left.
func (m *Manager) resumeMoves() {
	m.changing.Lock() // the first may be through before the last is begun
	defer m.changing.Unlock()
	for _, c := range m.found {
		l, ok := m.mu.logs[c.tp]
		if !ok {
			c.dir().left[c.tp] = true
			m.o.Logger.Warn("a folder is left alone: it is a copy of a log that is in none of the log directories that are online", "folder", c.folder())
			continue
		}
		if m.mu.moves[c.tp] != nil || l.dir() == c.dir() {
			c.dir().left[c.tp] = true
			m.o.Logger.Warn("a folder is left alone: another copy of the log is under way, or the log is here already", "folder", c.folder())
			continue
		}
		m.o.Logger.Info("a partition is being moved to another log directory, where the last run stopped", "partition", c.tp.String(), "from", l.dir().path, "to", c.dir().path)
		m.beginMove(l, c)
	}
	m.found = nil
}

func (m *Manager) moveOf(tp wire.TopicPartition) *move {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mu.moves[tp]
}

// Future is the copy of a log that is being moved.
type Future struct {
	Partition wire.TopicPartition
	Dir       string
	Size      int64
	Lag       int64 // records that it lacks
}

// Futures describes the moves under way.
func (m *Manager) Futures() []Future {
	m.mu.RLock()
	moves := make([]*move, 0, len(m.mu.moves))
	for _, mv := range m.mu.moves {
		moves = append(moves, mv)
	}
	m.mu.RUnlock()
	all := make([]Future, len(moves))
	for i, mv := range moves {
		all[i] = Future{Partition: mv.log.tp, Dir: mv.copy.dir().path, Size: mv.copy.Size(), Lag: mv.log.EndOffset() - mv.copy.EndOffset()}
	}
	return all
}

// callOff ends a move and removes the copy, with changing held. The goroutine
// may still be at work on the copy: it finds it closed. No crash brings the copy
// back: by then the log may have been cut, or compacted.
func (m *Manager) callOff(mv *move) error {
	m.forgetMove(mv)
	close(mv.stop)
	if err := mv.copy.close(false); err != nil {
		return err
	}
	d := mv.copy.dir()
	d.left[mv.copy.tp] = true
	name, err := mv.copy.moveAside()
	if err == nil {
		err = d.fs.SyncDir(d.path)
	}
	if err != nil {
		d.fail(err)
		return err
	}
	d.removeLater([]string{name}, 0)
	return nil
}

func (m *Manager) forgetMove(mv *move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.moves[mv.log.tp] == mv {
		delete(m.mu.moves, mv.log.tp)
	}
	mv.log.move.CompareAndSwap(mv, nil)
}

// retryMove is how long a move waits when the disk is full.
const retryMove = time.Second

// runMove copies until the copy has taken the log's place, the move is called
// off, or a log fails. At most num.replica.alter.log.dirs.threads copy at a
// time.
func (m *Manager) runMove(mv *move) {
	tp := mv.log.tp.String()
	for {
		done, n, err := m.stepMove(mv)
		var wait time.Duration
		switch {
		case errors.Is(err, errMoved):
			return
		case errors.Is(err, ErrDiskFull):
			wait = retryMove
		case err != nil:
			m.stuckMove(mv, err)
			return
		case done:
			m.o.Logger.Info("a partition has moved to another log directory", "partition", tp, "dir", mv.log.dir().path)
			return
		}
		if !m.pace.wait(n, wait, m.o.Now, m.stop, mv.stop) {
			return
		}
	}
}

func (m *Manager) stepMove(mv *move) (done bool, n int, err error) {
	select {
	case m.movers <- struct{}{}:
		defer func() { <-m.movers }()
	case <-m.stop:
		return false, 0, errMoved
	case <-mv.stop:
		return false, 0, errMoved
	}
	var last bool
	n, last, err = mv.step()
	if last && err == nil {
		done, err = m.finishMove(mv)
	}
	if err == errStale { // a segment went under the copy
		err = mv.log.waitForMaintenance()
	}
	return done, n, err
}

// stuckMove is for a copy that can't go on; DescribeLogDirs shows it with its lag.
func (m *Manager) stuckMove(mv *move, err error) {
	select {
	case <-m.stop:
		return
	case <-mv.stop:
		return
	default:
	}
	mv.stuck.Store(true)
	m.o.Logger.Error("a partition can't be moved to another log directory; a restart, or another AlterReplicaLogDirs, tries again",
		"partition", mv.log.tp.String(), "from", mv.log.dir().path, "to", mv.copy.dir().path, "error", err)
	if !mv.copy.dir().online() {
		m.forgetMove(mv)
	}
}

// step copies a piece, the last one if there was no more a moment ago.
func (mv *move) step() (n int, last bool, err error) {
	l, c := mv.log, mv.copy
	if err := errors.Join(l.ready(), c.ready()); err != nil {
		return 0, false, err
	}
	if changes := l.changes.Load(); !mv.agreed || changes != mv.seen {
		if err := mv.agree(); err != nil {
			return 0, false, err
		}
		mv.agreed, mv.seen = true, changes
	}
	c.SetConfig(l.config.Load())
	// Retention was here, or nothing is copied yet; or lost power undid retention.
	if first := (*l.segments.Load())[0].base; c.tail.end.Load() < first || (*c.segments.Load())[0].base > l.start.Load() {
		if err := c.TruncateFullyAndStartAt(first); err != nil {
			return 0, false, err
		}
	}
	end := l.tail.end.Load()
	n, err = mv.copyPiece()
	c.SetHighWatermark(min(l.hw.Load(), c.tail.end.Load()))
	return n, n == 0 || c.tail.end.Load() >= end, err
}

// copyPiece copies batches of one segment.
func (mv *move) copyPiece() (int, error) {
	from := mv.copy.tail.end.Load()
	s, base, err := mv.log.piece(from, moveChunk)
	if err != nil {
		return 0, err
	}
	defer s.Release()
	if base > from || base == from && s.Len > 0 {
		if err := mv.copy.rollTo(base); err != nil {
			return 0, err
		}
	}
	if s.Len == 0 {
		return 0, nil
	}
	if cap(mv.buf) < s.Len {
		mv.buf = make([]byte, s.Len)
	}
	b := mv.buf[:s.Len]
	if n, err := s.ReadAt(b, 0); n < len(b) {
		return 0, err
	}
	whole := 0
	for sp := record.Split(b); sp.Next(); {
		whole += len(sp.Batch())
	}
	if whole == 0 {
		return 0, mv.log.missing(from)
	}
	if _, err := mv.copy.AppendFollower(b[:whole]); err != nil {
		return 0, err
	}
	return whole, nil
}

// piece finds the batches from the one with offset on, in one segment, and that
// segment's base. Without any left it is empty, and base is the active segment's.
func (l *Log) piece(offset int64, most int) (Slice, int64, error) {
	view, segs := l.published(-1, -1)
	for i := max(floorSegment(segs, offset), 0); i < len(segs) && segs[i].base <= view.base; i++ {
		s := segs[i]
		at, ok, err := s.locate(offset, s.readable(view))
		if err != nil {
			return Slice{}, 0, err
		}
		if ok {
			out, err := l.slice(Slice{}, s, at.pos, at.size, s.readable(view), most, true)
			return out, s.base, err
		}
	}
	return Slice{}, max(view.base, offset), nil
}

// rollTo makes a segment begin at base, at or beyond the end.
func (l *Log) rollTo(base int64) error {
	l.lockIdle()
	defer l.mu.Unlock()
	if l.state.Load() != loaded {
		return ErrClosed
	}
	active := l.active()
	if base <= active.base || base < l.tail.end.Load() {
		return nil
	}
	if active.size.Load() == 0 { // its file may not have been made yet
		ref, err := l.openActiveLocked(active)
		if err != nil {
			return err
		}
		ref.release()
	}
	return l.rollLocked(base, l.dir().now().UnixMilli())
}

// cutCopy cuts the copy of a log that is about to be cut itself: had the process
// ended in between, the epochs alone might not tell that they differ.
func (l *Log) cutCopy(offset int64) {
	if mv := l.move.Load(); mv != nil && mv.copy.ready() == nil {
		_ = mv.copy.TruncateTo(max(offset, 0)) // a failure takes the copy's directory offline
	}
}

// skipTo makes end the end, when there is a gap up to it.
func (l *Log) skipTo(end int64) {
	l.lockIdle()
	defer l.mu.Unlock()
	if active := l.active(); end > l.tail.end.Load() {
		l.tail.reset(active.base, active.size.Load(), end)
	}
}

// agree drops what the copy has and the log has no longer: what was cut off since
// the last look, and of a copy that an earlier run made what the leader epochs
// tell, as they tell a follower.
func (mv *move) agree() error {
	l, c := mv.log, mv.copy
	if err := c.TruncateTo(min(l.cutTo.Swap(math.MaxInt64), c.tail.end.Load())); err != nil || mv.agreed {
		return err
	}
	for {
		if end := l.tail.end.Load(); c.tail.end.Load() > end {
			if err := c.TruncateTo(end); err != nil {
				return err
			}
		}
		epoch := c.epochs.latest()
		if epoch < 0 { // records of old formats have none
			return c.TruncateTo(l.hw.Load())
		}
		has := l.epochs.endFor(epoch, l.tail.end.Load())
		if has.Epoch < 0 {
			return c.TruncateFullyAndStartAt((*l.segments.Load())[0].base)
		}
		if has.Epoch == epoch {
			return c.TruncateTo(has.EndOffset)
		}
		own := c.epochs.endFor(has.Epoch, c.tail.end.Load())
		if err := c.TruncateTo(max(min(has.EndOffset, own.EndOffset), 0)); err != nil {
			return err
		}
		c.epochs.truncateFromEnd(c.tail.end.Load())
		if c.epochs.latest() == epoch {
			return c.TruncateFullyAndStartAt((*l.segments.Load())[0].base)
		}
	}
}

// finishMove puts the copy in the log's place if it has caught up.
func (m *Manager) finishMove(mv *move) (bool, error) {
	l, c := mv.log, mv.copy
	// What the copy lacks on the disk is synced before anybody has to wait.
	if err := errors.Join(c.SetTopicID(l.TopicID()), c.checkpoint()); err != nil {
		return false, err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	if m.moveOf(l.tp) != mv || m.closed.Load() {
		return false, errMoved
	}
	old := l.home.Load()
	if err := m.takePlace(mv); err != nil {
		return false, err
	}
	m.forgetMove(mv)
	m.cleaner.forget(l)
	for _, d := range []*logDir{l.dir(), old.dir} {
		if d.online() { // a failure takes the directory offline
			_ = d.saveAll()
		}
	}
	return true, nil
}

// takePlace does the swap, with changing held.
func (m *Manager) takePlace(mv *move) error {
	l, c := mv.log, mv.copy
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	if l.state.Load() != loaded {
		return ErrClosed
	}
	l.beginWork()
	defer l.endWork()
	for {
		n, _, err := mv.step()
		if err != nil {
			return err
		}
		if n == 0 {
			c.skipTo(l.tail.end.Load())
			break
		}
	}
	c.maintenance.Lock()
	defer c.maintenance.Unlock()
	if err := c.become(l); err != nil {
		return err
	}
	target := filepath.Join(c.dir().path, l.tp.String())
	fsys := c.dir().fs
	// Of an earlier move: two marks would tell nothing.
	if err := fsys.Remove(filepath.Join(l.folder(), movedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.dir().fail(err)
		return err
	}
	if err := m.renameCopy(c, target); err != nil {
		c.dir().fail(err)
		return err
	}
	aside, err := l.moveAside()
	if err == nil {
		err = fsys.SyncDir(l.dir().path)
	}
	if err == nil {
		l.dir().removeLater([]string{aside}, l.config.Load().FileDeleteDelayMs)
		err = fsys.Remove(filepath.Join(target, movedFile))
	}
	if err != nil {
		l.dir().fail(err) // what lies there counts no more: the mark says so
	}
	l.adopt(c, target)
	return nil
}

func (m *Manager) renameCopy(c *Log, target string) error {
	fsys := c.dir().fs
	if err := vfs.WriteFile(fsys, filepath.Join(c.folder(), movedFile), nil, 0o644); err != nil {
		return err
	}
	if err := fsys.SyncDir(c.folder()); err != nil {
		return err
	}
	if err := fsys.Rename(c.folder(), target); err != nil {
		return err
	}
	return fsys.SyncDir(c.dir().path)
}

// become gives a whole copy what the log knows beyond its batches, and makes it
// durable. Maintenance of both is held, and appends to the log are kept out.
func (c *Log) become(l *Log) error {
	l.mu.Lock()
	state := l.mu.producers.encode()
	l.mu.Unlock()
	p, err := decodeProducers(state)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.mu.producers = p
	c.start.Store(l.start.Load())
	c.startRaised.Store(c.start.Load() > (*c.segments.Load())[0].base)
	c.mu.Unlock()
	c.epochs.take(&l.epochs)
	if err := c.checkpointHeld(true); err != nil {
		return err
	}
	return c.dir().saveStarts(true)
}

// adopt makes the log that of its copy, which lies in folder now.
func (l *Log) adopt(c *Log, folder string) {
	c.state.Store(closed)
	segs := *c.segments.Load()
	now := &home{c.dir(), folder}
	for _, s := range segs {
		s.home.Store(now)
	}
	active := segs[len(segs)-1]
	l.mu.Lock()
	old := *l.segments.Load()
	l.tail.replace(active.base, active.size.Load(), c.tail.end.Load(), func() { l.publish(segs) })
	l.home.Store(now)
	l.recovery.Store(c.recovery.Load())
	l.flushed.Store(c.flushed.Load())
	l.unflushed.Store(0)
	l.unsynced.Store(0)
	l.unsyncedAt.Store(0)
	l.namesNew.Store(c.namesNew.Load())
	l.folderNew.Store(false)
	l.startRaised.Store(l.start.Load() > segs[0].base)
	l.changes.Add(1)
	l.mu.snapshots = nil
	l.snapshotAt = c.snapshotAt
	l.mu.Unlock()
	l.epochs.savedAs(&c.epochs)
	for _, s := range old {
		s.close()
	}
}

// movedFile marks the folder of a log that has taken the place of another.
const movedFile = ".barnabas_moved"

// settleMove decides between two folders of a partition, which a crash at the end
// of a move leaves: the one without the mark goes. false when it was not that.
func (m *Manager) settleMove(a, b *Log) (stays *Log, ok bool, err error) {
	marked := func(l *Log) bool {
		has, e := vfs.Exists(l.dir().fs, filepath.Join(l.folder(), movedFile))
		err = errors.Join(err, e)
		return has
	}
	ma, mb := marked(a), marked(b)
	if err != nil || ma == mb {
		return nil, false, err
	}
	stays, goes := a, b
	if mb {
		stays, goes = b, a
	}
	m.o.Logger.Warn("a crash interrupted the move of a partition to another log directory; it is completed", "partition", a.tp.String(), "from", goes.dir().path, "to", stays.dir().path)
	goes.dir().left[goes.tp] = true
	aside, err := goes.moveAside()
	if err != nil {
		return nil, false, err
	}
	goes.dir().removeLater([]string{aside}, goes.config.Load().FileDeleteDelayMs)
	return stays, true, goes.dir().fs.SyncDir(goes.dir().path)
}
