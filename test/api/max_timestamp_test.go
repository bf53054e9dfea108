package api

import (
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestMaxTimestampIsOfARecordThatIsLeft asks for the record with the largest
// timestamp after DeleteRecords took it away: Kafka still names it.
func TestMaxTimestampIsOfARecordThatIsLeft(t *testing.T) {
	for name, b := range map[string]struct {
		addr string
		want int64
	}{
		"barnabas":    {real.Barnabas(t, 1).Addr, 1},
		"kafka 3.9.1": {real.Kafka(t, "3.9.1", 1, real.ZooKeeper(t), "inter.broker.protocol.version=3.9").Addr, 0},
	} {
		t.Run(name, func(t *testing.T) {
			topic := raw.NewTopic(t, b.addr, 1)
			client, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.DefaultProduceTopic(topic))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			now := time.Now()
			for _, age := range []time.Duration{time.Minute, time.Hour} {
				if err := client.ProduceSync(t.Context(), &kgo.Record{Value: []byte("v"), Timestamp: now.Add(-age)}).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			admin := kadm.NewClient(client)
			to := kadm.Offsets{}
			to.AddOffset(topic, 0, 1, -1)
			if gone, err := admin.DeleteRecords(t.Context(), to); err != nil || gone.Error() != nil {
				t.Fatal(err, gone.Error())
			}
			r := kmsg.NewPtrListOffsetsRequest()
			r.Version, r.ReplicaID = 7, -1
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.CurrentLeaderEpoch, p.Timestamp = -1, -3
			r.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
			got := raw.Ask[*kmsg.ListOffsetsResponse](t, b.addr, r).Topics[0].Partitions[0]
			if got.ErrorCode != 0 || got.Offset != b.want {
				t.Errorf("error %d, offset %d, timestamp %d; expected offset %d", got.ErrorCode, got.Offset, got.Timestamp, b.want)
			}
		})
	}
}
