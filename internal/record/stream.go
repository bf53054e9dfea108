package record

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxStreamWindow is the largest window of a zstd frame that is walked as it is
// decompressed: the decoder takes memory for it when the frame begins. The
// compressors of clients use 8 MiB at most, unless told to use their highest
// levels.
const maxStreamWindow = 8 << 20

// errNoStream: the records have to be decompressed as a whole.
var errNoStream = errors.New("not a stream")

// runCompressed is run for records that are compressed, without ever holding
// more of them than the codec's window; errNoStream for codecs that have none.
func (w *walk) runCompressed(c Codec, src []byte, limit int, count int32) error {
	in := &stream{left: limit}
	switch c {
	case Gzip:
		g := gzipReaders.Get().(*gzipReader)
		defer gzipReaders.Put(g)
		defer g.br.Reset(nil)
		g.br.Reset(src)
		if err := g.next(); err != nil {
			return in.broken(c, err)
		}
		in.from = g
	case Zstd:
		d, err := zstd.NewReader(bytes.NewReader(src), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxStreamWindow), zstd.IgnoreChecksum(false))
		if err != nil {
			return in.broken(c, err)
		}
		defer d.Close()
		in.from = d
	default:
		return errNoStream
	}
	in.buf = bufio.NewReaderSize(in, 64<<10)
	err := w.runStream(in, count)
	switch {
	case errors.Is(in.err, zstd.ErrWindowSizeExceeded):
		return errNoStream
	case in.err != nil && in.err != io.EOF:
		return in.broken(c, in.err)
	}
	return err
}

// stream is a decompressor that stops at a limit.
type stream struct {
	from io.Reader
	buf  *bufio.Reader // of the stream itself
	left int
	err  error // with which it ended
}

func (s *stream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.from.Read(p)
	if n > s.left {
		n, err = 0, ErrDecompressedTooLarge
	}
	s.left -= n
	s.err = err
	return n, err
}

func (s *stream) broken(c Codec, cause error) error {
	e := invalid("records can't be decompressed with %s: %v", c, cause)
	e.cause = cause
	return e
}

// fields reads the fields of one record. Once one is malformed or goes beyond
// the record's end, left is negative.
type fields struct {
	in   *bufio.Reader
	left int // of the record's length
}

func (f *fields) varint() int32 {
	var u uint32
	for shift := uint(0); shift <= 28; shift += 7 {
		c, err := f.in.ReadByte()
		if err != nil {
			break
		}
		f.left--
		u |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1)
		}
	}
	f.left = -1 << 40
	return 0
}

func (f *fields) varlong() int64 {
	var u uint64
	for shift := uint(0); shift <= 63; shift += 7 {
		c, err := f.in.ReadByte()
		if err != nil {
			break
		}
		f.left--
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1)
		}
	}
	f.left = -1 << 40
	return 0
}

// skip passes n bytes, none if n is negative (null).
func (f *fields) skip(n int32) {
	if n <= 0 || f.left < 0 {
		return
	}
	if f.left -= int(n); f.left < 0 {
		return
	}
	if _, err := f.in.Discard(int(n)); err != nil {
		f.left = -1 << 40
	}
}

func (w *walk) runStream(in *stream, count int32) error {
	for i := int32(0); i < count; i++ {
		f := fields{in: in.buf}
		n := f.varint()
		if f.left < -5 {
			return invalid("record %d goes beyond the end of its batch", i)
		}
		if n < minRecordSize-1 {
			return invalid("record %d has lengths that don't fit together", i)
		}
		f.left = int(n)
		f.skip(1) // attributes
		delta, offset := f.varlong(), f.varint()
		if f.left >= 0 && offset != i {
			return invalid("record %d has the offset delta %d", i, offset)
		}
		key := f.varint()
		w.nullKey = w.nullKey || key < 0
		f.skip(key)
		f.skip(f.varint()) // value
		headers := f.varint()
		for ; headers > 0 && f.left >= 0; headers-- {
			k := f.varint()
			if k < 0 {
				f.left = -1
				break
			}
			f.skip(k)
			f.skip(f.varint())
		}
		if f.left != 0 || headers != 0 {
			if in.err != nil {
				return invalid("record %d goes beyond the end of its batch", i)
			}
			return invalid("record %d has lengths that don't fit together", i)
		}
		timestamp := w.baseTimestamp + delta
		if timestamp > w.maxTimestamp {
			w.maxTimestamp, w.maxDelta = timestamp, i
		}
		if (timestamp < w.earliest || timestamp > w.latest) && timestamp != NoTimestamp {
			w.outOfBounds = true
		}
	}
	// One that does not end is broken, or too large, behind its records.
	if n, err := io.Copy(io.Discard, in.buf); err == nil && n > 0 {
		return invalid("batch has %d bytes after its %d records", n, count)
	}
	return nil
}
