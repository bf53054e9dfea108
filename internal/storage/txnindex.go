package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"barnabas/internal/vfs"
)

// The aborted transactions of a segment, .txnindex (Kafka's TransactionIndex),
// 34 bytes each, big-endian, in the order in which they ended:
//
//	version             int16  0
//	producer id         int64
//	first offset        int64
//	last offset         int64  of the marker
//	last stable offset  int64  at the time
//
// The file exists only when there is an entry.
const txnEntry = 34

type abortedTxn struct {
	producer, first, last, stable int64
}

// txnIndex keeps the entries in memory: there are few. Its mutex is a leaf.
type txnIndex struct {
	at *location
	mu struct {
		sync.Mutex
		loaded bool
		all    []abortedTxn
		saved  int // entries that the file holds; -1: it must be written anew
	}
}

func (x *txnIndex) path() string { return x.at.name(txnIndexSuffix) }

var errTxnIndex = errors.New("malformed transaction index")

func parseTxnIndex(data []byte) ([]abortedTxn, error) {
	if len(data)%txnEntry != 0 {
		return nil, fmt.Errorf("%w: %d bytes", errTxnIndex, len(data))
	}
	var all []abortedTxn
	for ; len(data) > 0; data = data[txnEntry:] {
		if v := binary.BigEndian.Uint16(data); v != 0 {
			return nil, fmt.Errorf("%w: version %d", errTxnIndex, v)
		}
		at := func(i int) int64 { return int64(binary.BigEndian.Uint64(data[i:])) }
		t := abortedTxn{at(2), at(10), at(18), at(26)}
		if t.first > t.last || len(all) > 0 && t.last < all[len(all)-1].last {
			return nil, fmt.Errorf("%w: offsets out of order", errTxnIndex)
		}
		all = append(all, t)
	}
	return all, nil
}

func formatTxnIndex(b []byte, all []abortedTxn) []byte {
	for _, t := range all {
		b = binary.BigEndian.AppendUint16(b, 0)
		for _, v := range [...]int64{t.producer, t.first, t.last, t.stable} {
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		}
	}
	return b
}

// load reads the file once. A damaged one is an error: recovery rebuilds it.
func (x *txnIndex) load(fsys vfs.FS) error {
	x.mu.Lock()
	loaded := x.mu.loaded
	x.mu.Unlock()
	if loaded {
		return nil
	}
	data, err := vfs.ReadFile(fsys, x.path(), maxSmallFile)
	if errors.Is(err, fs.ErrNotExist) { // none were aborted, or the folder is there no more
		_, err = fsys.Stat(filepath.Dir(x.path()))
	}
	if err != nil {
		return err
	}
	all, err := parseTxnIndex(data)
	if err != nil {
		return fmt.Errorf("%s: %w", x.path(), err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.mu.loaded {
		x.mu.loaded, x.mu.all, x.mu.saved = true, append(all, x.mu.all...), len(all)
	}
	return nil
}

// reset makes the index empty; the next flush says so to the file.
func (x *txnIndex) reset(file bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.loaded, x.mu.all, x.mu.saved = true, nil, 0
	if file {
		x.mu.saved = -1
	}
}

func (x *txnIndex) add(t abortedTxn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.all = append(x.mu.all, t)
}

// has tells whether the transaction that ended at last is in the index.
func (x *txnIndex) has(last int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := len(x.mu.all)
	return n > 0 && x.mu.all[n-1].last >= last
}

// truncate drops the transactions that end at or beyond offset.
func (x *txnIndex) truncate(offset int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := len(x.mu.all)
	for n > 0 && x.mu.all[n-1].last >= offset {
		n--
	}
	if n < len(x.mu.all) {
		x.mu.all, x.mu.saved = x.mu.all[:n:n], -1
	}
}

// collect appends the transactions that have records in [from, upTo), and tells
// whether later segments need not be asked (Kafka's TxnIndexSearchResult).
func (x *txnIndex) collect(out []AbortedTxn, from, upTo int64) ([]AbortedTxn, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.mu.all {
		if t.last >= from && t.first < upTo {
			out = append(out, AbortedTxn{t.producer, t.first})
		}
		if t.stable >= upTo {
			return out, true
		}
	}
	return out, false
}

// flush writes what the file lacks, and syncs it. made: the file may be new.
func (x *txnIndex) flush(d *logDir) (made bool, err error) {
	x.mu.Lock()
	all, saved := x.mu.all, x.mu.saved
	dirty := x.mu.loaded && len(all) != saved
	x.mu.Unlock()
	if !dirty {
		return false, nil
	}
	flag, from := os.O_WRONLY|os.O_CREATE, saved
	if saved < 0 {
		flag, from = flag|os.O_TRUNC, 0
	}
	f, err := d.fs.OpenFile(x.path(), flag, 0o644)
	if err != nil {
		return false, err
	}
	_, err = f.WriteAt(formatTxnIndex(nil, all[from:]), int64(from*txnEntry))
	if err == nil {
		err = d.syncFile(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.saved = len(all)
	return saved <= 0, nil
}
