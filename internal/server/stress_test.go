package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"barnabas/internal/api"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Producers and consumers with sessions come and go while topics are made and
// deleted; each consumer sees each record of its topics once and in order, and
// nothing gets stuck.
func TestClientsAndTopicsComeAndGo(t *testing.T) {
	t.Run("as they are", func(t *testing.T) { comeAndGo(t) })
	t.Run("resting after each request", func(t *testing.T) { comeAndGo(t, allBrief) })
}

// allBrief lets a connection rest whatever it asks.
func allBrief(o *Options) { o.brief = func(*api.API) bool { return true } }

func comeAndGo(t *testing.T, set ...func(*Options)) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	h := start(t, set...)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	const topics, each = 4, 400
	for i := range topics {
		h.topic(fmt.Sprint("kept-", i), 3)
	}
	h.topic("comes-and-goes", 3)

	stop := make(chan struct{})
	var others, wg sync.WaitGroup
	others.Go(func() { // the controller
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(1+rnd.IntN(5)) * time.Millisecond):
			}
			h.remove("comes-and-goes", 3)
			h.topic("comes-and-goes", 3)
		}
	})
	others.Go(func() { // clients that vanish in the middle of a wait
		for {
			select {
			case <-stop:
				return
			default:
			}
			c := h.dial()
			first := fetchRequest("kept-0", [16]byte{}, 0, 1<<40)
			c.send(first, 12)
			f := fetchRequest("comes-and-goes", [16]byte{}, 0, 0)
			f.MaxWaitMillis = 20_000
			c.send(f, 11)
			c.next()
			c.nc.Close()
		}
	})
	for i := range topics {
		wg.Go(func() { produceSlowly(t, ctx, h, fmt.Sprint("kept-", i), each) })
		for range 2 {
			wg.Go(func() { consumeAll(t, ctx, h, fmt.Sprint("kept-", i), each) })
		}
	}
	wg.Wait()
	close(stop)
	others.Wait()
}

func produceSlowly(t *testing.T, ctx context.Context, h *harness, topic string, n int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(h.addr), kgo.DisableIdempotentWrite(), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0))
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	for i := range n {
		if err := client.ProduceSync(ctx, &kgo.Record{Key: []byte("k"), Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Errorf("%s record %d: %v", topic, i, err)
			return
		}
	}
}

func consumeAll(t *testing.T, ctx context.Context, h *harness, topic string, n int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(h.addr), kgo.ConsumeTopics(topic, "comes-and-goes"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	for next := 0; next < n; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Errorf("%s: stuck at record %d of %d", topic, next, n)
			return
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) != fmt.Sprint(next) {
				t.Errorf("%s: record %s, want %d", topic, r.Value, next)
			}
			next++
		})
	}
}
