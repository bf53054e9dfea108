package record

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// sample returns a batch of n records whose values have size bytes and compress
// about 3 to 1.
func sample(tb testing.TB, codec Codec, n, size int) Batch {
	tb.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	words := []string{"broker", "partition", "offset", "leader", "replica", "epoch", "segment", "topic"}
	b := NewBuilder(BatchOptions{LeaderEpoch: NoLeaderEpoch, Codec: codec})
	for i := range n {
		var v bytes.Buffer
		for v.Len() < size {
			fmt.Fprintf(&v, "%s=%x ", words[rnd.IntN(len(words))], rnd.Uint32N(1<<20))
		}
		b.Append(1700000000000+int64(i), nil, v.Bytes()[:size])
	}
	batch, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return batch
}

func producerOptions() ValidateOptions {
	return ValidateOptions{Version: 11, Now: 1700000000500, Codec: ProducerCodec,
		BeforeMaxMs: math.MaxInt64, AfterMaxMs: 3600000}
}

func BenchmarkValidate(b *testing.B) {
	for _, codec := range []Codec{None, Gzip, Snappy, LZ4, Zstd} {
		for _, size := range []int{100, 1024} {
			n := 1 << 20 / size / 4
			b.Run(fmt.Sprintf("%s/%d", codec, size), func(b *testing.B) {
				batch := sample(b, codec, n, size)
				o := producerOptions()
				b.SetBytes(int64(n * size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Validate(batch, o); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
			})
		}
	}
}

// BenchmarkDecoder is what Validate is measured against: the decoder alone.
func BenchmarkDecoder(b *testing.B) {
	for _, codec := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		for _, size := range []int{100, 1024} {
			n := 1 << 20 / size / 4
			b.Run(fmt.Sprintf("%s/%d", codec, size), func(b *testing.B) {
				batch := sample(b, codec, n, size)
				b.SetBytes(int64(n * size))
				s := new(scratch)
				for b.Loop() {
					if _, err := s.decompress(codec, 2, batch[BatchHeaderSize:], 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkWalk is the pass over the records alone, without the checksum.
func BenchmarkWalk(b *testing.B) {
	batch := sample(b, None, 2500, 100)
	b.ReportAllocs()
	for b.Loop() {
		w := newWalk(batch.BaseTimestamp())
		if err := w.run(batch[BatchHeaderSize:], batch.Count()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*2500), "ns/record")
}
