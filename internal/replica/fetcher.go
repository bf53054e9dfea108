package replica

import (
	"context"
	"errors"
	"slices"
	"time"

	"barnabas/internal/peer"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

const (
	// patience is how long a change waits for the end of a fetch that is under
	// way before it ends it: a leader with something to send answers sooner, one
	// without keeps the fetch for replica.fetch.wait.max.ms.
	patience = 10 * time.Millisecond
	// firstPause is how long a partition rests after its first error; the pause
	// doubles up to replica.fetch.backoff.ms. Most errors come of one broker
	// hearing of a new leader a moment before the other.
	firstPause = 5 * time.Millisecond
)

// fetcher copies partitions from one leader (Kafka's ReplicaFetcherThread). One
// goroutine, run, owns it but for what fetchers.mu guards.
type fetcher struct {
	all     *fetchers
	m       *Manager
	key     fetcherKey
	conn    *peer.Conn
	wake    chan struct{} // of capacity one: pending is not empty
	onFetch bool          // truncation by diverging epochs in Fetch (IBP 2.7-IV1)

	topics map[string]*followedTopic
	ids    map[[16]byte]*followedTopic
	count  int         // partitions
	noID   int         // topics without an id
	todo   []*followed // to truncate before they are fetched
	beyond []*followed // whose offset the leader does not have
	paused []*followed // rest until their time has come
	s      fetchSession
	in     copied

	failures int // in a row, for the log

	// Guarded by fetchers.mu.
	pending     map[*Partition]*View // the newest view of what changed; nil: not here any more
	interrupt   context.CancelFunc   // ends the fetch under way; nil: none is
	interrupted bool                 // it has been told to
}

type followedTopic struct {
	name  string
	id    wire.UUID
	parts map[int32]*followed

	sending []*followed // named in the request being written
}

// followed is one partition that a fetcher copies.
type followed struct {
	p      *Partition
	topic  *followedTopic
	epoch  int32 // the leader epoch
	at     place // where its log ends
	state  followedState
	pauses int       // in a row
	until  time.Time // while resting
	member bool      // is fetched
	named  bool      // the leader's session has it
	dirty  bool      // is in fetchSession.dirty, to be named in the next fetch
	level  bool      // had all that was committed at the last answer
}

type followedState int8

const (
	fetching   followedState = iota
	truncating               // the leader is to be asked where the latest epoch ended
	resting                  // after an error
	parked                   // until the controller says something new
	removed
)

// changeLocked enters a change; the caller holds fetchers.mu.
func (f *fetcher) changeLocked(p *Partition, v *View) {
	f.pending[p] = v
	select {
	case f.wake <- struct{}{}:
	default:
	}
	if f.interrupt != nil && !f.interrupted && v != nil {
		f.interrupted = true
		time.AfterFunc(patience, f.interrupt) // of that fetch: harmless once it has ended
	}
}

func (f *fetcher) run(ctx context.Context) {
	defer f.conn.Close()
	for ctx.Err() == nil {
		f.applyChanges()
		if f.count == 0 {
			if f.all.leave(f) {
				return
			}
			continue
		}
		f.endRests(time.Now())
		f.truncate(ctx)
		f.holdBack(f.m.o.Now())
		if f.s.members == 0 {
			f.sleep(ctx, f.untilNext(time.Hour))
			continue
		}
		if err := f.fetch(ctx); err != nil && ctx.Err() == nil {
			f.failed(err) // the connection makes the pause
		}
		f.findRanges(ctx)
	}
}

func (f *fetcher) failed(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if f.failures++; f.failures == 1 {
		f.m.o.Logger.Warn("cannot fetch from a leader; trying again until it answers or another one leads", "leader", f.key.leader, "err", err)
	}
}

// sleep waits for a change, for a time at most.
func (f *fetcher) sleep(ctx context.Context, most time.Duration) {
	if most <= 0 {
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-f.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// untilNext is how long until the first rest ends, at most most.
func (f *fetcher) untilNext(most time.Duration) time.Duration {
	for _, p := range f.paused {
		most = min(most, time.Until(p.until))
	}
	return max(most, 0)
}

// applyChanges takes in what LeaderAndIsr and StopReplica requests said.
func (f *fetcher) applyChanges() {
	changes := f.all.takeChanges(f)
	if len(changes) > 0 {
		f.conn.Eager() // the controller knows more of the leader than our last failure
	}
	for p, v := range changes {
		t := f.topics[p.Topic]
		var old *followed
		if t != nil {
			old = t.parts[p.Index]
		}
		if old != nil {
			if v != nil && old.p == p && old.epoch == v.LeaderEpoch && old.state != parked && t.id == p.log.TopicID() {
				continue // nothing new for a fetcher
			}
			f.remove(old)
		}
		if v != nil {
			f.add(p, v)
		}
	}
}

func (f *fetcher) remove(c *followed) {
	f.s.forget(c)
	t := c.topic
	delete(t.parts, c.p.Index)
	f.count--
	if len(t.parts) == 0 {
		delete(f.topics, t.name)
		if t.id.IsZero() {
			f.noID--
		} else {
			delete(f.ids, t.id)
		}
	}
	isIt := func(other *followed) bool { return other == c }
	f.todo = slices.DeleteFunc(f.todo, isIt)
	f.beyond = slices.DeleteFunc(f.beyond, isIt)
	if c.state == resting {
		f.paused = slices.DeleteFunc(f.paused, isIt)
	}
	c.state = removed
}

func (f *fetcher) add(p *Partition, v *View) {
	id := p.log.TopicID()
	t := f.topics[p.Topic]
	if t != nil && t.id != id {
		f.rename(t, id)
	}
	if t == nil {
		t = &followedTopic{name: p.Topic, id: id, parts: map[int32]*followed{}}
		f.topics[p.Topic] = t
		if id.IsZero() {
			f.noID++
		} else {
			f.ids[id] = t
		}
	}
	c := &followed{p: p, topic: t, epoch: v.LeaderEpoch}
	t.parts[p.Index] = c
	f.count++
	var hw int64
	err := p.following(c.epoch, func(log *storage.Log) error {
		c.at, hw = placeOf(log), p.hw.Load()
		return log.Err()
	})
	switch {
	case err != nil:
		f.refused(c, err)
	case c.at.epoch < 0:
		// Without epochs nothing tells what the leader has but the high watermark.
		f.cut(c, hw)
	case f.onFetch:
		f.ready(c)
	default:
		c.state = truncating
		f.todo = append(f.todo, c)
	}
}

// rename follows a change of a topic's id: the session has to begin anew.
func (f *fetcher) rename(t *followedTopic, id wire.UUID) {
	if t.id.IsZero() {
		f.noID--
	} else {
		delete(f.ids, t.id)
	}
	if t.id = id; id.IsZero() {
		f.noID++
	} else {
		f.ids[id] = t
	}
	f.s.restart()
}

// cut truncates a partition to a target and fetches on from there.
func (f *fetcher) cut(c *followed, target int64) {
	at, err := c.p.cutTo(c.epoch, target)
	if err != nil {
		f.refused(c, err)
		return
	}
	c.at = at
	f.ready(c)
}

// ready has the partition fetched from where its log ends.
func (f *fetcher) ready(c *followed) {
	c.state = fetching
	f.s.name(c)
}

// refused handles an error of this broker's own log.
func (f *fetcher) refused(c *followed, err error) {
	log := f.m.o.Logger.With("partition", c.p.TopicPartition.String(), "leader", f.key.leader)
	switch {
	case errors.Is(err, errNotFollowing):
		f.park(c) // the change that says why is on its way
	case errors.Is(err, storage.ErrOffline), errors.Is(err, storage.ErrClosed):
		log.Warn("no longer copying a partition", "err", err)
		f.park(c)
	case errors.Is(err, errMoved):
		log.Info("the log has moved; fetching from its end", "err", err)
		f.rest(c)
	default:
		log.Error("cannot write what the leader sent", "err", err)
		c.pauses = 8
		f.rest(c)
	}
}

// park leaves a partition alone until the controller says something new.
func (f *fetcher) park(c *followed) {
	f.s.forget(c)
	c.state = parked
}

// rest has a partition fetched again after a pause.
func (f *fetcher) rest(c *followed) {
	f.s.forget(c)
	most := f.m.cluster.Config.Load().Duration("replica.fetch.backoff.ms")
	pause := most
	if c.pauses < 16 {
		pause = min(most, firstPause<<c.pauses)
	}
	c.pauses++
	c.until = time.Now().Add(pause)
	if c.state != resting {
		c.state = resting
		f.paused = append(f.paused, c)
	}
}

// endRests takes up the partitions whose pause is over.
func (f *fetcher) endRests(now time.Time) {
	list := f.paused
	f.paused = nil
	for _, c := range list {
		if now.Before(c.until) {
			f.paused = append(f.paused, c)
			continue
		}
		c.state = fetching // no longer resting
		err := c.p.following(c.epoch, func(log *storage.Log) error {
			c.at = placeOf(log)
			return log.Err()
		})
		switch {
		case err != nil:
			f.refused(c, err)
		case f.onFetch || c.at.epoch < 0:
			f.ready(c)
		default:
			c.state = truncating
			f.todo = append(f.todo, c)
		}
	}
}

// answered handles what the leader said of one partition.
func (f *fetcher) answered(c *followed, code wire.Code, d *copied) {
	switch code {
	case wire.None:
		f.took(c, d)
		return
	case wire.FencedLeaderEpoch:
		f.m.o.Logger.Debug("the leader has a newer epoch; waiting for the controller", "partition", c.p.TopicPartition.String(),
			"leader", f.key.leader, "epoch", c.epoch)
		f.park(c)
		return
	case wire.OffsetOutOfRange:
		f.s.forget(c)
		f.beyond = append(f.beyond, c)
		return
	}
	if c.pauses == 6 { // not just a race between two brokers
		f.m.o.Logger.Warn("the leader refuses a fetch", "partition", c.p.TopicPartition.String(), "leader", f.key.leader, "code", code)
	}
	f.rest(c)
}

func (f *fetcher) took(c *followed, d *copied) {
	if d.divergingEpoch >= 0 || d.divergingEndOffset >= 0 {
		f.diverged(c, storage.EpochEnd{Epoch: d.divergingEpoch, EndOffset: d.divergingEndOffset})
		return
	}
	at, err := c.p.take(c.epoch, d)
	if err != nil {
		f.refused(c, err)
		return
	}
	if len(d.set) > 0 && c.p.takesThrottled() {
		f.m.following.record(len(d.set), f.m.o.Now())
	}
	c.pauses, c.level = 0, d.hw <= at.end
	if at != c.at {
		c.at = at
		f.s.name(c)
	}
}

// diverged truncates as the leader's answer says: to the end of the epoch that
// both have.
func (f *fetcher) diverged(c *followed, leader storage.EpochEnd) (done bool) {
	var target int64
	err := c.p.following(c.epoch, func(log *storage.Log) error {
		target, done = truncation(leader, log.EndOffsetForEpoch, log.EndOffset(), c.p.hw.Load())
		return log.Err()
	})
	if err != nil {
		f.refused(c, err)
		return true
	}
	at, err := c.p.cutTo(c.epoch, target)
	if err != nil {
		f.refused(c, err)
		return true
	}
	c.at = at
	if !done && f.onFetch || done || at.epoch < 0 {
		f.ready(c) // the next answer tells whether more has to go
		return true
	}
	return false
}

// version is the version of Fetch that the inter-broker protocol has: 13 and
// later name topics by id, which all must have.
func (f *fetcher) version() int16 {
	v := f.m.cluster.IBP.Fetch()
	if v >= 13 && f.noID > 0 {
		return 12
	}
	return v
}
