package keeper

import "errors"

// ErrCorrupt says that the store holds what the server never wrote. It wraps
// a text that says where.
var ErrCorrupt = errors.New("keeper: the store is damaged")

// ErrLocked says that another process has the store open.
var ErrLocked = errors.New("keeper: another process holds the store")

// errNotWritten wraps the error of a commit that left the store as it was: the
// disk is full, say. It may be tried again.
var errNotWritten = errors.New("keeper: nothing was written")

// image is the whole content of a store.
type image struct {
	zxid     int64  // the last transaction that was committed
	secret   []byte // nil: there is none yet
	tree     *tree  // nil: an empty store
	sessions map[int64]int32
}

// batch is what one commit brings to the disk.
type batch struct {
	txns    []*txn
	zxid    int64
	secret  []byte // nil: as it is
	durable bool   // something in it must reach the disk before it shows
}

// store keeps a server's state. commit is called by one goroutine at a time;
// when it returns nil, the batch survives a crash of the machine. When it fails
// with errNotWritten, the batch is not there; with another error it may be there
// or not after the next load.
type store interface {
	load() (image, error)
	commit(*batch) error
	// due says that enough was committed since the last snapshot. The caller
	// takes one and writes its pieces with the writer that snapshot returns,
	// beside commits.
	due() bool
	snapshot(*snapshot) (snapshotWriter, error)
	// size returns the bytes on the disk of snapshots and of logs.
	size() (snapshots, logs int64)
	close() error
}

// snapshotWriter takes the records of a snapshot in their order. finish makes
// it durable, and what it replaces goes away; drop forgets it.
type snapshotWriter interface {
	write([]*record) error
	finish() error
	drop()
}

// memoryStore forgets everything with the process.
type memoryStore struct{}

func (memoryStore) load() (image, error) { return image{}, nil }

func (memoryStore) commit(*batch) error { return nil }

func (memoryStore) due() bool { return false }

func (memoryStore) snapshot(*snapshot) (snapshotWriter, error) { return nil, errNotWritten }

func (memoryStore) size() (int64, int64) { return 0, 0 }

func (memoryStore) close() error { return nil }

// cloneBytes copies b; null stays null and empty stays empty.
func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
