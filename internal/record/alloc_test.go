//go:build !race

// The race detector makes pools drop at random, so allocations count without it.

package record

import "testing"

func TestValidateOfAStoredAsItCameBatchAllocatesNothing(t *testing.T) {
	for codec := None; codec <= Zstd; codec++ {
		for _, size := range []int{100, 1024} {
			set := sample(t, codec, 200, size)
			o := producerOptions()
			if n := testing.AllocsPerRun(100, func() {
				if _, err := Validate(set, o); err != nil {
					t.Fatal(err)
				}
			}); n >= 1 {
				t.Errorf("%s, %d bytes: %v allocations", codec, size, n)
			}
		}
	}
}

func TestEachAllocatesNothingForARecord(t *testing.T) {
	for codec := None; codec <= Zstd; codec++ {
		set := sample(t, codec, 1000, 50)
		sum := 0
		f := func(r *Record) error { sum += len(r.Value); return nil }
		if n := testing.AllocsPerRun(20, func() {
			if err := set.Each(0, f); err != nil {
				t.Fatal(err)
			}
		}); n > 4 {
			t.Errorf("%s: %v allocations for 1000 records", codec, n)
		}
	}
}
