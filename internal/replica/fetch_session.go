package replica

import (
	"context"
	"fmt"
	"time"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchSession is the follower's side of a fetch session (KIP-227, Kafka's
// FetchSessionHandler): it knows what the leader remembers, so that a request
// names only what has changed since.
type fetchSession struct {
	id      int32
	epoch   int32 // of the next request; 0: it names everything
	usesIDs bool

	members int         // partitions that are fetched
	dirty   []*followed // may have to be named
	gone    []forgotten
	topics  []*followedTopic // of a request being written
}

// forgotten is a partition that the leader's session has, and should not.
type forgotten struct {
	topic string
	id    wire.UUID
	index int32
}

// name has a partition fetched, from its place as it is now.
func (s *fetchSession) name(c *followed) {
	if !c.member {
		c.member = true
		s.members++
	}
	if !c.dirty {
		c.dirty = true
		s.dirty = append(s.dirty, c)
	}
}

// forget has a partition no longer fetched.
func (s *fetchSession) forget(c *followed) {
	if c.member {
		c.member = false
		s.members--
	}
	if c.named {
		c.named = false
		s.gone = append(s.gone, forgotten{c.topic.name, c.topic.id, c.p.Index})
	}
}

// restart has the next request name everything, and end the session before.
func (s *fetchSession) restart() { s.epoch = 0 }

// fetch sends one Fetch request and handles its answer.
func (f *fetcher) fetch(ctx context.Context) error {
	ctx, ok := f.all.begin(ctx, f)
	if !ok {
		return nil // there is something to do first
	}
	defer f.all.end(f)
	version := f.version()
	if f.s.usesIDs != (version >= 13) {
		f.s.restart()
		f.s.usesIDs = version >= 13
	}
	full := f.s.epoch == 0
	f.collect(full)
	gone := f.collectGone(full)
	err := f.conn.RoundTrip(ctx, int16(kmsg.Fetch), version,
		func(b []byte) []byte { return f.appendFetch(b, version, gone) },
		func(body []byte) error { return f.readFetch(body, version, full) })
	for _, t := range f.s.topics {
		t.sending = t.sending[:0]
	}
	if err != nil {
		f.s.restart()
		return err
	}
	if f.failures > 0 {
		f.m.o.Logger.Info("the leader answers again", "leader", f.key.leader, "tries", f.failures)
		f.failures = 0
	}
	return nil
}

// collect lists what the request names, by topic.
func (f *fetcher) collect(full bool) {
	s := &f.s
	s.topics = s.topics[:0]
	put := func(c *followed) {
		if len(c.topic.sending) == 0 {
			s.topics = append(s.topics, c.topic)
		}
		c.topic.sending = append(c.topic.sending, c)
		c.named = true
	}
	for _, c := range s.dirty {
		if c.dirty = false; c.member && !full {
			put(c)
		}
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
	if !full {
		return
	}
	for _, t := range f.topics {
		for _, c := range t.parts {
			if c.named = false; c.member {
				put(c)
			}
		}
	}
}

// collectGone lists what the leader's session is to forget: not what has come
// back since, since a leader takes out last.
func (f *fetcher) collectGone(full bool) []forgotten {
	gone := f.s.gone
	f.s.gone = f.s.gone[:0]
	if full {
		return nil
	}
	left := gone[:0]
	for _, g := range gone {
		if t := f.topics[g.topic]; t != nil && t.id == g.id && t.parts[g.index] != nil && t.parts[g.index].member {
			continue
		}
		left = append(left, g)
	}
	return left
}

func (f *fetcher) appendFetch(b []byte, v int16, gone []forgotten) []byte {
	c := f.m.cluster.Config.Load()
	flexible := v >= 12
	w := wire.Writer{B: b}
	if v < 15 {
		w.Int32(f.m.o.BrokerID)
	}
	w.Int32(int32(f.untilNext(c.Duration("replica.fetch.wait.max.ms")) / time.Millisecond))
	w.Int32(c.Int32("replica.fetch.min.bytes"))
	w.Int32(c.Int32("replica.fetch.response.max.bytes"))
	w.Int8(0) // followers read everything
	w.Int32(f.s.id)
	w.Int32(f.s.epoch)
	most := c.Int32("replica.fetch.max.bytes")
	w.Length(flexible, len(f.s.topics))
	for _, t := range f.s.topics {
		if v >= 13 {
			w.UUID(t.id)
		} else {
			w.String(flexible, t.name)
		}
		w.Length(flexible, len(t.sending))
		for _, c := range t.sending {
			w.Int32(c.p.Index)
			w.Int32(c.epoch)
			w.Int64(c.at.end)
			if v >= 12 {
				w.Int32(c.at.epoch)
			}
			w.Int64(c.at.start)
			w.Int32(most)
			w.Tags(flexible)
		}
		w.Tags(flexible)
	}
	w.Length(flexible, len(gone))
	for _, g := range gone {
		if v >= 13 {
			w.UUID(g.id)
		} else {
			w.String(flexible, g.topic)
		}
		w.Length(flexible, 1)
		w.Int32(g.index)
		w.Tags(flexible)
	}
	w.String(flexible, "") // the rack is for consumers
	if v >= 15 {
		w.Uvarint(1)
		w.Uvarint(1) // ReplicaState
		w.Uvarint(4 + 8 + 1)
		w.Int32(f.m.o.BrokerID)
		w.Int64(f.m.brokerEpoch())
		w.Tags(true)
	} else {
		w.Tags(flexible)
	}
	return w.B
}

// readFetch handles an answer. Records alias body.
func (f *fetcher) readFetch(body []byte, v int16, full bool) error {
	flexible := v >= 12
	r := wire.NewReader(body)
	r.Int32() // throttle time
	code := wire.Code(r.Int16())
	id := r.Int32()
	if r.Err() != nil {
		return r.Err()
	}
	if code != wire.None {
		return f.sessionRefused(code)
	}
	switch {
	case id == 0: // the leader keeps no session
		f.s.id, f.s.epoch = 0, 0
	case full:
		f.s.id, f.s.epoch = id, 1
	default:
		if f.s.epoch++; f.s.epoch <= 0 {
			f.s.epoch = 1
		}
	}
	for topics := r.Array(flexible, 3); topics > 0 && r.Err() == nil; topics-- {
		var t *followedTopic
		if v >= 13 {
			t = f.ids[r.UUID()]
		} else {
			t = f.topics[string(r.String(flexible))]
		}
		for parts := r.Array(flexible, 16); parts > 0 && r.Err() == nil; parts-- {
			f.readPartition(&r, t, v)
		}
		r.Tags(flexible)
	}
	r.Tags(flexible)
	return r.Err()
}

func (f *fetcher) readPartition(r *wire.Reader, t *followedTopic, v int16) {
	flexible := v >= 12
	index, code := r.Int32(), wire.Code(r.Int16())
	d := &f.in
	*d = copied{divergingEpoch: -1, divergingEndOffset: -1}
	d.hw = r.Int64()
	r.Int64() // last stable offset
	d.start = r.Int64()
	for aborted := r.NullableArray(flexible, 16); aborted > 0; aborted-- {
		r.Take(16)
		r.Tags(flexible)
	}
	r.Int32() // preferred read replica
	d.set = r.NullableBytes(flexible)
	if flexible {
		r.EachTag(func(tag uint32, value []byte) {
			if tag == 0 {
				diverging := wire.NewReader(value)
				d.divergingEpoch, d.divergingEndOffset = diverging.Int32(), diverging.Int64()
			}
		})
	}
	if r.Err() != nil || t == nil {
		return
	}
	if c := t.parts[index]; c != nil && c.member && c.named {
		d.offset = c.at.end
		f.answered(c, code, d)
	}
}

// sessionRefused handles an error of the whole answer.
func (f *fetcher) sessionRefused(code wire.Code) error {
	switch code {
	case wire.FetchSessionIDNotFound: // it is not there to be ended
		f.s.id = 0
	case wire.InvalidFetchSessionEpoch, wire.FetchSessionTopicIDError, wire.UnknownTopicID, wire.InconsistentTopicID:
	default:
		return fmt.Errorf("fetch: %w", code)
	}
	f.s.restart()
	return nil
}
