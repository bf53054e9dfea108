package storage

import (
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"barnabas/internal/record"
)

const (
	lookupWindow = 8 << 10
	scanWindow   = 256 << 10
)

var (
	errTorn     = errors.New("the last batch is not whole")
	errChecksum = errors.New("wrong checksum")
	errOrder    = errors.New("offsets go backwards")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	lookupBuffers = sync.Pool{New: func() any { b := make([]byte, lookupWindow); return &b }}
	scanBuffers   = sync.Pool{New: func() any { b := make([]byte, scanWindow); return &b }}
)

// scanner hops over the batches of a segment file from header to header.
type scanner struct {
	file io.ReaderAt
	pos  int64 // of the current batch
	size int64 // of the current batch
	next int64 // where the next one begins
	end  int64 // of the file, as far as it counts
	// header is the current batch's header: record.Batch accessors work on it,
	// all but those that need the records.
	header record.Batch
	window []byte // scratch
	at     int64  // where in the file the window's content begins
	have   int    // bytes of content
	hops   int
}

// scan starts at pos, which must be the beginning of a batch; window is scratch
// memory of some KiB.
func scan(file io.ReaderAt, pos, end int64, window []byte) scanner {
	return scanner{file: file, pos: pos, next: pos, end: end, window: window}
}

// step moves to the next batch. It returns false without an error at the end,
// and false with errTorn or what record.EntrySize says when what follows is no
// whole batch; s.next then tells where that is.
func (s *scanner) step() (bool, error) {
	if s.next >= s.end {
		return false, nil
	}
	left := s.end - s.next
	need := int64(record.BatchHeaderSize)
	if left < need {
		need = left
	}
	if need < record.MinEntryPrefix {
		return false, errTorn
	}
	off := s.next - s.at
	if s.have == 0 || off < 0 || off+need > int64(s.have) {
		n := min(int64(len(s.window)), left)
		got, err := s.file.ReadAt(s.window[:n], s.next)
		if int64(got) < need {
			s.have = 0
			if err == nil || err == io.EOF {
				err = errTorn
			}
			return false, err
		}
		s.at, s.have, off = s.next, got, 0
	}
	head := s.window[off : off+need]
	size, err := record.EntrySize(head)
	if err != nil {
		return false, err
	}
	if int64(size) > left {
		return false, errTorn
	}
	s.pos, s.size, s.next = s.next, int64(size), s.next+int64(size)
	s.header = record.Batch(head[:min(need, int64(size))])
	s.hops++
	return true, nil
}

// check verifies the checksum of the current batch and what its header alone
// can tell, reading it in pieces through buf.
func (s *scanner) check(buf []byte) error {
	h := s.header
	from, sum := int64(16), crc32.IEEETable
	if h.Magic() >= 2 {
		from, sum = 21, castagnoli
		if h.LastOffsetDelta() < 0 || h.Count() < 0 {
			return errOrder
		}
	}
	want := h.CRC()
	var crc uint32
	for at, end := s.pos+from, s.next; at < end; {
		n := min(int64(len(buf)), end-at)
		if off := at - s.at; off >= 0 && off < int64(s.have) {
			n = min(n, int64(s.have)-off)
			crc = crc32.Update(crc, sum, s.window[off:off+n])
		} else {
			if _, err := s.file.ReadAt(buf[:n], at); err != nil {
				return err
			}
			crc = crc32.Update(crc, sum, buf[:n])
		}
		at += n
	}
	if crc != want {
		return errChecksum
	}
	return nil
}

// whole reads the current batch with its records.
func (s *scanner) whole() (record.Batch, error) {
	b := make([]byte, s.size)
	if _, err := s.file.ReadAt(b, s.pos); err != nil {
		return nil, err
	}
	return b, nil
}
