package replica

import (
	"slices"
	"testing"
	"time"
)

var t0 = time.Unix(1_700_000_000, 0)

const lag = 30 * time.Second

func threeReplicas(isr ...int32) *isrState {
	var s isrState
	s.reset(1, []int32{1, 2, 3}, isr, 1, t0)
	return &s
}

func TestHighWatermarkOfTheOnlyReplicaIsItsEnd(t *testing.T) {
	var s isrState
	s.reset(1, []int32{1}, []int32{1}, 2, t0) // min.insync.replicas counts no more than there are
	if !s.solo() || s.underMin() {
		t.Fatalf("solo %v, under min %v", s.solo(), s.underMin())
	}
	if hw := s.highWatermark(10, 3, t0, lag); hw != 10 {
		t.Fatalf("high watermark %d, want 10", hw)
	}
}

func TestHighWatermarkWaitsForTheWholeISR(t *testing.T) {
	s := threeReplicas(1, 2, 3)
	if hw := s.highWatermark(10, 0, t0, lag); hw != 0 {
		t.Fatalf("before anybody fetched: %d", hw)
	}
	s.fetched(2, 10, 0, 10, t0)
	if hw := s.highWatermark(10, 0, t0, lag); hw != 0 {
		t.Fatalf("with one follower missing: %d", hw)
	}
	s.fetched(3, 7, 0, 10, t0)
	if hw := s.highWatermark(10, 0, t0, lag); hw != 7 {
		t.Fatalf("high watermark %d, want 7", hw)
	}
	if hw := s.highWatermark(10, 9, t0, lag); hw != 9 {
		t.Fatalf("went back to %d", hw)
	}
}

func TestHighWatermarkCountsAReplicaThatIsCaughtUpOutsideOfTheISR(t *testing.T) {
	s := threeReplicas(1, 2)
	s.fetched(2, 10, 0, 10, t0)
	s.fetched(3, 10, 0, 10, t0)
	s.fetched(2, 20, 0, 20, t0.Add(time.Second))
	if hw := s.highWatermark(20, 0, t0.Add(time.Second), lag); hw != 10 {
		t.Fatalf("high watermark %d, want 10", hw)
	}
	if hw := s.highWatermark(20, 0, t0.Add(lag+time.Second), lag); hw != 20 {
		t.Fatalf("still waits for a replica that lags: %d", hw)
	}
}

func TestHighWatermarkStaysBelowMinInsyncReplicas(t *testing.T) {
	s := threeReplicas(1)
	s.min = 2
	if hw := s.highWatermark(10, 4, t0.Add(time.Hour), lag); hw != 4 {
		t.Fatalf("high watermark %d, want 4", hw)
	}
	if got := s.afterAppend(10, 10); got != ackTooFew {
		t.Fatalf("acks=all: %v", got)
	}
	s.min = 1
	if hw := s.highWatermark(10, 4, t0.Add(time.Hour), lag); hw != 10 {
		t.Fatalf("high watermark %d, want 10", hw)
	}
}

func TestPendingExpansionCountsAndPendingShrinkDoesNot(t *testing.T) {
	s := threeReplicas(1, 2)
	s.fetched(2, 10, 0, 10, t0)
	s.fetched(3, 5, 0, 10, t0.Add(-time.Hour))
	s.pending = []int32{1, 2, 3}
	if hw := s.highWatermark(10, 0, t0, lag); hw != 5 {
		t.Fatalf("expansion under way: %d, want 5", hw)
	}
	s.pending = []int32{1} // 2 is to go, but whoever is elected meanwhile may be 2
	if hw := s.highWatermark(30, 0, t0.Add(time.Hour), lag); hw != 10 {
		t.Fatalf("shrink under way: %d, want 10", hw)
	}
}

func TestFollowerThatFetchesWhatWasTheEndIsCaughtUp(t *testing.T) {
	s := threeReplicas(1, 2, 3)
	at := t0
	for range 100 { // always one fetch behind a leader that grows
		at = at.Add(time.Second)
		end := int64(at.Unix())
		s.fetched(2, end-1, 0, end, at)
	}
	if out := s.toShrink(int64(at.Unix()), at, lag); !slices.Equal(out, []int32{3}) {
		t.Fatalf("to shrink: %v, want the silent one, 3", out)
	}
}

func TestFollowerJoinsTheISROnceItHasTheStartOfTheEpoch(t *testing.T) {
	s := threeReplicas(1)
	s.fetched(2, 9, 0, 20, t0)
	if s.toExpand(2, 8, 10) {
		t.Fatal("joined without the start of the leader's epoch")
	}
	s.fetched(2, 12, 0, 20, t0)
	if s.toExpand(2, 15, 10) {
		t.Fatal("joined below the high watermark")
	}
	if !s.toExpand(2, 12, 10) || s.toExpand(7, 0, 0) {
		t.Fatal("a replica that has everything may join, a stranger may not")
	}
	s.pending = []int32{1, 3}
	if s.toExpand(2, 12, 10) {
		t.Fatal("two changes at once")
	}
}
