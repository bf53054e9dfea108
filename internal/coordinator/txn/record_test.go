package txn

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"barnabas/internal/coordinator"
	"barnabas/internal/record"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The bytes of every record are those that Kafka wrote for the same content.
func TestRecordsAreKafkas(t *testing.T) {
	for _, version := range []string{"2.8.2", "3.9.1"} {
		set, err := os.ReadFile("testdata/kafka-" + version + ".log")
		if err != nil {
			t.Fatal(err)
		}
		m := New(Config{}, 0)
		seen := map[State]int{}
		err = record.Each(set, 0, func(_ record.Batch, r *record.Record) error {
			id, err := decodeKey(r.Key)
			if err != nil || !bytes.Equal(keyOf(id), r.Key) {
				t.Errorf("%s: key %x, ours %x, %v", version, r.Key, keyOf(id), err)
			}
			s, err := decodeValue(r.Value)
			if err != nil {
				return err
			}
			seen[s.state]++
			if again := valueOf(&s); !bytes.Equal(again, r.Value) && !slices.IsSortedFunc(s.partitions, comparePartitions) {
				slices.SortFunc(s.partitions, comparePartitions) // Kafka's order of topics is that of a hash table
				if len(again) != len(r.Value) {
					t.Errorf("%s: %+v: %x, ours %x", version, s, r.Value, again)
				}
			} else if !bytes.Equal(again, r.Value) {
				t.Errorf("%s: %+v: %x, ours %x", version, s, r.Value, again)
			}
			return m.Replay(coordinator.Entry{Record: coordinator.Record{Key: r.Key, Value: r.Value}})
		})
		if err != nil {
			t.Fatal(err)
		}
		for s := Empty; s <= CompleteAbort; s++ {
			if seen[s] == 0 {
				t.Errorf("%s: the fixture has no record in state %v", version, s)
			}
		}
		got := fmt.Sprint(len(m.ids), m.ids["tx-txgroup"].state, m.ids["tx-txgroup2"].state, m.ids["tx-txgroup"].epoch)
		if want := "2 CompleteCommit CompleteAbort 0"; got != want {
			t.Errorf("%s: loaded %s, want %s", version, got, want)
		}
	}
}

// kmsg's schema was written by others.
func TestNewerValuesAreRead(t *testing.T) {
	for v := int16(0); v <= 1; v++ {
		value := kmsg.NewTxnMetadataValue()
		value.Version, value.ProducerID, value.ProducerEpoch, value.TimeoutMillis, value.State = v, 7, 3, 1000, 1
		value.LastUpdateTimestamp, value.StartTimestamp = 5, 4
		value.Topics = []kmsg.TxnMetadataValueTopic{{Topic: "t", Partitions: []int32{1, 2}}, {Topic: "u", Partitions: []int32{0}}}
		s, err := decodeValue(value.AppendTo(nil))
		if err != nil || s.producer != 7 || s.epoch != 3 || s.timeout != 1000 || s.state != Ongoing || len(s.partitions) != 3 || s.update != 5 || s.start != 4 {
			t.Errorf("v%d: %+v, %v", v, s, err)
		}
		if v == 0 && !bytes.Equal(valueOf(&s), value.AppendTo(nil)) {
			t.Errorf("ours %x, kmsg's %x", valueOf(&s), value.AppendTo(nil))
		}
	}
	for _, b := range []string{"", "\x00", "\x00\x02", "\x00\x00\x00\x00", "\xff\xff"} {
		if _, err := decodeValue([]byte(b)); err == nil {
			t.Errorf("value %x was taken", b)
		}
	}
}
