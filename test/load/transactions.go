package load

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Transactions are producers that write one transaction after the other, each
// with a record for every partition, and abort every fourth.
type Transactions struct {
	t          *testing.T
	topic      string
	partitions int
	seeds      []string
	stop       context.CancelFunc
	done       sync.WaitGroup

	mu struct {
		sync.Mutex
		outcome   map[string]outcome // of transaction "id/number"
		committed int
		failed    []error // what the producers were told instead of an outcome
	}
}

type outcome int8

const (
	unknown outcome = iota // the producer was told of an error
	committed
	aborted
)

// StartTransactions begins to write under n transactional ids; the test ends it
// with Finish.
func StartTransactions(t *testing.T, topic string, partitions, n int, seeds []string) *Transactions {
	t.Helper()
	x := &Transactions{t: t, topic: topic, partitions: partitions, seeds: seeds}
	x.mu.outcome = map[string]outcome{}
	ctx, cancel := context.WithCancel(t.Context())
	x.stop = cancel
	for i := range n {
		x.done.Go(func() { x.run(ctx, fmt.Sprintf("txn-%d", i)) })
	}
	t.Cleanup(func() { cancel(); x.done.Wait() })
	return x
}

func (x *Transactions) run(ctx context.Context, id string) {
	var client *kgo.Client
	defer func() {
		if client != nil {
			client.Close()
		}
	}()
	for n := 0; ctx.Err() == nil; n++ {
		if client == nil { // begins anew under the id, which ends what was left open
			var err error
			client, err = kgo.NewClient(kgo.SeedBrokers(x.seeds...), kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.TransactionTimeout(time.Minute), kgo.RetryTimeout(2*time.Minute), kgo.RecordDeliveryTimeout(2*time.Minute),
				kgo.MetadataMinAge(50*time.Millisecond), kgo.ProducerLinger(0), kgo.RequestTimeoutOverhead(2*time.Second), kgo.AlwaysRetryEOF())
			if err != nil {
				x.ended(id, n, unknown, err)
				return
			}
		}
		end := committed
		if n%4 == 3 {
			end = aborted
		}
		// The end of the test does not interrupt a transaction.
		if err := x.one(context.WithoutCancel(ctx), client, id, n, end); err != nil {
			x.ended(id, n, unknown, err)
			client.Close()
			client = nil
			continue
		}
		x.ended(id, n, end, nil)
	}
}

func (x *Transactions) one(ctx context.Context, client *kgo.Client, id string, n int, end outcome) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	var records []*kgo.Record
	for p := range x.partitions {
		records = append(records, &kgo.Record{Topic: x.topic, Partition: int32(p), Value: fmt.Appendf(nil, "%s/%d", id, n)})
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	if err := client.EndTransaction(ctx, kgo.TransactionEndTry(end == committed)); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	return nil
}

func (x *Transactions) ended(id string, n int, o outcome, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.outcome[fmt.Sprintf("%s/%d", id, n)] = o
	if err != nil {
		x.mu.failed = append(x.mu.failed, fmt.Errorf("%s/%d: %w", id, n, err))
	}
	if o == committed {
		x.mu.committed++
	}
}

// More waits until n more transactions are committed.
func (x *Transactions) More(n int) {
	x.t.Helper()
	count := func() int {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.mu.committed
	}
	want := count() + n
	real.Until(x.t, 2*time.Minute, fmt.Sprintf("%d more committed transactions", n), func() bool { return count() >= want })
}

// Finish ends the producers and reads what is committed: of a committed
// transaction a record in every partition, once and in the order of its
// producer's transactions; of an aborted one none; of one whose outcome nobody
// was told, all or none.
func (x *Transactions) Finish() {
	x.t.Helper()
	x.stop()
	x.done.Wait()
	where := x.read()
	x.mu.Lock()
	defer x.mu.Unlock()
	wrong := 0
	for name, o := range x.mu.outcome {
		if n := where[name]; o == committed && n != x.partitions || o == aborted && n != 0 || o == unknown && n != 0 && n != x.partitions {
			if wrong++; wrong <= 5 {
				x.t.Errorf("transaction %s (%s): %d of %d records can be read", name, [...]string{"unknown", "committed", "aborted"}[o], n, x.partitions)
			}
		}
	}
	for i, err := range x.mu.failed {
		if i < 5 {
			x.t.Logf("a producer was told: %v", err)
		}
	}
	x.t.Logf("%d transactions, %d committed, %d of unknown outcome, %d wrong", len(x.mu.outcome), x.mu.committed, len(x.mu.failed), wrong)
}

// read returns in how many partitions each transaction has its record.
func (x *Transactions) read() map[string]int {
	x.t.Helper()
	offsets := map[int32]kgo.Offset{}
	for p := range x.partitions {
		offsets[int32(p)] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(x.seeds...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{x.topic: offsets}))
	if err != nil {
		x.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(x.t.Context(), 2*time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, x.topic)
	if err != nil {
		x.t.Fatal(err)
	}
	left := map[int32]int64{} // partition: end that is not reached; the last record of each is a marker
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			x.t.Fatalf("end of %s-%d: %v", x.topic, o.Partition, o.Err)
		}
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	where := map[string]int{}
	latest := map[string]int{}
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			x.t.Fatalf("%v can't be read to the end", left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
			if r.Attrs.IsControl() {
				return
			}
			name := string(r.Value)
			where[name]++
			id, number, _ := strings.Cut(name, "/")
			n := 0
			_, _ = fmt.Sscan(number, &n)
			key := fmt.Sprint(id, " ", r.Partition)
			if was, ok := latest[key]; ok && n <= was {
				x.t.Errorf("%s-%d offset %d holds %s after transaction %d of it", x.topic, r.Partition, r.Offset, name, was)
			}
			latest[key] = n
		})
	}
	return where
}
