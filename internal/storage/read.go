package storage

import (
	"errors"

	"barnabas/internal/vfs"
)

// FileRef is a reference to an open segment file. It is never closed while a
// slice of it is held.
type FileRef struct {
	file vfs.File
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
	// Start is the log's start offset at the time of the read.
	Start int64
}

// ReadAt reads from the slice into p; off counts from the start of the slice.
func (s Slice) ReadAt(p []byte, off int64) (int, error) { return 0, errors.ErrUnsupported }

// Release gives the reference back; the slice must not be used after.
func (s Slice) Release() {}

// Read returns the batches from the one that contains offset, at most maxBytes
// of them (the last may be cut), none at or above upTo. With minOne the first
// batch is whole even when it is larger than maxBytes. Reading at upTo or at the
// end gives an empty slice; below the start or beyond the end,
// ErrOffsetOutOfRange. It takes no lock and reads at most a few KiB itself.
func (l *Log) Read(offset int64, maxBytes int, upTo int64, minOne bool) (Slice, error) {
	return Slice{}, errors.ErrUnsupported
}
