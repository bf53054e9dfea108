package api

import (
	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/markers"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 27, Name: "WriteTxnMarkers", Min: 0, Max: 1, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{"a transaction's coordinator has its end written (KIP-98)", "flexible"},
	Handle:   handleWriteTxnMarkers,
})

func handleWriteTxnMarkers(b *Broker, q *Request) {
	in := new(kmsg.WriteTxnMarkersRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	var ends []markers.End
	for i := range in.Markers {
		m := &in.Markers[i]
		e := markers.End{Marker: coordinator.Marker{
			Producer: coordinator.Producer{ID: m.ProducerID, Epoch: m.ProducerEpoch}, Commit: m.Committed, CoordinatorEpoch: m.CoordinatorEpoch,
		}}
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				e.Partitions = append(e.Partitions, wire.TopicPartition{Topic: t.Topic, Partition: p})
			}
		}
		ends = append(ends, e)
	}
	b.WriteMarkers(ends, func(codes [][]wire.Code) {
		q.Later(func(*Request) {
			r := kmsg.NewPtrWriteTxnMarkersResponse()
			for i := range in.Markers {
				m := kmsg.WriteTxnMarkersResponseMarker{ProducerID: in.Markers[i].ProducerID}
				at := 0
				for _, t := range in.Markers[i].Topics {
					topic := kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: t.Topic}
					for _, p := range t.Partitions {
						topic.Partitions = append(topic.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: p, ErrorCode: int16(codes[i][at])})
						at++
					}
					m.Topics = append(m.Topics, topic)
				}
				r.Markers = append(r.Markers, m)
			}
			q.Reply(r)
		})
	})
}
