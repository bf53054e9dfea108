package storage

import (
	"encoding/binary"
	"io/fs"
	"os"
	"sort"
	"sync"
	"sync/atomic"

	"errors"

	"barnabas/internal/vfs"
)

// The two sparse indexes of a segment (Kafka's OffsetIndex and TimeIndex), all
// numbers big-endian, entries in order:
//
//	.index      relative offset int32, position int32              8 bytes
//	.timeindex  timestamp int64, relative offset int32             12 bytes
//
// An offset entry says: the batch with this last offset begins at this position
// of the .log file. A time entry says: no record up to this offset has a larger
// timestamp than this. Kafka preallocates the files and trims them when the
// segment is rolled or the log closed; after a crash the rest is zeros.
const (
	offsetEntry = 8
	timeEntry   = 12
)

// index is one of them. Entries are appended in memory under Log.mu; maintenance
// (one goroutine at a time) moves them to the file. Readers use the published
// state.
type index struct {
	width int
	file  handle
	state atomic.Pointer[indexState]
	check sync.Mutex // lets one reader look at the file first, and rebuild it
}

// indexState is immutable but for the entries beyond n, which Append fills
// before it publishes the larger n.
type indexState struct {
	inFile int          // entries in the file
	buf    []byte       // entries after those
	n      atomic.Int64 // how many of them are published
	trim   bool         // the file has more than inFile entries, or is missing
	known  bool         // inFile was checked
	gen    uint64       // counts replacements, see flush
}

// unknown is the state of an index whose file was not looked at.
var unknown = &indexState{}

func (x *index) init(at *location, suffix string, width int) {
	x.width, x.file.at, x.file.suffix = width, at, suffix
	x.state.Store(unknown)
}

// fresh makes the index that of a new, empty segment.
func (x *index) fresh() { x.state.Store(&indexState{known: true, trim: true}) }

// replace makes entries the whole index.
func (x *index) replace(entries []byte) {
	st := &indexState{known: true, trim: true, buf: entries, gen: x.state.Load().gen + 1}
	st.n.Store(int64(len(entries) / x.width))
	x.state.Store(st)
}

// count returns the number of entries.
func (x *index) count() int {
	st := x.state.Load()
	return st.inFile + int(st.n.Load())
}

// grow returns where the next entry is to be written; publish follows. Under
// Log.mu.
func (x *index) grow() (st *indexState, entry []byte) {
	st = x.state.Load()
	n := int(st.n.Load())
	if (n+1)*x.width > len(st.buf) {
		bigger := &indexState{inFile: st.inFile, trim: st.trim, gen: st.gen, known: st.known, buf: make([]byte, max(8, 2*n)*x.width)}
		copy(bigger.buf, st.buf[:n*x.width])
		bigger.n.Store(int64(n))
		x.state.Store(bigger)
		st = bigger
	}
	return st, st.buf[n*x.width : (n+1)*x.width]
}

func (st *indexState) publish() { st.n.Add(1) }

func (x *index) appendOffset(relative, pos int32) {
	st, e := x.grow()
	binary.BigEndian.PutUint32(e, uint32(relative))
	binary.BigEndian.PutUint32(e[4:], uint32(pos))
	st.publish()
}

func (x *index) appendTime(timestamp int64, relative int32) {
	st, e := x.grow()
	binary.BigEndian.PutUint64(e, uint64(timestamp))
	binary.BigEndian.PutUint32(e[8:], uint32(relative))
	st.publish()
}

// entry reads entry i of st into p.
func (x *index) entry(st *indexState, i int, p []byte) error {
	if i >= st.inFile {
		at := (i - st.inFile) * x.width
		copy(p, st.buf[at:at+x.width])
		return nil
	}
	ref, err := x.file.acquireFlag(os.O_RDWR)
	if err != nil {
		return err
	}
	defer ref.release()
	_, err = ref.file.ReadAt(p[:x.width], int64(i*x.width))
	return err
}

// The fields of entries, all of which are in order.
func relativeOf(e []byte) int64  { return int64(binary.BigEndian.Uint32(e)) }
func positionOf(e []byte) int64  { return int64(binary.BigEndian.Uint32(e[4:])) }
func timestampOf(e []byte) int64 { return int64(binary.BigEndian.Uint64(e)) }

// floor finds the last entry of which a field is not above k, and copies it to
// e; false when there is none.
func (x *index) floor(field func([]byte) int64, k int64, e []byte) (bool, error) {
	st := x.state.Load()
	n := int(st.n.Load())
	if n > 0 && field(st.buf) <= k {
		i := sort.Search(n, func(i int) bool { return field(st.buf[i*x.width:]) > k })
		copy(e, st.buf[(i-1)*x.width:i*x.width])
		return true, nil
	}
	if st.inFile == 0 {
		return false, nil
	}
	ref, err := x.file.acquire()
	if err != nil {
		return false, err
	}
	defer ref.release()
	return x.floorInFile(ref, st.inFile, field, k, e)
}

// floorInFile halves the range by single reads, then reads the rest at once.
func (x *index) floorInFile(ref *FileRef, n int, field func([]byte) int64, k int64, e []byte) (bool, error) {
	buf := lookupBuffers.Get().(*[]byte)
	defer lookupBuffers.Put(buf)
	page := len(*buf) / x.width
	lo, hi := 0, n // the answer's index + 1 lies in [lo, hi]
	for hi-lo > page {
		mid := int(uint(lo+hi) >> 1)
		if _, err := ref.file.ReadAt((*buf)[:x.width], int64(mid*x.width)); err != nil {
			return false, err
		}
		if field(*buf) <= k {
			lo = mid
		} else {
			hi = mid
		}
	}
	if hi == lo {
		return false, nil
	}
	b := (*buf)[:(hi-lo)*x.width]
	if _, err := ref.file.ReadAt(b, int64(lo*x.width)); err != nil {
		return false, err
	}
	i := sort.Search(hi-lo, func(i int) bool { return field(b[i*x.width:]) > k })
	if i == 0 {
		return false, nil
	}
	copy(e, b[(i-1)*x.width:i*x.width])
	return true, nil
}

// last copies the last entry to e; false when there is none.
func (x *index) last(e []byte) (bool, error) {
	st := x.state.Load()
	n := st.inFile + int(st.n.Load())
	if n == 0 {
		return false, nil
	}
	return true, x.entry(st, n-1, e)
}

// adopt takes over what the file holds, without the zeros that a crash leaves
// at its end. It returns false when there is no file, or none that can be an
// index.
func (x *index) adopt() (bool, error) {
	ref, err := x.file.acquire()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer ref.release()
	size, err := ref.file.Size()
	if err != nil {
		return false, err
	}
	n := int(size / int64(x.width))
	var e [timeEntry]byte
	zero := func(i int) bool {
		if err == nil {
			_, err = ref.file.ReadAt(e[:x.width], int64(i*x.width))
		}
		return err == nil && e == [timeEntry]byte{}
	}
	if n > 0 && zero(n-1) {
		n = sort.Search(n, zero)
	}
	if err != nil {
		return false, err
	}
	x.state.Store(&indexState{inFile: n, known: true, trim: size != int64(n*x.width), gen: x.state.Load().gen + 1})
	return size%int64(x.width) == 0, nil
}

// keep drops the entries from i on. Not with appends at the same time.
func (x *index) keep(i int) {
	st := x.state.Load()
	n := st.inFile + int(st.n.Load())
	if i >= n {
		return
	}
	kept := &indexState{inFile: min(i, st.inFile), known: st.known, trim: true, gen: st.gen + 1}
	if more := i - kept.inFile; more > 0 {
		kept.buf = append([]byte(nil), st.buf[:more*x.width]...)
		kept.n.Store(int64(more))
	}
	x.state.Store(kept)
}

// flush writes what is only in memory to the file, trims the file to its
// entries, and syncs it; written tells whether it did anything, such as making
// the file. Maintenance only; appends may go on. swap publishes a state under
// Log.mu.
func (x *index) flush(sync func(vfs.File) error, swap func(func())) (written bool, err error) {
	st := x.state.Load()
	n := int(st.n.Load())
	if !st.known || n == 0 && !st.trim {
		return false, nil
	}
	ref, err := x.file.acquireFlag(os.O_RDWR | os.O_CREATE)
	if err != nil {
		return false, err
	}
	defer ref.release()
	if n > 0 {
		if _, err := ref.file.WriteAt(st.buf[:n*x.width], int64(st.inFile*x.width)); err != nil {
			return false, err
		}
	}
	inFile := st.inFile + n
	if st.trim {
		if err := ref.file.Truncate(int64(inFile * x.width)); err != nil {
			return false, err
		}
	}
	// A time entry that lost power took away could not be missed later.
	if err := sync(ref.file); err != nil {
		return false, err
	}
	swap(func() {
		now := x.state.Load()
		if now.gen != st.gen {
			return // replaced meanwhile: the next flush writes that
		}
		rest := int(now.n.Load()) - n
		next := &indexState{inFile: inFile, known: true, gen: st.gen}
		if rest > 0 {
			next.buf = append([]byte(nil), now.buf[n*x.width:(n+rest)*x.width]...)
			next.n.Store(int64(rest))
		}
		x.state.Store(next)
	})
	return st.trim, nil
}

// extend adds entries to what the file holds; not with appends at the same time.
func (x *index) extend(entries []byte) {
	st := x.state.Load()
	next := &indexState{inFile: st.inFile, known: true, trim: true, buf: entries, gen: st.gen + 1}
	next.n.Store(int64(len(entries) / x.width))
	x.state.Store(next)
}

// search returns the number of entries at the front for which keep is true.
func (x *index) search(keep func(e []byte) bool) (int, error) {
	st := x.state.Load()
	var e [timeEntry]byte
	var failed error
	n := sort.Search(st.inFile+int(st.n.Load()), func(i int) bool {
		if failed == nil {
			failed = x.entry(st, i, e[:])
		}
		return failed != nil || !keep(e[:])
	})
	return n, failed
}

func (x *index) close() { x.file.close() }
