package api

import (
	"sync"
	"time"

	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

var _ = register(API{
	Key: 1, Name: "Fetch", Min: 0, Max: 17, Reuse: true, Expansion: 8,
	Versions: []string{
		"format v0",
		"throttle time",
		"format v1",
		"a limit for the whole answer; the first batch comes whole",
		"format v2; isolation level, last stable offset, aborted transactions",
		"log start offset",
		"KAFKA_STORAGE_ERROR may be answered",
		"sessions (KIP-227)",
		"throttled after the answer, not before it (KIP-219)",
		"leader epochs of the client (KIP-320)",
		"zstd (KIP-110)",
		"the client's rack, preferred read replica (KIP-392)",
		"flexible; last fetched epoch, diverging epoch (KIP-595)",
		"topic ids (KIP-516)",
		"OFFSET_MOVED_TO_TIERED_STORAGE may be answered to followers",
		"the follower's state as a tagged field (KIP-903)",
		"current leader and its address (KIP-951)",
		"the follower's directory id (KIP-853)",
	},
	Handle: handleFetch,
})

const (
	fullFetch     = 0  // session epoch: all partitions are named
	endSession    = -1 // session epoch: as 0, and the session ends
	readCommitted = 1
)

// fetching is one Fetch request under way.
type fetching struct {
	b *Broker
	q *Request

	replica     int32 // -1: a consumer
	brokerEpoch int64 // of the replica; -1: not told
	maxWait     time.Duration
	minBytes    int
	maxBytes    int
	isolation   int8
	rack        string // a consumer's, where there is a replica selector
	sessionID   int32
	epoch       int32
	incremental bool

	set     *fetchSet     // the partitions to look at: of the session, or own
	session *fetchSession // nil: none
	own     fetchSet      // for a request without a session
	results []fetched
	bytes   int       // of records found
	failed  bool      // a partition has an error, or another replica to read from: answer at once
	code    wire.Code // of the whole answer

	body wire.Reader // of a session's request, until its turn
	wait fetchWait
}

// fetchPartition is a partition that a client fetches.
type fetchPartition struct {
	sub   replica.Subscription
	set   *fetchSet
	at    int // place in set.list
	topic string
	id    wire.UUID
	index int32

	offset      int64
	maxBytes    int
	leaderEpoch int32
	fetchEpoch  int32 // last fetched epoch; -1: not told
	logStart    int64 // a follower's

	part  *replica.Partition // nil: not found yet
	dirty bool               // guarded by set.mu: in set.mu.dirty

	// What the session's client was last told; -1 before the first time.
	hw, lso, start int64
	told           bool
}

// fetched is what was found for one partition.
type fetched struct {
	of             *fetchPartition
	code           wire.Code
	hw, lso, start int64
	bound          int64 // up to where this client may read
	slice          storage.Slice
	converted      []byte // records in an old format, instead of slice
	aborted        []storage.AbortedTxn
	withAborted    bool
	diverging      storage.EpochEnd
	preferred      int32 // the replica that the consumer is sent to; -1: none
}

func newFetched(p *fetchPartition) fetched {
	return fetched{of: p, hw: -1, lso: -1, start: -1, diverging: storage.EpochEnd{Epoch: -1, EndOffset: -1}, preferred: -1}
}

func (f *fetched) size() int { return f.slice.Len + len(f.converted) }

var fetchings = sync.Pool{New: func() any { return new(fetching) }}

// handleFetch answers with what the named partitions hold beyond the client's
// offsets, once there is enough of it (KafkaApis.handleFetchRequest and
// ReplicaManager.fetchMessages).
func handleFetch(b *Broker, q *Request) {
	f := fetchings.Get().(*fetching)
	f.b, f.q = b, q
	r := wire.NewReader(q.Body)
	if !f.readHead(&r) || !f.wellFormed(r) {
		f.recycle()
		q.malformed()
		return
	}
	f.begin(r)
}

// readHead reads what comes before the partitions.
func (f *fetching) readHead(r *wire.Reader) bool {
	v := f.q.Version
	f.replica, f.brokerEpoch, f.maxBytes, f.sessionID, f.epoch = -1, -1, 1<<31-1, 0, endSession
	if v <= 14 {
		f.replica = r.Int32()
	}
	f.maxWait = time.Duration(r.Int32()) * time.Millisecond
	f.minBytes = int(r.Int32())
	if v >= 3 {
		f.maxBytes = int(r.Int32())
	}
	if v >= 4 {
		f.isolation = r.Int8()
	}
	if v >= 7 {
		f.sessionID, f.epoch = r.Int32(), r.Int32()
	}
	return r.Err() == nil
}

// wellFormed walks the partitions and what follows, before anything is done;
// it also finds the tagged fields at the end.
func (f *fetching) wellFormed(r wire.Reader) bool {
	v, flexible := f.q.Version, f.q.Flexible
	each := 16 // bytes of a partition in the oldest version
	for topics := r.Array(flexible, 3); topics > 0 && r.Err() == nil; topics-- {
		f.readTopic(&r)
		for parts := r.Array(flexible, each); parts > 0 && r.Err() == nil; parts-- {
			var p fetchPartition
			f.readPartition(&r, &p)
		}
		r.Tags(flexible)
	}
	if v >= 7 {
		for topics := r.Array(flexible, 3); topics > 0 && r.Err() == nil; topics-- {
			f.readTopic(&r)
			r.Take(4 * r.Array(flexible, 4))
			r.Tags(flexible)
		}
	}
	if v >= 11 {
		if rack := r.String(flexible); f.b.RackAware {
			f.rack = string(rack)
		}
	}
	if flexible {
		r.EachTag(func(tag uint32, value []byte) {
			if tag == 1 && v >= 15 {
				state := wire.NewReader(value)
				f.replica, f.brokerEpoch = state.Int32(), state.Int64()
			}
		})
	}
	return r.Err() == nil
}

// readTopic reads what names a topic: its id from version 13 on.
func (f *fetching) readTopic(r *wire.Reader) (name []byte, id wire.UUID) {
	if f.q.Version >= 13 {
		return nil, r.UUID()
	}
	return r.String(f.q.Flexible), id
}

func (f *fetching) readPartition(r *wire.Reader, p *fetchPartition) {
	v := f.q.Version
	p.index, p.leaderEpoch, p.fetchEpoch = r.Int32(), -1, -1
	if v >= 9 {
		p.leaderEpoch = r.Int32()
	}
	p.offset = r.Int64()
	if v >= 12 {
		p.fetchEpoch = r.Int32()
	}
	if v >= 5 {
		p.logStart = r.Int64()
	}
	p.maxBytes = int(r.Int32())
	r.Tags(f.q.Flexible)
}

// begin finds the session, if any, and the partitions; then it looks.
func (f *fetching) begin(r wire.Reader) {
	limit := f.b.Config.Load().Int("fetch.max.bytes")
	f.maxBytes = min(f.maxBytes, limit)
	f.minBytes = min(f.minBytes, f.maxBytes)
	if f.epoch != fullFetch && f.epoch != endSession {
		f.incremental = true
		f.b.Fetches.enter(f, r)
		return
	}
	if f.sessionID != 0 {
		f.b.Fetches.end(f.sessionID)
		f.sessionID = 0
	}
	f.set = &f.own
	f.readAll(&r, &f.own)
	if f.epoch == fullFetch {
		f.b.Fetches.create(f)
	}
	f.look()
}

// readAll reads the partitions into a new set.
func (f *fetching) readAll(r *wire.Reader, set *fetchSet) {
	flexible := f.q.Flexible
	for range r.Array(flexible, 3) {
		name, id := f.readTopic(r)
		t, topic := f.findTopic(name, id)
		for range r.Array(flexible, 16) {
			p := set.add()
			p.topic, p.id = topic, id
			f.readPartition(r, p)
			p.sub.Follower = f.replica >= 0
			if t != nil {
				p.part = t.Partition(p.index)
			}
		}
		r.Tags(flexible)
	}
}

// findTopic returns the topic here, if any, and its name: "" for an unknown id.
func (f *fetching) findTopic(name []byte, id wire.UUID) (*replica.Topic, string) {
	var t *replica.Topic
	if f.q.Version < 13 {
		if t = f.b.Replicas.Topic(name); t == nil {
			return nil, string(name)
		}
		return t, t.Name
	}
	if t = f.b.Replicas.TopicByID(id); t != nil {
		return t, t.Name
	}
	if m := f.b.Metadata.TopicByID(id); m != nil {
		return nil, m.Name
	}
	return nil, ""
}

// look reads and answers, or waits for more.
func (f *fetching) look() {
	f.read()
	if f.enough() {
		f.answer()
		return
	}
	f.park()
}

// enough tells whether the answer goes out now.
func (f *fetching) enough() bool {
	return f.bytes >= f.minBytes || f.maxWait <= 0 || f.failed || f.code != wire.None || f.set.empty()
}

// answer writes the answer and ends the request.
func (f *fetching) answer() {
	q := f.q
	f.countThrottled()
	f.encode()
	f.own.unsubscribe()
	if f.session != nil {
		f.session.answered(f.results)
		f.session.leave()
	}
	f.wait.stop()
	f.recycle()
	q.Done()
}

// refuse answers with an error for the whole request.
func (f *fetching) refuse(code wire.Code) {
	f.code, f.sessionID = code, 0
	q := f.q
	f.encode()
	f.wait.stop()
	f.recycle()
	q.Done()
}

// recycle makes f ready for another request; its slices belong to q by now.
// One that has waited is left to the collector: a late timer may still hold it.
func (f *fetching) recycle() {
	if f.wait.parked || f.wait.queued {
		return
	}
	clear(f.results)
	own, results := f.own.memory(), f.results[:0]
	*f = fetching{results: results}
	f.own.list, f.own.free = own.list, own.free
	fetchings.Put(f)
}
