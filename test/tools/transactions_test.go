package tools

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// changing are the times in a table of kafka-transactions: stamps, and how long
// a transaction has been open, with the blanks that fill its column.
var (
	stampAndAge = regexp.MustCompile(`\t1\d{12}( *\t)\d+ *(\t.)`)
	stamp       = regexp.MustCompile(`\t1\d{12}\b`)
)

// kafkaTransactions is the script of Apache Kafka 3.9.1.
func kafkaTransactions(t *testing.T, args ...string) *exec.Cmd {
	return real.Java(t, "3.9.1", "org.apache.kafka.tools.TransactionsCommand", args...)
}

// answer is what a command wrote and how it ended.
func answer(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, errOut, err := real.Try(t, time.Minute, cmd)
	out = stamp.ReplaceAllString(stampAndAge.ReplaceAllString(out, "\t@MS${1}@AGE$2"), "\t@MS")
	for line := range strings.SplitSeq(errOut, "\n") {
		if line != "" && !javaLog.MatchString(line) && !strings.HasPrefix(line, "\t") && !logger.MatchString(line) && !strings.Contains(line, "SLF4J") {
			return out + "! " + line + fmt.Sprintf("\n? %v\n", err)
		}
	}
	return out + fmt.Sprintf("? %v\n", err)
}

// TestTransactionsCommand asks the same of Kafka's script and of ours, on both
// brokers: of a transaction that was committed, one that is open, and one that
// no coordinator knows of, which either of them ends.
func TestTransactionsCommand(t *testing.T) {
	loose := "transaction.partition.verification.enable=false"
	for name, start := range map[string]func(t *testing.T) string{
		"kafka-3.9.1": func(t *testing.T) string {
			return real.Kafka(t, "3.9.1", 1, real.ZooKeeper(t), "inter.broker.protocol.version=3.9", loose).Addr
		},
		"barnabas": func(t *testing.T) string { return real.Barnabas(t, 1, loose).Addr },
	} {
		t.Run(name, func(t *testing.T) {
			addr := start(t)
			done, open := transactionStates(t, addr)
			same := func(args ...string) string {
				t.Helper()
				args = append([]string{"--bootstrap-server", addr}, args...)
				theirs, ours := answer(t, kafkaTransactions(t, args...)), answer(t, exec.Command(real.Binary(t), append([]string{"transactions"}, args...)...))
				if ours != theirs {
					t.Errorf("%s\nKafka's script:\n%s\nours:\n%s", strings.Join(args, " "), theirs, ours)
				}
				return ours
			}
			if name == "barnabas" { // what needs no broker
				same("find-hanging", "--max-transaction-timeout", "0")
				same("find-hanging", "--broker-id", "1", "--partition", "1")
				same("abort", "--topic", "t", "--partition", "1")
				same("abort", "--topic", "t", "--partition", "1", "--producer-id", "5")
				same("abort", "--topic", "t", "--partition", "1", "--producer-id", "5", "--producer-epoch", "1")
			}
			same("list")
			same("list", "--duration-filter", "100000")
			same("list", "--duration-filter", "0")
			same("describe", "--transactional-id", done)
			same("describe", "--transactional-id", open)
			same("describe", "--transactional-id", "nobody")
			for _, partition := range []string{"0", "1"} {
				same("describe-producers", "--topic", "t", "--partition", partition)
			}
			same("describe-producers", "--topic", "t", "--partition", "1", "--broker-id", "1")
			same("find-hanging", "--topic", "t")
			found := same("find-hanging", "--topic", "t", "--max-transaction-timeout", "0")
			if n := strings.Count(found, "\n"); n != 4 {
				t.Errorf("two transactions hang; found:\n%s", found)
			}
			same("abort", "--topic", "t", "--partition", "1", "--start-offset", "77")
			abort := []string{"--bootstrap-server", addr, "abort", "--topic", "t", "--partition", "1", "--start-offset"}
			theirs := answer(t, kafkaTransactions(t, append(slices.Clone(abort), "0")...))
			if ours := answer(t, exec.Command(real.Binary(t), append(append([]string{"transactions"}, abort...), "1")...)); ours != theirs {
				t.Errorf("abort\nKafka's script:\n%s\nours:\n%s", theirs, ours)
			}
			if found := same("find-hanging", "--topic", "t", "--max-transaction-timeout", "0"); strings.Count(found, "\n") != 2 {
				t.Errorf("after they were ended there still hang:\n%s", found)
			}
			same("describe-producers", "--topic", "t", "--partition", "1")
		})
	}
}

// transactionStates commits a transaction, leaves one open, and writes the
// records of two that have no coordinator to partition 1 of topic t.
func transactionStates(t *testing.T, addr string) (done, open string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done, open = "done", "open"
	admin, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := kadm.NewClient(admin).CreateTopic(ctx, 2, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{done, open} {
		c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(10*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := c.ProduceSync(ctx, &kgo.Record{Topic: "t", Partition: 0, Value: []byte(id)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if id == done {
			if err := c.EndTransaction(ctx, kgo.TryCommit); err != nil {
				t.Fatal(err)
			}
		}
	}
	real.Until(t, 30*time.Second, "the committed transaction to be complete", func() bool {
		d, err := kadm.NewClient(admin).DescribeTransactions(ctx, done)
		return err == nil && d[done].State == "CompleteCommit"
	})
	conn := raw.Dial(t, addr)
	for i := range int64(2) {
		b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1, Transactional: true, Producer: &record.Producer{ID: 9000 + i, Epoch: 3}})
		b.Append(time.Now().UnixMilli(), nil, []byte("hangs"))
		set, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("nobody-", i)
		r := kmsg.NewPtrProduceRequest()
		r.Version, r.Acks, r.TimeoutMillis, r.TransactionID = 9, -1, 10000, &id
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = 1, set
		top := kmsg.NewProduceRequestTopic()
		top.Topic, top.Partitions = "t", append(top.Partitions, p)
		r.Topics = append(r.Topics, top)
		if code := raw.Do[*kmsg.ProduceResponse](conn, r).Topics[0].Partitions[0].ErrorCode; code != 0 {
			t.Fatalf("produce: %d", code)
		}
	}
	return done, open
}
