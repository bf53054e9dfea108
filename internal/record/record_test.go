package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/s2"

	"barnabas/internal/wire"
)

// plain returns a batch with the given keys, "" meaning null.
func plain(t testing.TB, o BatchOptions, keys ...string) Batch {
	t.Helper()
	b := NewBuilder(o)
	for i, k := range keys {
		var key []byte
		if k != "" {
			key = []byte(k)
		}
		b.Append(validateNow+int64(i), key, []byte("value"))
	}
	batch, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func clientBatch(t testing.TB, keys ...string) Batch {
	return plain(t, BatchOptions{LeaderEpoch: NoLeaderEpoch}, keys...)
}

func TestSplitterStopsBeforeATornTail(t *testing.T) {
	a, b := clientBatch(t, "a"), clientBatch(t, "b", "c")
	set := slices.Concat([]byte(a), []byte(b))
	for cut := range len(set) + 1 {
		s := Split(set[:cut])
		n := 0
		for s.Next() {
			n++
		}
		whole, entries := 0, 0
		if cut >= len(a) {
			whole, entries = len(a), 1
		}
		if cut == len(set) {
			whole, entries = len(set), 2
		}
		if n != entries || s.Whole() != whole {
			t.Fatalf("cut at %d: %d entries, %d bytes whole, want %d, %d", cut, n, s.Whole(), entries, whole)
		}
		if torn := cut != whole; errors.Is(s.Err(), ErrTorn) != torn {
			t.Fatalf("cut at %d: error %v", cut, s.Err())
		}
	}
}

func TestSplitterRefusesLengthsThatNoEntryHas(t *testing.T) {
	for _, c := range []struct {
		length int32
		magic  byte
	}{{-1, 2}, {0, 2}, {13, 0}, {21, 1}, {48, 2}, {math.MaxInt32, 2}, {math.MinInt32, 0}, {60, 3}, {60, 0xff}} {
		set := slices.Concat([]byte(clientBatch(t, "a")), make([]byte, 100))
		at := Split(set).set[len(clientBatch(t, "a")):]
		binary.BigEndian.PutUint32(at[lengthAt:], uint32(c.length))
		at[magicAt] = c.magic
		s := Split(set)
		for s.Next() {
		}
		if CodeOf(s.Err()) != wire.CorruptMessage || s.Whole() != len(set)-100 {
			t.Errorf("length %d, magic %d: error %v, %d bytes whole", c.length, c.magic, s.Err(), s.Whole())
		}
	}
}

func TestAssignOffsetsKeepsTheCRC(t *testing.T) {
	b := clientBatch(t, "a", "b", "c")
	before := b.CRC()
	AssignOffsets(b, 12345, 6)
	if b.CRC() != before || b.Check() != nil {
		t.Fatalf("CRC %x before, %x after", before, b.CRC())
	}
	if b.BaseOffset() != 12345 || b.LastOffset() != 12347 || b.NextOffset() != 12348 || b.LeaderEpoch() != 6 {
		t.Fatalf("offsets %d to %d, epoch %d", b.BaseOffset(), b.LastOffset(), b.LeaderEpoch())
	}
}

func TestSequenceNumbersWrapToZero(t *testing.T) {
	for _, c := range [][3]int32{{0, 0, 0}, {5, 3, 8}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 1, 2, 0},
		{math.MaxInt32, 3, 2}, {math.MaxInt32 - 1, 1, math.MaxInt32}} {
		if got := AddSequence(c[0], c[1]); got != c[2] {
			t.Errorf("%d + %d = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestValidateAnswersTheCodesOfBadBatches(t *testing.T) {
	change := func(f func(Batch) Batch) []byte {
		b := f(clientBatch(t, "k"))
		return b
	}
	crc := func(b Batch) Batch { b.UpdateCRC(); return b }
	for _, c := range []struct {
		name    string
		set     []byte
		options func(*ValidateOptions)
		want    wire.Code
	}{
		{"good", clientBatch(t, "k"), nil, wire.None},
		{"bad CRC", change(func(b Batch) Batch { b[len(b)-1]++; return b }), nil, wire.CorruptMessage},
		{"two batches", slices.Concat([]byte(clientBatch(t, "k")), []byte(clientBatch(t, "k"))), nil, wire.InvalidRecord},
		{"two batches in Produce v2", slices.Concat([]byte(clientBatch(t, "k")), []byte(clientBatch(t, "k"))),
			func(o *ValidateOptions) { o.Version = 2 }, wire.InvalidRecord},
		{"empty", []byte{}, nil, wire.InvalidRecord},
		{"null", nil, nil, wire.InvalidRecord},
		{"empty in Produce v2", nil, func(o *ValidateOptions) { o.Version = 2 }, wire.None},
		{"count 2 with 1 record", change(func(b Batch) Batch { b.putI32(countAt, 2); return crc(b) }), nil, wire.InvalidRecord},
		{"count and delta 2 with 1 record", change(func(b Batch) Batch {
			b.putI32(countAt, 2)
			b.putI32(lastOffsetDeltaAt, 1)
			return crc(b)
		}), nil, wire.InvalidRecord},
		{"count 0", change(func(b Batch) Batch { b.putI32(countAt, 0); return crc(b) }), nil, wire.InvalidRecord},
		{"last offset delta 5 with 1 record", change(func(b Batch) Batch { b.putI32(lastOffsetDeltaAt, 5); return crc(b) }), nil, wire.InvalidRecord},
		{"offset delta 1 of the first record", change(func(b Batch) Batch { b[64] = 2; return crc(b) }), nil, wire.InvalidRecord},
		{"null key in a compacted topic", clientBatch(t, ""), func(o *ValidateOptions) { o.Compacted = true }, wire.InvalidRecord},
		{"magic 1 in Produce v3", must(BuildMessageSet(1, None, Message{Value: []byte("v")})), func(o *ValidateOptions) { o.Version = 3 }, wire.InvalidRecord},
		{"magic 2 in Produce v2", clientBatch(t, "k"), func(o *ValidateOptions) { o.Version = 2 }, wire.None},
		{"too large", clientBatch(t, "k"), func(o *ValidateOptions) { o.MaxBatchBytes = 70 }, wire.MessageTooLarge},
		{"control batch of a client", plain(t, BatchOptions{LeaderEpoch: -1, Control: true}, "k"), nil, wire.InvalidRecord},
		{"control batch of a coordinator", plain(t, BatchOptions{LeaderEpoch: -1, Control: true}, "k"), func(o *ValidateOptions) { o.Origin = OriginCoordinator }, wire.None},
		{"zstd in Produce v6", plain(t, BatchOptions{Codec: Zstd}, "k"), func(o *ValidateOptions) { o.Version = 6 }, wire.UnsupportedCompressionType},
		{"zstd in Produce v7", plain(t, BatchOptions{Codec: Zstd}, "k"), func(o *ValidateOptions) { o.Version = 7 }, wire.None},
		{"too many records", clientBatch(t, "a", "b", "c"), func(o *ValidateOptions) { o.MaxRecords = 2 }, wire.InvalidRecord},
		{"too old", clientBatch(t, "a"), func(o *ValidateOptions) { o.Now += 5000; o.BeforeMaxMs = 4999 }, wire.InvalidTimestamp},
		{"too far ahead", clientBatch(t, "a"), func(o *ValidateOptions) { o.Now -= 5000; o.AfterMaxMs = 4999 }, wire.InvalidTimestamp},
		{"just in bounds", clientBatch(t, "a"), func(o *ValidateOptions) { o.Now -= 5000; o.AfterMaxMs = 5000 }, wire.None},
	} {
		o := producerOptions()
		o.Now = validateNow
		if c.options != nil {
			c.options(&o)
		}
		if _, err := Validate(c.set, o); CodeOf(err) != c.want {
			t.Errorf("%s: %v (code %d), want code %d", c.name, err, CodeOf(err), c.want)
		}
	}
}

func must(set []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return set
}

func TestValidateNamesTheRejectedRecords(t *testing.T) {
	o := producerOptions()
	o.Now, o.Compacted = validateNow, true
	_, err := Validate(clientBatch(t, "a", "", "c", ""), o)
	var e *Error
	if !errors.As(err, &e) || len(e.Records) != 2 || e.Records[0].Index != 1 || e.Records[1].Index != 3 {
		t.Fatalf("error %#v", err)
	}
	_, err = Validate(clientBatch(t, make([]string, 3*MaxRecordErrors)...), o)
	if !errors.As(err, &e) || len(e.Records) != MaxRecordErrors || !errors.Is(err, wire.InvalidRecord) {
		t.Fatalf("%d rejected records listed", len(e.Records))
	}
}

func TestValidateGivesTheFactsOfABatch(t *testing.T) {
	b := NewBuilder(BatchOptions{LeaderEpoch: NoLeaderEpoch, Transactional: true,
		Producer: &Producer{ID: 9, Epoch: 4, Sequence: math.MaxInt32}})
	for _, ts := range []int64{10, 50, 50, 20} {
		b.Append(ts, nil, nil)
	}
	set, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	set.SetMaxTimestamp(CreateTime, 999) // what the producer says does not count
	for _, codec := range []Codec{ProducerCodec, LZ4, None} {
		o := producerOptions()
		o.Codec = codec
		v, err := Validate(slices.Clone(set), o)
		if err != nil {
			t.Fatal(err)
		}
		if v.Records != 4 || v.LastOffsetDelta != 3 || v.MaxTimestamp != 50 || v.MaxTimestampDelta != 1 ||
			v.ProducerID != 9 || v.ProducerEpoch != 4 || v.BaseSequence != math.MaxInt32 || v.LastSequence != 2 ||
			!v.Transactional || v.Control || v.LogAppendTime != NoTimestamp || v.Codec != max(codec, None) ||
			v.Aliases != (codec != LZ4) {
			t.Fatalf("%+v", v)
		}
		if got := Batch(v.Set); got.Check() != nil || got.MaxTimestamp() != 50 {
			t.Fatalf("stored maximum timestamp %d, check %v", got.MaxTimestamp(), got.Check())
		}
	}
	o := producerOptions()
	o.TimestampType, o.Now = LogAppendTime, 777
	v, err := Validate(slices.Clone(set), o)
	if err != nil || v.LogAppendTime != 777 || v.MaxTimestamp != 777 {
		t.Fatalf("%+v, %v", v, err)
	}
	if err := Batch(v.Set).Check(); err != nil {
		t.Fatal(err)
	}
	if err := Each(v.Set, 0, func(b Batch, r *Record) error {
		if r.Timestamp != 777 {
			return fmt.Errorf("timestamp %d", r.Timestamp)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestDecompressionEndsAtTheLimit(t *testing.T) {
	zeros := make([]byte, 8<<20)
	for codec := Gzip; codec <= Zstd; codec++ {
		b := NewBuilder(BatchOptions{LeaderEpoch: NoLeaderEpoch, Codec: codec})
		b.Append(validateNow, nil, zeros)
		set, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		o := producerOptions()
		o.DecompressLimit = 1 << 20
		_, err = Validate(slices.Clone(set), o)
		if !errors.Is(err, ErrDecompressedTooLarge) || CodeOf(err) != wire.InvalidRecord {
			t.Errorf("%s: error %v", codec, err)
		}
		o.DecompressLimit = len(zeros) + 20
		if _, err = Validate(slices.Clone(set), o); err != nil {
			t.Errorf("%s with room: %v", codec, err)
		}
		if err := set.Each(1<<20, func(*Record) error { return nil }); !errors.Is(err, ErrDecompressedTooLarge) {
			t.Errorf("%s: Each: %v", codec, err)
		}
	}
}

func TestSnappyWithoutTheJavaHeaderIsOneBlock(t *testing.T) {
	set := clientBatch(t, "a", "b")
	raw := append(slices.Clone(set[:BatchHeaderSize]), s2.EncodeSnappy(nil, set[BatchHeaderSize:])...)
	b := Batch(raw)
	b.putI32(lengthAt, int32(len(raw)-entryOverhead))
	b.putI16(attributesAt, int16(Snappy))
	b.UpdateCRC()
	v, err := Validate(b, producerOptions())
	if err != nil || v.Records != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
}

func TestOldLZ4FramesHaveTheChecksumOfTheirTime(t *testing.T) {
	for magic := int8(0); magic <= 2; magic++ {
		frame, err := appendLZ4(nil, []byte("hello hello hello"), DefaultLevel, magic)
		if err != nil {
			t.Fatal(err)
		}
		for reader := int8(0); reader <= 2; reader++ {
			_, err := decodeLZ4(nil, frame, 100, reader)
			// v0 readers do not check; newer ones refuse what v0 wrote.
			if wantErr := magic == 0 && reader > 0; (err != nil) != wantErr {
				t.Errorf("written for v%d, read as v%d: %v", magic, reader, err)
			}
		}
	}
}

func TestBuilderKeepsWhatCompactionNeeds(t *testing.T) {
	b := NewBuilder(BatchOptions{BaseOffset: 100, LeaderEpoch: 2, DeleteHorizon: 4000,
		Producer: &Producer{ID: 1, Epoch: 0, Sequence: 5}})
	b.AppendRecord(&Record{Offset: 103, Timestamp: 50, Key: []byte("k")})
	b.KeepLastOffset(109)
	batch, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	horizon, ok := batch.DeleteHorizon()
	if !ok || horizon != 4000 || batch.BaseOffset() != 100 || batch.LastOffset() != 109 || batch.LastSequence() != 14 {
		t.Fatalf("horizon %d, offsets %d to %d, last sequence %d", horizon, batch.BaseOffset(), batch.LastOffset(), batch.LastSequence())
	}
	if err := batch.Each(0, func(r *Record) error {
		if r.Offset != 103 || r.Timestamp != 50 || r.Sequence != 8 || r.Value != nil {
			return fmt.Errorf("%+v", r)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestConvertDownReturnsWhatCameBeforeAZstdBatch(t *testing.T) {
	set := slices.Concat([]byte(clientBatch(t, "a")), []byte(plain(t, BatchOptions{Codec: Zstd}, "b")))
	out, err := ConvertDown(set, ConvertOptions{Magic: 1})
	if CodeOf(err) != wire.UnsupportedCompressionType {
		t.Fatal(err)
	}
	text, err := dump(out)
	if err != nil || strings.Count(text, "R ") != 1 {
		t.Fatalf("%s, %v", text, err)
	}
}

func TestHeadersAreCopiedByAll(t *testing.T) {
	b := NewBuilder(BatchOptions{})
	want := []Header{{"a", []byte("1")}, {"", nil}, {"b", []byte{}}}
	b.Append(0, nil, nil, want...)
	batch, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var got []Header
	if err := batch.Each(0, func(r *Record) error { got = r.Headers.All(); return nil }); err != nil {
		t.Fatal(err)
	}
	clear(batch)
	if !slices.EqualFunc(got, want, func(a, b Header) bool {
		return a.Key == b.Key && bytes.Equal(a.Value, b.Value) && (a.Value == nil) == (b.Value == nil)
	}) {
		t.Fatalf("%q", got)
	}
}

func TestManyLargeSetsAreValidatedTwoAtATime(t *testing.T) {
	b := NewBuilder(BatchOptions{LeaderEpoch: NoLeaderEpoch, Codec: LZ4})
	b.Append(validateNow, nil, make([]byte, commonLimit+1))
	set, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if v, err := Validate(slices.Clone(set), producerOptions()); err != nil || v.Records != 1 {
				t.Error(v.Records, err)
			}
			if len(large) > cap(large) {
				t.Error("more than two")
			}
		})
	}
	wg.Wait()
	if len(large) != 0 {
		t.Fatal("a turn was not given back")
	}
}

// Who lists offsets, cleans or converts waits for the same turns, and who has one
// does not wait for another.
func TestManyLargeSetsAreReadTwoAtATime(t *testing.T) {
	value := make([]byte, commonLimit+1)
	b := NewBuilder(BatchOptions{LeaderEpoch: NoLeaderEpoch, Codec: LZ4})
	b.Append(validateNow, nil, value)
	set := must(b.Build())
	old := must(BuildMessageSet(1, LZ4, Message{Timestamp: validateNow, Value: value}))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			entry := Batch(slices.Clone([][]byte{set, old}[i%2]))
			if err := entry.Each(0, func(*Record) error {
				if len(large) == 0 {
					t.Error("read without a turn")
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			if _, err := ConvertDown(entry, ConvertOptions{Magic: 0}); err != nil {
				t.Error(err)
			}
			o := producerOptions()
			o.Version = 2
			if _, err := Validate(entry, o); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(large) != 0 {
		t.Fatal("a turn was not given back")
	}
}

func TestZstdDecodesIntoABufferOfAnySize(t *testing.T) {
	set := []byte(read(t, "testdata/sets/v2-zstd.set"))
	s := Split(set)
	for s.Next() {
		b := s.Batch()
		if b.Codec() != Zstd {
			continue
		}
		want, err := new(scratch).decompress(Zstd, 2, b[BatchHeaderSize:], 0)
		if err != nil {
			t.Fatal(err)
		}
		for size := 0; size < 2*len(want); size += 1 + size/3 {
			got, err := (&scratch{b: make([]byte, 0, size)}).decompress(Zstd, 2, b[BatchHeaderSize:], len(want))
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("buffer of %d: %d of %d bytes, %v", size, len(got), len(want), err)
			}
		}
		for _, limit := range []int{len(want) - 1, len(want) / 2, 1} {
			if _, err := new(scratch).decompress(Zstd, 2, b[BatchHeaderSize:], limit); !errors.Is(err, ErrDecompressedTooLarge) {
				t.Fatalf("limit %d: %v", limit, err)
			}
		}
	}
}
