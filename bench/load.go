package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// figures is what one run of a load cost.
type figures struct {
	cpu     float64 // the broker's CPU seconds per million records
	seconds float64 // wall clock
	rate    float64 // records a second
}

func measure(pid, records int, load func()) figures {
	before, start := cpuSeconds(pid), time.Now()
	load()
	s := time.Since(start).Seconds()
	return figures{cpu: (cpuSeconds(pid) - before) * 1e6 / float64(records), seconds: s, rate: float64(records) / s}
}

// values returns values that a codec can shrink by about half.
func values(size int) [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	out := make([][]byte, 1024)
	for i := range out {
		v := make([]byte, size)
		for j := range v {
			if v[j] = "the quick brown fox jumps "[j%26]; j < size/2 {
				v[j] = byte(random.Uint32())
			}
		}
		out[i] = v
	}
	return out
}

func createTopic(t testing.TB, addr, topic string, partitions int32) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(120_000) // 10,000 partitions on a slow disk
	if _, err := admin.CreateTopic(context.Background(), partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
}

func deleteTopic(t testing.TB, addr, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).DeleteTopics(context.Background(), topic); err != nil {
		t.Fatal(err)
	}
}

// produce sends records of size bytes with acks=all and waits for every answer.
func produce(t testing.TB, addr, topic string, records, size int, opts ...kgo.Opt) {
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(5 * time.Millisecond), kgo.ProducerBatchMaxBytes(1<<20 - 64), kgo.MaxBufferedRecords(200000),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.StickyPartitioner())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	payload := values(size)
	var failed atomic.Int64
	for i := range records {
		client.Produce(context.Background(), &kgo.Record{Value: payload[i%len(payload)]}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Add(1)
			}
		})
	}
	if err := client.Flush(context.Background()); err != nil || failed.Load() > 0 {
		t.Fatalf("produce to %s: %d failed, %v", topic, failed.Load(), err)
	}
}

// fetchPiece is what a fetch of consume may bring of a partition.
const fetchPiece = 4 << 20

// consume reads the first records of a topic.
func consume(t testing.TB, addr, topic string, records int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(50<<20), kgo.FetchMaxPartitionBytes(fetchPiece))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for seen := 0; seen < records; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(fmt.Errorf("consume %s after %d: %w", topic, seen, err))
		}
		seen += fetches.NumRecords()
	}
}
