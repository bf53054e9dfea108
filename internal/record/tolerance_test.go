package record

import (
	"errors"
	"slices"
	"testing"

	"barnabas/internal/wire"
)

// packed returns a client's batch of count records which are given compressed.
func packed(t *testing.T, codec Codec, count int, records []byte) Batch {
	t.Helper()
	b := Batch(slices.Concat(clientBatch(t, slices.Repeat([]string{"a"}, count)...)[:BatchHeaderSize], records))
	b.putI32(lengthAt, int32(len(b)-entryOverhead))
	b.putI16(attributesAt, int16(codec))
	b.UpdateCRC()
	return b
}

// What surrounds compressed records is taken as Kafka 3.9.1's LogValidator takes
// it, with the libraries that it comes with.
func TestWhatSurroundsCompressedRecordsIsReadAsKafkaReadsIt(t *testing.T) {
	one := clientBatch(t, "a")[BatchHeaderSize:]
	pack := func(c Codec, p []byte) []byte { return must(compress(nil, c, 0, 2, p)) }
	lz4 := pack(LZ4, one)
	checked := slices.Clone(lz4)
	checked[4] |= 4
	checked[6] = byte(xxh32(checked[4:6]) >> 8)
	zstd := func(windowLog int) []byte {
		n := uint32(len(one))<<3 | 1 // the last block, stored as it is
		return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, byte(windowLog-10) << 3, byte(n), byte(n >> 8), byte(n >> 16)}, one...)
	}
	zeros := make([]byte, 30)
	for _, c := range []struct {
		name  string
		codec Codec
		parts [][]byte
		want  wire.Code
	}{
		{"zstd window of 128 MiB", Zstd, [][]byte{zstd(27)}, wire.None},
		{"zstd window of 256 MiB", Zstd, [][]byte{zstd(28)}, wire.InvalidRecord},
		{"lz4 content checksum", LZ4, [][]byte{checked, zeros[:4]}, wire.None},
		{"lz4 content checksum of 3 bytes", LZ4, [][]byte{checked, zeros[:3]}, wire.InvalidRecord},
		{"lz4 no content checksum", LZ4, [][]byte{checked}, wire.InvalidRecord},
	} {
		set := packed(t, c.codec, 1, slices.Concat(c.parts...))
		_, err := Validate(slices.Clone(set), producerOptions())
		if CodeOf(err) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
		n := 0
		readErr := set.Each(0, func(*Record) error { n++; return nil })
		if (readErr != nil) != (err != nil) || err == nil && n != 1 {
			t.Errorf("%s: %d records read, %v", c.name, n, readErr)
		}
		w := newWalk(0)
		streamErr := w.runCompressed(c.codec, set[BatchHeaderSize:], 1<<20, 1)
		if !errors.Is(streamErr, errNoStream) && (streamErr != nil) != (err != nil) {
			t.Errorf("%s: streamed %v", c.name, streamErr)
		}
	}
}
