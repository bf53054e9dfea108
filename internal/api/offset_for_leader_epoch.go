package api

import (
	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

var _ = register(API{
	Key: 23, Name: "OffsetForLeaderEpoch", Min: 0, Max: 4, Reuse: true,
	Versions: []string{
		"the end offset of a leader epoch (KIP-101)",
		"the epoch that was found (KIP-279)",
		"the client's leader epoch; throttle time (KIP-320)",
		"the follower's id",
		"flexible",
	},
	Handle: handleOffsetForLeaderEpoch,
})

// handleOffsetForLeaderEpoch tells where leader epochs ended, so that clients
// and followers find where they went apart from this log.
func handleOffsetForLeaderEpoch(b *Broker, q *Request) {
	r := wire.NewReader(q.Body)
	w, v, flexible := &q.W, q.Version, q.Flexible
	if v >= 3 {
		r.Int32() // who asks
	}
	if v >= 2 {
		w.Int32(0) // throttle time
	}
	topics := r.Array(flexible, 3)
	w.Length(flexible, topics)
	for ; topics > 0 && r.Err() == nil; topics-- {
		name := r.String(flexible)
		parts := r.Array(flexible, 8)
		w.StringBytes(flexible, name)
		w.Length(flexible, parts)
		t := b.Replicas.Topic(name)
		for ; parts > 0 && r.Err() == nil; parts-- {
			index, current := r.Int32(), int32(-1)
			if v >= 2 {
				current = r.Int32()
			}
			epoch := r.Int32()
			r.Tags(flexible)
			end, code := endOfEpoch(b, name, t, index, current, epoch)
			w.Int16(int16(code))
			w.Int32(index)
			if v >= 1 {
				w.Int32(end.Epoch)
			}
			w.Int64(end.EndOffset)
			w.Tags(flexible)
		}
		r.Tags(flexible)
		w.Tags(flexible)
	}
	r.Tags(flexible)
	w.Tags(flexible)
	if r.Err() != nil {
		q.malformed()
		return
	}
	q.Done()
}

func endOfEpoch(b *Broker, name []byte, t *replica.Topic, index, current, epoch int32) (storage.EpochEnd, wire.Code) {
	none := storage.EpochEnd{Epoch: -1, EndOffset: -1}
	var p *replica.Partition
	if t != nil {
		p = t.Partition(index)
	}
	if p == nil {
		return none, b.missing(name, index)
	}
	log, code := p.Leading(current)
	if code != wire.None {
		return none, code
	}
	return log.EndOffsetForEpoch(epoch), wire.None
}
