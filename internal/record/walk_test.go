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

// A walk by shapes says what a walk record by record says, for batches whose
// records are alike and for such batches damaged in one place.
func TestRunAlikeAgreesWithCareful(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	slow := func(w *walk, p []byte, count int32) (err error) {
		at := 0
		for i := range count {
			delta, keyed, next, err := careful(p, at, i)
			if err != nil {
				return err
			}
			w.nullKey = w.nullKey || !keyed
			w.timestamp(w.baseTimestamp+delta, i)
			at = next
		}
		if at != len(p) {
			return invalid("batch has %d bytes after its %d records", len(p)-at, count)
		}
		return nil
	}
	good := 0
	for round := range 20000 {
		b := NewBuilder(BatchOptions{LeaderEpoch: NoLeaderEpoch})
		var key []byte
		if rnd.IntN(2) == 0 {
			key = make([]byte, rnd.IntN(1<<rnd.IntN(10)))
		}
		value := make([]byte, rnd.IntN(1<<rnd.IntN(10)))
		step := rnd.Int64N(1 << rnd.IntN(8))
		ts := int64(1_700_000_000_000)
		for range 2 + rnd.IntN(1<<rnd.IntN(9)) {
			b.Append(ts, key, value)
			ts += step
		}
		batch, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p, count := []byte(batch[BatchHeaderSize:]), batch.Count()
		switch round % 4 {
		case 0:
		case 1:
			p[rnd.IntN(len(p))] ^= 1 << rnd.IntN(8)
		case 2:
			p[rnd.IntN(len(p))] = byte(rnd.Uint32())
			p = p[:len(p)-rnd.IntN(20)%len(p)]
		case 3:
			count += rnd.Int32N(3) - 1
		}
		fast, bare := newWalk(batch.BaseTimestamp()), newWalk(batch.BaseTimestamp())
		fast.latest, bare.latest = ts-step*2, ts-step*2
		got, want := fast.run(p, count), slow(&bare, p, count)
		if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() || got == nil && fast != bare {
			t.Fatalf("%d records, %x: %+v %v, one by one %+v %v", count, p, fast, got, bare, want)
		}
		if got == nil {
			good++
		}
	}
	t.Logf("%d of them in order", good)
}
