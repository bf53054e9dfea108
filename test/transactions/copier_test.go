package transactions

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
)

// copierEnv makes this test binary a copier: "address input output".
const copierEnv = "BARNABAS_TEST_COPIER"

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(copierEnv)); len(args) == 3 {
		copyForever(args[0], args[1], args[2], os.Getenv(copierEnv+"_ID"))
		return
	}
	real.Main(m)
}

// copyForever copies records from one topic to another, exactly once, in the
// manner of Kafka's TransactionalMessageCopier.
func copyForever(addr, input, output, id string) {
	s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(addr), kgo.TransactionalID(id), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics(input), kgo.ConsumerGroup("copiers"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(300*time.Millisecond), kgo.TransactionTimeout(10*time.Second),
		kgo.FetchMaxWait(200*time.Millisecond), kgo.DefaultProduceTopic(output))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for {
		fetches := s.PollRecords(ctx, 20)
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := s.Begin(); err != nil {
			panic(err)
		}
		failed := false
		fetches.EachRecord(func(r *kgo.Record) {
			s.Produce(ctx, &kgo.Record{Value: r.Value}, func(_ *kgo.Record, err error) { failed = failed || err != nil })
		})
		commit := kgo.TryCommit
		if err := s.Client().Flush(ctx); err != nil || failed {
			commit = kgo.TryAbort
		}
		if _, err := s.End(ctx, commit); err != nil {
			fmt.Fprintln(os.Stderr, "end:", err)
			os.Exit(1) // the next one goes on
		}
	}
}

func copier(t *testing.T, addr, input, output string, n int) *real.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", copierEnv, addr, input, output), fmt.Sprintf("%s_ID=copier-%d", copierEnv, n%2))
	return real.Start(t, fmt.Sprint("copier ", n), cmd)
}

// TestCopiesAreExact has two copiers and their broker be killed at random: each
// record is copied once.
func TestCopiesAreExact(t *testing.T) {
	rounds, records := 2, 1500
	if os.Getenv("BARNABAS_SOAK") != "" {
		rounds, records = 20, 10000
	}
	b := real.Barnabas(t, 1)
	input, output := raw.NewTopic(t, b.Addr, 4), raw.NewTopic(t, b.Addr, 3)
	raw.TransactionsCoordinated(t, b.Addr, "copier-0")
	copiers := []*real.Process{copier(t, b.Addr, input, output, 0), copier(t, b.Addr, input, output, 1)}
	sent := 0
	send := func(n int) {
		t.Helper()
		client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for range n {
			client.Produce(t.Context(), &kgo.Record{Topic: input, Value: fmt.Append(nil, "record-", sent)}, nil)
			sent++
		}
		if err := client.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	started := 2
	for round := range rounds {
		before := len(copied(t, b.Addr, output, 0))
		send(records / rounds)
		real.Until(t, 2*time.Minute, "copies to be made", func() bool { return len(copied(t, b.Addr, output, 0)) > before })
		copiers[round%2].Kill()
		b.Kill()
		b.Restart(t)
		for i := range copiers {
			select {
			case <-copiers[i].Done():
				copiers[i] = copier(t, b.Addr, input, output, i+2*started)
				started++
			default:
			}
		}
	}
	real.Until(t, 3*time.Minute, "all to be copied", func() bool {
		for i := range copiers { // one that was fenced or lost its broker has ended
			select {
			case <-copiers[i].Done():
				copiers[i] = copier(t, b.Addr, input, output, i+2*started)
				started++
			default:
			}
		}
		return len(copied(t, b.Addr, output, 0)) >= sent
	})
	seen := copied(t, b.Addr, output, time.Second)
	for i := range sent {
		if n := seen[fmt.Sprint("record-", i)]; n != 1 {
			t.Errorf("record %d was copied %d times", i, n)
		}
	}
}

// copied reads a topic as read_committed does, and waits so long for more.
func copied(t *testing.T, addr, topic string, more time.Duration) map[string]int {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	seen := map[string]int{}
	for {
		wait := 500*time.Millisecond + more
		if len(seen) == 0 { // it has to connect
			wait += 3 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		fetches := client.PollFetches(ctx)
		cancel()
		if fetches.NumRecords() == 0 {
			return seen
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++ })
	}
}
