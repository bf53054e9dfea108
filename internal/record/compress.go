package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// scratch is a buffer for decompressed records. Large ones are not kept.
type scratch struct{ b []byte }

const maxPooledScratch = 4 << 20

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func getScratch() *scratch { return scratches.Get().(*scratch) }

func (s *scratch) release() {
	if cap(s.b) > maxPooledScratch {
		s.b = nil
	}
	scratches.Put(s)
}

// decompress returns what src decompresses to, at most limit bytes, in s. The
// magic is that of the entry.
func (s *scratch) decompress(c Codec, magic int8, src []byte, limit int) ([]byte, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	var err error
	switch c {
	case Gzip:
		s.b, err = decodeGzip(s.b, src, limit)
	case Snappy:
		s.b, err = decodeSnappy(s.b, src, limit)
	case LZ4:
		s.b, err = decodeLZ4(s.b, src, limit, magic)
	case Zstd:
		if magic < 2 {
			return nil, invalid("zstd needs message format v2, not v%d", magic)
		}
		s.b, err = decodeZstd(s.b, src, limit)
	default:
		return nil, invalid("unknown compression type %d", c)
	}
	if err != nil {
		e := invalid("records can't be decompressed with %s: %v", c, err)
		e.cause = err
		return nil, e
	}
	return s.b, nil
}

// gzipReader reads the members of a gzip stream as Java's GZIPInputStream does:
// what follows a member is passed over if it is no header of another one.
type gzipReader struct {
	zr gzip.Reader
	br bytes.Reader
}

// gzipIgnored is how many bytes behind a member are passed over whatever they
// are: with one more, a header and a trailer fit.
const gzipIgnored = 18

// next begins the next member.
func (g *gzipReader) next() error {
	err := g.zr.Reset(&g.br)
	if err == nil {
		g.zr.Multistream(false)
	}
	return err
}

func (g *gzipReader) Read(p []byte) (int, error) {
	for {
		n, err := g.zr.Read(p)
		switch {
		case err != io.EOF:
			return n, err
		case n > 0:
			return n, nil
		case g.br.Len() <= gzipIgnored || g.next() != nil:
			return 0, io.EOF
		}
	}
}

var gzipReaders = sync.Pool{New: func() any { return new(gzipReader) }}

func decodeGzip(dst, src []byte, limit int) ([]byte, error) {
	dst = dst[:0]
	g := gzipReaders.Get().(*gzipReader)
	defer gzipReaders.Put(g)
	defer g.br.Reset(nil)
	g.br.Reset(src)
	if err := g.next(); err != nil {
		return dst, err
	}
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(max(2*len(src), len(dst), 512), limit+1-len(dst)))
		}
		// One byte above the limit is enough to see that there is more.
		room := dst[len(dst):min(cap(dst), limit+1)]
		n, err := g.Read(room)
		dst = dst[:len(dst)+n]
		if len(dst) > limit {
			return dst, ErrDecompressedTooLarge
		}
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

// zstdReaders decode one blob each at a time: concurrency 1 starts no goroutine
// and DecodeAll never grows a buffer beyond its capacity, so that the limit is
// ours. A frame with a larger window than 128 MiB is one that the Java clients
// can't read.
var zstdReaders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(1<<31), zstd.WithDecoderMaxWindow(128<<20), zstd.IgnoreChecksum(false))
	if err != nil {
		return err
	}
	return d
}}

func decodeZstd(dst, src []byte, limit int) ([]byte, error) {
	var d *zstd.Decoder
	switch v := zstdReaders.Get().(type) {
	case *zstd.Decoder:
		d = v
	case error:
		return dst, v
	}
	defer zstdReaders.Put(d)

	want := max(4*len(src), zstdBlock)
	var h zstd.Header
	if err := h.Decode(src); err == nil && h.HasFCS {
		// The size is a claim. No block is shorter than 4 bytes.
		if h.FrameContentSize > uint64(len(src))*(zstdBlock/4) {
			return dst, errZstd
		}
		if h.FrameContentSize > uint64(limit) {
			return dst, ErrDecompressedTooLarge
		}
		want = int(h.FrameContentSize)
	}
	most := limit + zstdSlack
	for {
		want = min(want+zstdSlack, most)
		if cap(dst) < want {
			dst = make([]byte, 0, want)
		}
		out, err := d.DecodeAll(src, dst[:0:min(cap(dst), most)])
		if err == nil {
			if len(out) > limit {
				return dst, ErrDecompressedTooLarge
			}
			return out, nil
		}
		// The decoder has several errors for a lack of room, some of which look
		// like others. It stops at a block, so room for one more means that it
		// was not that.
		room := min(cap(dst), most) - len(out)
		if !errors.Is(err, zstd.ErrDecoderSizeExceeded) && room > zstdBlock+zstdSlack {
			return dst, err
		}
		if cap(dst) >= most {
			return dst, ErrDecompressedTooLarge
		}
		want = max(2*cap(dst), len(out)+2*zstdBlock)
	}
}

const (
	zstdBlock = 128 << 10 // the most that a block decompresses to
	zstdSlack = 16        // with which the decoder copies faster
)

var errZstd = errors.New("malformed zstd frame")

const defaultGzipLevel = 6

var (
	gzipWriters [11]sync.Pool // by level + 1
	zstdWriters [4]sync.Pool  // by the encoder's own four levels
)

// compress appends src, compressed, to dst. The magic is that of the entry.
// The level 0 is DefaultLevel.
func compress(dst []byte, c Codec, level int, magic int8, src []byte) ([]byte, error) {
	if level == 0 {
		level = DefaultLevel
	}
	switch c {
	case None:
		return append(dst, src...), nil
	case Gzip:
		return appendGzip(dst, src, level)
	case Snappy:
		return appendSnappy(dst, src), nil
	case LZ4:
		return appendLZ4(dst, src, level, magic)
	case Zstd:
		if magic >= 2 {
			return appendZstd(dst, src, level)
		}
	}
	return nil, fmt.Errorf("message format v%d has no compression type %s", magic, c)
}

type sliceWriter struct{ b []byte }

func (w *sliceWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

func appendGzip(dst, src []byte, level int) ([]byte, error) {
	if level < -1 || level > 9 {
		level = defaultGzipLevel
	}
	w := sliceWriter{dst}
	pool := &gzipWriters[level+1]
	z, ok := pool.Get().(*gzip.Writer)
	if ok {
		z.Reset(&w)
	} else {
		var err error
		if z, err = gzip.NewWriterLevel(&w, level); err != nil {
			return nil, err
		}
	}
	defer func() {
		z.Reset(nil)
		pool.Put(z)
	}()
	if _, err := z.Write(src); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return w.b, nil
}

func appendZstd(dst, src []byte, level int) ([]byte, error) {
	if level == DefaultLevel {
		level = 3
	}
	l := zstd.EncoderLevelFromZstd(level)
	pool := &zstdWriters[l-zstd.SpeedFastest]
	z, ok := pool.Get().(*zstd.Encoder)
	if !ok {
		var err error
		// No checksum, as the Java clients; the batch has one.
		if z, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(l), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true)); err != nil {
			return nil, err
		}
	}
	defer pool.Put(z)
	return z.EncodeAll(src, dst), nil
}

// DecompressOnly decompresses an entry's records and drops them: what [Validate]
// of a compressed batch is measured against.
func DecompressOnly(b Batch) error {
	s := getScratch()
	defer s.release()
	_, err := s.decompress(b.Codec(), b.Magic(), b[BatchHeaderSize:], 0)
	return err
}
