package transactions

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/raw"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Records of a transaction that comes without its id, or with those of another
// producer, are refused with all that is in their request: nobody would end the
// transaction, and read_committed would end before it for ever.
func TestRecordsOfNoOneTransactionAreRefused(t *testing.T) {
	answers := map[string][]string{}
	raw.OnBoth(t, func(t *testing.T, addr string) {
		broker := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		topic := raw.NewTopic(t, addr, 3)
		raw.TransactionsCoordinated(t, addr, "mine")
		c := raw.Dial(t, addr)
		type sent struct {
			partition     int32
			producer      int64
			transactional bool
		}
		send := func(what string, version int16, id *string, sets ...sent) {
			r := kmsg.NewPtrProduceRequest()
			r.Version, r.Acks, r.TimeoutMillis, r.TransactionID = version, -1, 10000, id
			top := kmsg.NewProduceRequestTopic()
			top.Topic = topic
			for _, s := range sets {
				b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1, Transactional: s.transactional, Producer: &record.Producer{ID: s.producer}})
				b.Append(time.Now().UnixMilli(), nil, []byte("v"))
				set, err := b.Build()
				if err != nil {
					t.Fatal(err)
				}
				p := kmsg.NewProduceRequestTopicPartition()
				p.Partition, p.Records = s.partition, set
				top.Partitions = append(top.Partitions, p)
			}
			r.Topics = append(r.Topics, top)
			answer := what
			partitions := raw.Do[*kmsg.ProduceResponse](c, r).Topics[0].Partitions
			slices.SortFunc(partitions, func(a, b kmsg.ProduceResponseTopicPartition) int { return int(a.Partition - b.Partition) }) // Kafka's order is that of a hash map
			for _, p := range partitions {
				message := ""
				if p.ErrorMessage != nil {
					message = *p.ErrorMessage
				}
				answer += fmt.Sprintf(" [%d: %d %d %d %d %q]", p.Partition, p.ErrorCode, p.BaseOffset, p.LogAppendTime, p.LogStartOffset, message)
			}
			answers[broker] = append(answers[broker], answer)
		}
		id := "mine"
		r := initProducer(c, id, 60000, -1, -1)
		for partition := range int32(3) {
			if code := addPartition(c, 2, id, r.ProducerID, r.ProducerEpoch, topic, partition); code != 0 {
				t.Fatal(code)
			}
		}
		own, foreign := r.ProducerID, r.ProducerID+1000
		send("v2, no id", 2, nil, sent{0, own, true})
		for _, version := range []int16{3, 7, 8, 9, 11} {
			send(fmt.Sprintf("v%d, no id", version), version, nil, sent{0, own, true})
			send(fmt.Sprintf("v%d, no id, one of two", version), version, nil, sent{0, foreign, false}, sent{1, own, true})
			send(fmt.Sprintf("v%d, two producers", version), version, &id, sent{0, foreign, true}, sent{1, own, true})
			send(fmt.Sprintf("v%d, two producers, another order", version), version, &id, sent{0, own, true}, sent{1, foreign, true}, sent{2, own, true})
		}
		send("its own, at offset 0", 9, &id, sent{0, own, true}, sent{1, own, true}, sent{2, own, true})
	})
	if ours, theirs := answers["barnabas"], answers["kafka-3.9.1"]; !slices.Equal(ours, theirs) || len(ours) != 22 {
		for i := range min(len(ours), len(theirs)) {
			if ours[i] != theirs[i] {
				t.Errorf("Barnabas: %s\nKafka:    %s", ours[i], theirs[i])
			}
		}
		t.Error(len(ours), len(theirs))
	}
}
