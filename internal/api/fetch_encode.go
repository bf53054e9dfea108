package api

import "barnabas/internal/wire"

// encode writes the answer. Records are file slices between the bytes of q.W.
func (f *fetching) encode() {
	q := f.q
	w, v, flexible := &q.W, q.Version, q.Flexible
	if v >= 1 {
		w.Int32(0) // throttle time
	}
	if v >= 7 {
		w.Int16(int16(f.code))
		w.Int32(f.sessionID)
	}
	w.Length(flexible, f.countTopics())
	var endpoints leaderEndpoints
	for i := 0; i < len(f.results); {
		n := i + 1
		for n < len(f.results) && sameTopic(f.results[i].of, f.results[n].of) {
			n++
		}
		of := f.results[i].of
		if v >= 13 {
			w.UUID(of.id)
		} else {
			w.String(flexible, of.topic)
		}
		w.Length(flexible, n-i)
		for ; i < n; i++ {
			f.encodePartition(&f.results[i], &endpoints)
		}
		w.Tags(flexible)
	}
	if flexible {
		endpoints.append(w, 0)
	}
}

// countTopics counts runs of results of one topic, as Kafka groups them.
func (f *fetching) countTopics() int {
	n := 0
	for i := range f.results {
		if i == 0 || !sameTopic(f.results[i-1].of, f.results[i].of) {
			n++
		}
	}
	return n
}

func sameTopic(a, b *fetchPartition) bool { return a.id == b.id && a.topic == b.topic }

func (f *fetching) encodePartition(d *fetched, endpoints *leaderEndpoints) {
	q := f.q
	w, v, flexible := &q.W, q.Version, q.Flexible
	w.Int32(d.of.index)
	w.Int16(int16(d.code))
	w.Int64(d.hw)
	if v >= 4 {
		w.Int64(d.lso)
	}
	if v >= 5 {
		w.Int64(d.start)
	}
	if v >= 4 {
		f.encodeAborted(d)
	}
	if v >= 11 {
		w.Int32(d.preferred) // -1 with records: anything else makes clients drop them
	}
	w.Length(flexible, d.size())
	if d.converted != nil {
		w.B = append(w.B, d.converted...)
	} else {
		q.InsertSlice(d.slice)
	}
	if !flexible {
		return
	}
	switch {
	case d.diverging.Epoch >= 0:
		w.Uvarint(1)
		w.Uvarint(0)
		w.Uvarint(4 + 8 + 1)
		w.Int32(d.diverging.Epoch)
		w.Int64(d.diverging.EndOffset)
		w.Tags(true)
	case v >= 16 && (d.code == wire.NotLeaderOrFollower || d.code == wire.FencedLeaderEpoch):
		endpoints.appendCurrentLeader(w, 1, f.b, q.Conn.Listener, d.of.topic, d.of.index)
	default:
		w.Tags(true)
	}
}

// encodeAborted writes the aborted transactions: null unless the client asked
// for committed records only.
func (f *fetching) encodeAborted(d *fetched) {
	w, flexible := &f.q.W, f.q.Flexible
	if !d.withAborted {
		w.Length(flexible, -1)
		return
	}
	w.Length(flexible, len(d.aborted))
	for _, a := range d.aborted {
		w.Int64(a.ProducerID)
		w.Int64(a.FirstOffset)
		w.Tags(flexible)
	}
}
