package storage

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"barnabas/internal/vfs"
)

// FileRef is a reference to an open segment file. It is never closed while a
// slice of it is held.
type FileRef struct {
	file vfs.File
	refs atomic.Int32
}

// Fd returns the descriptor for sendfile, or false when the file system has
// none (the in-memory one): use [Slice.ReadAt] then.
func (r *FileRef) Fd() (fd uintptr, ok bool) { return r.file.Fd() }

// Slice is a run of bytes of one segment file: batches from the one that holds
// the offset asked for. The last batch may be cut short. The zero Slice is
// empty and needs no Release.
type Slice struct {
	File *FileRef // nil when Len is 0
	Pos  int64
	Len  int
	// FirstIncomplete: the first batch alone is larger than maxBytes and was cut
	// (or left out), since minOne was not set.
	FirstIncomplete bool
	// Spared are the bytes of a batch that maxBytes would have let in in part: who
	// counts what a reader wants counts them as given.
	Spared int
	// Start is the log's start offset at the time of the read.
	Start int64
}

// ReadAt reads from the slice into p; off counts from the start of the slice.
// It returns io.EOF at the slice's end.
func (s Slice) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(s.Len) {
		return 0, io.EOF
	}
	short := int64(len(p)) > int64(s.Len)-off
	if short {
		p = p[:int64(s.Len)-off]
	}
	n, err := s.File.file.ReadAt(p, s.Pos+off)
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

// Release gives the reference back; the slice must not be used after.
func (s Slice) Release() {
	if s.File != nil {
		s.File.release()
	}
}

// Read returns the batches from the one that contains offset, at most maxBytes
// of them, none at or above upTo. The last may be cut, as Kafka's is; not where
// that would send many bytes for nothing. With minOne the first
// batch is whole even when it is larger than maxBytes. Reading at upTo or at the
// end gives an empty slice; below the start or beyond the end,
// ErrOffsetOutOfRange. It takes no lock and reads at most a few KiB itself.
func (l *Log) Read(offset int64, maxBytes int, upTo int64, minOne bool) (Slice, error) {
	if err := l.ready(); err != nil {
		return Slice{}, err
	}
	for range 3 {
		s, err := l.read(offset, maxBytes, upTo, minOne)
		if err != errStale {
			return s, err
		}
		if err := l.waitForMaintenance(); err != nil {
			return Slice{}, err
		}
	}
	return Slice{}, l.missing(offset)
}

// waitForMaintenance is for a reader whose segment has gone: what took it away
// is soon through with publishing what there is now.
func (l *Log) waitForMaintenance() error {
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	return l.readyLoaded()
}

// missing is the error of a segment that is published, but not on the disk.
func (l *Log) missing(offset int64) error {
	return &CorruptionError{Path: l.folder(), Segment: -1, Offset: offset, Cause: errors.New("a segment's file has gone")}
}

func (l *Log) read(offset int64, maxBytes int, upTo int64, minOne bool) (Slice, error) {
	view, segs := l.published(offset, upTo)
	out := Slice{Start: l.start.Load()}
	if offset < out.Start || offset > view.end {
		return out, fmt.Errorf("%w: %d is not in [%d, %d]", ErrOffsetOutOfRange, offset, out.Start, view.end)
	}
	if offset >= view.end || offset >= upTo || maxBytes <= 0 && !minOne {
		return out, nil
	}
	for i := floorSegment(segs, offset); ; i++ {
		if i < 0 {
			return out, errStale // deleted since the start was read
		}
		if i >= len(segs) || segs[i].base > view.base {
			return out, nil // a gap up to the end
		}
		seg := segs[i]
		limit, err := seg.bound(view, upTo)
		if err != nil {
			return out, err
		}
		pos, size, ok := view.pos, view.next-view.pos, view.pos >= 0
		if !ok || seg.base != view.base {
			var at place
			if at, ok, err = seg.locate(offset, seg.readable(view)); err != nil {
				return out, err
			}
			pos, size = at.pos, at.size
			if ok && at.base >= upTo {
				return out, nil
			}
		}
		if ok {
			return l.slice(out, seg, pos, size, limit, maxBytes, minOne)
		}
		if seg.base == view.base {
			return out, nil
		}
		if i+1 < len(segs) && segs[i+1].base <= view.base && offset < segs[i+1].base {
			l.sayGap(segs[i+1], offset)
		}
	}
}

// readable is how many bytes of the segment were published in view.
func (s *segment) readable(view tailView) int64 {
	if s.base == view.base {
		return view.size
	}
	return s.size.Load()
}

// bound returns the position of the first batch that reaches upTo or beyond.
func (s *segment) bound(view tailView, upTo int64) (int64, error) {
	size := s.readable(view)
	if s.base < view.base {
		if upTo >= view.base {
			return size, nil
		}
	} else if view.boundPos >= 0 {
		return view.boundPos, nil
	}
	at, ok, err := s.locate(upTo, size)
	if err != nil || !ok {
		return size, err
	}
	return at.pos, nil
}

// slice cuts the answer to size and takes the reference.
func (l *Log) slice(out Slice, seg *segment, pos, size, limit int64, maxBytes int, minOne bool) (Slice, error) {
	n := min(int64(maxBytes), limit-pos)
	if int64(maxBytes) < size {
		if minOne {
			n = min(size, limit-pos)
		} else {
			out.FirstIncomplete = true
		}
	}
	if n <= 0 {
		return out, nil
	}
	ref, err := seg.file.acquire()
	if err != nil {
		return out, stale(err)
	}
	if size >= largeBatch && size < n && n < limit-pos {
		if whole := seg.whole(ref, pos, pos+n, limit) - pos; whole >= size { // or the index is damaged
			n, out.Spared = whole, int(n-whole)
		}
	}
	out.File, out.Pos, out.Len = ref, pos, int(n)
	return out, nil
}

// largeBatch is how many bytes the first batch has where the last one is not cut.
const largeBatch = 16 << 10

// whole returns where the last batch ends that begins at or after pos and is
// whole below cut, or cut if that is not known.
func (s *segment) whole(ref *FileRef, pos, cut, limit int64) int64 {
	var e [offsetEntry]byte
	if ok, err := s.offsets.floor(positionOf, cut-1, e[:]); err != nil {
		return cut
	} else if ok {
		pos = max(pos, positionOf(e[:]))
	}
	buf := lookupBuffers.Get().(*[]byte)
	defer lookupBuffers.Put(buf)
	sc := scan(ref.file, pos, limit, *buf)
	for sc.next < cut {
		if ok, err := sc.step(); !ok || err != nil {
			return cut
		}
	}
	if sc.next == cut {
		return cut
	}
	return sc.pos
}
