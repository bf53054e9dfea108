package tools

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const consoleConsumerClass = "org.apache.kafka.tools.consumer.ConsoleConsumer"

// fill writes n records to each of a topic's partitions.
func fill(t *testing.T, k *kgo.Client, topic string, partitions, n int) {
	t.Helper()
	var records []*kgo.Record
	for i := range n * partitions {
		records = append(records, &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: fmt.Append(nil, i)})
	}
	if err := k.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// offsets returns what a group has committed, by partition.
func offsets(t *testing.T, k *kgo.Client, group, topic string) map[int32]int64 {
	t.Helper()
	all, err := kadm.NewClient(k).FetchOffsets(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	at := map[int32]int64{}
	for p, o := range all[topic] {
		at[p] = o.At
	}
	return at
}

// printed counts the records that a consumer printed of each partition, with
// print.partition.
func printed(out string) map[int32]int64 {
	n := map[int32]int64{}
	for line := range strings.Lines(out) {
		var p int32
		if _, err := fmt.Sscanf(line, "Partition:%d", &p); err == nil {
			n[p]++
		}
	}
	return n
}

// A group's offsets are behind what was printed, and what was not printed is
// left to the next consumer, as Kafka's script has it.
func TestConsoleConsumerCommitsWhatItPrinted(t *testing.T) {
	c := newCommands(t)
	c.run("topics --bootstrap-server @B --create --topic t --partitions 3", "")
	k, err := kgo.NewClient(kgo.SeedBrokers(c.broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	fill(t, k, "t", 3, 100)
	line := "--bootstrap-server @B --topic t --property print.partition=true --max-messages 10 --group "
	check := func(group, out string, start int64) {
		t.Helper()
		n, at := printed(out), offsets(t, k, group, "t")
		for p := range int32(3) {
			if offset, ok := at[p]; !ok || offset != start+n[p] {
				t.Errorf("group %s: %d of t-%d printed from %d on, committed %v", group, n[p], p, start, at)
			}
		}
	}
	for i, how := range []string{"--from-beginning", "--consumer-property auto.offset.reset=earliest"} {
		ours, theirs := fmt.Sprint("ours", i), fmt.Sprint("theirs", i)
		check(ours, c.run("console-consumer "+line+ours+" "+how, ""), 0)
		out, said, err := real.Try(t, 2*time.Minute, real.Java(t, "3.9.1", consoleConsumerClass, c.args(line+theirs+" "+how)...))
		if err != nil {
			t.Fatalf("%v\n%s%s", err, out, said)
		}
		check(theirs, out, 0)
	}

	var out strings.Builder
	cmd := exec.Command(real.Binary(t), c.args("console-consumer "+line+"late")...)
	cmd.Stdout = &out
	p := real.Start(t, "late", cmd)
	p.UntilRunning(time.Minute, "begins at the end", func() bool { return len(offsets(t, k, "late", "t")) == 3 })
	fill(t, k, "t", 3, 20)
	if code := p.Wait(time.Minute); code != 0 {
		t.Fatalf("exit %d: %s", code, p.Output())
	}
	check("late", out.String(), 100)
}

// A consumer that has lost a partition leaves the offsets of its next owner
// alone.
func TestConsoleConsumerLeavesLostPartitionsAlone(t *testing.T) {
	c := newCommands(t)
	c.run("topics --bootstrap-server @B --create --topic t --partitions 2", "")
	first := real.Start(t, "first", exec.Command(real.Binary(t), c.args("console-consumer --bootstrap-server @B --topic t --group g")...))
	k, err := kgo.NewClient(kgo.SeedBrokers(c.broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	first.UntilRunning(time.Minute, "joins its group", func() bool {
		groups, err := kadm.NewClient(k).DescribeGroups(t.Context(), "g")
		return err == nil && groups["g"].State == "Stable" && len(groups["g"].Members) == 1
	})
	assigned := make(chan []int32, 10)
	second, err := kgo.NewClient(kgo.SeedBrokers(c.broker), kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"), kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, parts map[string][]int32) { assigned <- parts["t"] }))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	var mine []int32
	select {
	case mine = <-assigned:
	case <-time.After(time.Minute):
	}
	if len(mine) != 1 {
		t.Fatalf("the second member has %v", mine)
	}
	fill(t, k, "t", 2, 100)
	second.CommitOffsetsSync(t.Context(), map[string]map[int32]kgo.EpochOffset{"t": {mine[0]: {Epoch: -1, Offset: 10}}}, nil)
	first.Signal(syscall.SIGINT)
	first.Wait(time.Minute)
	if at := offsets(t, k, "g", "t"); at[mine[0]] != 10 {
		t.Errorf("the second member committed 10, and now there is %v", at)
	}
}

// Errors that come again and again do not put off a consumer's end for want of
// records.
func TestConsumersEndWithoutRecordsWhateverTheErrors(t *testing.T) {
	b := real.Barnabas(t, 1, "auto.create.topics.enable=false")
	c := commands{t, b.Addr, b.Keeper, t.TempDir()}
	try := func(line string) (string, error) {
		out, said, err := real.Try(t, time.Minute, exec.Command(real.Binary(t), c.args(line)...))
		return out + said, err
	}
	if said, err := try("console-consumer --bootstrap-server @B --topic nope --timeout-ms 2000"); err != nil || !strings.Contains(said, "does not host") || !strings.Contains(said, "--timeout-ms") {
		t.Errorf("%v: %s", err, said)
	}
	if said, err := try("consumer-perf-test --bootstrap-server @B --topic nope --messages 1 --timeout 2000"); err != nil || !strings.Contains(said, "timeout (2000 ms) exceeded") {
		t.Errorf("%v: %s", err, said)
	}
	c.run("topics --bootstrap-server @B --create --topic t --partitions 1", "")
	assigned := make(chan struct{}, 1)
	other, err := kgo.NewClient(kgo.SeedBrokers(c.broker), kgo.ConsumeTopics("t"), kgo.ConsumerGroup("sticky"), kgo.Balancers(kgo.StickyBalancer()),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { assigned <- struct{}{} }))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	select {
	case <-assigned:
	case <-time.After(time.Minute):
		t.Fatal("nobody joins the group")
	}
	if said, err := try("consumer-perf-test --bootstrap-server @B --topic t --messages 1 --group sticky --timeout 50000"); err == nil || strings.Contains(said, "exceeded") {
		t.Errorf("a group of another protocol: %v: %s", err, said)
	}
}

// That the coordinator of its group goes away and comes back ends no consumer.
func TestConsoleConsumerOutlivesItsCoordinatorsAbsence(t *testing.T) {
	b := real.Barnabas(t, 1)
	c := commands{t, b.Addr, b.Keeper, t.TempDir()}
	c.run("topics --bootstrap-server @B --create --topic t --partitions 1", "")
	c.run("console-producer --bootstrap-server @B --topic t", "before\n")
	p := real.Start(t, "consumer", exec.Command(real.Binary(t), c.args("console-consumer --bootstrap-server @B --topic t --group g --from-beginning --max-messages 2")...))
	p.UntilRunning(time.Minute, "reads", func() bool { return strings.Contains(p.Output(), "before\n") })
	k, err := kgo.NewClient(kgo.SeedBrokers(c.broker))
	if err != nil {
		t.Fatal(err)
	}
	p.UntilRunning(time.Minute, "commits what it read", func() bool { return offsets(t, k, "g", "t")[0] == 1 })
	k.Close()
	b.Kill()
	p.UntilRunning(time.Minute, "says that nobody answers", func() bool { return strings.Contains(p.Output(), "Nobody answers") })
	b.Restart(t)
	c.run("console-producer --bootstrap-server @B --topic t", "after\n")
	if code := p.Wait(time.Minute); code != 0 || !strings.Contains(p.Output(), "after\n") || !strings.Contains(p.Output(), "Processed a total of 2 messages") {
		t.Errorf("exit %d: %s", code, p.Output())
	}
}
