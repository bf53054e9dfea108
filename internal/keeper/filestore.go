package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"barnabas/internal/vfs"
)

// The files of a store, in Options.Dir. What is in the folder "version-2" is
// Apache ZooKeeper's own format: that server can be started on the folder, and
// this one on its.
const (
	dataFolder  = "version-2"
	lockFile    = "lock"
	secretFile  = "secret"
	spareFile   = "spare"        // zeros, to become the next log
	newSnapshot = "snapshot.new" // one that is being written

	secretSize = 32
	spareSize  = 16 << 20
	spareAfter = 64 // commits: until then a log grows as it is written

	// syncedPiece is how much is written beside commits between two syncs: a
	// commit's sync waits for what is on its way to the disk. With 4 MiB the
	// p99 of writes doubled while a snapshot was taken.
	syncedPiece = 256 << 10

	keptSnapshots = 2
	minLogged     = 16 << 20 // bytes of log before a snapshot is worth taking
)

// fileStore keeps the state in transaction logs and snapshots.
//
// A commit is one write and one sync of the newest log. A file that grows costs
// the disk's journal a second write on each sync: so, once a server turns out to
// be a busy one, each next log is a file that was filled with zeros beforehand.
type fileStore struct {
	fs     vfs.FS
	dir    string
	logDir string // where logs are if not in dir (ZooKeeper's dataLogDir); for reading only
	logger *slog.Logger
	lock   io.Closer

	readOnly bool     // somebody else's files: nothing is mended
	unsynced []string // folders with names that were made and not synced yet
	log      vfs.File // nil: none yet
	first    bool     // no log is there: the next one is the first of all
	end      int64    // where its next entry goes
	room     int64    // bytes that were filled with zeros
	commits  int      // since this store was opened
	scratch  []byte

	logged   atomic.Int64 // bytes of log that the newest snapshot does not have
	snapSize atomic.Int64 // bytes of the newest snapshot

	spare struct {
		sync.Mutex
		file    vfs.File // ready to become a log
		working bool     // one is being made
		closed  bool
	}
	wg sync.WaitGroup
}

// openFiles opens or makes the store in dir. Nothing but the lock is written
// before the first commit.
func openFiles(fsys vfs.FS, dir string, logger *slog.Logger) (*fileStore, error) {
	data := filepath.Join(dir, dataFolder)
	unsynced, err := missingParents(fsys, data)
	if err == nil {
		err = fsys.MkdirAll(data, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("keeper: %w", err)
	}
	lock, err := fsys.Lock(filepath.Join(dir, lockFile))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return nil, fmt.Errorf("%w: %s", ErrLocked, dir)
	case err != nil:
		return nil, fmt.Errorf("keeper: %w", err)
	}
	return &fileStore{fs: fsys, dir: dir, logger: logger, lock: lock, unsynced: unsynced}, nil
}

// missingParents lists the folders in which a name will be made for dir to be.
func missingParents(fsys vfs.FS, dir string) ([]string, error) {
	var parents []string
	for {
		ok, err := vfs.Exists(fsys, dir)
		parent := filepath.Dir(dir)
		if err != nil || ok || parent == dir {
			return parents, err
		}
		parents = append(parents, parent)
		dir = parent
	}
}

func (s *fileStore) path(name string) string { return filepath.Join(s.dir, dataFolder, name) }

func (s *fileStore) logs() string {
	if s.logDir != "" {
		return s.logDir
	}
	return s.dir
}

func (s *fileStore) logPath(zxid int64) string {
	return filepath.Join(s.logs(), dataFolder, logName(zxid))
}

func logName(zxid int64) string { return "log." + strconv.FormatInt(zxid, 16) }

func snapshotName(zxid int64) string { return "snapshot." + strconv.FormatInt(zxid, 16) }

// files lists the zxids in the names of the logs or snapshots, ascending.
func (s *fileStore) files(prefix string) ([]int64, error) {
	dir := s.dir
	if prefix == "log." {
		dir = s.logs()
	}
	entries, err := s.fs.ReadDir(filepath.Join(dir, dataFolder))
	if err != nil {
		return nil, err
	}
	var zxids []int64
	for _, e := range entries {
		if digits, ok := strings.CutPrefix(e.Name(), prefix); ok {
			if v, err := strconv.ParseUint(digits, 16, 64); err == nil {
				zxids = append(zxids, int64(v))
			}
		}
	}
	slices.Sort(zxids)
	return zxids, nil
}

func (s *fileStore) close() error {
	s.spare.Lock()
	s.spare.closed = true
	s.spare.Unlock()
	s.wg.Wait()
	var errs []error
	if s.spare.file != nil {
		errs = append(errs, s.spare.file.Close(), s.fs.Remove(filepath.Join(s.dir, spareFile)))
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

func (s *fileStore) size() (snapshots, logs int64) {
	for prefix, sum := range map[string]*int64{"snapshot.": &snapshots, "log.": &logs} {
		zxids, _ := s.files(prefix)
		for _, z := range zxids {
			if info, err := s.fs.Stat(s.path(prefix + strconv.FormatInt(z, 16))); err == nil {
				*sum += info.Size()
			}
		}
	}
	return snapshots, logs
}

func (s *fileStore) commit(b *batch) error {
	secret, err := s.writeSecret(b.secret)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotWritten, err)
	}
	if secret != nil {
		defer func() { _ = secret.Close() }() // it is synced, or of no use
	}
	buf := s.scratch[:0]
	first := int64(0)
	for _, t := range b.txns {
		if t.zxid != 0 {
			if first == 0 {
				first = t.zxid
			}
			buf = appendEntry(buf, t)
		}
	}
	if s.scratch = buf; cap(buf) > 1<<20 {
		s.scratch = nil
	}
	if err := s.roll(first); err != nil {
		return fmt.Errorf("%w: %w", errNotWritten, err)
	}
	if _, err := s.log.WriteAt(buf, s.end); err != nil {
		return s.cut(err)
	}
	syncs := []func() error{s.log.Sync}
	if secret != nil {
		syncs = append(syncs, secret.Sync, func() error { return s.fs.SyncDir(s.dir) })
	}
	for _, dir := range s.unsynced {
		syncs = append(syncs, func() error { return s.fs.SyncDir(dir) })
	}
	if err := together(syncs); err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	s.unsynced = nil
	s.end += int64(len(buf))
	s.logged.Add(int64(len(buf)))
	if s.commits++; s.commits >= spareAfter && s.end+spareSize/2 > s.room {
		s.makeSpare()
	}
	return nil
}

// writeSecret writes the secret, if there is one to write. Until the caller has
// synced it and the log, the store is an empty one.
func (s *fileStore) writeSecret(secret []byte) (vfs.File, error) {
	if secret == nil {
		return nil, nil
	}
	f, err := s.fs.OpenFile(filepath.Join(s.dir, secretFile), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt(secret, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// together makes several syncs at a time: the disk's journal takes them as one.
func together(syncs []func() error) error {
	if len(syncs) == 1 {
		return syncs[0]()
	}
	errs := make([]error, len(syncs))
	var wg sync.WaitGroup
	for i, f := range syncs {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// cut takes back what a failed write left, so that it is certain that nothing
// of it is there.
func (s *fileStore) cut(cause error) error {
	err := s.log.Truncate(s.end)
	if err == nil {
		err = s.log.Sync()
	}
	if err != nil {
		return fmt.Errorf("keeper: %w; and then: %w", cause, err)
	}
	s.room = 0
	return fmt.Errorf("%w: %w", errNotWritten, cause)
}

// roll makes a log to write to if there is none, or if the one there is has no
// more room and a spare is ready. It never writes over a log that is there. The
// log's name is left to be synced.
func (s *fileStore) roll(zxid int64) (err error) {
	if s.log != nil && s.end < s.room-spareSize/16 {
		return nil
	}
	s.spare.Lock()
	next := s.spare.file
	s.spare.file = nil
	s.spare.Unlock()
	if s.log != nil && next == nil {
		return nil // it grows
	}
	name, room := s.path(logName(zxid)), int64(spareSize)
	if s.first {
		name = s.path(logName(1))
	}
	if next == nil {
		if next, err = s.fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return err
		}
		room = 0
	}
	_, err = next.WriteAt(fileHeader(logMagic, 0), 0)
	if err == nil && room > 0 {
		err = s.fs.Rename(filepath.Join(s.dir, spareFile), name)
	}
	if err != nil {
		err = errors.Join(err, next.Close())
		if room == 0 {
			err = errors.Join(err, s.fs.Remove(name))
		}
		return err
	}
	if s.log != nil {
		if err := s.log.Close(); err != nil {
			s.logger.Warn("keeper: a log that is full could not be closed", "err", err)
		}
	}
	s.log, s.first, s.end, s.room = next, false, headerSize, room
	s.unsynced = append(s.unsynced, filepath.Join(s.dir, dataFolder))
	return nil
}

// makeSpare fills a file with zeros, beside the commits.
func (s *fileStore) makeSpare() {
	s.spare.Lock()
	defer s.spare.Unlock()
	if s.spare.working || s.spare.closed || s.spare.file != nil {
		return
	}
	s.spare.working = true
	s.wg.Go(func() {
		f, err := s.fillSpare()
		s.spare.Lock()
		defer s.spare.Unlock()
		s.spare.working = false
		s.spare.file = f
		if err != nil { // logs grow as they are written, then
			s.logger.Debug("keeper: no room for a log made beforehand", "err", err)
		}
	})
}

func (s *fileStore) fillSpare() (vfs.File, error) {
	name := filepath.Join(s.dir, spareFile)
	f, err := s.fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, syncedPiece)
	for at := int64(0); at < spareSize && err == nil; at += syncedPiece {
		if _, err = f.WriteAt(zeros, at); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), s.fs.Remove(name))
	}
	return f, nil
}

func (s *fileStore) load() (image, error) {
	img := image{sessions: map[int64]int32{}}
	secret, err := vfs.ReadFile(s.fs, filepath.Join(s.dir, secretFile), secretSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return img, fmt.Errorf("keeper: %w", err)
	}
	if len(secret) == secretSize {
		img.secret = secret
	}
	if !s.readOnly {
		if err := s.fs.Remove(filepath.Join(s.dir, spareFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return img, fmt.Errorf("keeper: %w", err)
		}
	}
	logs, err := s.files("log.")
	if err != nil {
		return img, fmt.Errorf("keeper: %w", err)
	}
	s.first = len(logs) == 0
	if err := s.loadSnapshot(&img); err != nil {
		return img, err
	}
	if secret != nil && img.secret == nil && (img.tree != nil || len(logs) > 1) {
		return img, fmt.Errorf("%w: %s has %d bytes; without it, start with the file removed, and all sessions end", ErrCorrupt, secretFile, len(secret))
	}
	if img.tree == nil {
		if len(logs) == 0 {
			return img, nil
		}
		if logs[0] > 1 {
			return img, fmt.Errorf("%w: %s: there is no snapshot and the first log is %s", ErrCorrupt, s.dir, logName(logs[0]))
		}
		img.tree = firstTree()
	}
	from := 0
	for i, zxid := range logs {
		if zxid <= img.zxid+1 {
			from = i // what is before it is in the snapshot
		}
	}
	for i, zxid := range logs[from:] {
		if err := s.loadLog(&img, zxid, from+i == len(logs)-1); err != nil {
			return img, err
		}
	}
	return img, nil
}

// loadLog replays one log, and stays in the last.
func (s *fileStore) loadLog(img *image, zxid int64, last bool) error {
	name := logName(zxid)
	mode := os.O_RDWR
	if s.readOnly {
		mode = os.O_RDONLY
	}
	f, err := s.fs.OpenFile(s.logPath(zxid), mode, 0)
	if err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	end, size, whole, err := s.replayLog(f, img)
	switch {
	case err != nil:
		return errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	case whole && !last, s.readOnly && last:
		return f.Close()
	case !last:
		return errors.Join(fmt.Errorf("%w: %s, byte %d of %d: not an entry, and there is a later log", ErrCorrupt, name, end, size), f.Close())
	case end == 0: // its header never reached the disk
		if err := errors.Join(f.Close(), s.fs.Remove(s.path(name))); err != nil {
			return fmt.Errorf("keeper: %w", err)
		}
		s.first = zxid <= 1
		return nil
	}
	s.log, s.end, s.room = f, end, size
	if !whole {
		s.logger.Warn("keeper: the last log's end was not written whole, before a crash; what nobody was answered is cut", "log", name, "at", end, "bytes", size-end)
		s.room = 0
		err = f.Truncate(end)
	}
	// A kill may have come before the log, or its name, was synced.
	if err = errors.Join(err, f.Sync(), s.fs.SyncDir(filepath.Join(s.dir, dataFolder))); err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	return nil
}

// replayLog returns where the entries end, the file's size, and whether nothing
// but zeros follows.
func (s *fileStore) replayLog(f vfs.File, img *image) (end, size int64, whole bool, err error) {
	if size, err = f.Size(); err != nil {
		return 0, 0, false, err
	}
	in := &window{r: f, size: size}
	head, err := in.need(headerSize)
	if err != nil {
		return 0, size, false, err
	}
	if head = head[:min(len(head), headerSize)]; !bytes.Equal(head, fileHeader(logMagic, 0)) {
		if len(bytes.Trim(head, "\x00")) == 0 {
			return 0, size, true, nil
		}
		return 0, size, false, fmt.Errorf("%w: it does not begin as a log", ErrCorrupt)
	}
	in.skip(headerSize)
	entries, last := make(chan []entry, 8), logEnd{}
	go func() {
		defer close(entries)
		last = s.readEntries(in, entries)
	}()
	for batch := range entries {
		for _, e := range batch {
			if e.h.zxid > img.zxid {
				img.replay(e.h, e.t)
				img.zxid = e.h.zxid
			}
		}
	}
	return in.at, size, last.whole, last.err
}

// entry is one transaction of a log.
type entry struct {
	h txnHeader
	t loggedTxn
}

// logEnd says whether nothing but zeros follows the last entry.
type logEnd struct {
	whole bool
	err   error
}

// readEntries decodes a log's entries and gives them on, some at a time.
func (s *fileStore) readEntries(in *window, out chan<- []entry) logEnd {
	batch := make([]entry, 0, batchOfNodes)
	defer func() { out <- batch }()
	for {
		n, sum, ok, err := in.entry()
		if err != nil || !ok {
			return logEnd{err == nil && in.zeros(), err}
		}
		b := in.buf[12 : 12+n]
		if !sum(b) || in.buf[12+n] != entryEnd {
			return logEnd{}
		}
		h, t, ok := decodeEntry(b)
		if !ok {
			return logEnd{err: fmt.Errorf("%w: byte %d: transaction %x of type %d can't be read", ErrCorrupt, in.at, h.zxid, h.op)}
		}
		if batch = append(batch, entry{h, t}); len(batch) == cap(batch) {
			out <- batch
			batch = make([]entry, 0, batchOfNodes)
		}
		s.logged.Add(int64(n) + entryFixed)
		in.skip(n + entryFixed)
	}
}

// loadSnapshot reads the newest snapshot that is whole.
func (s *fileStore) loadSnapshot(img *image) error {
	zxids, err := s.files("snapshot.")
	if err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	for i, zxid := range slices.Backward(zxids) {
		name := snapshotName(zxid)
		f, err := s.fs.OpenFile(s.path(name), os.O_RDONLY, 0)
		if err != nil {
			return fmt.Errorf("keeper: %w", err)
		}
		size, err := f.Size()
		if err == nil {
			img.tree, img.sessions, err = readSnapshot(f, size)
		}
		err = errors.Join(err, f.Close())
		if err == nil {
			img.zxid = zxid
			s.snapSize.Store(size)
			return nil
		}
		if i == 0 || !errors.Is(err, ErrCorrupt) {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.logger.Error("keeper: a snapshot is damaged; the one before it is taken, and the logs since", "snapshot", name, "err", err)
	}
	return nil
}

func (s *fileStore) due() bool {
	return s.logged.Load() > max(minLogged, s.snapSize.Load()/4)
}

// tidy removes snapshots but the newest, and the logs that only older ones need.
func (s *fileStore) tidy() error {
	snapshots, err := s.files("snapshot.")
	if err != nil {
		return err
	}
	var errs []error
	for len(snapshots) > keptSnapshots {
		errs = append(errs, s.fs.Remove(s.path(snapshotName(snapshots[0]))))
		snapshots = snapshots[1:]
	}
	logs, err := s.files("log.")
	for len(snapshots) == keptSnapshots && len(logs) > 1 && logs[1] <= snapshots[0]+1 {
		errs = append(errs, s.fs.Remove(s.path(logName(logs[0]))))
		logs = logs[1:]
	}
	return errors.Join(append(errs, err)...)
}
