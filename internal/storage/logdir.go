package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// logDir is one log directory: its lock, checkpoints, the queue of logs to be
// synced, and whether it is online.
type logDir struct {
	path     string
	fs       vfs.FS
	cache    *fileCache
	log      *slog.Logger
	clock    func() time.Time
	lock     io.Closer
	clean    bool // the last stop was
	sameBoot bool // the machine has not restarted since
	logs     func() []*Log

	failure    atomic.Pointer[error]
	bulk       atomic.Bool  // one SyncAll comes instead of single syncs
	full       atomic.Bool  // see checkSpace
	tight      atomic.Bool  // no room is reserved ahead: the disk could get full of it
	sinceCheck atomic.Int64 // bytes appended since then

	// left is the logs that have left since all checkpoints were last on the disk,
	// which may name them still; guarded by Manager.changing.
	left map[wire.TopicPartition]bool

	touched atomic.Bool   // some log has something to be written soon
	wake    chan struct{} // holds at most one token: there is work in mu

	// mu guards what waits to be done; a leaf.
	mu struct {
		sync.Mutex
		queue      []*Log
		doomed     []doomed
		notified   bool      // OnDirFailure was called
		complained time.Time // when a failed append was last logged
		hidden     int       // failed appends since that were not
	}

	// checkpoints guards the files below. It is held while one is written, so
	// that an older state never overwrites a newer one.
	checkpoints    sync.Mutex
	highWatermarks offsetCheckpoint
	recoveryPoints offsetCheckpoint
	starts         offsetCheckpoint
	cleaned        offsetCheckpoint
}

// doomed is a file or folder that is to be removed.
type doomed struct {
	path string
	at   time.Time
}

func (d *logDir) now() time.Time { return d.clock() }
func (d *logDir) online() bool   { return d.failure.Load() == nil }

func (d *logDir) err() error {
	if p := d.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// fail takes the directory offline, for good.
func (d *logDir) fail(cause error) {
	if errors.Is(cause, ErrClosed) || errors.Is(cause, ErrOffline) {
		return
	}
	if d.failure.CompareAndSwap(nil, &cause) {
		d.log.Error("log directory goes offline; its partitions are served no more until the broker starts again", "dir", d.path, "error", cause)
		d.poke()
	}
}

// wasTold tells whether OnDirFailure was called.
func (d *logDir) wasTold() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.notified
}

const complaintEvery = 10 * time.Second

// complain logs that an append failed, at most once in complaintEvery: a full
// disk is no reason to go offline, but somebody has to be told.
func (d *logDir) complain(tp wire.TopicPartition, cause error) {
	if errors.Is(cause, ErrClosed) || errors.Is(cause, ErrOffline) {
		return
	}
	now := d.now()
	d.mu.Lock()
	if now.Sub(d.mu.complained) < complaintEvery {
		d.mu.hidden++
		d.mu.Unlock()
		return
	}
	hidden := d.mu.hidden
	d.mu.complained, d.mu.hidden = now, 0
	d.mu.Unlock()
	d.log.Error("cannot write to a partition; its producers are told to try again", "partition", tp.String(), "dir", d.path,
		"error", cause, "not_logged_before", hidden)
}

// syncFile makes a file's content durable, syncDir the names in a folder.
func (d *logDir) syncFile(f vfs.File) error {
	if d.bulk.Load() {
		return nil
	}
	return f.Sync()
}

func (d *logDir) syncDir(name string) error {
	if d.bulk.Load() {
		return nil
	}
	return d.fs.SyncDir(name)
}

func (d *logDir) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// enqueue asks for a sync of the log.
func (d *logDir) enqueue(l *Log) {
	if l.queued.Swap(true) {
		return
	}
	d.mu.Lock()
	d.mu.queue = append(d.mu.queue, l)
	d.mu.Unlock()
	d.poke()
}

// work syncs the logs in the queue, and reports a failure once.
func (d *logDir) work(onFailure func(string, error)) {
	for {
		d.mu.Lock()
		queue := d.mu.queue
		d.mu.queue = nil
		report := !d.online() && !d.mu.notified
		d.mu.notified = d.mu.notified || report
		d.mu.Unlock()
		if report && onFailure != nil {
			onFailure(d.path, d.err())
		}
		if len(queue) == 0 {
			return
		}
		for _, l := range queue {
			l.queued.Store(false)
			if err := l.checkpoint(); err != nil && d.online() && !errors.Is(err, ErrClosed) {
				d.log.Error("sync failed", "partition", l.tp.String(), "error", err)
			}
		}
	}
}

// removeLater removes files or folders after a delay in ms.
func (d *logDir) removeLater(paths []string, delay int64) {
	if len(paths) == 0 {
		return
	}
	at := d.now().Add(time.Duration(min(delay, 1<<40)) * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range paths {
		d.mu.doomed = append(d.mu.doomed, doomed{p, at})
	}
}

// removeDue removes what is due.
func (d *logDir) removeDue(now time.Time) {
	var due []string
	d.mu.Lock()
	kept := d.mu.doomed[:0]
	for _, x := range d.mu.doomed {
		if x.at.After(now) {
			kept = append(kept, x)
		} else {
			due = append(due, x.path)
		}
	}
	d.mu.doomed = kept
	d.mu.Unlock()
	for _, path := range due {
		if err := d.fs.RemoveAll(path); err != nil {
			d.log.Warn("could not remove what was deleted", "path", path, "error", err)
		}
	}
}

// open locks the directory and checks whose it is. Errors that end the start of
// the broker wrap vfs.ErrLocked or ErrMeta.
func (d *logDir) open(o *Options) error {
	if ok, err := vfs.Exists(d.fs, d.path); err != nil {
		return err
	} else if !ok {
		if err := d.fs.MkdirAll(d.path, 0o755); err != nil {
			return err
		}
		if err := d.fs.SyncDir(filepath.Dir(d.path)); err != nil {
			return err
		}
	}
	lock, err := d.fs.Lock(filepath.Join(d.path, lockFile))
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("log directory %s is in use: another broker (ours or Apache Kafka) holds %s: %w", d.path, lockFile, err)
	}
	if err != nil {
		return err
	}
	d.lock = lock
	meta, err := readMeta(d.fs, d.path)
	if err != nil {
		return err
	}
	if meta != nil {
		if err := checkMeta(d.path, meta.identity(), o); err != nil {
			return err
		}
	}
	return writeMeta(d.fs, d.path, meta, o, d.now())
}

// readMarks reads and removes the clean mark, and compares the boot id.
func (d *logDir) readMarks(boot string) error {
	clean := filepath.Join(d.path, cleanFile)
	ok, err := vfs.Exists(d.fs, clean)
	if err != nil {
		return err
	}
	if ok {
		// If it came back after lost power, it would vouch for what is not there.
		if err := errors.Join(d.fs.Remove(clean), d.fs.SyncDir(d.path)); err != nil {
			return err
		}
	}
	d.clean = ok
	last, err := vfs.ReadFile(d.fs, filepath.Join(d.path, bootFile), 4096)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.sameBoot = boot != "" && strings.TrimSpace(string(last)) == boot
	if d.sameBoot || boot == "" {
		return nil
	}
	return vfs.WriteFile(d.fs, filepath.Join(d.path, bootFile), []byte(boot+"\n"), 0o644)
}

// found is what a start finds in a directory.
type found struct {
	partitions []wire.TopicPartition
	futures    []string // folders of copies that were being made here
	recovery   map[wire.TopicPartition]int64
	starts     map[wire.TopicPartition]int64
	hws        map[wire.TopicPartition]int64
	cleaned    map[wire.TopicPartition]int64
	complete   bool // the recovery points could be read
}

// list reads the checkpoints and the names of the partitions.
func (d *logDir) list(deleteDelay int64) (found, error) {
	var f found
	read := func(c *offsetCheckpoint, name string) (map[wire.TopicPartition]int64, bool, error) {
		*c = offsetCheckpoint{fs: d.fs, path: filepath.Join(d.path, name)}
		offsets, err := c.read()
		if errors.Is(err, errCheckpoint) {
			d.log.Warn("a checkpoint is damaged; what it said is worked out from the logs", "error", err)
			return nil, false, nil
		}
		return offsets, true, err
	}
	var err error
	if f.recovery, f.complete, err = read(&d.recoveryPoints, recoveryPointFile); err != nil {
		return f, err
	}
	if f.starts, _, err = read(&d.starts, logStartFile); err != nil {
		return f, err
	}
	if f.hws, _, err = read(&d.highWatermarks, highWatermarkFile); err != nil {
		return f, err
	}
	if f.cleaned, _, err = read(&d.cleaned, cleanerFile); err != nil {
		return f, err
	}
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		return f, err
	}
	here := map[wire.TopicPartition]bool{}
	for _, e := range entries {
		name := e.Name()
		future, isFuture := parseFutureFolder(name)
		switch tp, ok := parseFolder(name); {
		case !e.IsDir():
		case isDeleteFolder(name):
			d.removeLater([]string{filepath.Join(d.path, name)}, deleteDelay)
		case ok:
			f.partitions = append(f.partitions, tp)
			here[tp] = true
		case isFuture:
			here[future] = true
			f.futures = append(f.futures, name)
		case strings.HasSuffix(name, futureDirSuffix), strings.HasSuffix(name, strayDirSuffix):
			d.log.Warn("folder is left alone", "dir", d.path, "folder", name)
		default:
			d.log.Debug("not a partition's folder", "dir", d.path, "folder", name)
		}
	}
	for _, offsets := range []map[wire.TopicPartition]int64{f.recovery, f.starts, f.hws, f.cleaned} {
		for tp := range offsets {
			if !here[tp] {
				d.left[tp] = true
			}
		}
	}
	return f, nil
}

// save writes one checkpoint with the value of each log.
func (d *logDir) save(c *offsetCheckpoint, durable bool, value func(*Log) (int64, bool)) error {
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	if !d.online() {
		return ErrOffline
	}
	offsets := map[wire.TopicPartition]int64{}
	for _, l := range d.logs() {
		if l.dir() != d {
			continue
		}
		if v, ok := value(l); ok {
			offsets[l.tp] = v
		}
	}
	err := c.write(offsets, durable)
	if err != nil {
		d.fail(err)
	}
	return err
}

func (d *logDir) saveHighWatermarks(durable bool) error {
	return d.save(&d.highWatermarks, durable, func(l *Log) (int64, bool) { return l.hw.Load(), true })
}

func (d *logDir) saveRecoveryPoints(durable bool) error {
	return d.save(&d.recoveryPoints, durable, func(l *Log) (int64, bool) { return l.RecoveryPoint(), true })
}

// forget takes a log that has left out of the checkpoints: a new log of the same
// name would be taken for it after a crash. Most new logs have a name that did not
// leave, and wait for no checkpoint. The caller holds Manager.changing.
func (d *logDir) forget(tp wire.TopicPartition) error {
	if len(d.left) < mostLeft && !(d.left[tp] && d.mayName(tp)) {
		return d.err() // what a failed write left is not known
	}
	return d.saveAll()
}

// mostLeft bounds what names that never come again take.
const mostLeft = 10_000

func (d *logDir) mayName(tp wire.TopicPartition) bool {
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	return d.recoveryPoints.mayName(tp) || d.starts.mayName(tp) || d.highWatermarks.mayName(tp) || d.cleaned.mayName(tp)
}

// saveAll takes all logs that have left out of the checkpoints. The caller holds
// Manager.changing, so that none leaves meanwhile.
func (d *logDir) saveAll() error {
	err := errors.Join(d.saveRecoveryPoints(true), d.saveStarts(true), d.saveHighWatermarks(true), d.saveCleaned(true))
	if err == nil {
		clear(d.left)
	}
	return err
}

// saveStarts writes the start offsets that the first segment's name does not
// tell already.
func (d *logDir) saveStarts(durable bool) error {
	return d.save(&d.starts, durable, func(l *Log) (int64, bool) {
		return l.start.Load(), l.startRaised.Load()
	})
}

// markClean writes the clean mark, as Kafka 3.9 does in ZooKeeper mode.
func (d *logDir) markClean() error {
	name := filepath.Join(d.path, cleanFile)
	return vfs.WriteFileAtomic(d.fs, name, []byte(`{"version":0,"brokerEpoch":-1}`), 0o644, true)
}
