package client

import (
	"context"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMain(m *testing.M) { real.Main(m) }

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func admin(t testing.TB, broker string) *kadm.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return kadm.NewClient(c)
}

func createTopic(t testing.TB, broker, topic string, partitions int32, configs map[string]*string) {
	t.Helper()
	if _, err := admin(t, broker).CreateTopic(within(t, time.Minute), partitions, 1, configs, topic); err != nil {
		t.Fatal(topic, err)
	}
}

// drain reads a topic from its start until total records came, and hands each
// out.
func drain(t testing.TB, broker, topic string, total int, each func(*kgo.Record)) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := within(t, time.Minute)
	for n := 0; n < total; {
		f := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d of %d records of %s came: %v", n, total, topic, err)
		}
		f.EachRecord(func(r *kgo.Record) {
			n++
			each(r)
		})
	}
}
