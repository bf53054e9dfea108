package replication

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMain(m *testing.M) { real.Main(m) }

// soak tells whether the long runs were asked for.
func soak() bool { return os.Getenv("BARNABAS_SOAK") != "" }

// load sends numbered records with acks=all and remembers each that was
// acknowledged.
type load struct {
	t          *testing.T
	seeds      []string
	topic      string
	partitions int
	stop       context.CancelFunc
	done       sync.WaitGroup

	mu     sync.Mutex
	acked  map[int32]map[int64]int // partition, offset: number
	failed []error
	count  int
	// doubles allows records to be there twice: a broker that was stopped
	// cleanly knows the last batch of each producer only (Kafka's snapshot holds
	// no more), and refuses the repetition of an earlier one, upon which the
	// client begins anew under another producer id.
	doubles bool
	last    time.Time // of the last acknowledgement
	gap     time.Duration
}

// startLoad begins to send; the test ends it with finish.
func startLoad(t *testing.T, topic string, partitions int, seeds []string, opts ...kgo.Opt) *load {
	t.Helper()
	l := &load{t: t, seeds: seeds, topic: topic, partitions: partitions, acked: map[int32]map[int64]int{}, last: time.Now()}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(500), kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(3 * time.Minute), kgo.ProduceRequestTimeout(3 * time.Second),
		kgo.RetryTimeout(3 * time.Minute), kgo.RequestTimeoutOverhead(time.Second), kgo.RecordRetries(1 << 30), kgo.UnknownTopicRetries(-1), kgo.MetadataMinAge(50 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l.stop = cancel
	l.done.Go(func() {
		defer client.Close()
		pace := time.NewTicker(time.Millisecond)
		defer pace.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			client.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: topic, Partition: int32(n % partitions), Value: []byte(strconv.Itoa(n))}, l.answered)
			if n%3 == 0 {
				<-pace.C
			}
		}
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
		defer cancel()
		if err := client.Flush(flush); err != nil {
			l.mu.Lock()
			l.failed = append(l.failed, fmt.Errorf("flush: %w", err))
			l.mu.Unlock()
		}
	})
	t.Cleanup(func() { cancel(); l.done.Wait() })
	return l
}

func (l *load) answered(r *kgo.Record, err error) {
	number, _ := strconv.Atoi(string(r.Value))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = append(l.failed, err)
		return
	}
	if l.acked[r.Partition] == nil {
		l.acked[r.Partition] = map[int64]int{}
	}
	l.acked[r.Partition][r.Offset] = number
	l.count++
	now := time.Now()
	l.gap, l.last = max(l.gap, now.Sub(l.last)), now
}

// ackedSoFar returns how many records were acknowledged.
func (l *load) ackedSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// more waits until n more records are acknowledged.
func (l *load) more(n int) {
	l.t.Helper()
	want := l.ackedSoFar() + n
	real.Until(l.t, 2*time.Minute, fmt.Sprintf("%d more acknowledged records", n), func() bool { return l.ackedSoFar() >= want })
}

// longestGap returns the longest time between two acknowledgements since the
// last call.
func (l *load) longestGap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap := max(l.gap, time.Since(l.last))
	l.gap, l.last = 0, time.Now()
	return gap
}

// finish ends the load and checks every acknowledged record against what a
// consumer reads: there, once, at its offset, in the order it was sent.
func (l *load) finish() {
	l.t.Helper()
	l.stop()
	l.done.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) > 0 {
		l.t.Errorf("%d records failed for good, the first: %v", len(l.failed), l.failed[0])
	}
	offsets := map[int32]kgo.Offset{}
	for p := range l.partitions {
		offsets[int32(p)] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(l.seeds...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{l.topic: offsets}))
	if err != nil {
		l.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, l.topic)
	if err != nil {
		l.t.Fatal(err)
	}
	read := map[int32]map[int64]int{}
	latest := map[int32]int{}
	seen := map[int32]map[int]bool{}
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			l.t.Fatalf("end of %s-%d: %v", l.topic, o.Partition, o.Err)
		}
		left += int(o.Offset)
		read[o.Partition], latest[o.Partition], seen[o.Partition] = map[int64]int{}, -1, map[int]bool{}
	})
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			l.t.Fatalf("%d records can't be read", left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			left--
			number, _ := strconv.Atoi(string(r.Value))
			if number <= latest[r.Partition] && l.doubles && seen[r.Partition][number] {
				l.t.Logf("%s-%d offset %d repeats record %d", l.topic, r.Partition, r.Offset, number)
			} else if number <= latest[r.Partition] {
				l.t.Errorf("%s-%d offset %d holds record %d after %d", l.topic, r.Partition, r.Offset, number, latest[r.Partition])
			}
			latest[r.Partition] = max(number, latest[r.Partition])
			seen[r.Partition][number] = true
			read[r.Partition][r.Offset] = number
		})
	}
	lost := 0
	for p, acked := range l.acked {
		for offset, number := range acked {
			if got, ok := read[p][offset]; !ok || got != number {
				if lost++; lost <= 5 {
					l.t.Errorf("%s-%d offset %d: record %d was acknowledged, read %d (%v)", l.topic, p, offset, number, got, ok)
				}
			}
		}
	}
	l.t.Logf("%d records acknowledged, %d lost", l.count, lost)
}

// adminClient is a client for administration that ends with the test.
type adminClient struct {
	*kadm.Client
	raw *kgo.Client
}

func admin(t *testing.T, seeds []string) *adminClient {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &adminClient{kadm.NewClient(client), client}
}

func text(s string) *string { return &s }

// createTopic makes a topic with an assignment that rotates over the brokers.
func createTopic(t *testing.T, a *adminClient, topic string, partitions int, brokers []int32, configs map[string]*string) {
	t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	want := kmsg.NewCreateTopicsRequestTopic()
	want.Topic, want.NumPartitions, want.ReplicationFactor = topic, -1, -1
	for p := range partitions {
		place := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		place.Partition = int32(p)
		for i := range brokers {
			place.Replicas = append(place.Replicas, brokers[(p+i)%len(brokers)])
		}
		want.ReplicaAssignment = append(want.ReplicaAssignment, place)
	}
	for k, v := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, v
		want.Configs = append(want.Configs, c)
	}
	r.Topics, r.TimeoutMillis = append(r.Topics, want), 30000
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last error
	real.Until(t, time.Minute, "topic "+topic+" is made", func() bool {
		response, err := r.RequestWith(ctx, a.raw)
		if err != nil {
			last = err
			return false
		}
		code := response.Topics[0].ErrorCode
		return code == 0 || code == 36
	})
	if last != nil {
		t.Logf("making the topic: %v", last)
	}
}

// describe returns what a broker says of a topic, nil while it knows none.
func describe(t *testing.T, a *adminClient, topic string) map[int32]kadm.PartitionDetail {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := a.Metadata(ctx, topic)
	if err != nil || m.Topics[topic].Err != nil {
		return nil
	}
	return m.Topics[topic].Partitions
}

// untilInSync waits until each partition of a topic has n replicas in sync and a
// leader.
func untilInSync(t *testing.T, a *adminClient, topic string, partitions, n int) {
	t.Helper()
	var seen map[int32]kadm.PartitionDetail
	defer func() {
		if t.Failed() {
			t.Logf("%s: %v", topic, seen)
		}
	}()
	real.Until(t, 90*time.Second, fmt.Sprintf("%d replicas of each partition of %s in sync", n, topic), func() bool {
		seen = describe(t, a, topic)
		for _, p := range seen {
			if len(p.ISR) != n || p.Leader < 0 {
				return false
			}
		}
		return len(seen) == partitions
	})
}
