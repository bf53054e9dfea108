package record

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
)

// An S2 block that repeats an offset is corrupt in Snappy: Kafka 3.9.1 refuses
// it (FAILED_TO_UNCOMPRESS), and its consumers would.
func TestAnS2BlockIsNoSnappyBlock(t *testing.T) {
	const repeat = "\x11\x00" // a copy of 8 bytes with offset 0
	block := "\x1d" + "\x00a" + "\x4e\x01\x00" + repeat
	if out, err := s2.Decode(nil, []byte(block)); err != nil || len(out) != 29 {
		t.Fatal(len(out), err)
	}
	for _, header := range []string{"", string(snappyHeader[:]) + string([]byte{0, 0, 0, byte(len(block))})} {
		if out, err := decodeSnappy(nil, []byte(header+block), 100); err == nil {
			t.Errorf("%q", out)
		}
	}
}

// Blocks are read as another strict decoder reads them.
func TestSnappyBlocksAreReadAsAStrictDecoderDoes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	refused, repeats := 0, 0
	for range 20000 {
		var raw []byte
		for range 1 + rng.IntN(30) {
			raw = append(raw, bytes.Repeat([]byte{byte(rng.IntN(40))}, 1+rng.IntN(20))...)
			raw = append(raw, raw[rng.IntN(len(raw)):]...)
			if len(raw) > 5000 {
				break
			}
		}
		if rng.IntN(20) == 0 { // a long literal
			for range rng.IntN(70000) {
				raw = append(raw, byte(rng.Uint32()))
			}
		}
		var block []byte
		switch rng.IntN(3) {
		case 0:
			block = s2.EncodeSnappy(nil, raw)
		case 1:
			block = s2.EncodeBetter(nil, raw) // has repeats
		default: // short elements of any kind
			for range rng.IntN(12) {
				switch rng.IntN(4) {
				case 0:
					block = append(block, 1<<2, byte(rng.IntN(3)), byte(rng.IntN(20)))
				case 1:
					block = append(block, byte(rng.IntN(8)<<2|1), byte(rng.IntN(4)))
				case 2:
					block = append(block, byte(rng.IntN(64)<<2|2), byte(rng.IntN(3)), 0)
				case 3:
					block = append(block, byte(rng.IntN(64)<<2|3), byte(rng.IntN(3)), 0, 0, 0)
				}
			}
			block = append(binary.AppendUvarint(nil, uint64(decodedSize(block))), block...)
		}
		for range rng.IntN(4) / 2 {
			block[rng.IntN(len(block))] = byte(rng.IntN(64))
		}
		if n, err := s2.DecodedLen(block); err != nil || n > 32*len(block) || n > 1<<20 {
			continue
		}
		want, wantErr := snappy.DecodeStrict(nil, block)
		got, err := appendSnappyBlock(nil, block, 1<<20)
		if (err != nil) != (wantErr != nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%v, a strict decoder says %v: %x", err, wantErr, block)
		}
		if err != nil {
			refused++
			if _, err := s2.Decode(nil, block); err == nil {
				repeats++
			}
		}
	}
	if refused == 0 || repeats == 0 {
		t.Fatalf("%d blocks refused, %d of them for repeats", refused, repeats)
	}
}

// decodedSize is what elements without lengths of their own decompress to, in
// Snappy.
func decodedSize(p []byte) (n int) {
	for len(p) > 0 {
		tag := int(p[0])
		size := 2
		switch tag & 3 {
		case 0:
			size = 2 + tag>>2
			n += 1 + tag>>2
		case 1:
			n += 4 + tag>>2&7
		case 2:
			size = 3
			n += 1 + tag>>2
		case 3:
			size = 5
			n += 1 + tag>>2
		}
		p = p[size:]
	}
	return n
}
