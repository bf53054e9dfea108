package keeper

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"barnabas/internal/jute"
)

// core decides. It holds the committed tree, what is pending on top of it, the
// sessions and the watches. It does no I/O, reads no clock and has no lock: the
// Server calls it under its own, and passes the time.
//
// A write is prepared against the pending state (which sees all earlier
// writes), waits in pending, is taken into a batch, and shows only when the
// batch was committed: then the tree changes, watches fire and the reply goes
// out, write by write in the order of their zxids.
type core struct {
	tick                   time.Duration
	minTimeout, maxTimeout time.Duration
	secret                 []byte // of the passwords
	super                  string // "user:hash" of the one who may do everything; "": nobody
	extended               bool   // TTL nodes may be made
	hardQuotas             bool   // quotas' hard limits are enforced
	containers             containerPolicy

	tree     *tree
	lastZxid int64 // of the last transaction that shows

	zxid    int64 // of the last transaction that was prepared
	overlay map[string]pendingNode
	undo    []undoEntry // filled while a multi is prepared
	pending []*txn      // prepared, not yet in a batch
	flying  *batch      // being committed
	fresh   bool        // the store is empty: the first batch brings it the secret
	saved   bool        // the store knows the epoch of zxid
	failed  bool        // a commit failed in a way that leaves open what is on the disk: no more writes
	notes   []note      // to be logged

	sessions    map[int64]*session
	self        *session // asks for what the server itself does
	lastSession int64
	expiry      expiryQueue

	clients map[*client]struct{}
	watches [watchKinds]watchTable
	dirty   []*client // have output since the last call of takeDirty

	numbers int64 // connections so far
	bytes   int   // of all requests without an answer
	stats   stats
}

// How much of one connection, and of all, may be without an answer, and how
// much may wait for a client that does not read, before no more requests are
// read. The counts are ZooKeeper's globalOutstandingLimit, per connection.
const (
	maxOutstanding = 1000
	maxUnanswered  = 4 << 20
	maxAll         = 64 << 20
	maxUnsent      = 1 << 20
)

// client is one connection as the core sees it. out and closed are filled by
// the core and taken by the Server.
type client struct {
	session *session
	timeout time.Duration // granted to this connection
	auth    []jute.ID
	watches [watchKinds]map[string]struct{}
	old     bool // a client that knows no read-only flag

	// What cons shows.
	addr      string // of the peer, with the port
	number    int64  // in the order of their coming
	since     time.Time
	stats     stats
	lastOp    string
	lastXid   int32
	lastZxid  int64
	lastReply time.Time

	out         []byte // frames to send
	closed      bool   // close the connection when out is sent
	gone        bool   // the connection is no more
	dirty       bool
	outstanding int // requests without an answer
	bytes       int // of their frames
}

// pendingNode is the state of a path after all prepared writes.
type pendingNode struct {
	r        *record // nil: deleted
	children int
	zxid     int64 // the write that made it so
}

type undoEntry struct {
	path string
	was  pendingNode
	had  bool
}

// newCore makes a core of what a store holds. seed is 32 random bytes, used
// when the store is empty.
func newCore(img image, seed []byte, o Options, now time.Time) *core {
	c := &core{
		tick: o.TickTime, minTimeout: o.MinSessionTimeout, maxTimeout: o.MaxSessionTimeout,
		super: o.SuperDigest, extended: !o.NoTTLNodes, hardQuotas: o.EnforceQuota, containers: o.containers(),
		secret: img.secret, tree: img.tree, overlay: map[string]pendingNode{}, self: &session{},
		sessions: map[int64]*session{}, expiry: newExpiryQueue(min(o.TickTime, expiryStep)), clients: map[*client]struct{}{},
	}
	for kind := range watchKinds {
		c.watches[kind].byPath = map[string]map[*client]watchMode{}
	}
	if c.secret == nil {
		c.secret, c.fresh = seed, true
	}
	if c.tree == nil {
		c.tree = firstTree()
	} else {
		// Zxids of failed writes are answered without a commit. A new epoch,
		// as after an election, is above all that were ever given out.
		c.zxid = (img.zxid>>32 + 1) << 32
	}
	c.lastZxid = c.zxid
	for _, r := range firstRecords() { // ZooKeeper before 3.5 had no /zookeeper/config
		if c.tree.nodes[r.path] == nil {
			c.tree.put(r)
		}
	}
	c.tree.loadQuotas()
	c.lastSession = firstSession(now) - 1
	for id, timeout := range img.sessions {
		s := &session{id: id, timeout: time.Duration(timeout) * time.Millisecond}
		c.sessions[id] = s
		c.lastSession = max(c.lastSession, id)
		c.expiry.touch(s, now, s.timeout)
	}
	return c
}

// password returns the password of a session: it needs no room in the store.
func (c *core) password(id int64) []byte {
	h := hmac.New(sha256.New, c.secret)
	_ = binary.Write(h, binary.BigEndian, id)
	return h.Sum(nil)[:jute.PasswordSize]
}

// node returns the pending state of a path: what a write is checked against.
func (c *core) node(path string) (pendingNode, bool) {
	if path == "" {
		path = rootPath
	}
	if p, ok := c.overlay[path]; ok {
		return p, p.r != nil
	}
	if n := c.tree.get(path); n != nil {
		return pendingNode{r: n.record, children: n.children()}, true
	}
	return pendingNode{}, false
}

// setNode changes the pending state of a path.
func (c *core) setNode(path string, p pendingNode) {
	was, had := c.overlay[path]
	c.undo = append(c.undo, undoEntry{path, was, had})
	c.overlay[path] = p
}

// rollback takes back what setNode did since mark.
func (c *core) rollback(mark int) {
	for i := len(c.undo) - 1; i >= mark; i-- {
		if u := c.undo[i]; u.had {
			c.overlay[u.path] = u.was
		} else {
			delete(c.overlay, u.path)
		}
	}
	c.undo = c.undo[:mark]
}

// takeBatch returns everything that is prepared, or nil. The caller commits it
// and then calls committed or commitFailed.
func (c *core) takeBatch() *batch {
	if c.flying != nil || len(c.pending) == 0 {
		return nil
	}
	b := &batch{txns: c.pending, zxid: c.zxid}
	c.pending = nil
	for _, t := range b.txns {
		b.durable = b.durable || t.zxid != 0 && (!c.saved || !t.failed())
	}
	if b.durable && c.fresh {
		b.secret = c.secret
	}
	c.flying = b
	return b
}

// committed makes a batch show: write by write, each followed by the reads
// that its session had waiting behind it.
func (c *core) committed(b *batch, now time.Time) {
	c.flying = nil
	if b.durable {
		c.saved, c.fresh = true, false
	}
	for _, t := range b.txns {
		c.apply(t, now)
		c.advance(t, now)
	}
}

// advance takes t, which was just answered, off its session's queue, and
// answers the reads behind it.
func (c *core) advance(t *txn, now time.Time) {
	q := t.session.queue[1:]
	for len(q) > 0 && q[0].txn == nil {
		c.answerRead(q[0], now)
		q = q[1:]
	}
	if t.session.queue = q; len(q) == 0 {
		t.session.queue = nil
	}
}

// commitFailed gives up everything that is prepared: nobody can tell whether
// the batch is on the disk, so its connections are closed without an answer,
// as if the server had crashed. From now on writes are refused.
func (c *core) commitFailed(b *batch, now time.Time) {
	c.flying, c.failed = nil, true
	for _, t := range append(b.txns, c.pending...) {
		for _, r := range t.session.queue {
			if r.client != nil {
				c.done(r)
				c.close(r.client)
			}
		}
		t.session.queue = nil
		c.unprepare(t, now)
	}
	c.pending = nil
	clear(c.overlay)
}

// unprepare takes back what a write that is given up did to its session when it
// was prepared.
func (c *core) unprepare(t *txn, now time.Time) {
	switch t.op {
	case jute.OpCreateSession:
		c.removeSession(t.session)
	case jute.OpCloseSession:
		t.session.closing = false
		c.expiry.touch(t.session, now, t.session.timeout)
	}
}

// commitRefused gives up everything that is prepared after a commit of which
// nothing was written, as on a full disk: its writes are answered with
// ErrSystemError, and the next may go better. A session that could not be made
// is not welcomed, one that could not be ended lives on.
func (c *core) commitRefused(b *batch, now time.Time) {
	c.flying = nil
	all := append(b.txns, c.pending...)
	c.pending = nil
	clear(c.overlay)
	for _, t := range all {
		c.unprepare(t, now)
	}
	for _, t := range all {
		queue := t.session.queue
		t.session.queue = nil
		for _, r := range queue {
			switch {
			case r.client == nil:
			case r.txn == nil:
				c.answerRead(r, now)
			case r.op == jute.OpCreateSession:
				c.close(r.client)
			case r.op == jute.OpSync:
				c.reply(r, jute.OK, r.body, now)
			default:
				c.reply(r, jute.ErrSystemError, nil, now)
			}
		}
	}
}

// send queues a frame of records.
func (c *core) send(cl *client, records ...jute.Record) {
	if cl == nil || cl.gone || cl.closed {
		return
	}
	e := jute.Encoder{B: cl.out}
	start := e.BeginFrame()
	for _, r := range records {
		if r != nil {
			r.Encode(&e)
		}
	}
	e.EndFrame(start)
	cl.out = e.B
	c.stats.sent++
	cl.stats.sent++
	c.mark(cl)
}

// close asks for the end of a connection after what is queued for it.
func (c *core) close(cl *client) {
	if cl != nil && !cl.gone && !cl.closed {
		cl.closed = true
		c.mark(cl)
	}
}

func (c *core) mark(cl *client) {
	if !cl.dirty {
		cl.dirty = true
		c.dirty = append(c.dirty, cl)
	}
}

// connected makes a connection known. addr is the peer's IP address, peer the
// same with its port.
func (c *core) connected(addr, peer string, now time.Time) *client {
	c.numbers++
	cl := &client{auth: []jute.ID{{Scheme: "ip", ID: addr}}, addr: peer, number: c.numbers, since: now, lastXid: -1, lastOp: "NA"}
	c.clients[cl] = struct{}{}
	return cl
}

// disconnected forgets a connection and its watches. Its session lives on.
func (c *core) disconnected(cl *client) {
	cl.gone = true
	cl.out = nil
	delete(c.clients, cl)
	c.unwatchAll(cl)
	if cl.session != nil && cl.session.client == cl {
		cl.session.client = nil
	}
}

// take counts a request in, done counts it out.
func (c *core) take(r *request) {
	r.client.outstanding++
	r.client.bytes += r.size
	c.bytes += r.size
}

func (c *core) done(r *request) {
	if r.op == jute.OpCreateSession {
		return // it was not counted
	}
	r.client.outstanding--
	r.client.bytes -= r.size
	c.bytes -= r.size
	c.mark(r.client) // it may wait for room
}

// full says whether a connection must wait before its next request is read.
// One that has nothing under way never waits for others.
func (c *core) full(cl *client) bool {
	switch {
	case cl.closed || cl.gone:
		return false
	case len(cl.out) >= maxUnsent:
		return true
	}
	return cl.outstanding >= maxOutstanding || cl.bytes >= maxUnanswered || cl.outstanding > 0 && c.bytes >= maxAll
}
