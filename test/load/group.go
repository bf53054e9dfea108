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
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Group is a consumer group that reads a topic and commits what it has read,
// poll by poll. It holds each record against what the group had before: none is
// left out, and none comes again that was committed.
type Group struct {
	t     *testing.T
	topic string
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu struct {
		sync.Mutex
		next      map[int32]int64 // after the last record that was delivered
		committed map[int32]int64 // as answered
		numbers   map[int32]map[int64]string
		count     int
		again     int // delivered again, within what was not committed
		rebalance int
		wrong     []string
		failed    int // commits that were refused, by whatever came in between
	}
}

// StartGroup starts the members of a group. The test ends it with Finish.
func StartGroup(t *testing.T, topic string, members int, seeds []string, opts ...kgo.Opt) *Group {
	t.Helper()
	g := &Group{t: t, topic: topic}
	g.mu.next, g.mu.committed, g.mu.numbers = map[int32]int64{}, map[int32]int64{}, map[int32]map[int64]string{}
	ctx, cancel := context.WithCancel(t.Context())
	g.stop = cancel
	for range members {
		client, err := kgo.NewClient(append([]kgo.Opt{
			kgo.SeedBrokers(seeds...), kgo.ConsumerGroup("group"), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(50 * time.Millisecond), kgo.RequestTimeoutOverhead(2 * time.Second), kgo.AlwaysRetryEOF(),
			kgo.FetchMaxWait(200 * time.Millisecond),
			kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
				g.mu.Lock()
				g.mu.rebalance++
				g.mu.Unlock()
			}),
		}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		g.done.Go(func() {
			defer client.Close()
			defer client.AllowRebalance()
			for ctx.Err() == nil {
				g.poll(ctx, client)
			}
		})
	}
	t.Cleanup(func() { cancel(); g.done.Wait() })
	return g
}

func (g *Group) poll(ctx context.Context, client *kgo.Client) {
	defer client.AllowRebalance()
	fetches := client.PollFetches(ctx)
	fetches.EachError(func(topic string, p int32, err error) {
		var lost *kgo.ErrDataLoss
		if errors.As(err, &lost) {
			g.mu.Lock()
			g.mu.wrong = append(g.mu.wrong, fmt.Sprintf("%s-%d: %v", topic, p, err))
			g.mu.Unlock()
		}
	})
	fetches.EachRecord(g.delivered)
	if fetches.NumRecords() == 0 {
		return
	}
	// The end of the test does not interrupt a commit: what was read is committed.
	commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	client.CommitOffsetsSync(commit, client.UncommittedOffsets(), g.answered)
}

func (g *Group) delivered(r *kgo.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, next := r.Partition, g.mu.next[r.Partition]
	switch {
	case r.Offset > next:
		g.mu.wrong = append(g.mu.wrong, fmt.Sprintf("%s-%d: offset %d was delivered after %d", g.topic, p, r.Offset, next-1))
	case r.Offset < g.mu.committed[p]:
		g.mu.wrong = append(g.mu.wrong, fmt.Sprintf("%s-%d: offset %d was delivered again, %d was committed", g.topic, p, r.Offset, g.mu.committed[p]))
	case r.Offset < next:
		g.mu.again++
	}
	if g.mu.numbers[p] == nil {
		g.mu.numbers[p] = map[int64]string{}
	}
	if was, ok := g.mu.numbers[p][r.Offset]; ok && was != string(r.Value) {
		g.mu.wrong = append(g.mu.wrong, fmt.Sprintf("%s-%d: offset %d was %s, then %s", g.topic, p, r.Offset, was, r.Value))
	}
	g.mu.numbers[p][r.Offset] = string(r.Value)
	g.mu.next[p] = max(next, r.Offset+1)
	g.mu.count++
}

func (g *Group) answered(_ *kgo.Client, asked *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.mu.failed++
		return
	}
	offsets := map[int32]int64{}
	for _, t := range asked.Topics {
		for _, p := range t.Partitions {
			offsets[p.Partition] = p.Offset
		}
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				g.mu.failed++
				continue
			}
			g.mu.committed[p.Partition] = max(g.mu.committed[p.Partition], offsets[p.Partition])
		}
	}
}

// More waits until n more records are delivered.
func (g *Group) More(n int) {
	g.t.Helper()
	count := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.mu.count
	}
	want := count() + n
	real.Until(g.t, 2*time.Minute, fmt.Sprintf("%d more records reach the group", n), func() bool { return count() >= want })
}

// Finish waits until the group has all that a load's records were acknowledged
// for, ends it and fails the test for whatever was wrong. It returns what is
// committed.
func (g *Group) Finish(l *Load) map[int32]int64 {
	g.t.Helper()
	var missing string
	defer func() {
		if g.t.Failed() {
			g.t.Log(missing)
		}
	}()
	real.Until(g.t, time.Minute, "the group has everything, and has committed it", func() bool {
		missing = g.missing(l)
		return missing == ""
	})
	g.stop()
	g.done.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, what := range g.mu.wrong {
		if i == 5 {
			g.t.Errorf("and %d more", len(g.mu.wrong)-i)
			break
		}
		g.t.Error(what)
	}
	g.t.Logf("the group got %d records, %d of them again since not committed; %d assignments, %d commits refused", g.mu.count, g.mu.again, g.mu.rebalance, g.mu.failed)
	return g.mu.committed
}

// missing names the first acknowledged record that the group has not got as it
// was sent, or has not committed.
func (g *Group) missing(l *Load) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	for p, acked := range l.acked {
		for offset, number := range acked {
			if got, ok := g.mu.numbers[p][offset]; !ok || got != strconv.Itoa(number) {
				return fmt.Sprintf("%s-%d offset %d: record %d was acknowledged, the group has %q", g.topic, p, offset, number, got)
			}
			if g.mu.committed[p] <= offset {
				return fmt.Sprintf("%s-%d offset %d is not committed, but %d", g.topic, p, offset, g.mu.committed[p])
			}
		}
	}
	return ""
}
