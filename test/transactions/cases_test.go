package transactions

import (
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFencing is case 10 of public reports.
func TestFencing(t *testing.T) {
	raw.OnBoth(t, func(t *testing.T, addr string) {
		raw.TransactionsCoordinated(t, addr, "T1")
		topic := raw.NewTopic(t, addr, 1)
		c := raw.Dial(t, addr)
		want := func(what string, got, want int16) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %d, want %d", what, got, want)
			}
		}
		first := initProducer(c, "T1", 60000, -1, -1)
		want("first InitProducerId", first.ErrorCode, 0)
		want("its epoch", first.ProducerEpoch, 0)
		pid := first.ProducerID
		want("produce before AddPartitions", produce(t, c, "T1", topic, pid, 0, 0).ErrorCode, 48)
		want("EndTxn with nothing open", endTxn(c, 2, "T1", pid, 0, true), 48)
		want("AddPartitions", addPartition(c, 2, "T1", pid, 0, topic, 0), 0)
		want("produce", produce(t, c, "T1", topic, pid, 0, 0).ErrorCode, 0)
		if f := fetch(c, topic, 1); f.HighWatermark != 1 || f.LastStableOffset != 0 || len(f.RecordBatches) != 0 {
			t.Errorf("read_committed of an open transaction: %+v", f)
		}
		if rc, ru := latest(c, topic, 1), latest(c, topic, 0); rc != 0 || ru != 1 {
			t.Errorf("latest: read_committed %d, read_uncommitted %d", rc, ru)
		}
		want("second InitProducerId, at once", initProducer(c, "T1", 60000, -1, -1).ErrorCode, 51)
		again, epoch := settledInit(t, c, "T1")
		if again != pid || epoch != 2 {
			t.Errorf("second InitProducerId: producer %d epoch %d, want %d and 2", again, epoch, pid)
		}
		want("old epoch: produce", produce(t, c, "T1", topic, pid, 0, 1).ErrorCode, 47)
		want("old epoch: AddPartitions v0", addPartition(c, 0, "T1", pid, 0, topic, 0), 47)
		want("old epoch: AddPartitions v2", addPartition(c, 2, "T1", pid, 0, topic, 0), 90)
		want("old epoch: EndTxn v1", endTxn(c, 1, "T1", pid, 0, true), 47)
		want("old epoch: EndTxn v2", endTxn(c, 2, "T1", pid, 0, true), 90)
		want("wrong producer id", endTxn(c, 2, "T1", pid+1, 2, true), 49)
		want("unknown topic", addPartition(c, 2, "T1", pid, 2, "none", 0), 3)
		want("timeout too long", initProducer(c, "T1", 1000000000, -1, -1).ErrorCode, 50)
		want("empty id", initProducer(c, "", 60000, -1, -1).ErrorCode, 42)
		f := fetch(c, topic, 1)
		if len(f.AbortedTransactions) != 1 || f.AbortedTransactions[0].ProducerID != pid || f.AbortedTransactions[0].FirstOffset != 0 || f.LastStableOffset != f.HighWatermark {
			t.Errorf("read_committed of an aborted transaction: hw %d lso %d aborted %+v", f.HighWatermark, f.LastStableOffset, f.AbortedTransactions)
		}
		want("AddPartitions", addPartition(c, 2, "T1", pid, 2, topic, 0), 0)
		want("AddPartitions again", addPartition(c, 2, "T1", pid, 2, topic, 0), 0)
		want("produce", produce(t, c, "T1", topic, pid, 2, 0).ErrorCode, 0)
		want("EndTxn", endTxn(c, 2, "T1", pid, 2, true), 0)
		real.Until(t, 10*time.Second, "EndTxn again to be over", func() bool { return endTxn(c, 2, "T1", pid, 2, true) == 0 })
		want("EndTxn with the other result", endTxn(c, 2, "T1", pid, 2, false), 48)
		if f := fetch(c, topic, 1); f.LastStableOffset != f.HighWatermark || f.HighWatermark != 4 {
			t.Errorf("after the commit: hw %d lso %d", f.HighWatermark, f.LastStableOffset)
		}
		// KIP-360: a producer that knows its epoch raises it; the retry of that, too; others are fenced.
		raised := initProducer(c, "T1", 60000, pid, 2)
		want("raise", raised.ErrorCode, 0)
		want("raised epoch", raised.ProducerEpoch, 3)
		retry := initProducer(c, "T1", 60000, pid, 2)
		want("retry", retry.ErrorCode, 0)
		want("epoch of the retry", retry.ProducerEpoch, 3)
		want("raise from an older epoch", initProducer(c, "T1", 60000, pid, 1).ErrorCode, 90)
		want("raise of another's id", initProducer(c, "T1", 60000, pid+1, 3).ErrorCode, 90)
	})
}

// TestTimeoutAborts: a transaction that takes too long is aborted, and its
// producer fenced.
func TestTimeoutAborts(t *testing.T) {
	raw.OnBoth(t, func(t *testing.T, addr string) {
		raw.TransactionsCoordinated(t, addr, "slow")
		topic := raw.NewTopic(t, addr, 1)
		c := raw.Dial(t, addr)
		r := initProducer(c, "slow", 1000, -1, -1)
		if code := addPartition(c, 2, "slow", r.ProducerID, 0, topic, 0); code != 0 {
			t.Fatal(code)
		}
		if p := produce(t, c, "slow", topic, r.ProducerID, 0, 0); p.ErrorCode != 0 {
			t.Fatal(p.ErrorCode)
		}
		real.Until(t, 30*time.Second, "the transaction to be aborted", func() bool {
			f := fetch(c, topic, 1)
			return f.HighWatermark == 2 && f.LastStableOffset == 2 && len(f.AbortedTransactions) == 1
		})
		if code := endTxn(c, 2, "slow", r.ProducerID, 0, true); code != 90 {
			t.Errorf("EndTxn of who was timed out: %d, want 90", code)
		}
	}, "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000")
}

// TestStatesAsToldToAdministrators compares DescribeTransactions and
// ListTransactions.
func TestStatesAsToldToAdministrators(t *testing.T) {
	raw.OnBoth(t, func(t *testing.T, addr string) {
		raw.TransactionsCoordinated(t, addr, "told")
		topic := raw.NewTopic(t, addr, 1)
		c := raw.Dial(t, addr)
		r := initProducer(c, "told", 60000, -1, -1)
		describe := func(id string) kmsg.DescribeTransactionsResponseTransactionState {
			d := kmsg.NewPtrDescribeTransactionsRequest()
			d.TransactionalIDs = []string{id}
			return raw.Do[*kmsg.DescribeTransactionsResponse](c, d).TransactionStates[0]
		}
		list := func(states ...string) (int, []string) {
			l := kmsg.NewPtrListTransactionsRequest()
			l.StateFilters = states
			a := raw.Do[*kmsg.ListTransactionsResponse](c, l)
			return len(a.TransactionStates), a.UnknownStateFilters
		}
		if d := describe("told"); d.ErrorCode != 0 || d.State != "Empty" || d.StartTimestamp != -1 || d.TimeoutMillis != 60000 || d.ProducerID != r.ProducerID {
			t.Errorf("described as %+v", d)
		}
		if d := describe("nobody"); d.ErrorCode != 105 {
			t.Errorf("described as %+v", d)
		}
		addPartition(c, 2, "told", r.ProducerID, 0, topic, 0)
		if d := describe("told"); d.State != "Ongoing" || d.StartTimestamp <= 0 || len(d.Topics) != 1 || d.Topics[0].Topic != topic {
			t.Errorf("described as %+v", d)
		}
		if n, unknown := list("Ongoing", "Nonsense"); n != 1 || len(unknown) != 1 {
			t.Errorf("listed %d, unknown %v", n, unknown)
		}
		produce(t, c, "told", topic, r.ProducerID, 0, 0)
		producers := func() kmsg.DescribeProducersResponseTopicPartition {
			d := kmsg.NewPtrDescribeProducersRequest()
			d.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{0}}}
			return raw.Do[*kmsg.DescribeProducersResponse](c, d).Topics[0].Partitions[0]
		}
		if p := producers(); len(p.ActiveProducers) != 1 || p.ActiveProducers[0].ProducerID != r.ProducerID || p.ActiveProducers[0].CurrentTxnStartOffset != 0 ||
			p.ActiveProducers[0].LastSequence != 0 || p.ActiveProducers[0].CoordinatorEpoch != -1 || p.ActiveProducers[0].LastTimestamp <= 0 {
			t.Errorf("producers %+v", p)
		}
		endTxn(c, 2, "told", r.ProducerID, 0, false)
		real.Until(t, 10*time.Second, "the marker", func() bool { return producers().ActiveProducers[0].CurrentTxnStartOffset == -1 })
		if p := producers().ActiveProducers[0]; p.CoordinatorEpoch != 0 || p.LastSequence != 0 {
			t.Errorf("producer after its marker %+v", p)
		}
		real.Until(t, 10*time.Second, "the transaction to be complete", func() bool { return describe("told").State == "CompleteAbort" })
		if n, _ := list("Ongoing"); n != 0 {
			t.Errorf("listed %d", n)
		}
		if n, _ := list(); n != 1 {
			t.Errorf("listed %d", n)
		}
	})
}
