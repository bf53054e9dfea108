package keeper

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"barnabas/internal/vfs"
)

// ErrNotEmpty says that a move would write over a store that is there.
var ErrNotEmpty = errors.New("keeper: there is data already")

// Moved says what a move brought over.
type Moved struct {
	Nodes, Sessions int
	Zxid            int64
	File            string // the snapshot that was written
}

// Export writes the store in dir, whose server is stopped, as a snapshot from
// which Apache ZooKeeper 3.5 to 3.9 starts: to is its dataDir, which has no data
// yet. Tree, Stats, ACLs and zxids are the same; sessions are there too but
// can't be attached to, so that they expire and their nodes go.
func Export(dir, to string) (Moved, error) {
	if ok, err := vfs.Exists(vfs.OS, filepath.Join(dir, dataFolder)); err != nil || !ok {
		return Moved{}, fmt.Errorf("keeper: %s: there is no store (%w)", dir, errors.Join(err, os.ErrNotExist))
	}
	s, err := openFiles(vfs.OS, dir, slog.Default())
	if err != nil {
		return Moved{}, err
	}
	defer func() { _ = s.close() }() // only read
	img, err := s.load()
	if err != nil {
		return Moved{}, fmt.Errorf("%s: %w", dir, err)
	}
	if img.tree == nil {
		img.tree = firstTree()
	}
	return writeStore(to, &img)
}

// Import reads what Apache ZooKeeper 3.4 to 3.9 left, stopped: from is its
// dataDir, logs its dataLogDir or "", when both are one. It makes the store in
// dir, which has no data yet. Compressed snapshots can't be read.
func Import(from, logs, dir string) (Moved, error) {
	s := &fileStore{fs: vfs.OS, dir: from, logger: slog.Default(), readOnly: true}
	if logs != "" {
		s.logDir = logs
	}
	for _, d := range []string{from, s.logs()} {
		if ok, err := vfs.Exists(vfs.OS, filepath.Join(d, dataFolder)); err != nil || !ok {
			return Moved{}, fmt.Errorf("keeper: %s has no folder %s: is it ZooKeeper's dataDir? (%w)", d, dataFolder, errors.Join(err, os.ErrNotExist))
		}
	}
	img, err := s.load()
	if err != nil {
		return Moved{}, fmt.Errorf("%s: %w", from, err)
	}
	if img.tree == nil {
		return Moved{}, fmt.Errorf("keeper: %s: no snapshot and no log (%w)", from, os.ErrNotExist)
	}
	return writeStore(dir, &img)
}

// writeStore writes an image as the one snapshot of a new store.
func writeStore(dir string, img *image) (Moved, error) {
	s, err := openFiles(vfs.OS, dir, slog.Default())
	if err != nil {
		return Moved{}, err
	}
	defer func() { _ = s.close() }() // all that counts is synced
	for _, prefix := range []string{"log.", "snapshot."} {
		zxids, err := s.files(prefix)
		if err != nil || len(zxids) > 0 {
			return Moved{}, errors.Join(fmt.Errorf("%w: %s", ErrNotEmpty, filepath.Join(dir, dataFolder)), err)
		}
	}
	snap := img.tree.begin(img.zxid, img.sessions)
	defer img.tree.endSnapshot()
	w, err := s.openSnapshot(snap)
	if err != nil {
		return Moved{}, err
	}
	if err := w.writeAll(img.tree); err != nil {
		w.drop()
		return Moved{}, err
	}
	if err := w.finish(); err != nil {
		return Moved{}, err
	}
	for _, parent := range s.unsynced {
		if err := s.fs.SyncDir(parent); err != nil {
			return Moved{}, err
		}
	}
	return Moved{Nodes: len(img.tree.nodes), Sessions: len(img.sessions), Zxid: img.zxid, File: s.path(snapshotName(img.zxid))}, nil
}
