package client

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/client"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Each benchmark does the same work with our client and with plain franz-go,
// against one broker, so that only their ratio means something.
const benchRecords = 1000000

func BenchmarkAsyncProducer(b *testing.B) {
	broker := real.Barnabas(b, 1)
	createTopic(b, broker.Addr, "bench", 8, nil)
	value := make([]byte, 100)
	b.Run("franz-go", func(b *testing.B) {
		k, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr), kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.NoCompression()),
			kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(10000), kgo.MaxProduceRequestsInflightPerBroker(1))
		if err != nil {
			b.Fatal(err)
		}
		defer k.Close()
		for b.Loop() {
			for range benchRecords {
				k.Produce(b.Context(), &kgo.Record{Topic: "bench", Value: value}, func(_ *kgo.Record, err error) {
					if err != nil {
						b.Error(err)
					}
				})
			}
			if err := k.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
	b.Run("ours", func(b *testing.B) {
		p, err := client.NewProducer(client.Brokers(broker.Addr), client.SendMode(client.Async), client.Queue(10000, 1<<30), client.Batches(0, 1000000, 5*time.Millisecond))
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close(b.Context())
		done := func(r client.Result) {
			if r.Err != nil {
				b.Error(r.Err)
			}
		}
		for b.Loop() {
			for range benchRecords {
				if err := p.SendAsync(b.Context(), &client.Record{Topic: "bench", Value: value}, done); err != nil {
					b.Fatal(err)
				}
			}
			if err := p.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
}

func rate(b *testing.B) {
	b.ReportMetric(float64(benchRecords)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkConsumer(b *testing.B) {
	broker := real.Barnabas(b, 1)
	createTopic(b, broker.Addr, "bench", 8, nil)
	p, err := client.NewProducer(client.Brokers(broker.Addr))
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 100)
	for range benchRecords {
		if err := p.SendAsync(b.Context(), &client.Record{Topic: "bench", Value: value}, nil); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("franz-go", func(b *testing.B) {
		for b.Loop() {
			k, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr), kgo.ConsumeTopics("bench"), kgo.FetchMaxPartitionBytes(1<<20), kgo.FetchMaxWait(100*time.Millisecond))
			if err != nil {
				b.Fatal(err)
			}
			for n := 0; n < benchRecords; {
				n += k.PollFetches(b.Context()).NumRecords()
			}
			k.Close()
		}
		rate(b)
	})
	var group atomic.Int64
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			c, err := client.NewConsumer(b.Context(), client.ZooKeeper(broker.Keeper), client.Group(fmt.Sprint("bench", group.Add(1))), client.OffsetReset(client.Smallest))
			if err != nil {
				b.Fatal(err)
			}
			streams, err := c.Streams(b.Context(), map[string]int{"bench": 1})
			if err != nil {
				b.Fatal(err)
			}
			for range benchRecords {
				if _, err := streams["bench"][0].Next(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			c.Close()
		}
		rate(b)
	})
}

// BenchmarkRebalance has twenty consumers of ours share 200 partitions out.
func BenchmarkRebalance(b *testing.B) {
	broker := real.Barnabas(b, 1)
	createTopic(b, broker.Addr, "wide", 200, nil)
	var n atomic.Int64
	for b.Loop() {
		group := fmt.Sprint("rebalance", n.Add(1))
		var all sync.WaitGroup
		consumers := make([]*client.Consumer, 20)
		for i := range consumers {
			all.Go(func() {
				c, err := client.NewConsumer(b.Context(), client.ZooKeeper(broker.Keeper), client.Group(group))
				if err == nil {
					_, err = c.Streams(b.Context(), map[string]int{"wide": 1})
				}
				if err != nil {
					b.Error(err)
				}
				consumers[i] = c
			})
		}
		all.Wait()
		for _, c := range consumers {
			if c != nil {
				c.Close()
			}
		}
	}
}
