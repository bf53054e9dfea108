package cases

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// changed returns a copy of a batch with bytes replaced at a position and, if
// asked, the CRC made right again.
func changed(set record.Batch, at int, with []byte, crc bool) []byte {
	out := record.Batch(bytes.Clone(set))
	copy(out[at:], with)
	if crc {
		out.UpdateCRC()
	}
	return out
}

func be32(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// TestAcksAndBadBatches is case 7.
func TestAcksAndBadBatches(t *testing.T) {
	onBoth(t, func(t *testing.T, to target) {
		topic, id := newTopic(t, to)
		compacted, _ := newTopic(t, to, "cleanup.policy", "compact")
		c := raw.Dial(t, to.addr)
		good := func() record.Batch { return batch(t, 1, record.BatchOptions{}) }

		c.Write(produceRequest(9, 0, topic, 0, good()))
		// The next answer is that of Metadata: acks=0 has none.
		raw.Do[*kmsg.MetadataResponse](c, metadata(1, nil, false))
		real.Until(t, 10*time.Second, "the record of acks=0", func() bool {
			return fetch(t, c, fetchRequest(11, topic, id, 0, 0)).HighWatermark == 1
		})
		wrong := raw.Dial(t, to.addr)
		wrong.Write(produceRequest(9, 0, topic, 9, good()))
		if _, err := wrong.Frame(15 * time.Second); !errors.Is(err, raw.ErrClosed) {
			t.Errorf("acks=0 to a partition that is not there: %v, want it closed", err)
		}
		if got := raw.Do[*kmsg.ProduceResponse](c, produceRequest(9, 5, topic, 0, good())).Topics[0].Partitions[0]; got.ErrorCode != 21 {
			t.Errorf("acks=5: error %d, want 21", got.ErrorCode)
		}

		two := append(bytes.Clone(good()), good()...)
		for _, try := range []struct {
			name    string
			version int16
			topic   string
			set     []byte
			code    int16
		}{
			{"bad CRC", 9, topic, changed(good(), 17, be32(12345), false), 2},
			{"two batches", 9, topic, two, 87},
			{"no bytes", 9, topic, []byte{}, 87},
			{"count 2 with 1 record", 9, topic, changed(good(), 57, be32(2), true), 87},
			{"count 0", 9, topic, changed(good(), 57, be32(0), true), 87},
			{"lastOffsetDelta 5 with 1 record", 9, topic, changed(good(), 23, be32(5), true), 87},
			{"null key to a compacted topic", 9, compacted, nullKey(t), 87},
			{"a key to a compacted topic", 9, compacted, good(), 0},
			{"magic 1 in v3", 3, topic, oldFormat(1), 87},
			{"magic 2 in v2", 2, topic, good(), 0},
			{"magic 1 in v2", 2, topic, oldFormat(1), 0},
			{"magic 0 in v0", 0, topic, oldFormat(0), 0},
			{"1.1 MB", 9, topic, big(t, 1_100_000), 10},
		} {
			if got := produce(t, c, try.version, try.topic, try.set); got.ErrorCode != try.code {
				t.Errorf("%s: error %d, want %d", try.name, got.ErrorCode, try.code)
			}
		}
		if !to.apache { // Apache 3.9.1 never answers null records
			if got := produce(t, c, 9, topic, nil); got.ErrorCode != 87 {
				t.Errorf("null records: error %d, want 87", got.ErrorCode)
			}
		}
	})
}

func nullKey(t *testing.T) []byte {
	b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1})
	b.Append(time.Now().UnixMilli(), nil, []byte("v"))
	set, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func big(t *testing.T, size int) []byte {
	b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1})
	b.Append(time.Now().UnixMilli(), []byte("k"), make([]byte, size))
	set, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// oldFormat returns one message of format v0 or v1: kmsg has encoders for them.
func oldFormat(magic int8) []byte {
	if magic == 0 {
		m := kmsg.MessageV0{Magic: 0, Key: []byte("k"), Value: []byte("v")}
		return finish(m.AppendTo(nil))
	}
	m := kmsg.MessageV1{Magic: 1, Timestamp: time.Now().UnixMilli(), Key: []byte("k"), Value: []byte("v")}
	return finish(m.AppendTo(nil))
}

// finish fills in the size and the CRC of an old message: offset 8 bytes, size
// 4, CRC 4, then what the CRC covers.
func finish(b []byte) []byte {
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[12:], ieee(b[16:]))
	return b
}
