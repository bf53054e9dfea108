package transactions

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestClientsProduceInTransactions has each client write some and read back.
func TestClientsProduceInTransactions(t *testing.T) {
	b := real.Barnabas(t, 1)
	for _, version := range []string{"2.8.2", "3.9.1", "4.1.0"} {
		t.Run("java-"+version, func(t *testing.T) {
			topic := raw.NewTopic(t, b.Addr, 3)
			args := []string{"--topic", topic, "--num-records", "2000", "--throughput", "-1", "--record-size", "50",
				"--transactional-id", "perf-" + version, "--transaction-duration-ms", "50"}
			if version == "2.8.2" {
				args = append(args, "--producer-props", "bootstrap.servers="+b.Addr)
			} else {
				args = append(args, "--producer-props", "bootstrap.servers="+b.Addr, "acks=all")
			}
			real.Run(t, time.Minute, real.Java(t, version, "org.apache.kafka.tools.ProducerPerformance", args...))
			if n := countCommitted(t, b.Addr, topic); n != 2000 {
				t.Errorf("%d records are read", n)
			}
		})
	}
	t.Run("kcat", func(t *testing.T) {
		topic := raw.NewTopic(t, b.Addr, 1)
		cmd := real.Kcat(t, "-P", "-b", b.Addr, "-t", topic, "-X", "transactional.id=kcat")
		cmd.Stdin = strings.NewReader("one\ntwo\nthree\n")
		real.Run(t, time.Minute, cmd)
		if n := countCommitted(t, b.Addr, topic); n != 3 {
			t.Errorf("%d records are read", n)
		}
	})
	t.Run("sarama", func(t *testing.T) {
		topic := raw.NewTopic(t, b.Addr, 1)
		c := sarama.NewConfig()
		c.Version = sarama.V2_8_0_0
		c.Producer.Idempotent, c.Producer.Return.Successes, c.Net.MaxOpenRequests = true, true, 1
		c.Producer.RequiredAcks, c.Producer.Transaction.ID = sarama.WaitForAll, "sarama"
		p, err := sarama.NewSyncProducer([]string{b.Addr}, c)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for i := range 10 {
			if err := p.BeginTxn(); err != nil {
				t.Fatal(err)
			}
			if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprint(i))}); err != nil {
				t.Fatal(err)
			}
			end := p.CommitTxn
			if i%2 == 1 {
				end = p.AbortTxn
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
		}
		if n := countCommitted(t, b.Addr, topic); n != 5 {
			t.Errorf("%d records are read", n)
		}
	})
	t.Run("franz-go", func(t *testing.T) {
		topic := raw.NewTopic(t, b.Addr, 2)
		client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.TransactionalID("franz"), kgo.DefaultProduceTopic(topic))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for i := range 20 {
			if err := client.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			if err := client.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprint(i))).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if err := client.EndTransaction(t.Context(), kgo.TransactionEndTry(i%4 > 0)); err != nil {
				t.Fatal(err)
			}
		}
		if n := countCommitted(t, b.Addr, topic); n != 15 {
			t.Errorf("%d records are read", n)
		}
	})
}

// TestANewerProducerFencesTheOlder: kcat takes the transactional id of a client
// that is in the middle of a transaction, whose records are gone then.
func TestANewerProducerFencesTheOlder(t *testing.T) {
	b := real.Barnabas(t, 1)
	topic := raw.NewTopic(t, b.Addr, 1)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.TransactionalID("one"), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("of the older")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		cmd := real.Kcat(t, "-P", "-b", b.Addr, "-t", topic, "-X", "transactional.id=one")
		cmd.Stdin = strings.NewReader("one\ntwo\nthree\n")
		real.Run(t, time.Minute, cmd)
	}
	if err := client.EndTransaction(t.Context(), kgo.TryCommit); err == nil {
		t.Error("the older producer commits")
	}
	if n := countCommitted(t, b.Addr, topic); n != 6 {
		t.Errorf("%d records are read", n)
	}
}

func countCommitted(t *testing.T, addr, topic string) int {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	n := 0
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		fetches := client.PollFetches(ctx)
		cancel()
		if fetches.NumRecords() == 0 {
			return n
		}
		n += fetches.NumRecords()
	}
}
