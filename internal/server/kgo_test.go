package server

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestAnIndependentClientReadsWhatItWrote drives franz-go as it would talk to
// the broker of each era, with each codec that the era has.
func TestAnIndependentClientReadsWhatItWrote(t *testing.T) {
	h := start(t)
	none, gzip, snappy, lz4, zstd := kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()
	for _, era := range []struct {
		name     string
		versions *kversion.Versions
		codecs   map[string]kgo.CompressionCodec
	}{
		{"0.8.2", kversion.V0_8_2(), map[string]kgo.CompressionCodec{"none": none, "gzip": gzip, "snappy": snappy}},
		{"0.9.0", kversion.V0_9_0(), map[string]kgo.CompressionCodec{"none": none, "gzip": gzip, "snappy": snappy}},
		{"0.10.2", kversion.V0_10_2(), map[string]kgo.CompressionCodec{"none": none, "gzip": gzip, "snappy": snappy, "lz4": lz4}},
		{"0.11.0", kversion.V0_11_0(), map[string]kgo.CompressionCodec{"none": none, "gzip": gzip, "snappy": snappy, "lz4": lz4}},
		{"1.1.0", kversion.V1_1_0(), map[string]kgo.CompressionCodec{"none": none, "lz4": lz4}},
		{"2.1.0", kversion.V2_1_0(), map[string]kgo.CompressionCodec{"none": none, "zstd": zstd}},
		{"2.8.0", kversion.V2_8_0(), map[string]kgo.CompressionCodec{"none": none, "zstd": zstd, "snappy": snappy}},
		{"3.9.0", kversion.V3_9_0(), map[string]kgo.CompressionCodec{"none": none, "gzip": gzip, "snappy": snappy, "lz4": lz4, "zstd": zstd}},
	} {
		for codec, c := range era.codecs {
			t.Run(era.name+"/"+codec, func(t *testing.T) { roundTrip(t, h, era.versions, c) })
		}
	}
}

func roundTrip(t *testing.T, h *harness, versions *kversion.Versions, codec kgo.CompressionCodec) {
	const n = 3000
	topic := fmt.Sprintf("t-%d", time.Now().UnixNano())
	h.topic(topic, 3)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	producer, err := kgo.NewClient(kgo.SeedBrokers(h.addr), kgo.MaxVersions(versions), kgo.DisableIdempotentWrite(),
		kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(codec), kgo.RequiredAcks(kgo.AllISRAcks()))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for i := range n {
		producer.Produce(ctx, &kgo.Record{Key: fmt.Append(nil, i%7), Value: fmt.Append(nil, "value ", i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	if err := producer.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(h.addr), kgo.MaxVersions(versions), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxPartitionBytes(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	next, last, seen := map[int32]int64{}, map[string]int{}, 0
	for seen < n {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d records: %v", seen, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			seen++
			if r.Offset != next[r.Partition] {
				t.Fatalf("partition %d: offset %d, want %d", r.Partition, r.Offset, next[r.Partition])
			}
			next[r.Partition]++
			var i int
			if _, err := fmt.Sscanf(string(r.Value), "value %d", &i); err != nil || fmt.Sprint(i%7) != string(r.Key) {
				t.Fatalf("record %q %q", r.Key, r.Value)
			}
			if prev, ok := last[string(r.Key)]; ok && i <= prev {
				t.Fatalf("key %s: %d after %d", r.Key, i, prev)
			}
			last[string(r.Key)] = i
		})
	}
}
