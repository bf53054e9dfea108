package replica

import (
	"slices"
	"strconv"
	"testing"

	"barnabas/internal/config"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker that is about to stop goes on with what it is in sync of, since the
// leader waits for it, and begins nothing that it has just been taken out of.
func TestABrokerThatLeavesDoesNotComeBackIntoAnISR(t *testing.T) {
	s := newScripted(t)
	m := following(t, s, config.LatestIBP)
	s.append(1, "a")
	out := func(partition int32) kmsg.LeaderAndISRRequestTopicPartition {
		p := state(partition, 2, 1, 2, 1)
		p.ISR = []int32{2}
		return p
	}
	apply(t, m, 7, 1, s.id, out(0)) // before it leaves: it is copied
	s.untilCopied(m, 0)
	m.Leave()
	apply(t, m, 7, 1, s.id, out(1))
	apply(t, m, 7, 1, s.id, state(2, 2, 1, 2, 1)) // in the ISR
	s.untilCopied(m, 2)
	m.fetchers.mu.Lock()
	defer m.fetchers.mu.Unlock()
	var copied []int32
	for p := range m.fetchers.mu.where {
		copied = append(copied, p.Index)
	}
	if slices.Sort(copied); !slices.Equal(copied, []int32{0, 2}) {
		t.Errorf("copies partitions %v", copied)
	}
	if p := m.Partition(wire.TopicPartition{Topic: "t", Partition: 1}); p.View().LeaderID != 2 {
		t.Errorf("partition 1: %+v", p.View())
	}
}

func TestPartitionsAreSpreadAnewOverAnotherNumberOfFetchers(t *testing.T) {
	s := newScripted(t)
	s.refuse = wire.NotLeaderOrFollower // what is copied is not of interest
	m := following(t, s, config.LatestIBP)
	s.lead(m, 0, 1, 2, 3, 4, 5)
	for _, count := range []int{3, 1, 2} {
		if err := m.cluster.Config.Update(nil, map[string]string{"num.replica.fetchers": strconv.Itoa(count)}); err != nil {
			t.Fatal(err)
		}
		m.FetchersChanged()
		used := map[*fetcher]bool{}
		m.fetchers.mu.Lock()
		for p, f := range m.fetchers.mu.where {
			if f.key.n != fetcherOf(p, count) {
				t.Errorf("with %d fetchers %s is at number %d", count, p.TopicPartition, f.key.n)
			}
			used[f] = true
		}
		m.fetchers.mu.Unlock()
		if len(used) != count {
			t.Errorf("%d of %d fetchers are used", len(used), count)
		}
	}
}
