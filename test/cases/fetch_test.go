package cases

import (
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/raw"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFetchLimitsAndOffsets is case 3.
func TestFetchLimitsAndOffsets(t *testing.T) {
	onBoth(t, func(t *testing.T, to target) {
		topic, id := newTopic(t, to)
		c := raw.Dial(t, to.addr)
		first := batch(t, 3, record.BatchOptions{})
		for range 3 {
			if got := produce(t, c, 9, topic, batch(t, 3, record.BatchOptions{})); got.ErrorCode != 0 {
				t.Fatalf("produce: error %d", got.ErrorCode)
			}
		}
		tiny := func(version int16) *kmsg.FetchRequest {
			r := fetchRequest(version, topic, id, 0, 0)
			r.MaxBytes = 1
			r.Topics[0].Partitions[0].PartitionMaxBytes = 1
			return r
		}
		if got := fetch(t, c, tiny(4)); len(got.RecordBatches) != len(first) || got.ErrorCode != 0 {
			t.Errorf("v4, 1 byte: %d bytes, error %d; want the whole first batch of %d", len(got.RecordBatches), got.ErrorCode, len(first))
		}
		got := fetch(t, c, tiny(3))
		if got.ErrorCode != 0 || len(got.RecordBatches) < 17 || got.RecordBatches[16] != 1 {
			t.Errorf("v3, 1 byte: %d bytes, error %d; want message format v1", len(got.RecordBatches), got.ErrorCode)
		}
		if got := fetch(t, c, tiny(2)); len(got.RecordBatches) > 1 || got.ErrorCode != 0 {
			t.Errorf("v2, 1 byte: %d bytes, error %d; want at most 1", len(got.RecordBatches), got.ErrorCode)
		}
		inside := fetch(t, c, fetchRequest(11, topic, id, 0, 4))
		if inside.ErrorCode != 0 || len(inside.RecordBatches) != 2*len(first) || record.Batch(inside.RecordBatches).BaseOffset() != 3 {
			t.Errorf("an offset inside a batch: error %d, %d bytes", inside.ErrorCode, len(inside.RecordBatches))
		}
		began := time.Now()
		end := fetch(t, c, fetchRequest(11, topic, id, 0, 9))
		if end.ErrorCode != 0 || len(end.RecordBatches) != 0 || end.HighWatermark != 9 || time.Since(began) < 400*time.Millisecond {
			t.Errorf("at the end: error %d, %d bytes, after %v; want nothing after max_wait", end.ErrorCode, len(end.RecordBatches), time.Since(began))
		}
		for _, offset := range []int64{10, -1} {
			if got := fetch(t, c, fetchRequest(11, topic, id, 0, offset)); got.ErrorCode != 1 || got.HighWatermark != -1 {
				t.Errorf("offset %d: error %d, high watermark %d; want 1 and -1", offset, got.ErrorCode, got.HighWatermark)
			}
		}
		if got := fetch(t, c, fetchRequest(11, topic, id, 9, 0)); got.ErrorCode != 3 {
			t.Errorf("partition 9: error %d, want 3", got.ErrorCode)
		}
	})
}

// TestFetchWaits is case 4.
func TestFetchWaits(t *testing.T) {
	onBoth(t, func(t *testing.T, to target) {
		topic, id := newTopic(t, to)
		c, producer := raw.Dial(t, to.addr), raw.Dial(t, to.addr)
		began := time.Now()
		if got := fetch(t, c, fetchRequest(11, topic, id, 0, 0)); len(got.RecordBatches) != 0 || time.Since(began) < 400*time.Millisecond {
			t.Errorf("empty: %d bytes after %v, want nothing after 500 ms", len(got.RecordBatches), time.Since(began))
		}
		long := fetchRequest(11, topic, id, 0, 0)
		long.MaxWaitMillis = 30000
		request := c.Write(long)
		if got := produce(t, producer, 9, topic, batch(t, 1, record.BatchOptions{})); got.ErrorCode != 0 {
			t.Fatalf("produce: error %d", got.ErrorCode)
		}
		response, err := c.Read(long, request, 20*time.Second)
		if err != nil {
			t.Fatalf("a produce did not wake the fetch: %v", err)
		}
		part := response.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if len(part.RecordBatches) == 0 || part.PreferredReadReplica != -1 {
			t.Errorf("woken with %d bytes, preferred read replica %d (want -1)", len(part.RecordBatches), part.PreferredReadReplica)
		}
		// One idle partition does not hold the other back.
		idle, idleID := newTopic(t, to)
		both := fetchRequest(11, topic, id, 0, 0)
		both.MaxWaitMillis = 30000
		both.Topics = append(both.Topics, fetchRequest(11, idle, idleID, 0, 0).Topics...)
		request = c.Write(both)
		if _, err := c.Read(both, request, 20*time.Second); err != nil {
			t.Errorf("with an idle partition beside: %v", err)
		}
		// As many bytes as the answer may have are enough, also where they end in
		// the middle of a large batch.
		for range 3 {
			b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1})
			b.Append(longAgo, nil, make([]byte, 20000))
			set, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			if got := produce(t, producer, 9, idle, set); got.ErrorCode != 0 {
				t.Fatalf("produce: error %d", got.ErrorCode)
			}
		}
		full := fetchRequest(11, idle, idleID, 0, 0)
		full.MaxWaitMillis, full.MinBytes, full.MaxBytes = 30000, 50000, 50000
		full.Topics[0].Partitions[0].PartitionMaxBytes = 50000
		request = c.Write(full)
		response, err = c.Read(full, request, 20*time.Second)
		if err != nil {
			t.Fatalf("a full answer: %v", err)
		}
		if n := len(response.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches); n < 40000 || n > 50000 {
			t.Errorf("a full answer has %d bytes, want two batches or a piece of the third", n)
		}
	})
}

// TestZstdToAnOldFetch is case 8.
func TestZstdToAnOldFetch(t *testing.T) {
	onBoth(t, func(t *testing.T, to target) {
		topic, id := newTopic(t, to, "compression.type", "zstd")
		c := raw.Dial(t, to.addr)
		if got := produce(t, c, 3, topic, batch(t, 5, record.BatchOptions{})); got.ErrorCode != 0 {
			t.Fatalf("produce: error %d", got.ErrorCode)
		}
		if got := fetch(t, c, fetchRequest(4, topic, id, 0, 0)); got.ErrorCode != 76 || got.HighWatermark != -1 || len(got.RecordBatches) != 0 {
			t.Errorf("v4: error %d, high watermark %d, %d bytes; want 76, -1, none", got.ErrorCode, got.HighWatermark, len(got.RecordBatches))
		}
		got := fetch(t, c, fetchRequest(11, topic, id, 0, 0))
		if got.ErrorCode != 0 || len(got.RecordBatches) < 23 || got.RecordBatches[22]&7 != 4 {
			t.Errorf("v11: error %d, %d bytes; want zstd (attributes 4)", got.ErrorCode, len(got.RecordBatches))
		}
	})
}
