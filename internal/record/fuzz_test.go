package record

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
)

const fuzzLimit = 1 << 20

// bounded fails the test if f allocates more than a small multiple of the input,
// some buffers of fuzzLimit, and what encoders and decoders cost when new.
func bounded(t *testing.T, input []byte, f func()) {
	t.Helper()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	f()
	metrics.Read(sample)
	if n := sample[0].Value.Uint64() - before; n > uint64(len(input))*256+16*fuzzLimit+64<<20 {
		t.Fatalf("%d bytes allocated for an input of %d", n, len(input))
	}
}

// addSeeds adds the fixtures, and the inputs of validation.
func addSeeds(f *testing.F, extra ...any) {
	f.Helper()
	names, err := filepath.Glob("testdata/sets/*.set")
	if err != nil || len(names) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range names {
		set, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		// Small seeds are mutated better.
		s := Split(set)
		if s.Next() {
			f.Add(append([]any{[]byte(s.Batch())}, extra...)...)
		}
		if len(set) < 4096 {
			f.Add(append([]any{set}, extra...)...)
		}
	}
	cases, err := os.ReadFile("testdata/validate/cases.txt")
	if err != nil {
		f.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(cases)) {
		if n++; n%7 == 0 {
			set, err := hex.DecodeString(strings.Split(line, " ")[8][1:])
			if err != nil {
				f.Fatal(err)
			}
			f.Add(append([]any{set}, extra...)...)
		}
	}
}

// repair makes the CRCs of a set right, so that what a fuzzer changes is looked
// at.
func repair(set []byte) []byte {
	set = slices.Clone(set)
	s := Split(set)
	for s.Next() {
		s.Batch().UpdateCRC()
	}
	return set
}

func FuzzSplit(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, set []byte) {
		s := Split(set)
		end := 0
		for s.Next() {
			b := s.Batch()
			if s.Position() != end || len(b) != b.Size() || b.checkSize() != nil {
				t.Fatalf("entry of %d bytes at %d, header says %d, last one ended at %d", len(b), s.Position(), b.Size(), end)
			}
			end += len(b)
		}
		if s.Whole() != end || end > len(set) || (s.Err() == nil) != (end == len(set)) {
			t.Fatalf("%d of %d bytes whole, entries end at %d, error %v", s.Whole(), len(set), end, s.Err())
		}
	})
}

func FuzzEach(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, set []byte) {
		bounded(t, set, func() {
			_ = Each(repair(set), fuzzLimit, func(b Batch, r *Record) error {
				for h := r.Headers; ; {
					if _, _, ok := h.Next(); !ok {
						return nil
					}
				}
			})
		})
	})
}

func FuzzValidate(f *testing.F) {
	addSeeds(f, int16(9), uint8(0))
	f.Fuzz(func(t *testing.T, set []byte, version int16, flags uint8) {
		o := producerOptions()
		o.Version, o.DecompressLimit = version, fuzzLimit
		o.Codec = Codec(flags&7) - 1
		if o.Codec > Zstd {
			o.Codec = None
		}
		o.Compacted = flags&8 != 0
		o.TimestampType = TimestampType(flags >> 4 & 1)
		set = repair(set)
		bounded(t, set, func() {
			// A batch that claims LogAppendTime keeps its one timestamp as the
			// largest, as in Kafka, while its records get their own back.
			claims := len(set) >= BatchHeaderSize && Batch(set).TimestampType() == LogAppendTime
			v, err := Validate(set, o)
			if err != nil || v.Records == 0 || claims {
				return
			}
			checkValidated(t, v, o)
		})
	})
}

// checkValidated checks invariant 1, and that validation of what it made finds
// nothing more to do.
func checkValidated(t *testing.T, v Validated, o ValidateOptions) {
	b := Batch(v.Set)
	if b.Check() != nil || b.Magic() != 2 || b.Size() != len(b) || b.BaseOffset() != 0 ||
		b.Count() != v.Records || b.LastOffsetDelta() != v.Records-1 || b.MaxTimestamp() != v.MaxTimestamp {
		t.Fatalf("check %v, count %d, facts %+v", b.Check(), b.Count(), v)
	}
	n := int64(0)
	if err := b.Each(fuzzLimit, func(r *Record) error {
		if r.Offset != n {
			return fmt.Errorf("offset %d of record %d", r.Offset, n)
		}
		n++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	o.Version, o.Codec = 11, ProducerCodec
	if o.TimestampType == LogAppendTime {
		return // as a producer's, such a batch would be refused
	}
	stored := slices.Clone(v.Set)
	again, err := Validate(v.Set, o)
	if err != nil || again.MaxTimestamp != v.MaxTimestamp || again.MaxTimestampDelta != v.MaxTimestampDelta ||
		!slices.Equal(stored, again.Set) {
		t.Fatalf("validated again: %+v, %v; first %+v", again, err, v)
	}
}

func FuzzConvertDown(f *testing.F) {
	addSeeds(f, int8(1), int64(0))
	f.Fuzz(func(t *testing.T, set []byte, magic int8, first int64) {
		set = repair(set)
		magic &= 1
		bounded(t, set, func() {
			out, err := ConvertDown(set, ConvertOptions{Magic: magic, FirstOffset: first, DecompressLimit: fuzzLimit})
			if err != nil {
				return
			}
			s := Split(out)
			for s.Next() {
				if s.Batch().Magic() > magic {
					t.Fatalf("entry of magic %d", s.Batch().Magic())
				}
			}
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
		})
	})
}

// FuzzCodecs checks that each codec gives back what it was given.
func FuzzCodecs(f *testing.F) {
	f.Add([]byte(""), int8(2), 0)
	f.Add([]byte(strings.Repeat("abcdefgh", 10000)), int8(0), 5)
	f.Fuzz(func(t *testing.T, p []byte, magic int8, level int) {
		magic = max(magic&3, 0) % 3
		level = level&3 + 1 // the slow ones are too slow here
		for c := Gzip; c <= Zstd; c++ {
			if c == Zstd && magic < 2 {
				continue
			}
			out, err := compress(nil, c, level, magic, p)
			if err != nil {
				t.Fatal(err)
			}
			s := new(scratch)
			if back, err := s.decompress(c, magic, out, len(p)+1); err != nil || !slices.Equal(back, p) {
				if !(c == Snappy && len(p) == 0) {
					t.Fatalf("%s: %d bytes of %d back, %v", c, len(back), len(p), err)
				}
			}
		}
	})
}

func FuzzVarint(f *testing.F) {
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, p []byte) {
		v, at := varint(p, 0)
		if at > 0 {
			if w, q := varint(appendVarint(nil, v), 0); w != v || q != varintSize(v) {
				t.Fatalf("%d came back as %d", v, w)
			}
		}
		l, at := varlong(p, 0)
		if at > 0 {
			if w, q := varlong(appendVarlong(nil, l), 0); w != l || q != varlongSize(l) {
				t.Fatalf("%d came back as %d", l, w)
			}
		}
		if u, n := binary.Uvarint(p); n > 0 && n < 10 && at > 0 && uint64(l<<1)^uint64(l>>63) != u {
			t.Fatalf("%d differs from %d", l, u)
		}
	})
}
