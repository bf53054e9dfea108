package record

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// The LZ4 frame as Kafka's clients write and read it (classes
// KafkaLZ4BlockOutputStream and KafkaLZ4BlockInputStream), all little end first:
//
//	0  magic        04 22 4d 18
//	4  flags        bits 6-7 version (1), 5 blocks are independent (must be 1),
//	                4 block checksums, 3 content size, 2 content checksum
//	5  block size   bits 4-6: 4 for 64 KiB, 5 256 KiB, 6 1 MiB, 7 4 MiB
//	6  content size int64 if flagged, not used
//	   checksum     second byte of the xxHash32 from flags on
//	then each block: length uint32, with bit 31 when it is stored as it is;
//	                its bytes; their xxHash32 if flagged
//	   end mark     00 00 00 00, then the content checksum if flagged, not
//	                checked; what follows is not read
//
// In format v0 the header checksum is taken from the magic on, which is wrong
// but what the clients of that time wrote and expect (KAFKA-3160): it is
// written so, and not checked when read.
const (
	lz4Magic     = 0x184d2204
	lz4Stored    = 1 << 31
	lz4BlockSize = 64 << 10
)

var errLZ4 = errors.New("malformed LZ4 frame")

func decodeLZ4(dst, src []byte, limit int, magic int8) ([]byte, error) {
	dst = dst[:0]
	if len(src) < 7 || binary.LittleEndian.Uint32(src) != lz4Magic {
		return dst, errLZ4
	}
	flags, bd := src[4], src[5]
	if flags&0xe3 != 0x60 || bd&0x8f != 0 || bd>>4 < 4 {
		return dst, errLZ4
	}
	maxBlock := 1 << (2*uint(bd>>4) + 8)
	at := 6
	if flags&0x08 != 0 {
		at += 8
	}
	if at >= len(src) {
		return dst, errLZ4
	}
	if magic > 0 && src[at] != byte(xxh32(src[4:at])>>8) {
		return dst, errLZ4
	}
	src = src[at+1:]
	for {
		if len(src) < 4 {
			return dst, errLZ4
		}
		n := binary.LittleEndian.Uint32(src)
		src = src[4:]
		stored := n&lz4Stored != 0
		n &^= lz4Stored
		if n == 0 {
			if flags&0x04 != 0 && len(src) < 4 {
				return dst, errLZ4
			}
			return dst, nil
		}
		if n > uint32(maxBlock) || int(n) > len(src) {
			return dst, errLZ4
		}
		block := src[:n]
		src = src[n:]
		if flags&0x10 != 0 {
			if len(src) < 4 || binary.LittleEndian.Uint32(src) != xxh32(block) {
				return dst, errLZ4
			}
			src = src[4:]
		}
		var err error
		if dst, err = appendLZ4Block(dst, block, stored, maxBlock, limit); err != nil {
			return dst, err
		}
	}
}

func appendLZ4Block(dst, block []byte, stored bool, maxBlock, limit int) ([]byte, error) {
	if stored {
		if len(dst)+len(block) > limit {
			return dst, ErrDecompressedTooLarge
		}
		return append(dst, block...), nil
	}
	// A byte of a block makes at most 255 bytes.
	most := min(maxBlock, 255*len(block)+16, limit-len(dst)+1)
	dst = slices.Grow(dst, most)
	k, err := lz4.UncompressBlock(block, dst[len(dst):len(dst)+most])
	if err != nil {
		if most > limit-len(dst) {
			return dst, ErrDecompressedTooLarge
		}
		return dst, errLZ4
	}
	dst = dst[:len(dst)+k]
	if len(dst) > limit {
		return dst, ErrDecompressedTooLarge
	}
	return dst, nil
}

var (
	lz4Fast = sync.Pool{New: func() any { return new(lz4.Compressor) }}
	lz4High = sync.Pool{New: func() any { return new(lz4.CompressorHC) }}
)

// lz4DefaultLevel is the level that Kafka maps to LZ4's fast compressor; each
// other one takes the slow one (KIP-390).
const lz4DefaultLevel = 9

func appendLZ4(dst, src []byte, level int, magic int8) ([]byte, error) {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, lz4Magic)
	dst = append(dst, 0x60, 4<<4)
	from := start + 4
	if magic == 0 {
		from = start
	}
	dst = append(dst, byte(xxh32(dst[from:])>>8))

	var compress func(src, dst []byte) (int, error)
	if level == DefaultLevel || level == lz4DefaultLevel {
		c := lz4Fast.Get().(*lz4.Compressor)
		defer lz4Fast.Put(c)
		compress = c.CompressBlock
	} else {
		c := lz4High.Get().(*lz4.CompressorHC)
		defer lz4High.Put(c)
		c.Level = lz4Level(level)
		compress = c.CompressBlock
	}
	for len(src) > 0 {
		block := src[:min(len(src), lz4BlockSize)]
		src = src[len(block):]
		at := len(dst)
		bound := lz4.CompressBlockBound(len(block))
		dst = slices.Grow(dst, 4+bound)[:at+4+bound]
		n, err := compress(block, dst[at+4:])
		if err != nil {
			return nil, err
		}
		if n == 0 || n >= len(block) {
			copy(dst[at+4:], block)
			binary.LittleEndian.PutUint32(dst[at:], uint32(len(block))|lz4Stored)
			dst = dst[:at+4+len(block)]
			continue
		}
		binary.LittleEndian.PutUint32(dst[at:], uint32(n))
		dst = dst[:at+4+n]
	}
	return append(dst, 0, 0, 0, 0), nil
}

func lz4Level(level int) lz4.CompressionLevel {
	levels := [...]lz4.CompressionLevel{lz4.Level1, lz4.Level2, lz4.Level3, lz4.Level4, lz4.Level5,
		lz4.Level6, lz4.Level7, lz4.Level8, lz4.Level9}
	return levels[min(max(level, 1), len(levels))-1]
}
