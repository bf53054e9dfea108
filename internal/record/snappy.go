package record

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
)

// Snappy as Kafka's clients write it, the stream of the Java library (xerial),
// big end first:
//
//	0  magic       82 'S' 'N' 'A' 'P' 'P' 'Y' 00
//	8  version     int32 1
//	12 compatible  int32 1
//	then each chunk: length int32, a Snappy block of at most 32 KiB of input
//
// The header may come again between chunks, where streams were joined. Without
// it all is one Snappy block, which some clients (librdkafka, sarama) write.
const (
	snappyHeaderSize = 16
	snappyChunk      = 32 << 10
)

var snappyHeader = [snappyHeaderSize]byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}

var errSnappy = errors.New("malformed Snappy data")

func hasSnappyMagic(p []byte) bool {
	return len(p) >= snappyHeaderSize && string(p[:8]) == string(snappyHeader[:8])
}

func decodeSnappy(dst, src []byte, limit int) ([]byte, error) {
	dst = dst[:0]
	if !hasSnappyMagic(src) {
		return appendSnappyBlock(dst, src, limit)
	}
	src = src[snappyHeaderSize:]
	for len(src) > 0 {
		if hasSnappyMagic(src) {
			src = src[snappyHeaderSize:]
			continue
		}
		if len(src) < 4 {
			break // as the Java library
		}
		n := binary.BigEndian.Uint32(src)
		src = src[4:]
		if uint64(n) > uint64(len(src)) {
			return dst, errSnappy
		}
		var err error
		if dst, err = appendSnappyBlock(dst, src[:n], limit); err != nil {
			return dst, err
		}
		src = src[n:]
	}
	return dst, nil
}

func appendSnappyBlock(dst, block []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(block)
	// An element of 2 bytes makes at most 64 (a copy of 3 bytes too), so a
	// length beyond that can't be true and is not worth its memory.
	if err != nil || n > 32*len(block) {
		return dst, errSnappy
	}
	if n > limit-len(dst) {
		return dst, ErrDecompressedTooLarge
	}
	dst = slices.Grow(dst, n)
	// Not s2.Decode, which also reads what only S2 may have in a block, and no
	// other client could read.
	out, err := snappy.Decode(dst[len(dst):len(dst)+n:len(dst)+n], block)
	if err != nil {
		return dst, errSnappy
	}
	return dst[:len(dst)+len(out)], nil
}

func appendSnappy(dst, src []byte) []byte {
	dst = append(dst, snappyHeader[:]...)
	for len(src) > 0 {
		chunk := src[:min(len(src), snappyChunk)]
		src = src[len(chunk):]
		at := len(dst)
		most := s2.MaxEncodedLen(len(chunk))
		dst = slices.Grow(dst, 4+most)
		out := s2.EncodeSnappy(dst[at+4:at+4+most:at+4+most], chunk)
		dst = dst[:at+4+len(out)]
		binary.BigEndian.PutUint32(dst[at:], uint32(len(out)))
	}
	return dst
}
