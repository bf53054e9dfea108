package replica

import (
	"testing"

	"barnabas/internal/wire"
)

func TestAConsumerIsSentToTheNearestReplicaThatHasItsOffset(t *testing.T) {
	m := hosted(t, nil)
	apply(t, m, 7, 1, wire.NewUUID(), state(0, 1, 3, 1, 2, 3, 4))
	p := m.Partition(wire.TopicPartition{Topic: "t"})
	fetched := func(id int32, start, end int64) {
		p.Fetched(&FollowerFetch{Replica: id, BrokerEpoch: -1, Offset: end, LogStart: start, LeaderEpoch: 3}, 100)
	}
	fetched(2, 0, 10)
	fetched(3, 5, 20)
	any := func(...int32) func(int32) bool { return func(int32) bool { return true } }
	only := func(ids ...int32) func(int32) bool {
		return func(id int32) bool {
			for _, i := range ids {
				if i == id {
					return true
				}
			}
			return false
		}
	}
	for _, c := range []struct {
		what   string
		offset int64
		near   func(int32) bool
		want   int32
	}{
		{"the one with most", 7, any(), 3},
		{"its log begins later", 4, any(), 2},
		{"beyond the other's end", 15, only(2), -1},
		{"beyond every end", 21, any(), -1},
		{"at its end", 20, any(), 3},
		{"one that has not fetched", 0, only(4), -1},
		{"none is near", 7, only(), -1},
	} {
		if got, _ := p.Nearest(c.offset, c.near); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
	out := state(0, 1, 4, 1, 2, 3, 4)
	out.ISR = []int32{1, 2}
	apply(t, m, 7, 1, wire.UUID{}, out)
	fetched(3, 5, 30)
	if got, _ := p.Nearest(7, any()); got != 2 {
		t.Errorf("out of sync: %d", got)
	}
	follows := state(0, 2, 5, 1, 2, 3, 4)
	apply(t, m, 7, 1, wire.UUID{}, follows)
	if got, ok := p.Nearest(7, any()); ok {
		t.Errorf("a follower sends to %d", got)
	}
}
