package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A reassignment that kafka-reassign-partitions throttles waits, once it is over
// the rate, while one without a throttle goes through; and it goes on when the
// throttle is raised. One window of the rate is longer than the test.
func TestAThrottledReassignmentWaitsWhileOthersGoOn(t *testing.T) {
	server := real.ZooKeeper(t)
	var seeds []string
	var second *real.BarnabasBroker
	for id := 1; id <= 2; id++ {
		b := real.Barnabas(t, id, "zookeeper.connect="+server, "replication.quota.window.size.seconds=3600", "replica.fetch.max.bytes=100000", "replica.fetch.wait.max.ms=50")
		seeds, second = append(seeds, b.Addr), b
	}
	a := load.NewAdmin(t, seeds)
	for _, topic := range []string{"slow", "fast"} {
		load.CreateTopic(t, a, topic, 1, []int32{1}, nil)
		fill(t, seeds, topic, 1_000_000)
	}
	plan := func(topic string) string {
		file := filepath.Join(t.TempDir(), topic+".json")
		text := fmt.Sprintf(`{"version":1,"partitions":[{"topic":"%s","partition":0,"replicas":[1,2]}]}`, topic)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	reassign := func(args ...string) string {
		return real.Run(t, time.Minute, real.Java(t, "3.9.1", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", append([]string{"--bootstrap-server", seeds[0]}, args...)...))
	}
	// 100 bytes a second over 3,600 s are 360,000 bytes, of a million.
	slow, fast := plan("slow"), plan("fast")
	reassign("--execute", "--reassignment-json-file", slow, "--throttle", "100")
	reassign("--execute", "--reassignment-json-file", fast, "--additional")
	load.UntilInSync(t, a, "fast", 1, 2)
	moved := func() int64 {
		info, err := os.Stat(filepath.Join(second.Dir, "slow-0", "00000000000000000000.log"))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	real.Until(t, time.Minute, "the rate used up", func() bool { return moved() > 360_000 })
	if got := moved(); got > 360_000+200_000 { // a fetch is up to 100,000, and may be under way
		t.Errorf("%d bytes have moved at 100 bytes a second over an hour", got)
	}
	if p := load.Describe(t, a, "slow")[0]; len(p.ISR) != 1 {
		t.Errorf("in sync: %v", p.ISR)
	}
	reassign("--execute", "--reassignment-json-file", slow, "--additional", "--throttle", "1000000")
	load.UntilInSync(t, a, "slow", 1, 2)
	real.Until(t, time.Minute, "the reassignment over", func() bool {
		return strings.Contains(reassign("--verify", "--reassignment-json-file", slow), "Clearing topic-level throttles")
	})
}

// fill produces so many bytes to a topic in records of 1,000.
func fill(t *testing.T, seeds []string, topic string, bytes int) {
	t.Helper()
	producer, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(20_000))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for range bytes / 1000 {
		producer.Produce(t.Context(), kgo.StringRecord(strings.Repeat("x", 1000)), nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := producer.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}
