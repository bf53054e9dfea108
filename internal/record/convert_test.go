package record

import (
	"bytes"
	"errors"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
)

// A batch that decompresses to far more than its size is converted within bounds,
// however many ask for it at a time, or refused.
func TestConversionOfHighlyCompressedBatchesStaysWithinMemory(t *testing.T) {
	zeros := func(codec Codec, megabytes int) Batch {
		t.Helper()
		b := NewBuilder(BatchOptions{LeaderEpoch: -1, Codec: codec})
		value := make([]byte, 1<<20)
		for range megabytes {
			b.Append(1000, nil, value)
		}
		set, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	for _, codec := range []Codec{Gzip, Snappy, LZ4} {
		size := 200
		if codec == Snappy { // which does not compress as much
			size = 20
		}
		bomb := bytes.Repeat(zeros(codec, size), 3)
		runtime.GC()
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		var most uint64
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				out, err := ConvertDown(bomb, ConvertOptions{Magic: 1})
				if tooLarge := errors.Is(err, ErrDecompressedTooLarge); tooLarge != (codec != Snappy) {
					t.Error(codec, len(out), err)
				}
				mu.Lock()
				metrics.Read(sample)
				most = max(most, sample[0].Value.Uint64())
				mu.Unlock()
			})
		}
		wg.Wait()
		if t.Logf("%s: %d MiB", codec, most>>20); most > 400<<20 {
			t.Errorf("%s: the heap was %d MiB", codec, most>>20)
		}
		set := zeros(codec, 25)
		out, err := ConvertDown(set, ConvertOptions{Magic: 1})
		if err != nil {
			t.Fatal(codec, err)
		}
		n := 0
		if err := Each(out, 0, func(_ Batch, r *Record) error { n++; return nil }); err != nil || n != 25 {
			t.Fatal(codec, n, err)
		}
	}
}
