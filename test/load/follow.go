package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Follower is a consumer that runs beside a load.
type Follower struct {
	t    *testing.T
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	seen  map[int32][]int // partition: the numbers, by offset
	wrong []string
}

// Follow begins to read a topic from its start; the test ends it with Finish.
func Follow(t *testing.T, topic string, partitions int, seeds []string, opts ...kgo.Opt) *Follower {
	t.Helper()
	offsets := map[int32]kgo.Offset{}
	for p := range partitions {
		offsets[int32(p)] = kgo.NewOffset().At(0)
	}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.FetchMaxWait(500 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f := &Follower{t: t, stop: cancel, seen: map[int32][]int{}}
	f.done.Go(func() {
		defer client.Close()
		for ctx.Err() == nil {
			fetches := client.PollFetches(ctx)
			f.mu.Lock()
			fetches.EachRecord(f.readLocked)
			fetches.EachError(func(topic string, p int32, err error) {
				var lost *kgo.ErrDataLoss
				if errors.As(err, &lost) {
					f.wrong = append(f.wrong, fmt.Sprintf("%s-%d: %v", topic, p, err))
				}
			})
			f.mu.Unlock()
		}
	})
	t.Cleanup(func() { cancel(); f.done.Wait() })
	return f
}

func (f *Follower) readLocked(r *kgo.Record) {
	number, _ := strconv.Atoi(string(r.Value))
	if next := int64(len(f.seen[r.Partition])); r.Offset != next {
		f.wrong = append(f.wrong, fmt.Sprintf("%s-%d: offset %d was read when %d was next", r.Topic, r.Partition, r.Offset, next))
		return
	}
	f.seen[r.Partition] = append(f.seen[r.Partition], number)
}

// Finish waits until every acknowledged record of a load that has ended was
// read, and fails the test unless each offset was read once, in order, with the
// record that was acknowledged for it.
func (f *Follower) Finish(l *Load) {
	f.t.Helper()
	real.Until(f.t, time.Minute, "the consumer has read all that was acknowledged", func() bool { return f.over(l) })
	f.stop()
	f.done.Wait()
	for p, acked := range l.acked {
		for offset, number := range acked {
			if offset < int64(len(f.seen[p])) && f.seen[p][offset] != number {
				f.wrong = append(f.wrong, fmt.Sprintf("%s-%d offset %d: record %d was acknowledged, record %d was read", l.topic, p, offset, number, f.seen[p][offset]))
			}
		}
	}
	for i, what := range f.wrong {
		if i == 5 {
			f.t.Errorf("the consumer: and %d more", len(f.wrong)-i)
			break
		}
		f.t.Errorf("the consumer: %s", what)
	}
}

// over tells whether all that was acknowledged was read, or something is wrong.
func (f *Follower) over(l *Load) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p, acked := range l.acked {
		for offset := range acked {
			if offset >= int64(len(f.seen[p])) {
				return len(f.wrong) > 0
			}
		}
	}
	return true
}
