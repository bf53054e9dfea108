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
	gzip, lz4 := pack(Gzip, one), pack(LZ4, one)
	checked := slices.Clone(lz4)
	checked[4] |= 4
	checked[6] = byte(xxh32(checked[4:6]) >> 8)
	zstd := func(windowLog int) []byte {
		n := uint32(len(one))<<3 | 1 // the last block, stored as it is
		return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, byte(windowLog-10) << 3, byte(n), byte(n >> 8), byte(n >> 16)}, one...)
	}
	zeros := make([]byte, 30)
	header := gzip[:10]
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
		{"gzip 1 zero", Gzip, [][]byte{gzip, zeros[:1]}, wire.None},
		{"gzip 4 zeros", Gzip, [][]byte{gzip, zeros[:4]}, wire.None},
		{"gzip 30 zeros", Gzip, [][]byte{gzip, zeros}, wire.None},
		{"gzip header only", Gzip, [][]byte{gzip, header}, wire.None},
		{"gzip header and 8 bytes", Gzip, [][]byte{gzip, header, zeros[:8]}, wire.None},
		{"gzip header and 9 bytes", Gzip, [][]byte{gzip, header, zeros[:9]}, wire.InvalidRecord},
		{"gzip header of a method that is none", Gzip, [][]byte{gzip, {0x1f, 0x8b, 7}, zeros}, wire.None},
		{"gzip header without an end", Gzip, [][]byte{gzip, {0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 0}, []byte("a name that does not end")}, wire.None},
		{"gzip damaged second member", Gzip, [][]byte{gzip, gzip[:len(gzip)-8], zeros[:8]}, wire.InvalidRecord},
		{"gzip cut second member", Gzip, [][]byte{gzip, gzip[:len(gzip)-1]}, wire.InvalidRecord},
		{"gzip empty second member", Gzip, [][]byte{gzip, pack(Gzip, nil)}, wire.None},
		{"gzip empty first member", Gzip, [][]byte{pack(Gzip, nil), gzip}, wire.None},
		{"gzip three members and zeros", Gzip, [][]byte{pack(Gzip, one[:3]), pack(Gzip, one[3:5]), pack(Gzip, one[5:]), zeros}, wire.None},
		{"gzip no header", Gzip, [][]byte{zeros, gzip}, wire.InvalidRecord},
		{"snappy 1 byte", Snappy, [][]byte{pack(Snappy, one), zeros[:1]}, wire.None},
		{"snappy 3 bytes", Snappy, [][]byte{pack(Snappy, one), {0xff, 0xff, 0xff}}, wire.None},
		{"snappy 4 bytes", Snappy, [][]byte{pack(Snappy, one), {0, 0, 0, 9}}, wire.InvalidRecord},
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

// A batch keeps of its header what Kafka 3.9.1 keeps.
func TestTheHeaderOfABatchIsStoredAsKafkaStoresIt(t *testing.T) {
	for _, c := range []struct {
		name         string
		target       Codec
		attributes   int16
		maxTimestamp int64

		wantAttributes int16
		wantTimestamp  int64
	}{
		{"recompressed with a delete horizon", Gzip, 0x40, validateNow, 1, validateNow},
		{"recompressed with unknown bits", Gzip, 0x2180, validateNow, 1, validateNow},
		{"recompressed in a transaction", Gzip, 0x10, validateNow, 0x11, validateNow},
		{"kept with unknown bits", ProducerCodec, 0x2180, validateNow, 0x2180, validateNow},
		{"kept with append time", ProducerCodec, 8, validateNow, 0, validateNow},
		{"kept with an append time before 1970", ProducerCodec, 8, -5, 0, NoTimestamp},
	} {
		b := clientBatch(t, "a")
		if c.attributes == 0x10 {
			b.putI64(producerIDAt, 7)
			b.putI16(producerEpochAt, 0)
			b.putI32(baseSequenceAt, 0)
		}
		b.putI16(attributesAt, c.attributes)
		b.putI64(maxTimestampAt, c.maxTimestamp)
		b.UpdateCRC()
		o := producerOptions()
		o.Codec = c.target
		v, err := Validate(b, o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := Batch(v.Set)
		if got.i16(attributesAt) != c.wantAttributes || got.MaxTimestamp() != c.wantTimestamp || v.MaxTimestamp != c.wantTimestamp {
			t.Errorf("%s: attributes %#x, maximum timestamp %d (%d)", c.name, got.i16(attributesAt), got.MaxTimestamp(), v.MaxTimestamp)
		}
	}
}
