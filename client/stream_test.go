package client

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"barnabas/internal/record"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetched decodes a batch of n records as a fetch does.
func fetched(t *testing.T, pool *slabs, o *owned, base int64, n int) chunk {
	t.Helper()
	b := record.NewBuilder(record.BatchOptions{BaseOffset: base})
	for i := range int64(n) {
		b.Append(1000+base+i, fmt.Append(nil, "k", base+i), fmt.Append(nil, "v", base+i), record.Header{Key: "h", Value: fmt.Append(nil, base+i)})
	}
	set, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	opts := kgo.ProcessFetchPartitionOpts{Topic: o.Topic, Offset: base, Pools: []kgo.Pool{pool}}
	p, next := kgo.ProcessFetchPartition(opts, &kmsg.FetchResponseTopicPartition{Partition: o.Partition, RecordBatches: set}, nil, nil)
	if p.Err != nil || next != base+int64(n) || len(p.Records) != n {
		t.Fatal(p.Err, next, len(p.Records))
	}
	return chunk{of: o, records: p.Records, bytes: sizeOf(p.Records)}
}

func TestMessagesOutliveTheMemoryOfTheirRecords(t *testing.T) {
	pool := new(slabs)
	roomy := make(chan struct{})
	s := newStream(0, -1, 2000, func() { roomy <- struct{}{} })
	o := &owned{TopicPartition: wire.TopicPartition{Topic: "t", Partition: 3}, stream: s}
	const total = 10000
	got := make([]Message, total)
	var taken atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for {
				m, err := s.Next(t.Context())
				if err != nil {
					return
				}
				got[m.Offset] = m
				if taken.Add(1) == total {
					s.close()
				}
			}
		})
	}
	for base, n := 0, 1; base < total; base, n = base+n, min(n%40+1, total-base-n) {
		if s.put(fetched(t, pool, o, int64(base), n)) {
			<-roomy
		}
	}
	all.Wait()
	for i, m := range got {
		if want := fmt.Sprintf("t 3 %d k%d v%d h %d %d", i, i, i, i, 1000+i); fmt.Sprintf("%s %d %d %s %s %s %s %d", m.Topic, m.Partition, m.Offset, m.Key, m.Value, m.Headers[0].Key, m.Headers[0].Value, m.Timestamp.UnixMilli()) != want {
			t.Fatalf("%+v, want %s", m, want)
		}
	}
}

func TestRoomForRecordsComesBackWithItsSize(t *testing.T) {
	pool := new(slabs)
	for _, n := range []int{0, 1, 2, 3, 4, 5, 1000, 1024, 1025} {
		r := pool.GetRecords(n)
		if cap(r) < n || cap(r) > max(1, 2*n) {
			t.Errorf("%d records get room for %d", n, cap(r))
		}
		pool.PutRecords(r)
		if again := pool.GetRecords(n); cap(again) != cap(r) {
			t.Errorf("%d records get room for %d, then for %d", n, cap(r), cap(again))
		}
	}
}
