package keeper

import (
	"crypto/hmac"
	"maps"
	"slices"
	"strings"
	"time"

	"barnabas/internal/jute"
)

// session is a client's session: it outlives connections and restarts.
type session struct {
	id      int64
	timeout time.Duration // as granted at its creation
	client  *client       // the connection it is attached to, if any
	fresh   bool          // its beginning is not committed yet
	closing bool          // its end is prepared: it can do nothing more
	expires int64         // bucket in the expiry queue
	queue   []*request    // not answered yet, the first a write
}

// firstSession returns the first session id of a server that starts at now:
// server number 1, the milliseconds, and room for 65,536 sessions a
// millisecond (SessionTrackerImpl.initializeNextSessionId).
func firstSession(now time.Time) int64 {
	return int64(uint64(now.UnixMilli())<<24>>8) | 1<<56
}

// expiryStep is how much later than its timeout a session may expire: ZooKeeper
// takes a tick, which is what a failover then takes longer.
const expiryStep = 100 * time.Millisecond

// expiryQueue sorts sessions into buckets of time, as ZooKeeper does, so that a
// touch that stays in its bucket costs nothing (ExpiryQueue).
type expiryQueue struct {
	tick    time.Duration
	base    time.Time // buckets count ticks from here
	next    int64     // the first bucket that did not expire yet
	buckets map[int64]map[*session]struct{}
}

func newExpiryQueue(tick time.Duration) expiryQueue {
	return expiryQueue{tick: tick, buckets: map[int64]map[*session]struct{}{}}
}

func (q *expiryQueue) touch(s *session, now time.Time, timeout time.Duration) {
	if q.base.IsZero() {
		q.base = now
	}
	bucket := int64(now.Add(timeout).Sub(q.base)/q.tick) + 1
	if bucket < q.next {
		bucket = q.next
	}
	if s.expires == bucket {
		return
	}
	q.remove(s)
	s.expires = bucket
	if q.buckets[bucket] == nil {
		q.buckets[bucket] = map[*session]struct{}{}
	}
	q.buckets[bucket][s] = struct{}{}
}

func (q *expiryQueue) remove(s *session) {
	if delete(q.buckets[s.expires], s); len(q.buckets[s.expires]) == 0 {
		delete(q.buckets, s.expires)
	}
	s.expires = 0
}

// poll returns the sessions whose bucket is over, by id.
func (q *expiryQueue) poll(now time.Time) []*session {
	if q.base.IsZero() {
		return nil
	}
	var over []*session
	end := int64(now.Sub(q.base) / q.tick)
	for bucket, sessions := range q.buckets {
		if bucket <= end {
			for s := range sessions {
				s.expires = 0
				over = append(over, s)
			}
			delete(q.buckets, bucket)
		}
	}
	q.next = max(q.next, end+1)
	slices.SortFunc(over, func(a, b *session) int { return int(min(1, max(-1, a.id-b.id))) })
	return over
}

// wait returns how long nothing can expire; ok is false when there is nothing
// to wait for.
func (q *expiryQueue) wait(now time.Time) (d time.Duration, ok bool) {
	if len(q.buckets) == 0 {
		return 0, false
	}
	first := slices.Min(slices.Collect(maps.Keys(q.buckets)))
	return q.base.Add(time.Duration(first) * q.tick).Sub(now), true
}

// expire ends the sessions that were silent for too long.
func (c *core) expire(now time.Time) {
	for _, s := range c.expiry.poll(now) {
		if c.failed { // its end can't be written: ask again later
			c.expiry.touch(s, now, s.timeout)
			continue
		}
		if !s.closing {
			c.stats.expired++
			c.prepareClose(&request{session: s, op: jute.OpCloseSession, at: now}, now)
		}
	}
}

func (c *core) removeSession(s *session) {
	c.expiry.remove(s)
	delete(c.sessions, s.id)
}

// clampTimeout returns the session timeout that is granted for the one asked.
func (c *core) clampTimeout(ms int32) time.Duration {
	return min(max(time.Duration(ms)*time.Millisecond, c.minTimeout), c.maxTimeout)
}

// connect answers a ConnectRequest (ZooKeeperServer.processConnectRequest).
func (c *core) connect(cl *client, r *jute.ConnectRequest, now time.Time) {
	c.stats.received++
	cl.stats.received++
	cl.old = r.OldClient
	cl.timeout = c.clampTimeout(r.Timeout)
	if r.LastZxidSeen > c.lastZxid { // it saw a server that knows more
		c.close(cl)
		return
	}
	if r.SessionID == 0 {
		if c.failed {
			c.close(cl)
			return
		}
		c.lastSession++
		s := &session{id: c.lastSession, timeout: cl.timeout, client: cl, fresh: true}
		c.sessions[s.id] = s
		cl.session = s
		c.expiry.touch(s, now, cl.timeout)
		c.zxid++
		c.enqueue(&request{client: cl, session: s, op: jute.OpCreateSession, at: now},
			&txn{zxid: c.zxid, session: s, client: cl, op: jute.OpCreateSession, at: now.UnixMilli()})
		return
	}
	s := c.sessions[r.SessionID]
	if s == nil || s.closing || !hmac.Equal(r.Password, c.password(s.id)) {
		c.send(cl, &jute.ConnectResponse{Password: make([]byte, jute.PasswordSize), OldClient: cl.old})
		c.close(cl)
		return
	}
	if s.client != nil {
		s.client.session = nil
		c.close(s.client)
	}
	s.client, cl.session = cl, s
	c.expiry.touch(s, now, cl.timeout)
	c.welcome(cl)
}

// welcome tells a connection that its session is there.
func (c *core) welcome(cl *client) {
	c.send(cl, &jute.ConnectResponse{
		Timeout: int32(cl.timeout / time.Millisecond), SessionID: cl.session.id,
		Password: c.password(cl.session.id), OldClient: cl.old,
	})
}

// ephemeralsOf lists the committed ephemeral nodes of a session below a prefix.
func (c *core) ephemeralsOf(s *session, prefix string) jute.Record {
	bare := strings.TrimFunc(prefix, func(r rune) bool { return r <= ' ' }) // as Java's String.trim
	all := bare == "" || bare == rootPath
	r := &jute.GetChildrenResponse{Children: []string{}}
	for _, path := range slices.Sorted(maps.Keys(c.tree.ephemerals[s.id])) {
		if all || strings.HasPrefix(path, prefix) {
			r.Children = append(r.Children, path)
		}
	}
	return r
}
