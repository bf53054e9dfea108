package server

import "testing"

func TestBuffersAreAsLargeAsTheBudgetCounts(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, 64 << 10, 1 << 20, 1<<20 + 1, 16 << 20, 16<<20 + 1, 100 << 20} {
		b := getBuffer(n)
		if len(b.b) < n || len(b.b) != bufferSize(n) {
			t.Errorf("%d: %d bytes, counted as %d", n, len(b.b), bufferSize(n))
		}
		putBuffer(b)
	}
}
