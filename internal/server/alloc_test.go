//go:build !race

// The race detector allocates, so allocations count without it.

package server

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestHotRequestsAllocateNothing(t *testing.T) {
	h := start(t)
	id := h.topic("t", 3)
	c := h.dial()
	into := make([]byte, 2<<20)
	check := func(what string, most float64, r kmsg.Request, version int16) {
		t.Helper()
		request := encode(r, version, 1)
		for range 50 {
			exchange(t, c, request, into)
		}
		if n := testing.AllocsPerRun(500, func() { exchange(t, c, request, into) }); n > most {
			t.Errorf("%s: %v allocations a request, want at most %v", what, n, most)
		}
	}
	check("produce acks=1", 0, produceRequest("t", 0, 1, records(10, 100)), 9)
	check("produce acks=all", 0, produceRequest("t", 0, -1, records(10, 100)), 11)
	c.produce(9, "t", 2, 1, records(10, 100))
	check("fetch, copied", 0, fetchRequest("t", id, 2, 0), 12)
	c.produce(9, "t", 1, 1, records(500, 100))
	check("fetch, by sendfile", 0, fetchRequest("t", id, 1, 0), 12)
}
