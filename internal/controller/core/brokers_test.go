package core

import (
	"fmt"
	"maps"
	"slices"

	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fakeBroker is a broker as the controller's requests make it.
type fakeBroker struct {
	id       int32
	epoch    int64
	hold     bool // answers nothing for now
	missed   bool // a controller ended before all of its requests were out: logs may be left over
	failed   map[wire.TopicPartition]bool
	leaders  map[wire.TopicPartition]kmsg.LeaderAndISRRequestTopicPartition
	metadata map[wire.TopicPartition]kmsg.UpdateMetadataRequestTopicPartition
	pending  map[wire.TopicPartition]*kmsg.AlterPartitionRequest // sent and not answered
	live     []int32
}

func (w *world) up(id int32) {
	b := znode.NewBroker(5, []znode.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h", Port: 9000 + id}}, nil, 1)
	w.create(znode.BrokerPath(id), string(b.Encode()))
	old := w.brokers[id]
	w.brokers[id] = &fakeBroker{id: id, epoch: w.zxid, failed: map[wire.TopicPartition]bool{},
		leaders: map[wire.TopicPartition]kmsg.LeaderAndISRRequestTopicPartition{}, metadata: map[wire.TopicPartition]kmsg.UpdateMetadataRequestTopicPartition{},
		pending: map[wire.TopicPartition]*kmsg.AlterPartitionRequest{}}
	if old != nil {
		w.brokers[id].hold = old.hold
	}
}

func (w *world) down(id int32) {
	w.remove(znode.BrokerPath(id))
	delete(w.brokers, id)
}

func (w *world) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (b *fakeBroker) handle(w *world, r kmsg.Request) kmsg.Response {
	switch r := r.(type) {
	case *kmsg.LeaderAndISRRequest:
		return b.leaderAndISR(w, r)
	case *kmsg.UpdateMetadataRequest:
		if r.BrokerEpoch < b.epoch {
			return &kmsg.UpdateMetadataResponse{Version: r.Version, ErrorCode: int16(wire.StaleBrokerEpoch)}
		}
		return b.updateMetadata(r)
	case *kmsg.StopReplicaRequest:
		resp := r.ResponseKind().(*kmsg.StopReplicaResponse)
		if r.BrokerEpoch < b.epoch {
			resp.ErrorCode = int16(wire.StaleBrokerEpoch)
			return resp
		}
		for _, t := range r.Topics {
			for _, p := range t.PartitionStates {
				tp := wire.TopicPartition{Topic: t.Topic, Partition: p.Partition}
				if p.Delete {
					delete(b.leaders, tp)
				}
				resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{Topic: t.Topic, Partition: p.Partition})
			}
			for _, id := range t.Partitions {
				if r.DeletePartitions {
					delete(b.leaders, wire.TopicPartition{Topic: t.Topic, Partition: id})
				}
			}
		}
		return resp
	}
	return nil
}

func (b *fakeBroker) leaderAndISR(w *world, r *kmsg.LeaderAndISRRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.LeaderAndISRResponse)
	if r.BrokerEpoch < b.epoch {
		resp.ErrorCode = int16(wire.StaleBrokerEpoch)
		return resp
	}
	for _, t := range r.TopicStates {
		rt := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
		for _, p := range t.PartitionStates {
			tp := wire.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			var code wire.Code
			known, ok := b.leaders[tp]
			switch {
			case b.failed[tp]:
				code = wire.KafkaStorageError
			case ok && b.missed && p.LeaderEpoch < known.LeaderEpoch:
				b.leaders[tp] = p // of an earlier topic of that name
			case ok && p.LeaderEpoch < known.LeaderEpoch:
				w.problem("broker %d: leader epoch of %s goes from %d back to %d", b.id, tp, known.LeaderEpoch, p.LeaderEpoch)
			case ok && p.LeaderEpoch == known.LeaderEpoch && p.Leader != known.Leader:
				w.problem("broker %d: %s has leaders %d and %d in epoch %d", b.id, tp, known.Leader, p.Leader, p.LeaderEpoch)
			case ok && p.LeaderEpoch == known.LeaderEpoch:
				// Nothing new: Kafka answers STALE_CONTROLLER_EPOCH.
			default:
				b.leaders[tp] = p
			}
			if p.Leader >= 0 && !slices.Contains(p.ISR, p.Leader) {
				w.problem("broker %d: leader %d of %s is not in the ISR %v", b.id, p.Leader, tp, p.ISR)
			}
			part := kmsg.LeaderAndISRResponseTopicPartition{Topic: t.Topic, Partition: p.Partition, ErrorCode: int16(code)}
			rt.Partitions = append(rt.Partitions, part)
			if r.Version < 5 {
				resp.Partitions = append(resp.Partitions, part)
			}
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (b *fakeBroker) updateMetadata(r *kmsg.UpdateMetadataRequest) kmsg.Response {
	b.live = nil
	for _, l := range r.LiveBrokers {
		b.live = append(b.live, l.ID)
	}
	for _, t := range r.TopicStates {
		for _, p := range t.PartitionStates {
			tp := wire.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			if p.Leader == leaderDuringDelete {
				delete(b.metadata, tp)
			} else {
				b.metadata[tp] = p
			}
		}
	}
	return r.ResponseKind()
}

// ask gives the machine a call and returns at once; then gets the answer.
func (w *world) ask(request any, then func(any)) {
	w.calls++
	w.onReply[w.calls] = then
	w.step(Call{w.calls, request})
}

// alterISR is a leader's AlterPartition for what it was told; false when no
// live broker takes itself for the leader.
func (w *world) alterISR(tp wire.TopicPartition, isr []int32) bool {
	for _, id := range slices.Sorted(maps.Keys(w.brokers)) {
		if w.brokers[id].leaders[tp].Leader == id {
			w.alterISRBy(w.brokers[id], tp, isr)
			return true
		}
	}
	return false
}

// alterISRBy is alterISR of one of those that take themselves for the leader.
func (w *world) alterISRBy(b *fakeBroker, tp wire.TopicPartition, isr []int32) {
	p := b.leaders[tp]
	if was := b.pending[tp]; was != nil && was.Topics[0].Partitions[0].LeaderEpoch == p.LeaderEpoch {
		w.sendAlter(b, tp, was) // a leader repeats itself until it is answered
		return
	}
	req := kmsg.NewPtrAlterPartitionRequest()
	req.Version, req.BrokerID, req.BrokerEpoch = 1, b.id, b.epoch
	t := kmsg.NewAlterPartitionRequestTopic()
	t.Topic = tp.Topic
	a := kmsg.NewAlterPartitionRequestTopicPartition()
	a.Partition, a.LeaderEpoch, a.NewISR, a.PartitionEpoch = tp.Partition, p.LeaderEpoch, isr, p.ZKVersion
	t.Partitions = append(t.Partitions, a)
	req.Topics = append(req.Topics, t)
	w.sendAlter(b, tp, req)
}

func (w *world) sendAlter(b *fakeBroker, tp wire.TopicPartition, req *kmsg.AlterPartitionRequest) {
	b.pending[tp] = req
	w.ask(AlterPartition{req}, func(result any) {
		resp, ok := result.(*kmsg.AlterPartitionResponse)
		if !ok {
			return
		}
		delete(b.pending, tp)
		if resp.ErrorCode != 0 {
			return
		}
		a, now := resp.Topics[0].Partitions[0], b.leaders[tp]
		if a.ErrorCode == 0 {
			w.accepted++
		}
		if a.ErrorCode == 0 && now.LeaderEpoch == a.LeaderEpoch {
			now.ISR, now.ZKVersion = a.ISR, a.PartitionEpoch
			b.leaders[tp] = now
		}
	})
}
