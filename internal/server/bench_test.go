package server

import (
	"fmt"
	"strings"
	"testing"

	"barnabas/internal/record"
	"barnabas/internal/wire"
)

// exchange sends one request, already encoded, and reads its answer into a
// buffer: what it costs beyond the broker's work is two system calls.
func exchange(tb testing.TB, c *client, request, into []byte) int {
	if _, err := c.nc.Write(request); err != nil {
		tb.Fatal(err)
	}
	have := 0
	for have < 4 || len(into) > have && have < 4+int(uint32(into[0])<<24|uint32(into[1])<<16|uint32(into[2])<<8|uint32(into[3])) {
		n, err := c.nc.Read(into[have:])
		if err != nil {
			tb.Fatal(err)
		}
		have += n
	}
	if have == len(into) {
		tb.Fatalf("an answer of more than %d bytes", have)
	}
	return have
}

func records(n, size int) []byte {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.Repeat("x", size)
	}
	return set(record.None, all...)
}

func BenchmarkProduce(b *testing.B) {
	for _, n := range []int{1, 150, 9000} {
		for _, acks := range []int16{1, -1} {
			b.Run(fmt.Sprintf("records=%d/acks=%d", n, acks), func(b *testing.B) {
				h := start(b)
				h.topic("t", 1)
				c := h.dial()
				request, into := encode(produceRequest("t", 0, acks, records(n, 100)), 9, 1), make([]byte, 4096)
				b.SetBytes(int64(len(request)))
				b.ReportAllocs()
				for b.Loop() {
					exchange(b, c, request, into)
				}
			})
		}
	}
}

func BenchmarkFetch(b *testing.B) {
	for _, n := range []int{1, 150, 9000} {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			h := start(b)
			h.topic("t", 1)
			c := h.dial()
			c.produce(9, "t", 0, 1, records(n, 100))
			request, into := encode(fetchRequest("t", wire.UUID{}, 0, 0), 12, 1), make([]byte, 2<<20)
			b.SetBytes(int64(exchange(b, c, request, into)))
			b.ReportAllocs()
			for b.Loop() {
				exchange(b, c, request, into)
			}
		})
	}
}

// One of many partitions of a session changes: the cost must not grow with
// their number.
func BenchmarkSessionPoll(b *testing.B) {
	for _, n := range []int32{10, 1000} {
		b.Run(fmt.Sprintf("partitions=%d", n), func(b *testing.B) {
			h := start(b)
			id := h.topic("t", int(n))
			all := make([]int32, n)
			for i := range all {
				all[i] = int32(i)
			}
			c := h.dial()
			first := open(c, 12, id, all...)
			epoch := int32(1)
			b.ReportAllocs()
			for b.Loop() {
				r := incremental(first.SessionID, epoch)
				epoch++
				c.fetch(12, r)
			}
		})
	}
}
