package api

import (
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

// fromAnyReplica is the version of Fetch from which consumers may read from
// followers (KIP-392).
const fromAnyReplica = 11

// serving returns the log if this broker serves it to who asks: a leader to
// all, a follower to consumers that know of such.
func (f *fetching) serving(p *fetchPartition) (*storage.Log, wire.Code) {
	if f.replica < 0 && f.q.Version >= fromAnyReplica {
		return p.part.Serving(p.leaderEpoch)
	}
	return p.part.Leading(p.leaderEpoch)
}

// nearest returns the replica that a consumer is sent to because it is in the
// same rack, -1 for none: the leader is, or no other is
// (ReplicaManager.findPreferredReadReplica).
func (f *fetching) nearest(p *fetchPartition) int32 {
	if f.rack == "" {
		return -1
	}
	cluster, listener := f.b.Metadata.Cluster(), f.q.Conn.Listener
	near := func(id int32) bool {
		b := cluster.Broker(id)
		return b != nil && b.Rack != nil && *b.Rack == f.rack && b.Endpoint(listener) != nil
	}
	if near(f.b.ID) {
		return -1
	}
	if id, ok := p.part.Nearest(p.offset, near); ok {
		return id
	}
	return -1
}

// countThrottled counts what a follower gets of partitions whose replication is
// throttled.
func (f *fetching) countThrottled() {
	if f.replica < 0 {
		return
	}
	bytes := 0
	for i := range f.results {
		if d := &f.results[i]; d.size() > 0 && d.of.part.Throttled() {
			bytes += d.size()
		}
	}
	if bytes > 0 {
		f.b.Replicas.SentThrottled(bytes)
	}
}
