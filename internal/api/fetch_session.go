package api

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/replica"
	"barnabas/internal/wire"
)

// FetchSessions holds the fetch sessions of a broker (KIP-227, Kafka's
// FetchSessionCache). A session remembers what a client fetches, so that
// requests name only what changes and cost what has changed.
//
// Locks: FetchSessions.mu guards the table, fetchSession.mu a session's turn.
// Neither is held while the other is taken, nor over a look at a partition.
type FetchSessions struct {
	slots    int           // max.incremental.fetch.session.cache.slots
	eviction time.Duration // min.incremental.fetch.session.eviction.ms: 120 s
	now      func() time.Time

	mu struct {
		sync.Mutex
		byID map[int32]*fetchSession
	}
}

// fetchEviction is how long a session that is used or young is safe
// (KafkaConfig.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS).
const fetchEviction = 120 * time.Second

// NewFetchSessions returns a cache of at most that many sessions. now is nil
// for time.Now.
func NewFetchSessions(slots int, now func() time.Time) *FetchSessions {
	if now == nil {
		now = time.Now
	}
	s := &FetchSessions{slots: slots, eviction: fetchEviction, now: now}
	s.mu.byID = make(map[int32]*fetchSession)
	return s
}

// Len returns how many sessions there are.
func (s *FetchSessions) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.byID)
}

// fetchSession is one session. What is not under mu belongs to the request
// whose turn it is.
type fetchSession struct {
	id      int32
	all     *FetchSessions
	usesIDs bool
	set     fetchSet
	byName  map[string]map[int32]*fetchPartition
	byID    map[wire.UUID]map[int32]*fetchPartition
	created time.Time
	asked   *lastAsked // of a follower; nil: a consumer's session

	// Guarded by FetchSessions.mu.
	epoch      int32 // that the next request must have
	used       time.Time
	size       int
	privileged bool // a follower's

	mu struct {
		sync.Mutex
		busy  bool
		queue []*fetching // requests that came before the one before was answered
		gone  bool        // ended or evicted
	}
}

// lastAsked is when a follower's session last asked (replica.Asker).
type lastAsked struct{ nano atomic.Int64 }

// LastAsked returns the time of the session's last request.
func (l *lastAsked) LastAsked() time.Time { return time.Unix(0, l.nano.Load()) }

// create makes a session of a full fetch's partitions, if there is room, and
// gives f its turn. Without room f goes on without a session.
func (s *FetchSessions) create(f *fetching) {
	now := s.now()
	session := &fetchSession{all: s, usesIDs: f.q.Version >= 13, created: now, epoch: 1, used: now,
		size: len(f.own.list), privileged: f.replica >= 0,
		byName: make(map[string]map[int32]*fetchPartition), byID: make(map[wire.UUID]map[int32]*fetchPartition)}
	session.mu.busy = true
	if session.privileged {
		session.asked = new(lastAsked)
		session.asked.nano.Store(now.UnixNano())
	}
	if !s.enterNew(session, now) {
		return
	}
	session.set.list, f.own.list = f.own.list, nil
	session.set.standing = true
	for _, p := range session.set.list {
		p.set = &session.set
		session.index(p)
	}
	session.set.subscribe()
	f.session, f.set, f.sessionID = session, &session.set, session.id
}

func (s *FetchSessions) enterNew(session *fetchSession, now time.Time) bool {
	s.mu.Lock()
	var victim *fetchSession
	if len(s.mu.byID) >= s.slots {
		if victim = s.victimLocked(session, now); victim == nil {
			s.mu.Unlock()
			return false
		}
		delete(s.mu.byID, victim.id)
	}
	for session.id == 0 || s.mu.byID[session.id] != nil {
		session.id = rand.Int32N(1<<31-1) + 1
	}
	s.mu.byID[session.id] = session
	s.mu.Unlock()
	if victim != nil {
		victim.retire()
	}
	return true
}

// victimLocked chooses whom a new session replaces: one that has not been used
// for long; else the least session that is smaller or less privileged, if it
// has lived for long.
func (s *FetchSessions) victimLocked(session *fetchSession, now time.Time) *fetchSession {
	var oldest, least *fetchSession
	for _, other := range s.mu.byID {
		if oldest == nil || other.used.Before(oldest.used) {
			oldest = other
		}
		evictable := now.Sub(other.created) > s.eviction || session.privileged && !other.privileged
		if evictable && (least == nil || other.lessThan(least)) {
			least = other
		}
	}
	if oldest != nil && now.Sub(oldest.used) > s.eviction {
		return oldest
	}
	if least != nil && least.lessThan(session) {
		return least
	}
	return nil
}

func (s *fetchSession) lessThan(other *fetchSession) bool {
	if s.privileged != other.privileged {
		return other.privileged
	}
	return s.size < other.size
}

// end removes a session at its client's wish.
func (s *FetchSessions) end(id int32) {
	s.mu.Lock()
	session := s.mu.byID[id]
	delete(s.mu.byID, id)
	s.mu.Unlock()
	if session != nil {
		session.retire()
	}
}

// enter gives f its turn in the session that it names, now or when the request
// before it has been answered.
func (s *FetchSessions) enter(f *fetching, body wire.Reader) {
	s.mu.Lock()
	session := s.mu.byID[f.sessionID]
	s.mu.Unlock()
	if session == nil {
		f.refuse(wire.FetchSessionIDNotFound)
		return
	}
	f.session, f.body = session, body
	session.mu.Lock()
	switch {
	case session.mu.gone:
		session.mu.Unlock()
		f.session = nil
		f.refuse(wire.FetchSessionIDNotFound)
	case session.mu.busy:
		f.wait.queued = true
		f.q.Cancel = func() { f.cancelQueued(session) }
		session.mu.queue = append(session.mu.queue, f)
		session.mu.Unlock()
	default:
		session.mu.busy = true
		session.mu.Unlock()
		f.turn()
	}
}

// turn begins a request of a session whose turn has come.
func (f *fetching) turn() {
	s := f.session
	code := s.admit(f)
	if code != wire.None {
		f.session = nil
		s.leave()
		f.refuse(code)
		return
	}
	s.update(f)
	if f.wait.queued {
		f.q.ReleaseFrame()
	}
	s.mu.Lock()
	f.set = &s.set
	if f.wait.cancelled {
		f.maxWait = 0
	}
	s.mu.Unlock()
	if s.set.empty() { // Kafka goes on without a session, and so at once
		s.all.end(s.id)
		f.sessionID = 0
	}
	f.look()
}

// admit checks the request's epoch and moves the session's.
func (s *fetchSession) admit(f *fetching) wire.Code {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	switch {
	case s.all.mu.byID[s.id] != s:
		return wire.FetchSessionIDNotFound
	case s.epoch != f.epoch:
		return wire.InvalidFetchSessionEpoch
	case s.usesIDs != (f.q.Version >= 13):
		return wire.FetchSessionTopicIDError
	}
	if s.epoch++; s.epoch <= 0 {
		s.epoch = 1
	}
	s.used = s.all.now()
	if s.asked != nil {
		s.asked.nano.Store(s.used.UnixNano())
	}
	return wire.None
}

// update adds and changes the partitions that the request names, and removes
// those that it forgets.
func (s *fetchSession) update(f *fetching) {
	flexible := f.q.Flexible
	r := &f.body
	for range r.Array(flexible, 3) {
		name, id := f.readTopic(r)
		var t *replica.Topic
		var topic string
		for range r.Array(flexible, 16) {
			var now fetchPartition
			f.readPartition(r, &now)
			p := s.find(name, id, now.index)
			if p == nil {
				if t == nil && topic == "" {
					t, topic = f.findTopic(name, id)
				}
				p = s.set.add()
				p.topic, p.id, p.index = topic, id, now.index
				if t != nil {
					p.part = t.Partition(p.index)
				}
				s.index(p)
			}
			p.offset, p.maxBytes, p.leaderEpoch, p.fetchEpoch = now.offset, now.maxBytes, now.leaderEpoch, now.fetchEpoch
			p.logStart = now.logStart
			if p.part != nil && !p.sub.Subscribed() {
				p.sub.Follower = f.replica >= 0 // read by the partition from then on
				p.part.Subscribe(&p.sub)
			}
			s.set.mark(p)
		}
		r.Tags(flexible)
	}
	for range r.Array(flexible, 3) {
		name, id := f.readTopic(r)
		for range r.Array(flexible, 4) {
			if p := s.find(name, id, r.Int32()); p != nil {
				s.forget(p)
			}
		}
		r.Tags(flexible)
	}
	s.all.mu.Lock()
	s.size = len(s.set.list)
	s.all.mu.Unlock()
}

func (s *fetchSession) find(name []byte, id wire.UUID, index int32) *fetchPartition {
	if s.usesIDs {
		return s.byID[id][index]
	}
	return s.byName[string(name)][index]
}

func (s *fetchSession) index(p *fetchPartition) {
	if s.usesIDs {
		indexIn(s.byID, p.id, p)
	} else {
		indexIn(s.byName, p.topic, p)
	}
}

func indexIn[K comparable](m map[K]map[int32]*fetchPartition, key K, p *fetchPartition) {
	of := m[key]
	if of == nil {
		of = make(map[int32]*fetchPartition)
		m[key] = of
	}
	of[p.index] = p
}

func (s *fetchSession) forget(p *fetchPartition) {
	s.set.remove(p)
	if s.usesIDs {
		forgetIn(s.byID, p.id, p.index)
	} else {
		forgetIn(s.byName, p.topic, p.index)
	}
}

func forgetIn[K comparable](m map[K]map[int32]*fetchPartition, key K, index int32) {
	if delete(m[key], index); len(m[key]) == 0 {
		delete(m, key)
	}
}

// answered remembers what the client has been told.
func (s *fetchSession) answered(results []fetched) {
	for i := range results {
		d := &results[i]
		d.of.told, d.of.hw, d.of.lso, d.of.start = true, d.hw, d.lso, d.start
	}
}

// leave ends a request's turn and begins the next one's, on the goroutine that
// writes its answers.
func (s *fetchSession) leave() {
	s.mu.Lock()
	if len(s.mu.queue) > 0 {
		next := s.mu.queue[0]
		s.mu.queue = s.mu.queue[1:]
		s.mu.Unlock()
		next.q.Later(func(*Request) { next.turn() })
		return
	}
	s.mu.busy = false
	gone := s.mu.gone
	s.mu.Unlock()
	if gone {
		s.set.unsubscribe()
	}
}

// retire ends a session that is out of the table. A request that is under way
// comes to its end; those that queue find the session gone.
func (s *fetchSession) retire() {
	s.mu.Lock()
	s.mu.gone = true
	busy := s.mu.busy
	s.mu.Unlock()
	if !busy {
		s.set.unsubscribe()
	}
}
