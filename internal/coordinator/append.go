package coordinator

import (
	"slices"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

// maxRecordOverhead bounds what a record takes beside its key and value.
const maxRecordOverhead = 32

func (s *shard[M]) batchOptions(p *Producer) record.BatchOptions {
	o := record.BatchOptions{LeaderEpoch: record.NoLeaderEpoch, Codec: s.r.o.Codec}
	if p != nil {
		o.Producer, o.Transactional = &record.Producer{ID: p.ID, Epoch: p.Epoch}, true
	}
	return o
}

// replay puts the records of s.effects into the batch and applies them. If an
// append fails meanwhile there is no machine any more.
func (s *shard[M]) replay(now int64) {
	e := &s.effects
	if e.Producer != nil || e.Marker != nil {
		s.appendApart(now)
		return
	}
	for _, r := range e.Records {
		if s.batch.Count() > 0 && s.batch.Size()+len(r.Key)+len(r.Value)+maxRecordOverhead > s.log.MaxBatch() {
			s.flush()
		}
		if s.run == 0 {
			return
		}
		s.batch.Append(now, r.Key, r.Value)
		s.apply(Entry{Time: now, Record: r})
	}
}

func (s *shard[M]) apply(e Entry) {
	e.Position = s.position
	s.position++
	if err := s.machine.Replay(e); err != nil {
		s.r.o.Logger.Error("a coordinator does not know its own record", "topic", s.r.o.Topic, "partition", s.partition, "err", err)
	}
}

// appendApart appends a transaction's records, or its marker, in a batch of
// their own. The log may refuse them, since the producer or the coordinator is
// fenced: so they are applied when they are appended, and then only the event
// fails.
func (s *shard[M]) appendApart(now int64) {
	e := &s.effects
	s.flush()
	if s.run == 0 {
		return
	}
	if e.Marker != nil {
		s.batch.Reset(markerOptions(*e.Marker))
		key, value := markerBytes(*e.Marker)
		s.batch.Append(now, key, value)
	} else {
		s.batch.Reset(s.batchOptions(e.Producer))
		for _, r := range e.Records {
			s.batch.Append(now, r.Key, r.Value)
		}
	}
	end, err := s.appendBatch(e.Verified)
	if err != nil {
		for _, r := range e.Replies {
			if _, ok := s.parked[r.To]; ok {
				delete(s.parked, r.To)
				r.To.Fail(Code(err))
			}
		}
		e.Replies = e.Replies[:0]
		if storage.Code(err) == wire.NotLeaderOrFollower {
			s.lost(err)
		}
		return
	}
	if e.Marker != nil {
		s.machine.End(*e.Marker, s.position)
		s.position++
	} else {
		for _, r := range e.Records {
			s.apply(Entry{Time: now, Record: r, Transactional: true, Producer: *e.Producer})
		}
	}
	s.await(end, nil) // the replies join this flight
}

// appendBatch appends what the builder has, and empties it.
func (s *shard[M]) appendBatch(verified int64) (end int64, err error) {
	set, err := s.batch.Build()
	switch {
	case err != nil:
	case !s.current():
		err = wire.NotLeaderOrFollower
	default:
		end, err = s.log.Append(set, verified)
	}
	if err == nil {
		s.pause = 0
	}
	s.batch.Reset(s.batchOptions(nil))
	return end, err
}

// flush appends the batch and has its replies wait for the high watermark.
func (s *shard[M]) flush() {
	if s.batch.Count() == 0 {
		return
	}
	end, err := s.appendBatch(0)
	replies := s.replies
	s.replies = nil
	if err != nil {
		s.r.o.Logger.Warn("a coordinator cannot append; it loads its partition again", "topic", s.r.o.Topic, "partition", s.partition, "err", err)
		s.fail(replies, Code(err))
		s.lost(err)
		return
	}
	s.await(end, replies)
}

// await enters a flight up to end, or ends it when it has landed already.
func (s *shard[M]) await(end int64, replies []Reply) {
	s.seq++
	f := flight{seq: s.seq, end: end, replies: replies}
	if slices.ContainsFunc(replies, asked) {
		f.deadline = s.r.o.Now().Add(s.r.o.CommitTimeout())
	}
	s.flights = append(s.flights, f)
	if code, done := s.log.Await(end, s, int(s.seq)); done {
		s.landed(s.seq, code)
	}
}

// Acked is called by the partition, from any goroutine.
func (s *shard[M]) Acked(seq int, code wire.Code) {
	s.enqueue(event[M]{kind: committed, seq: uint64(seq), code: code})
}

// landed ends a flight. As the high watermark only grows, all before it are
// committed with it.
func (s *shard[M]) landed(seq uint64, code wire.Code) {
	rest := s.flights[:0]
	for _, f := range s.flights {
		switch {
		case f.seq == seq && code == wire.NotEnoughReplicasAfterAppend: // committed, on too few
			for _, r := range f.replies {
				if r.To == nil {
					s.send(r)
				}
			}
			s.fail(f.replies, Code(code))
		case f.seq == seq && code != wire.None:
			s.fail(f.replies, Code(code))
		case f.seq <= seq && code == wire.None:
			for _, r := range f.replies {
				s.send(r)
			}
		default:
			rest = append(rest, f)
		}
	}
	clear(s.flights[len(rest):])
	s.flights = rest
}

func (s *shard[M]) fail(replies []Reply, code wire.Code) {
	for _, r := range replies {
		if r.To != nil {
			r.To.Fail(code)
		}
	}
}

// send answers, or has a command performed if its machine is still there: a
// later one gives the command anew.
func (s *shard[M]) send(r Reply) {
	switch {
	case r.To != nil:
		r.To.Answer(r.Response)
	case s.run != 0:
		s.r.o.Perform(s.partition, r.Response)
	}
}

// drop forgets the machine. What was appended before may still be committed:
// its flights go on.
func (s *shard[M]) drop(code wire.Code) {
	var none M
	run := s.run
	s.machine, s.run, s.timers, s.reload = none, 0, timers{}, time.Time{}
	s.batch.Reset(s.batchOptions(nil))
	s.fail(s.replies, code)
	s.replies = nil
	if run != 0 && s.r.o.Unloaded != nil {
		s.r.o.Unloaded(s.partition)
	}
	for c := range s.parked {
		c.Fail(code)
	}
	clear(s.parked)
}

// lost follows an append that failed: the machine is ahead of the log. While
// this broker still leads, the partition is loaded again, after a pause: what a
// machine does as soon as it is loaded may be just what fails.
func (s *shard[M]) lost(err error) {
	run := s.run
	s.drop(Code(err))
	now := failed
	if storage.Code(err) == wire.NotLeaderOrFollower {
		now = idle
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if run != s.mu.run { // told of another role meanwhile: its event is in the queue
		return
	}
	s.mu.run++
	s.mu.phase = now
	if now == failed {
		s.loadLater()
	}
}

// arm has wake fire at the earliest time at which there is something to do.
func (s *shard[M]) arm() {
	at := s.timers.earliest()
	earlier := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	earlier(s.reload)
	for i := range s.flights {
		earlier(s.flights[i].deadline)
	}
	if at.IsZero() || !s.armed.IsZero() && !at.Before(s.armed) {
		return
	}
	s.armed = at
	d := max(at.Sub(s.r.o.Now()), 0)
	if s.wake == nil {
		s.wake = time.AfterFunc(d, func() { s.enqueue(event[M]{kind: tick}) })
		return
	}
	s.wake.Reset(d)
}
