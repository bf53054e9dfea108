package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"
)

// latencies sends records of size bytes at a fixed rate, acks=all, for a while
// and returns how long each took from the call that sent it to its
// acknowledgement. A record is sent when it is due, whether the earlier ones
// were acknowledged or not.
func latencies(t testing.TB, addr, topic string, size int, every, during time.Duration) []time.Duration {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(1_000_000))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	payload := values(size)
	ctx := context.Background()
	if err := client.ProduceSync(ctx, &kgo.Record{Value: payload[0]}).FirstErr(); err != nil { // connects
		t.Fatal(err)
	}
	took := make([]time.Duration, during/every)
	tick := time.NewTicker(every)
	defer tick.Stop()
	start := time.Now()
	for i := 0; i < len(took); {
		<-tick.C
		for now := time.Now(); i < len(took) && now.Sub(start) >= time.Duration(i)*every; i++ {
			of := &took[i]
			client.Produce(ctx, &kgo.Record{Value: payload[i%len(payload)]}, func(_ *kgo.Record, err error) {
				if *of = time.Since(now); err != nil {
					*of = -1
				}
			})
		}
	}
	if err := client.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(took, -1) {
		t.Fatal("a record was not acknowledged")
	}
	return took
}

// TestLatency compares how long acknowledgements take at 1,000 records of 1 KiB
// a second, acks=all: medians over the rounds, so that a moment in which the
// machine's disk did something else does not decide, with the least and the most.
func TestLatency(t *testing.T) {
	ours, kafka := both(t)
	type key struct {
		side string
		p    float64
	}
	percentiles := []float64{0.5, 0.99, 0.999}
	all := map[key]series{}
	for round := range rounds + 1 {
		for _, s := range []side{ours, kafka} {
			topic := fmt.Sprintf("latency-%d", round)
			createTopic(t, s.addr, topic, 1)
			took := latencies(t, s.addr, topic, 1024, time.Millisecond, 8*time.Second)
			slices.Sort(took)
			for _, p := range percentiles {
				if round > 0 { // the first is warm-up
					at := took[int(p*float64(len(took)-1))]
					all[key{s.name, p}] = append(all[key{s.name, p}], float64(at.Microseconds())/1000)
				}
			}
		}
	}
	for i, p := range percentiles {
		report(t, fmt.Sprintf("ack of 1 KiB at 1,000/s: p%g", 100*p), "ms", all[key{ours.name, p}], all[key{kafka.name, p}], []string{"0.15 ms", "0.5 ms", "1.5 ms"}[i])
	}
}

// stream sends 100 MB of records of 1 KiB a second to a topic until stop is called.
func stream(t testing.TB, addr, topic string) (stop func()) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(50_000))
	if err != nil {
		t.Fatal(err)
	}
	payload, done := values(1024), make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			for i := range 1000 {
				client.Produce(context.Background(), &kgo.Record{Value: payload[i]}, func(_ *kgo.Record, err error) {
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
	return func() {
		close(done)
		sending.Wait()
		if err := client.Flush(context.Background()); err != nil {
			t.Error(err)
		}
		client.Close()
	}
}

// TestSyncedBesideAStream compares how long acknowledgements of a topic with
// flush.messages=1 take, at 200 records a second, while another topic on the same
// disk takes 100 MB a second that nobody has to wait for. A minute of each, so that
// what a broker leaves to the kernel to be written, after 30 s, is its own.
func TestSyncedBesideAStream(t *testing.T) {
	ours, kafka := both(t)
	one := "1"
	took := map[string][]time.Duration{}
	for _, s := range []side{ours, kafka} {
		createTopic(t, s.addr, "stream", 1)
		createTopicWith(t, s.addr, "synced", map[string]*string{"flush.messages": &one})
		unix.Sync()
		stop := stream(t, s.addr, "stream")
		took[s.name] = latencies(t, s.addr, "synced", 100, 5*time.Millisecond, time.Minute)
		slices.Sort(took[s.name])
		stop()
		deleteTopic(t, s.addr, "stream")
	}
	for _, p := range []float64{0.5, 0.99, 0.999} {
		at := func(s side) series {
			return series{float64(took[s.name][int(p*float64(len(took[s.name])-1))].Microseconds()) / 1000}
		}
		report(t, fmt.Sprintf("synced ack beside 100 MB/s: p%g", 100*p), "ms", at(ours), at(kafka), "reported")
	}
}
