package record

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// A walk through a decompressor says what the walk through the decompressed
// bytes says, of good records and of damaged ones.
func TestAStreamedWalkAgreesWithTheWalkInMemory(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := range 3000 {
		b := NewBuilder(BatchOptions{LeaderEpoch: NoLeaderEpoch, Codec: None})
		count := int32(1 + rng.IntN(5))
		for i := range count {
			r := Record{Offset: int64(i), Timestamp: validateNow + rng.Int64N(1000), Value: make([]byte, rng.IntN(300))}
			if rng.IntN(2) == 0 {
				r.Key = []byte("key")
			}
			b.AppendRecord(&r)
		}
		set, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := slices.Clone(set[BatchHeaderSize:])
		for range rng.IntN(3) {
			p[rng.IntN(len(p))] = byte(rng.Uint32())
		}
		switch rng.IntN(6) {
		case 0:
			p = p[:rng.IntN(len(p)+1)]
		case 1:
			p = append(p, 0)
		}
		for _, c := range []Codec{Gzip, Zstd} {
			packed, err := compress(nil, c, 0, 2, p)
			if err != nil {
				t.Fatal(err)
			}
			memory, stream := newWalk(validateNow), newWalk(validateNow)
			memory.latest = validateNow + 900
			stream.latest = memory.latest
			want, got := memory.run(p, count), stream.runCompressed(c, packed, 1<<20, count)
			if (want == nil) != (got == nil) {
				t.Fatalf("%d %s: %v in memory, %v streamed: %x", n, c, want, got, p)
			}
			if want != nil && CodeOf(want) != CodeOf(got) || want == nil && memory != stream {
				t.Fatalf("%d %s: %v %+v in memory, %v %+v streamed: %x", n, c, want, memory, got, stream, p)
			}
		}
	}
}

func TestALargeSetIsNotHeldInMemory(t *testing.T) {
	for _, c := range []Codec{Gzip, Zstd} {
		b := NewBuilder(BatchOptions{LeaderEpoch: NoLeaderEpoch, Codec: c})
		b.Append(validateNow, nil, make([]byte, 100<<20))
		b.Append(validateNow, nil, make([]byte, 100<<20))
		set, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := Validate(set, producerOptions())
		runtime.ReadMemStats(&after)
		if err != nil || v.Records != 2 {
			t.Fatal(v.Records, err)
		}
		if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 64 {
			t.Errorf("%s: %d MiB were allocated for a set of %d bytes", c, n, len(set))
		}
		o := producerOptions()
		o.DecompressLimit = 150 << 20
		if _, err := Validate(set, o); !errors.Is(err, ErrDecompressedTooLarge) {
			t.Errorf("%s: %v", c, err)
		}
	}
}
