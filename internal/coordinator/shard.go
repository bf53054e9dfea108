package coordinator

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/wire"
)

// phase is where a shard stands.
type phase int8

const (
	idle    phase = iota // not led here
	loading              // led, and being loaded
	serving
	failed // led, but loading or an append failed; loaded again soon
)

// refusal is the answer to requests in a phase that serves none.
func (p phase) refusal() wire.Code {
	switch p {
	case loading:
		return wire.CoordinatorLoadInProgress
	case failed:
		return wire.CoordinatorNotAvailable
	default:
		return wire.NotCoordinator
	}
}

type eventKind int8

const (
	request eventKind = iota
	forgotten
	elected
	resigned
	loaded
	committed
	tick
	ended
)

type event[M Machine] struct {
	kind   eventKind
	caller Caller
	decide func(M, time.Time, *Effects)
	log    Log
	run    uint64 // of elected, loaded: the run of leadership meant
	result loadResult[M]
	seq    uint64 // of committed
	code   wire.Code
}

// shard is one partition of the internal topic.
type shard[M Machine] struct {
	r         *Runtime[M]
	partition int32

	mu struct {
		sync.Mutex // guards what follows
		queue      []event[M]
		running    bool // a goroutine works the queue off
		phase      phase
		run        uint64 // counts the loads; an older one's result counts for nothing
		closed     bool
	}

	// What follows belongs to the goroutine that works the queue off.
	run      uint64 // of the machine; 0 for none
	machine  M
	log      Log
	position int64
	timers   timers
	parked   map[Caller]struct{} // not answered yet, and held by the machine
	effects  Effects
	batch    *record.Builder
	replies  []Reply  // wait for what is in batch
	flights  []flight // appended, not committed; in order
	seq      uint64   // of the last flight
	wake     *time.Timer
	armed    time.Time     // when wake fires; zero: it does not
	reload   time.Time     // when to load again; zero: never
	pause    time.Duration // the last one before a reload; zero since an append succeeded
	spare    []event[M]
}

// flight is an appended batch and the replies that wait for it.
type flight struct {
	seq      uint64
	end      int64 // the offset after it
	replies  []Reply
	deadline time.Time // of the callers among replies; zero if there are none
}

func newShard[M Machine](r *Runtime[M], partition int32) *shard[M] {
	s := &shard[M]{r: r, partition: partition, parked: make(map[Caller]struct{})}
	s.batch = record.NewBuilder(s.batchOptions(nil))
	return s
}

func (s *shard[M]) phase() phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.phase
}

// enqueue adds an event. It returns false after close.
func (s *shard[M]) enqueue(e event[M]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enqueueLocked(e)
}

func (s *shard[M]) enqueueLocked(e event[M]) bool {
	if s.mu.closed {
		return false
	}
	s.mu.queue = append(s.mu.queue, e)
	if !s.mu.running {
		s.mu.running = true
		s.r.running.Go(s.work)
	}
	return true
}

// do has a request decided: here and now if nobody works the queue off, which
// spares handing it over.
func (s *shard[M]) do(c Caller, f func(M, time.Time, *Effects)) {
	s.mu.Lock()
	p := s.mu.phase
	ok := p == serving && !s.mu.closed
	here := ok && !s.mu.running
	if ok {
		s.mu.queue = append(s.mu.queue, event[M]{kind: request, caller: c, decide: f})
	}
	if here {
		s.mu.running = true
		s.r.running.Add(1)
	}
	s.mu.Unlock()
	switch {
	case here:
		s.workHere()
	case ok:
	case p == serving:
		c.Fail(wire.NotCoordinator)
	default:
		c.Fail(p.refusal())
	}
}

func (s *shard[M]) elected(log Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.phase != idle {
		return
	}
	s.mu.phase = loading
	s.mu.run++
	s.enqueueLocked(event[M]{kind: elected, log: log, run: s.mu.run})
}

func (s *shard[M]) resigned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.phase == idle {
		return
	}
	s.mu.phase = idle
	s.mu.run++
	s.enqueueLocked(event[M]{kind: resigned})
}

func (s *shard[M]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.phase = idle
	s.mu.run++
	s.enqueueLocked(event[M]{kind: ended})
	s.mu.closed = true
}

// work handles events until there are none.
func (s *shard[M]) work() {
	for s.round() {
	}
}

// maxHere is how many rounds of events the caller of do handles for others.
const maxHere = 8

// workHere is work on a goroutine that has other things to do, too. A panic ends
// the process as it does on the shard's own goroutine: whoever recovers here
// would leave the shard without one for ever.
func (s *shard[M]) workHere() {
	defer s.r.running.Done()
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			go panic(fmt.Sprintf("%v\n%s", p, stack))
			select {}
		}
	}()
	for range maxHere {
		if !s.round() {
			return
		}
	}
	s.r.running.Go(s.work)
}

// round handles the events that have come. It returns false when there are none
// and the queue has no worker any more.
func (s *shard[M]) round() bool {
	s.mu.Lock()
	if len(s.mu.queue) == 0 {
		s.mu.running = false
		s.mu.Unlock()
		return false
	}
	queue := s.mu.queue
	s.mu.queue = s.spare
	s.mu.Unlock()
	for i := range queue {
		s.handle(&queue[i])
		queue[i] = event[M]{}
	}
	s.spare = queue[:0]
	s.flush()
	s.arm()
	return true
}

func (s *shard[M]) handle(e *event[M]) {
	now := s.r.o.Now()
	switch e.kind {
	case request:
		if !s.current() {
			e.caller.Fail(wire.NotCoordinator)
			return
		}
		s.parked[e.caller] = struct{}{}
		e.decide(s.machine, now, &s.effects)
		s.absorb(now)
	case forgotten:
		delete(s.parked, e.caller)
	case elected:
		s.drop(wire.NotCoordinator)
		s.log, s.pause = e.log, 0
		s.load(e.run)
	case resigned:
		s.drop(wire.NotCoordinator)
	case loaded:
		s.install(e, now)
	case committed:
		s.landed(e.seq, e.code)
	case tick:
		s.armed = time.Time{}
		s.expire(now)
	case ended:
		s.drop(wire.NotCoordinator)
		for _, f := range s.flights {
			s.fail(f.replies, wire.NotCoordinator)
		}
		s.flights = nil
		if s.wake != nil {
			s.wake.Stop()
		}
	}
}

// current tells whether there is a machine and its run of leadership goes on,
// as far as this broker has been told.
func (s *shard[M]) current() bool {
	if s.run == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run == s.mu.run
}

// asked tells whether somebody waits for a reply.
func asked(r Reply) bool { return r.To != nil }

// expire handles the timers and flights that are due.
func (s *shard[M]) expire(now time.Time) {
	for i := range s.flights {
		if f := &s.flights[i]; !f.deadline.IsZero() && !f.deadline.After(now) {
			s.fail(f.replies, wire.RequestTimedOut)
			f.replies = slices.DeleteFunc(f.replies, asked) // commands still wait
			f.deadline = time.Time{}
		}
	}
	if !s.reload.IsZero() && !s.reload.After(now) {
		s.reload = time.Time{}
		s.loadAgain()
	}
	for s.current() {
		t, ok := s.timers.next(now)
		if !ok {
			return
		}
		s.machine.Expired(t, now, &s.effects)
		s.absorb(now)
	}
}

// absorb does what an event's effects say.
func (s *shard[M]) absorb(now time.Time) {
	e := &s.effects
	defer e.Reset()
	for _, t := range e.Timers {
		if t.At.IsZero() {
			s.timers.stop(t.Timer)
		} else {
			s.timers.set(t.Timer, t.At)
		}
	}
	s.replay(now.UnixMilli())
	for _, reply := range e.Replies {
		if _, ok := s.parked[reply.To]; !ok && (reply.To != nil || s.run == 0) {
			continue // forgotten, or failed with the append
		}
		delete(s.parked, reply.To)
		switch {
		case reply.Now, s.batch.Count() == 0 && len(s.flights) == 0:
			s.send(reply)
		case s.batch.Count() > 0:
			s.replies = append(s.replies, reply)
		default:
			last := &s.flights[len(s.flights)-1]
			if asked(reply) && last.deadline.IsZero() {
				last.deadline = now.Add(s.r.o.CommitTimeout())
			}
			last.replies = append(last.replies, reply)
		}
	}
}
