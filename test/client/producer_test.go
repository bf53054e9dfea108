package client

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/client"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// scripts are the ranges that keys are drawn from: Latin, Greek, Cyrillic,
// Hebrew, Arabic, Devanagari, Thai, Hangul, Kana, Han, and two planes above the
// first, emoji and old Gothic.
var scripts = [][2]rune{
	{' ', '~'}, {0xc0, 0x17f}, {0x391, 0x3c9}, {0x410, 0x44f}, {0x5d0, 0x5ea}, {0x627, 0x64a}, {0x905, 0x939}, {0xe01, 0xe2e},
	{0xac00, 0xd7a3}, {0x3041, 0x30fe}, {0x4e00, 0x9fff}, {0x1f300, 0x1f5ff}, {0x10330, 0x1034a},
}

func keysInManyScripts(t *testing.T, n int) []string {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	seen := map[string]bool{}
	var keys []string
	for len(keys) < n {
		script := scripts[r.IntN(len(scripts))]
		key := make([]rune, 1+r.IntN(24))
		for i := range key {
			key[i] = script[0] + r.Int32N(script[1]-script[0]+1)
		}
		if k := string(key); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

func java(t *testing.T, version, file string, args ...string) *exec.Cmd {
	return exec.Command("java", append([]string{"-Dfile.encoding=UTF-8", "-cp", real.Jars(t, version) + "/*", filepath.Join("testdata", file)}, args...)...)
}

// places returns the partition of each key of a topic.
func places(t *testing.T, broker, topic string, total int) map[string]int32 {
	found := map[string]int32{}
	drain(t, broker, topic, total, func(r *kgo.Record) { found[string(r.Key)] = r.Partition })
	return found
}

func TestKeysLandWhereTheirProducersOfKafkaPutThem(t *testing.T) {
	zk := real.ZooKeeper(t)
	broker := real.Kafka(t, "2.8.2", 1, zk, "auto.create.topics.enable=false").Addr
	const total, partitions = 10000, 7
	keys := keysInManyScripts(t, total)
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(strings.Join(keys, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		theirs  func(topic string) *exec.Cmd
		ours    client.Partitioner
		asBytes bool
	}{
		{"scala-0.8.2.2-strings", func(topic string) *exec.Cmd {
			return java(t, "0.8.2.2", "ScalaProducer.java", broker, topic, file, "string")
		}, client.ScalaHash(), false},
		{"scala-0.8.2.2-bytes", func(topic string) *exec.Cmd {
			return java(t, "0.8.2.2", "ScalaProducer.java", broker, topic, file, "bytes")
		}, client.ScalaHash(), true},
		{"java-0.8.2.2", func(topic string) *exec.Cmd { return java(t, "0.8.2.2", "JavaProducer.java", broker, topic, file) }, client.Murmur2(), false},
		{"java-3.9.1", func(topic string) *exec.Cmd { return java(t, "3.9.1", "JavaProducer.java", broker, topic, file) }, client.Sticky(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			theirs, ours := c.name+"-theirs", c.name+"-ours"
			createTopic(t, broker, theirs, partitions, nil)
			createTopic(t, broker, ours, partitions, nil)
			real.Run(t, 2*time.Minute, c.theirs(theirs))
			p, err := client.NewProducer(client.Brokers(broker), client.PartitionWith(c.ours))
			if err != nil {
				t.Fatal(err)
			}
			records := make([]*client.Record, total)
			for i, k := range keys {
				records[i] = &client.Record{Topic: ours, Key: k, Value: k}
				if c.asBytes {
					records[i].Key = []byte(k)
				}
			}
			if err := p.Send(within(t, time.Minute), records...); err != nil {
				t.Fatal(err)
			}
			if err := p.Close(within(t, time.Minute)); err != nil {
				t.Fatal(err)
			}
			want, got := places(t, broker, theirs, total), places(t, broker, ours, total)
			if len(want) != total {
				t.Fatalf("%d keys came back from Kafka's producer, want %d", len(want), total)
			}
			for k, p := range want {
				if got[k] != p {
					t.Fatalf("key %q is in partition %d, with Kafka's producer in %d", k, got[k], p)
				}
			}
		})
	}
}

// produceRequests counts the Produce requests that a producer writes.
type produceRequests struct{ n atomic.Int64 }

func (p *produceRequests) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key == 0 && err == nil {
		p.n.Add(1)
	}
}

func TestSynchronousSendFailsAfterThreeRetriesAndGivesTheRecordsBack(t *testing.T) {
	zk := real.ZooKeeper(t)
	broker := real.Kafka(t, "2.8.2", 1, zk)
	two := "2"
	createTopic(t, broker.Addr, "unsafe", 1, map[string]*string{"min.insync.replicas": &two})
	createTopic(t, broker.Addr, "fine", 1, nil)

	var requests produceRequests
	p, err := client.NewProducer(client.Brokers(broker.Addr), client.Native(kgo.WithHooks(&requests)))
	if err != nil {
		t.Fatal(err)
	}
	records := []*client.Record{{Topic: "unsafe", Value: "a"}, {Topic: "unsafe", Value: "b"}}
	err = p.Send(within(t, time.Minute), records...)
	var failed *client.SendError
	if !errors.As(err, &failed) || !errors.Is(err, kerr.NotEnoughReplicas) {
		t.Fatal(err)
	}
	if back := failed.Records(); len(back) != 2 || back[0] != records[0] || back[1] != records[1] {
		t.Errorf("came back: %v", back)
	}
	if n := requests.n.Load(); n != 4 {
		t.Errorf("%d requests were sent, want one and three retries", n)
	}

	if results, err := p.SendSync(within(t, time.Minute), &client.Record{Topic: "fine", Value: "c"}); err != nil || results[0].Offset != 0 {
		t.Fatal(results, err)
	}
	broker.Kill()
	start := time.Now()
	err = p.Send(within(t, time.Minute), &client.Record{Topic: "fine", Value: "d"})
	if !errors.As(err, &failed) || len(failed.Records()) != 1 {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("a dead broker took %v to become an error", took)
	}
	t.Logf("a dead broker became an error after %v: %v", time.Since(start), err)
	if err := p.Close(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
}

func TestEveryQueuedRecordComesBackWhenTheBrokerDies(t *testing.T) {
	zk := real.ZooKeeper(t)
	broker := real.Kafka(t, "2.8.2", 1, zk)
	createTopic(t, broker.Addr, "many", 4, nil)
	p, err := client.NewProducer(client.Brokers(broker.Addr), client.SendMode(client.Async), client.Queue(5000, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	const total = 50000
	var sent, failed, refused atomic.Int64
	ctx := within(t, 2*time.Minute)
	for i := range total {
		err := p.SendAsync(ctx, &client.Record{Topic: "many", Value: fmt.Sprint(i)}, func(r client.Result) {
			if r.Err == nil {
				sent.Add(1)
			} else {
				failed.Add(1)
			}
		})
		if err != nil {
			refused.Add(1)
		}
		if i == total/2 {
			broker.Kill()
		}
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if sent.Load()+failed.Load()+refused.Load() != total || failed.Load() == 0 {
		t.Errorf("of %d records %d were sent, %d failed and %d were refused", total, sent.Load(), failed.Load(), refused.Load())
	}
	if s := p.Stats(); s.Sent != sent.Load() || s.Failed != failed.Load() || s.Queued != 0 {
		t.Errorf("%+v", s)
	}
}

// deaf accepts connections and never answers.
func deaf(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().String()
}

func TestAFullQueueWaitsWaitsATimeOrDropsAndCounts(t *testing.T) {
	for _, c := range []struct {
		name                  string
		wait                  time.Duration
		waited, dropped, late int64
	}{
		{"drop", 0, 0, 3, 0},
		{"a time", 20 * time.Millisecond, 3, 3, 3},
		{"without limit", -1, 3, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told atomic.Int64
			p, err := client.NewProducer(client.Brokers(deaf(t)), client.Queue(5, 1<<20), client.WhenFull(c.wait), client.SendMode(client.Async),
				client.OnDropped(func(*client.Record) { told.Add(1) }))
			if err != nil {
				t.Fatal(err)
			}
			var back atomic.Int64
			send := func(limit time.Duration) error {
				return p.SendAsync(within(t, limit), &client.Record{Topic: "t", Value: "v"}, func(client.Result) { back.Add(1) })
			}
			for range 5 {
				if err := send(time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				limit := time.Minute
				if c.wait < 0 {
					limit = 30 * time.Millisecond
				}
				err := send(limit)
				if c.dropped > 0 && !errors.Is(err, client.ErrQueueFull) || err == nil {
					t.Errorf("a full queue answers %v", err)
				}
			}
			s := p.Stats()
			if s.Waited != c.waited || s.Dropped != c.dropped || s.Late != c.late || told.Load() != c.dropped || s.Queued != 5 {
				t.Errorf("%+v, told %d", s, told.Load())
			}
			if err := p.Close(within(t, 30*time.Millisecond)); err == nil {
				t.Error("Close could not send and says nothing")
			}
			real.Until(t, 10*time.Second, "all records back", func() bool { return back.Load() == 5 })
		})
	}
}

func TestTransactionsAreSeenWholeOrNotAtAll(t *testing.T) {
	broker := real.Barnabas(t, 1).Addr
	createTopic(t, broker, "orders", 2, nil)
	ctx := within(t, time.Minute)
	p, err := client.NewProducer(client.ProducerProperties(map[string]string{"bootstrap.servers": broker, "transactional.id": "till"}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(ctx)
	for _, end := range []func() error{func() error { return p.Commit(ctx) }, func() error { return p.Abort(ctx) }, func() error { return p.Commit(ctx) }} {
		if err := p.Begin(); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if err := p.SendAsync(ctx, &client.Record{Topic: "orders", Key: fmt.Sprint(i), Value: "v"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics("orders"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ends, err := admin(t, broker).ListEndOffsets(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	last, committed := map[int32]int64{}, 0
	done := func() bool {
		for p, end := range ends["orders"] {
			if last[p] < end.Offset {
				return false
			}
		}
		return true
	}
	for !done() && ctx.Err() == nil {
		reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			last[r.Partition] = r.Offset + 1
			if !r.Attrs.IsControl() {
				committed++
			}
		})
	}
	if committed != 20 {
		t.Errorf("%d records of two committed transactions and an aborted one are seen, want 20", committed)
	}
}
