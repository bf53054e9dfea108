package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// Manager owns the log directories of a broker.
type Manager struct {
	o        Options
	dirs     []*logDir
	defaults *config.Topic
	good     bool // the start went through

	// mu guards the table of logs, never held over I/O.
	mu struct {
		sync.RWMutex
		logs      map[wire.TopicPartition]*Log
		moves     map[wire.TopicPartition]*move
		preferred map[wire.TopicPartition]*logDir // where a log is to be made
	}

	// changing orders creation and deletion of logs; held over their I/O.
	changing sync.Mutex

	found  []*Log        // copies that the last run left; during the start
	movers chan struct{} // holds a token for each move that copies
	pace   *pace

	cleaner *cleaner
	visible *regexp.Regexp // topics whose records are seen after a sync; nil for none

	due    schedule
	stop   chan struct{}
	wg     sync.WaitGroup
	closed atomic.Bool
}

// schedule is when each piece of background work is next due; it belongs to
// whoever calls Tick.
type schedule struct {
	highWatermarks, recoveryPoints, starts, retention, producers time.Time
}

func (o *Options) fill() {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.BootID == "" {
		if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
			o.BootID = strings.TrimSpace(string(b))
		}
	}
	if o.MaxOpenFiles == 0 {
		o.MaxOpenFiles = 512
	}
}

// Open locks the directories, checks whose they are, and finds the logs in
// them. After a clean stop the logs are loaded when first used; else they are
// recovered now, in parallel. Directories that fail go offline; it is an error
// when all do, when one is locked by another process (vfs.ErrLocked) or belongs
// to another broker or cluster (ErrMeta). Close must be called.
func Open(o Options) (*Manager, error) {
	o.fill()
	defaults, err := o.Config.Topic(nil)
	if err != nil {
		return nil, err
	}
	m := &Manager{o: o, defaults: defaults, stop: make(chan struct{})}
	m.mu.logs, m.mu.moves, m.mu.preferred = map[wire.TopicPartition]*Log{}, map[wire.TopicPartition]*move{}, map[wire.TopicPartition]*logDir{}
	movers := len(o.Dirs)
	if key := "num.replica.alter.log.dirs.threads"; o.Config.Has(key) {
		movers = max(o.Config.Int(key), 1)
	}
	m.movers, m.pace = make(chan struct{}, movers), newPace(math.MaxInt64)
	m.cleaner = newCleaner(m)
	if pattern := o.Config.String("log.flush.visible.topics"); pattern != "" {
		if m.visible, err = regexp.Compile("^(?:" + pattern + ")$"); err != nil {
			return nil, fmt.Errorf("log.flush.visible.topics: %w", err)
		}
	}
	cache := newFileCache(o.FS, o.MaxOpenFiles)
	for _, path := range o.Dirs {
		m.dirs = append(m.dirs, &logDir{
			path: filepath.Clean(path), fs: cache.fs, cache: cache, log: o.Logger, clock: o.Now,
			logs: m.everyLog, left: map[wire.TopicPartition]bool{}, wake: make(chan struct{}, 1),
		})
	}
	if err := m.openDirs(); err != nil {
		m.unlock()
		return nil, err
	}
	m.recoverAll()
	m.good = true
	m.resumeMoves()
	now := o.Now()
	m.due = schedule{now, now, now, now.Add(30 * time.Second), now.Add(10 * time.Minute)}
	if !o.Manual {
		m.start()
	}
	return m, nil
}

// openDirs opens the directories and fills the table.
func (m *Manager) openDirs() error {
	var failures []error
	for _, d := range m.dirs {
		err := m.openDir(d)
		if err == nil {
			continue
		}
		if errors.Is(err, vfs.ErrLocked) || errors.Is(err, ErrMeta) || errors.Is(err, ErrExists) {
			return err
		}
		d.fail(err)
		failures = append(failures, err)
	}
	if len(failures) == len(m.dirs) {
		return fmt.Errorf("%w: %w", ErrNoDir, errors.Join(failures...))
	}
	return nil
}

func (m *Manager) openDir(d *logDir) error {
	if err := d.open(&m.o); err != nil {
		return err
	}
	if err := d.readMarks(m.o.BootID); err != nil {
		return err
	}
	f, err := d.list(m.defaults.FileDeleteDelayMs)
	if err != nil {
		return err
	}
	for _, tp := range f.partitions {
		l := m.foundLog(&f, tp, home{d, filepath.Join(d.path, tp.String())})
		if other, ok := m.mu.logs[tp]; ok {
			if l, ok, err = m.settleMove(other, l); err != nil {
				return err
			}
			if !ok {
				return fmt.Errorf("%w: %s lies in two log directories, %s and %s: move one of the folders away", ErrExists, tp, other.dir().path, d.path)
			}
		}
		m.mu.logs[tp] = l
	}
	for _, name := range f.futures {
		tp, _ := parseFutureFolder(name)
		m.found = append(m.found, m.foundLog(&f, tp, home{d, filepath.Join(d.path, name)}))
	}
	return nil
}

// foundLog makes the log of a folder with what the checkpoints say of it.
func (m *Manager) foundLog(f *found, tp wire.TopicPartition, at home) *Log {
	l := newLog(tp, at, m.topic(tp.Topic))
	point, ok := f.recovery[tp]
	l.trust(foundOffsets{clean: at.dir.clean, known: ok && f.complete, recovery: point, start: f.starts[tp]}, f.hws[tp])
	l.visible = m.flushedFirst(tp)
	l.cleaned.Store(cleanedBefore(f.cleaned, tp))
	return l
}

func (m *Manager) flushedFirst(tp wire.TopicPartition) bool {
	return m.visible != nil && m.visible.MatchString(tp.Topic)
}

// topic returns a topic's configuration.
func (m *Manager) topic(name string) *config.Topic {
	if m.o.Topic != nil {
		if c := m.o.Topic(name); c != nil {
			return c
		}
	}
	return m.defaults
}

// recoverAll loads the logs that no clean stop vouches for.
func (m *Manager) recoverAll() {
	var todo []*Log
	for _, l := range m.mu.logs {
		if !l.found.clean || !l.found.known {
			todo = append(todo, l)
		}
	}
	if len(todo) == 0 {
		return
	}
	began := m.o.Now()
	m.o.Logger.Info("logs are checked, since the last stop was not clean", "logs", len(todo))
	workers := max(runtime.GOMAXPROCS(0), m.o.Config.Int("num.recovery.threads.per.data.dir")*len(m.dirs))
	var next, done atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(todo)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(todo) {
					return
				}
				if err := todo[i].ready(); err != nil {
					m.o.Logger.Error("a log could not be recovered", "partition", todo[i].tp.String(), "error", err)
				}
				if n := done.Add(1); n%1000 == 0 {
					m.o.Logger.Info("logs are checked", "done", n, "of", len(todo))
				}
			}
		})
	}
	wg.Wait()
	m.o.Logger.Info("logs are checked", "done", len(todo), "took", m.o.Now().Sub(began).Round(time.Millisecond))
}

// start begins the background work: one goroutine for the schedule and one for
// the syncs of each directory. Close ends them.
func (m *Manager) start() {
	m.cleaner.start()
	m.wg.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-t.C:
				m.tick(m.o.Now())
			}
		}
	})
	for _, d := range m.dirs {
		m.wg.Go(func() {
			for {
				select {
				case <-m.stop:
					return
				case <-d.wake:
					d.work(m.o.OnDirFailure)
				}
			}
		})
	}
}

// Log returns the log of a partition, or false.
func (m *Manager) Log(tp wire.TopicPartition) (*Log, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	l, ok := m.mu.logs[tp]
	return l, ok
}

// Logs returns all logs, in no order.
func (m *Manager) Logs() []*Log {
	m.mu.RLock()
	defer m.mu.RUnlock()
	logs := make([]*Log, 0, len(m.mu.logs))
	for _, l := range m.mu.logs {
		logs = append(logs, l)
	}
	return logs
}

// everyLog is Logs with the copies of those that are being moved.
func (m *Manager) everyLog() []*Log {
	logs := m.Logs()
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, mv := range m.mu.moves {
		logs = append(logs, mv.copy)
	}
	return logs
}

// Create makes the log of a partition, in the directory that Prefer named for it,
// else in the online one that has the fewest, with the topic's id (zero: none) and configuration (nil: what
// Options.Topic says). When it exists it is returned, if the topic id fits
// (ErrInconsistentTopicID).
func (m *Manager) Create(tp wire.TopicPartition, id wire.UUID, c *config.Topic) (*Log, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	if m.closed.Load() {
		return nil, ErrClosed
	}
	if l, ok := m.Log(tp); ok {
		return l, l.SetTopicID(id)
	}
	m.mu.RLock()
	d := m.mu.preferred[tp]
	m.mu.RUnlock()
	if d == nil || !d.online() {
		d = m.emptiest()
	}
	if d == nil {
		return nil, ErrNoDir
	}
	if c == nil {
		c = m.topic(tp.Topic)
	}
	l, err := newEmptyLog(tp, home{d, filepath.Join(d.path, tp.String())}, id, c)
	if err != nil {
		d.fail(err)
		return nil, err
	}
	l.visible = m.flushedFirst(tp)
	m.mu.Lock()
	m.mu.logs[tp] = l
	delete(m.mu.preferred, tp)
	m.mu.Unlock()
	return l, nil
}

func (m *Manager) emptiest() *logDir {
	count := map[*logDir]int{}
	if len(m.dirs) > 1 {
		for _, l := range m.everyLog() {
			count[l.dir()]++
		}
	}
	var best *logDir
	for _, d := range m.dirs {
		if d.online() && (best == nil || count[d] < count[best]) {
			best = d
		}
	}
	return best
}

// newEmptyLog makes the folder of a new partition.
func newEmptyLog(tp wire.TopicPartition, at home, id wire.UUID, c *config.Topic) (*Log, error) {
	d := at.dir
	if err := d.forget(tp); err != nil {
		return nil, err
	}
	l := newLog(tp, at, c)
	if err := d.fs.Mkdir(l.folder(), 0o755); err != nil {
		return nil, err
	}
	if !id.IsZero() {
		if err := writePartitionFile(d.fs, l.folder(), id); err != nil {
			return nil, err
		}
	}
	l.topicID.Store(&id)
	l.folderNew.Store(true)
	l.namesNew.Store(true)
	l.mu.jitter = jitter(c)
	l.publish([]*segment{l.emptySegment(0, d.now().UnixMilli())})
	l.state.Store(loaded)
	return l, nil
}

// Delete closes a partition's log at once and moves its folder out of the way
// (-delete); the files go after file.delete.delay.ms. ErrNotFound when there is
// none.
func (m *Manager) Delete(tp wire.TopicPartition) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	l, ok := m.Log(tp)
	if !ok {
		return ErrNotFound
	}
	name := filepath.Join(l.dir().path, deleteFolderName(tp))
	if err := m.takeOut(l, name); err != nil {
		return err
	}
	l.dir().removeLater([]string{name}, l.config.Load().FileDeleteDelayMs)
	return nil
}

// SetMoveRate bounds how many bytes a second are copied by all moves together
// (replica.alter.log.dirs.io.max.bytes.per.second).
func (m *Manager) SetMoveRate(bytes int64) { m.pace.set(bytes) }

// Dirs describes the log directories in the order of Options.Dirs.
func (m *Manager) Dirs() []DirInfo {
	infos := make([]DirInfo, len(m.dirs))
	for i, d := range m.dirs {
		infos[i] = DirInfo{d.path, d.err()}
	}
	return infos
}

// Checkpoint writes the checkpoint files now.
func (m *Manager) Checkpoint() error {
	var errs []error
	for _, d := range m.dirs {
		errs = append(errs, d.saveHighWatermarks(true), d.saveRecoveryPoints(true), d.saveStarts(true))
	}
	return errors.Join(errs...)
}

// Close syncs all logs, writes the checkpoints and the clean mark, and gives
// the locks back. No log may be used after. A directory in which anything
// failed gets no clean mark.
func (m *Manager) Close() error {
	m.changing.Lock()
	again := m.closed.Swap(true)
	m.changing.Unlock()
	if again {
		return nil
	}
	close(m.stop)
	m.wg.Wait()
	m.changing.Lock()
	defer m.changing.Unlock()
	logs := m.everyLog()
	m.syncAtOnce(logs)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(logs); i = int(next.Add(1)) - 1 {
				if err := logs[i].close(true); err != nil {
					logs[i].dir().fail(fmt.Errorf("close %s: %w", logs[i].tp, err))
				}
			}
		})
	}
	wg.Wait()
	var errs []error
	for _, d := range m.dirs {
		errs = append(errs, m.closeDir(d))
	}
	m.unlock()
	return errors.Join(errs...)
}

// syncAtOnce chooses one sync of the whole file system over many of single
// files.
func (m *Manager) syncAtOnce(logs []*Log) {
	dirty := map[*logDir]int{}
	for _, l := range logs {
		if l.state.Load() == loaded && (l.tail.end.Load() > l.recovery.Load() || l.namesNew.Load() || l.folderNew.Load()) {
			dirty[l.dir()]++
		}
	}
	for d, n := range dirty {
		d.bulk.Store(n > 64)
	}
}

func (m *Manager) closeDir(d *logDir) error {
	if d.bulk.Swap(false) && d.online() {
		if err := d.fs.SyncAll(d.path); err != nil {
			d.fail(err)
		}
	}
	if !d.online() && d.wasTold() { // known before the stop, and no failure of it
		d.log.Warn("an offline log dir gets no clean mark", "dir", d.path)
		return nil
	}
	if !d.online() {
		return fmt.Errorf("%s: %w", d.path, d.err())
	}
	if err := errors.Join(d.saveHighWatermarks(true), d.saveRecoveryPoints(true), d.saveStarts(true)); err != nil {
		return err
	}
	for _, l := range d.logs() {
		if l.dir() == d && l.state.Load() == broken {
			return fmt.Errorf("no clean mark for %s: %w", d.path, *l.failure.Load())
		}
	}
	if !m.good {
		return nil
	}
	return d.markClean()
}

func (m *Manager) unlock() {
	for _, d := range m.dirs {
		if d.lock != nil {
			_ = d.lock.Close()
			d.lock = nil
		}
	}
}
