package load

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Soak tells whether the long runs were asked for.
func Soak() bool { return os.Getenv("BARNABAS_SOAK") != "" }

// Load sends numbered records with acks=all and remembers each that was
// acknowledged.
type Load struct {
	t          *testing.T
	seeds      []string
	topic      string
	partitions int
	stop       context.CancelFunc
	done       sync.WaitGroup

	mu       sync.Mutex
	acked    map[int32]map[int64]int // partition, offset: number
	replaced []string                // records at whose offset another was acknowledged
	failed   []error
	count    int
	last     time.Time // of the last acknowledgement
	gap      time.Duration
}

// Start begins to send; the test ends it with Finish.
func Start(t *testing.T, topic string, partitions int, seeds []string, opts ...kgo.Opt) *Load {
	t.Helper()
	return StartSome(t, topic, partitions, seeds, math.MaxInt, opts...)
}

// StartSome is Start for a number of records.
func StartSome(t *testing.T, topic string, partitions int, seeds []string, most int, opts ...kgo.Opt) *Load {
	t.Helper()
	l := &Load{t: t, seeds: seeds, topic: topic, partitions: partitions, acked: map[int32]map[int64]int{}, last: time.Now()}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(500), kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(3 * time.Minute), kgo.ProduceRequestTimeout(3 * time.Second),
		kgo.RetryTimeout(3 * time.Minute), kgo.RequestTimeoutOverhead(time.Second), kgo.RecordRetries(1 << 30), kgo.UnknownTopicRetries(-1), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.Dialer((&net.Dialer{Timeout: 300 * time.Millisecond}).DialContext), kgo.AlwaysRetryEOF(), // brokers come and go
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
		for n := 0; n < most && ctx.Err() == nil; n++ {
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

func (l *Load) answered(r *kgo.Record, err error) {
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
	if was, ok := l.acked[r.Partition][r.Offset]; ok { // the log went back, and the record with it
		l.replaced = append(l.replaced, fmt.Sprintf("%s-%d offset %d: record %d was acknowledged, and record %d after it", l.topic, r.Partition, r.Offset, was, number))
	}
	l.acked[r.Partition][r.Offset] = number
	l.count++
	now := time.Now()
	l.gap, l.last = max(l.gap, now.Sub(l.last)), now
}

// Acked returns how many records were acknowledged.
func (l *Load) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// More waits until n more records are acknowledged.
func (l *Load) More(n int) {
	l.t.Helper()
	want := l.Acked() + n
	real.Until(l.t, 2*time.Minute, fmt.Sprintf("%d more acknowledged records", n), func() bool { return l.Acked() >= want })
}

// MoreWithin waits until n more records are acknowledged, or for a time.
func (l *Load) MoreWithin(n int, most time.Duration) {
	l.t.Helper()
	want, end := l.Acked()+n, time.Now().Add(most)
	real.Until(l.t, most+time.Minute, "the time is over", func() bool { return l.Acked() >= want || time.Now().After(end) })
}

// Noise writes n records, a batch each, that nobody asks for: the leader alone
// has to take them, and it is no loss when they go.
func Noise(t *testing.T, topic string, partition int32, leader string, n int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(leader), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.ProducerLinger(0),
		kgo.MaxProduceRequestsInflightPerBroker(32), kgo.ProducerBatchMaxBytes(1024), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	value := []byte(noise + strings.Repeat(".", 600))
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Value: value}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// LongestGap returns the longest time between two acknowledgements since the
// last call.
func (l *Load) LongestGap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap := max(l.gap, time.Since(l.last))
	l.gap, l.last = 0, time.Now()
	return gap
}
