package keeper

import "errors"

// ErrCorrupt says that the store holds what the server never wrote. It wraps
// a text that says where.
var ErrCorrupt = errors.New("keeper: the store is damaged")

// image is the whole content of a store.
type image struct {
	zxid        int64 // the last transaction that was committed
	lastSession int64 // the highest session id that was given out
	secret      []byte
	records     []*record // by ascending id; none: an empty store
	sessions    map[int64]int32
}

// batch is what one commit changes. Only changed keys are in it.
type batch struct {
	txns        []*txn
	zxid        int64
	lastSession int64
	secret      []byte             // nil: as it is
	nodes       map[uint64]*record // nil: removed
	sessions    map[int64]int32    // timeout in milliseconds; 0: removed
	durable     bool               // something in it must reach the disk before it shows
}

// store keeps a server's state. commit is called by one goroutine at a time;
// when it returns nil, the batch survives a crash of the machine; when it
// fails, the batch may be there or not after the next load, whole either way.
type store interface {
	load() (image, error)
	commit(*batch) error
	close() error
}

// memoryStore forgets everything with the process.
type memoryStore struct{}

func (memoryStore) load() (image, error) { return image{}, nil }
func (memoryStore) commit(*batch) error  { return nil }
func (memoryStore) close() error         { return nil }

// cloneBytes copies b; null stays null and empty stays empty.
func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
