package transactions

import (
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"
)

// TestCoordinatorMovesBetweenKafkaAndBarnabas has one broker id, one ZooKeeper
// and one log dir be served by Kafka, by Barnabas and by Kafka again: a
// transaction that one began, the next ends.
func TestCoordinatorMovesBetweenKafkaAndBarnabas(t *testing.T) {
	zk := real.ZooKeeper(t)
	k := real.Kafka(t, "3.9.1", 1, zk, "inter.broker.protocol.version=3.9", "zookeeper.session.timeout.ms=6000")
	topic := raw.NewTopic(t, k.Addr, 1)
	raw.TransactionsCoordinated(t, k.Addr, "moves")
	begin := func(addr string, sequence int32, producer int64, epoch int16) {
		t.Helper()
		c := raw.Dial(t, addr)
		if code := addPartition(c, 2, "moves", producer, epoch, topic, 0); code != 0 {
			t.Fatalf("AddPartitions: %d", code)
		}
		if p := produce(t, c, "moves", topic, producer, epoch, sequence); p.ErrorCode != 0 {
			t.Fatalf("produce: %d", p.ErrorCode)
		}
	}
	end := func(addr, who string, producer int64, epoch int16, commit bool) {
		t.Helper()
		raw.TransactionsCoordinated(t, addr, "moves")
		c := raw.Dial(t, addr)
		before := fetch(c, topic, 1)
		if before.LastStableOffset >= before.HighWatermark {
			t.Errorf("%s: the transaction is not open: hw %d lso %d", who, before.HighWatermark, before.LastStableOffset)
		}
		if code := endTxn(c, 2, "moves", producer, epoch, commit); code != 0 {
			t.Errorf("%s: EndTxn: %d", who, code)
		}
		real.Until(t, 30*time.Second, who+" to write the marker", func() bool {
			f := fetch(c, topic, 1)
			return f.LastStableOffset == f.HighWatermark
		})
	}
	r := initProducer(raw.Dial(t, k.Addr), "moves", 600000, -1, -1)
	if r.ErrorCode != 0 {
		t.Fatal(r.ErrorCode)
	}
	begin(k.Addr, 0, r.ProducerID, 0)
	k.Stop()

	b := real.Barnabas(t, 1, "zookeeper.connect="+zk, "log.dirs="+k.Dir, "transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1", "offsets.topic.replication.factor=1", "zookeeper.session.timeout.ms=6000")
	end(b.Addr, "Barnabas after Kafka", r.ProducerID, 0, true)
	begin(b.Addr, 1, r.ProducerID, 0)
	b.Stop()

	again := real.Kafka(t, "3.9.1", 1, zk, "inter.broker.protocol.version=3.9", "log.dirs="+k.Dir)
	end(again.Addr, "Kafka after Barnabas", r.ProducerID, 0, false)
	c := raw.Dial(t, again.Addr)
	f := fetch(c, topic, 1)
	if f.HighWatermark != 4 || len(f.AbortedTransactions) != 1 || f.AbortedTransactions[0].FirstOffset != 2 {
		t.Errorf("after all: hw %d, aborted %+v", f.HighWatermark, f.AbortedTransactions)
	}
	if producer, epoch := settledInit(t, c, "moves"); producer != r.ProducerID || epoch != 1 {
		t.Errorf("producer %d epoch %d, want %d and 1", producer, epoch, r.ProducerID)
	}
}
