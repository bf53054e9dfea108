package record

import (
	"math/rand/v2"
	"testing"
)

// Whatever quick accepts, careful accepts, with the same result; and it takes
// nearly all records of an ordinary batch.
func TestQuickAgreesWithCareful(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	taken, all := 0, 0
	compare := func(p []byte, at int, i int32) int {
		delta, keyed, next := quick(p, at, i)
		all++
		if next < 0 {
			_, _, after, err := careful(p, at, i)
			if err != nil {
				return -1
			}
			return after
		}
		taken++
		d, k, n, err := careful(p, at, i)
		if err != nil || d != delta || k != keyed || n != next {
			t.Fatalf("record %d at %d of %x: quick says %d %v %d, careful %d %v %d %v", i, at, p, delta, keyed, next, d, k, n, err)
		}
		return n
	}
	walkAll := func(p []byte) {
		for i, at := int32(0), 0; at >= 0 && at < len(p); i++ {
			at = compare(p, at, i)
		}
	}
	for range 300 {
		b := NewBuilder(BatchOptions{LeaderEpoch: NoLeaderEpoch})
		ts := int64(1_700_000_000_000)
		for range 1 + rnd.IntN(200) {
			ts += rnd.Int64N(1 << rnd.IntN(12))
			var key []byte
			if rnd.IntN(2) == 0 {
				key = make([]byte, rnd.IntN(1<<rnd.IntN(10)))
			}
			b.Append(ts-rnd.Int64N(1000), key, make([]byte, rnd.IntN(1<<rnd.IntN(12))))
		}
		batch, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		walkAll(batch[BatchHeaderSize:])
	}
	if taken*10 < all*9 {
		t.Errorf("quick took %d of %d records", taken, all)
	}
	for range 3000 {
		b := NewBuilder(BatchOptions{LeaderEpoch: NoLeaderEpoch})
		for range 20 {
			b.Append(rnd.Int64N(1<<30), make([]byte, rnd.IntN(5)), make([]byte, rnd.IntN(300)))
		}
		batch, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := batch[BatchHeaderSize:]
		for range 1 + rnd.IntN(8) {
			p[rnd.IntN(len(p))] = byte(rnd.Uint32() >> rnd.IntN(8))
		}
		walkAll(p[:len(p)-rnd.IntN(2)*rnd.IntN(40)])
	}
}
