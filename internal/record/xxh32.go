package record

import (
	"encoding/binary"
	"math/bits"
)

// xxh32 is xxHash32 with seed 0, which LZ4 frames use for their checksums.
func xxh32(p []byte) uint32 {
	const (
		p1 uint32 = 2654435761
		p2 uint32 = 2246822519
		p3 uint32 = 3266489917
		p4 uint32 = 668265263
		p5 uint32 = 374761393
	)
	var h uint32
	n := uint32(len(p))
	if len(p) >= 16 {
		var zero uint32
		a, b, c, d := zero+p1+p2, p2, zero, zero-p1
		for len(p) >= 16 {
			a = bits.RotateLeft32(a+binary.LittleEndian.Uint32(p)*p2, 13) * p1
			b = bits.RotateLeft32(b+binary.LittleEndian.Uint32(p[4:])*p2, 13) * p1
			c = bits.RotateLeft32(c+binary.LittleEndian.Uint32(p[8:])*p2, 13) * p1
			d = bits.RotateLeft32(d+binary.LittleEndian.Uint32(p[12:])*p2, 13) * p1
			p = p[16:]
		}
		h = bits.RotateLeft32(a, 1) + bits.RotateLeft32(b, 7) + bits.RotateLeft32(c, 12) + bits.RotateLeft32(d, 18)
	} else {
		h = p5
	}
	h += n
	for len(p) >= 4 {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(p)*p3, 17) * p4
		p = p[4:]
	}
	for _, c := range p {
		h = bits.RotateLeft32(h+uint32(c)*p5, 11) * p1
	}
	h ^= h >> 15
	h *= p2
	h ^= h >> 13
	h *= p3
	return h ^ h>>16
}
