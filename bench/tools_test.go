package bench

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"barnabas/client"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestClientsBesideFranzGo has our producer and consumer do what plain franz-go
// does, in turns, against one broker.
func TestClientsBesideFranzGo(t *testing.T) {
	const records = 2_000_000
	broker := real.Barnabas(t, 1)
	payload := values(100)
	took := map[string]series{}
	clock := func(name string, round int, f func()) {
		start := time.Now()
		f()
		if round > 0 { // the first is warm-up
			took[name] = append(took[name], float64(records)/time.Since(start).Seconds()/1000)
		}
	}
	for round := range rounds + 1 {
		topic := fmt.Sprintf("clients-%d", round)
		createTopic(t, broker.Addr, topic, 8)
		plain := func() { sendPlain(t, broker.Addr, topic, records, payload) }
		ours := func() { sendOurs(t, broker.Addr, topic, records, payload) }
		if round%2 == 0 { // each comes first as often
			clock("produce plain", round, plain)
			clock("produce ours", round, ours)
		} else {
			clock("produce ours", round, ours)
			clock("produce plain", round, plain)
		}
		clock("consume plain", round, func() { takePlain(t, broker.Addr, topic, records) })
		clock("consume ours", round, func() { takeOurs(t, broker.Keeper, topic, records) })
		deleteTopic(t, broker.Addr, topic)
	}
	for _, what := range []string{"produce", "consume"} {
		ours, plain := took[what+" ours"], took[what+" plain"]
		fmt.Printf("%-44s ours %s   franz-go %s thousand records/s   ratio %.3f   goal at least 0.95\n", "Go client: "+what+" 100 B, 8 partitions", ours, plain, ours.median()/plain.median())
	}
}

func sendPlain(t *testing.T, addr, topic string, records int, payload [][]byte) {
	k, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(10000), kgo.MaxProduceRequestsInflightPerBroker(1))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			t.Error(err)
		}
	}
	for i := range records {
		k.Produce(t.Context(), &kgo.Record{Topic: topic, Value: payload[i%len(payload)]}, done)
	}
	if err := k.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func sendOurs(t *testing.T, addr, topic string, records int, payload [][]byte) {
	p, err := client.NewProducer(client.Brokers(addr), client.SendMode(client.Async), client.Queue(10000, 1<<30), client.Batches(0, 1000000, 5*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	done := func(r client.Result) {
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
	for i := range records {
		if err := p.SendAsync(t.Context(), &client.Record{Topic: topic, Value: payload[i%len(payload)]}, done); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func takePlain(t *testing.T, addr, topic string, records int) {
	k, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.FetchMaxPartitionBytes(1<<20), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for n := 0; n < records; {
		n += k.PollFetches(t.Context()).NumRecords()
	}
}

func takeOurs(t *testing.T, keeper, topic string, records int) {
	c, err := client.NewConsumer(t.Context(), client.ZooKeeper(keeper), client.Group(topic), client.OffsetReset(client.Smallest))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	streams, err := c.Streams(t.Context(), map[string]int{topic: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range records {
		if _, err := streams[topic][0].Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRebalanceOfZooKeeperConsumers compares how long a group of twenty ZooKeeper consumers on 200
// partitions takes, from a join or a leave, until every partition has its owner:
// our consumers, and those of Kafka 0.8.2.2 with its own settings.
func TestRebalanceOfZooKeeperConsumers(t *testing.T) {
	const members, partitions = 20, 200
	broker := real.Barnabas(t, 1)
	createTopic(t, broker.Addr, "wide", partitions)
	zk, err := zookeeper.New(zookeeper.Options{Connect: broker.Keeper})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	if err := zk.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled := func(group string, owners int) func() bool {
		return func() bool {
			count, err := owned(t.Context(), zk, group, partitions)
			return err == nil && len(count) == owners && count.sum() == partitions
		}
	}
	measure := func(group string, join, leave func()) (s series) {
		real.Until(t, 5*time.Minute, group+" to begin", settled(group, members-1))
		for range rounds {
			for _, step := range []struct {
				do     func()
				owners int
			}{{join, members}, {leave, members - 1}} {
				start := time.Now()
				step.do()
				real.Until(t, 5*time.Minute, group+" to settle", settled(group, step.owners))
				s = append(s, time.Since(start).Seconds())
			}
		}
		return s
	}
	ours := measureOurs(t, broker.Keeper, members, measure)
	theirs := measureTheirs(t, broker.Keeper, members, measure)
	fmt.Printf("%-44s ours %s   0.8.2.2 %s s   ratio %.3f   goal at most 0.5\n", "rebalance of 20 consumers on 200 partitions", ours, theirs, ours.median()/theirs.median())
}

// counts are the partitions of each owner.
type counts map[string]int

func (c counts) sum() (n int) {
	for _, v := range c {
		n += v
	}
	return n
}

func owned(ctx context.Context, zk *zookeeper.Client, group string, partitions int) (counts, error) {
	paths := make([]string, partitions)
	for p := range paths {
		paths[p] = znode.ConsumerOwnerPath(group, "wide", int32(p))
	}
	reads, err := zk.GetMany(ctx, paths, false)
	found := counts{}
	for _, r := range reads {
		if r.Err == nil {
			found[string(r.Data)]++
		}
	}
	return found, err
}

type measureGroup func(group string, join, leave func()) series

func measureOurs(t *testing.T, keeper string, members int, measure measureGroup) series {
	join := func() *client.Consumer {
		c, err := client.NewConsumer(t.Context(), client.ZooKeeper(keeper), client.Group("ours"))
		if err == nil {
			_, err = c.Streams(t.Context(), map[string]int{"wide": 1})
		}
		if err != nil {
			t.Error(err)
		}
		return c
	}
	list := make([]*client.Consumer, members-1)
	var all sync.WaitGroup
	for i := range list {
		all.Go(func() { list[i] = join() })
	}
	all.Wait()
	defer func() {
		for _, c := range list {
			c.Close()
		}
	}()
	var last *client.Consumer
	return measure("ours", func() { last = join() }, func() { last.Close() })
}

func measureTheirs(t *testing.T, keeper string, members int, measure measureGroup) series {
	cmd := exec.Command("java", "-cp", real.Jars(t, "0.8.2.2")+"/*", filepath.Join("testdata", "Members.java"), "wide", fmt.Sprint(members),
		"zookeeper.connect="+keeper, "group.id=theirs", "rebalance.max.retries=20")
	keys, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	real.Start(t, "members", cmd)
	next := func() {
		if _, err := io.WriteString(keys, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	return measure("theirs", next, next)
}

// TestCommands measures how long commands take from their start to their end,
// the broker's own time included.
func TestCommands(t *testing.T) {
	broker := real.Barnabas(t, 1)
	binary := real.Binary(t)
	createTopic(t, broker.Addr, "a", 3)
	produce(t, broker.Addr, "a", 100, 100)
	run := func(line, input string) time.Duration {
		cmd := exec.Command(binary, strings.Fields(strings.NewReplacer("@B", broker.Addr, "@Z", broker.Keeper).Replace(line))...)
		cmd.Stdin = strings.NewReader(input)
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return time.Since(start)
	}
	run("consumer-groups --bootstrap-server @B --reset-offsets --group g --topic a --to-earliest --execute", "")
	for _, line := range []string{
		"topics --bootstrap-server @B --list", "topics --bootstrap-server @B --describe", "topics --zookeeper @Z --list",
		"configs --bootstrap-server @B --describe --topic a", "configs --bootstrap-server @B --describe --broker 1 --all",
		"consumer-groups --bootstrap-server @B --list", "consumer-groups --bootstrap-server @B --describe --group g",
		"get-offsets --bootstrap-server @B", "leader-election --bootstrap-server @B --election-type preferred --all-topic-partitions",
		"reassign-partitions --bootstrap-server @B --list", "transactions --bootstrap-server @B list",
		"console-producer --bootstrap-server @B --topic a --timeout 0", "console-consumer --bootstrap-server @B --topic a --from-beginning --max-messages 10",
		"zookeeper-shell @Z ls /brokers", "consumer-offset-checker --zookeeper @Z --group g",
	} {
		var took series
		for range 4 * rounds {
			took = append(took, float64(run(line, "one\n").Microseconds())/1000)
		}
		name := strings.NewReplacer(" --bootstrap-server @B", "", " @Z", "", " @B", "").Replace(line)
		fmt.Printf("%-44s %s ms   goal 50 ms beyond the broker's time\n", name, took)
	}
	var theirs series
	for range rounds {
		start := time.Now()
		real.Run(t, time.Minute, real.Java(t, "3.9.1", "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", broker.Addr, "--list"))
		theirs = append(theirs, float64(time.Since(start).Milliseconds()))
	}
	fmt.Printf("%-44s %s ms\n", "Kafka's kafka-topics --list", theirs)
}
