package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/test/real"
)

// many is how many partitions the broker of TestManyPartitions has;
// BARNABAS_BENCH_PARTITIONS changes it.
func many() int {
	if n, err := strconv.Atoi(os.Getenv("BARNABAS_BENCH_PARTITIONS")); err == nil {
		return n
	}
	return 5000
}

// untilAllLead waits until every partition of the topic has a leader in the
// broker's own answer to Metadata, and ListOffsets finds each.
func untilAllLead(t testing.TB, addr, topic string, partitions int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryTimeout(time.Second), kgo.RequestRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr(topic)}}
	for {
		response, err := request.RequestWith(ctx, client)
		if ctx.Err() != nil {
			t.Fatal("not all partitions have a leader")
		}
		if err != nil || len(response.Topics) != 1 {
			continue
		}
		led := 0
		for _, p := range response.Topics[0].Partitions {
			if p.ErrorCode == 0 && p.Leader >= 0 {
				led++
			}
		}
		if led == partitions && allServe(ctx, client, topic, partitions) {
			return
		}
	}
}

// allServe asks each partition for its latest offset.
func allServe(ctx context.Context, client *kgo.Client, topic string, partitions int) bool {
	offsets, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil || len(offsets[topic]) != partitions {
		return false
	}
	for _, o := range offsets[topic] {
		if o.Err != nil {
			return false
		}
	}
	return true
}

// manyPartitions runs the life of a broker with many partitions and prints how
// long each part of it takes. restart starts the broker again and returns as
// soon as its process runs.
func manyPartitions(t *testing.T, name, addr string, process func() *real.Process, restart func()) {
	n := many()
	line := func(what string, began time.Time, goal string) {
		fmt.Printf("%-52s %-12s %7.2f s   goal %s\n", fmt.Sprintf("%d partitions: %s", n, what), name, time.Since(began).Seconds(), goal)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(240_000)
	_, err = admin.CreateTopic(ctx, int32(n), 1, nil, "many")
	client.Close()
	if err != nil {
		t.Fatal(err)
	}
	untilAllLead(t, addr, "many", n)
	line("create until all lead", began, "2 s")

	began = time.Now()
	process().Signal(syscall.SIGTERM)
	<-process().Done()
	line("clean stop", began, "reported")

	began = time.Now()
	restart()
	untilAllLead(t, addr, "many", n)
	line("start after it until all lead", began, "0.5 s")
	fmt.Printf("%-52s %-12s %7.1f MB  goal 100 MB\n", fmt.Sprintf("%d partitions: memory", n), name, residentMB(process().PID()))

	process().Kill()
	began = time.Now()
	restart()
	untilAllLead(t, addr, "many", n)
	line("start after kill -9 until all lead", began, "1 s")
	process().Kill()
}

// TestManyPartitions creates a topic of thousands of partitions on one broker,
// stops it, starts it, kills it and starts it again. The same of Kafka 3.9.1,
// which takes minutes, with BARNABAS_BENCH_KAFKA_PARTITIONS set.
func TestManyPartitions(t *testing.T) {
	b := real.Barnabas(t, 1)
	manyPartitions(t, "barnabas", b.Addr, func() *real.Process { return b.Process }, func() { b.Launch(t) })
	if os.Getenv("BARNABAS_BENCH_KAFKA_PARTITIONS") == "" {
		return
	}
	k := real.KafkaFullSize(t, "3.9.1", 1, real.ZooKeeper(t), "inter.broker.protocol.version=3.9")
	manyPartitions(t, "kafka 3.9.1", k.Addr, func() *real.Process { return k.Process }, func() { k.Launch(t) })
}

// TestManyPartitionsWithRecords measures from exec until ListOffsets tells the
// right end of each of 10,000 partitions that hold records.
func TestManyPartitionsWithRecords(t *testing.T) {
	const n = 10_000
	b := real.Barnabas(t, 1)
	createTopic(t, b.Addr, "full", n)
	untilAllLead(t, b.Addr, "full", n)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic("full"), kgo.MaxBufferedRecords(3*n))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 2 * n {
		client.Produce(context.Background(), &kgo.Record{Partition: int32(i % n), Value: []byte("a value")}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := client.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	line := func(what string, began time.Time, goal string) {
		fmt.Printf("%-52s %-12s %7.2f s   goal %s\n", fmt.Sprintf("%d partitions with records: %s", n, what), "barnabas", time.Since(began).Seconds(), goal)
	}
	began := time.Now()
	b.Signal(syscall.SIGTERM)
	<-b.Done()
	line("clean stop", began, "reported")
	for _, how := range []struct{ what, goal string }{{"clean start until ends are right", "0.5 s"}, {"start after kill -9 until ends are right", "1.5 s"}} {
		began = time.Now()
		b.Launch(t)
		untilEnds(t, b.Addr, "full", n, 2)
		line(how.what, began, how.goal)
		fmt.Printf("%-52s %-12s %7.1f MB\n", fmt.Sprintf("%d partitions with records: memory", n), "barnabas", residentMB(b.PID()))
		b.Kill()
	}
}

// untilEnds waits until every partition's end offset is known and right.
func untilEnds(t testing.TB, addr, topic string, partitions int, end int64) {
	t.Helper()
	untilAllLead(t, addr, topic, partitions)
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	offsets, err := kadm.NewClient(client).ListEndOffsets(context.Background(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for p, o := range offsets[topic] {
		if o.Err != nil || o.Offset != end {
			t.Fatalf("partition %d ends at %d: %v", p, o.Offset, o.Err)
		}
	}
}
