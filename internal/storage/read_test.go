package storage

import (
	"math"
	"strings"
	"testing"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

// A reader drops the piece of a batch at the end of what it gets, so large
// batches are sent whole or not at all; the first one as Kafka does.
func TestAReadDoesNotEndInALargeBatch(t *testing.T) {
	random := seed(t)
	for range 20 {
		o := options(t, vfs.NewMem(), newClock())
		m := open(t, o)
		l := create(t, m, topicConfig(t, "index.interval.bytes", []string{"1", "4096", "100000000"}[random.IntN(3)]))
		sizes := make([]int64, 30)
		for range sizes {
			n := random.IntN(3 * largeBatch)
			if random.IntN(3) == 0 {
				n = random.IntN(100)
			}
			appendPlain(t, l, 1, 1000, strings.Repeat("v", n))
			if random.IntN(10) == 0 {
				must(t, l.checkpoint()) // the index is in the file
			}
		}
		for i := range sizes {
			s, err := l.Read(int64(i), math.MaxInt32, math.MaxInt64, true)
			must(t, err)
			b := make([]byte, record.MinEntryPrefix)
			if _, err := s.ReadAt(b, 0); err != nil {
				t.Fatal(err)
			}
			size, err := record.EntrySize(b)
			must(t, err)
			sizes[i] = int64(size)
			s.Release()
		}
		for range 500 {
			from, maxBytes, minOne := random.IntN(len(sizes)), random.IntN(8*largeBatch), random.IntN(2) == 0
			want, whole := int64(0), int64(0)
			for _, size := range sizes[from:] {
				want += size
				if want <= int64(maxBytes) {
					whole = want
				}
			}
			want = min(want, int64(maxBytes))
			switch first := sizes[from]; {
			case first > int64(maxBytes) && minOne:
				want = first
			case first >= largeBatch && first <= int64(maxBytes):
				want = whole
			}
			s, err := l.Read(int64(from), maxBytes, math.MaxInt64, minOne)
			must(t, err)
			if int64(s.Len) != want {
				t.Fatalf("from %d, at most %d bytes (%v): %d, want %d of %v", from, maxBytes, minOne, s.Len, want, sizes[from:])
			}
			s.Release()
		}
		must(t, m.Close())
	}
}
