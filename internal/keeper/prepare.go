package keeper

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"barnabas/internal/jute"
)

// request is one request of a client, or the end of a session that expired.
type request struct {
	client  *client // nil when the server itself asks
	session *session
	xid     int32
	op      jute.Op
	body    jute.Record // nil: the request has none
	bad     bool        // the body could not be decoded
	late    bool        // the end of the session was prepared before it came
	at      time.Time
	size    int  // bytes of its frame
	txn     *txn // a write; nil for a read
}

// incoming is a request as it came from a connection.
type incoming struct {
	jute.RequestHeader
	body jute.Record // nil: the operation has none
	bad  bool        // the body could not be decoded
	size int         // bytes of the frame
}

// txn is a prepared write: what will change, and what the reply will say.
type txn struct {
	zxid    int64 // 0: nothing but a place in the order (sync)
	session *session
	client  *client
	op      jute.Op
	xid     int32
	at      int64      // milliseconds since 1970
	err     jute.Error // of the whole request
	steps   []step     // one; as many as operations in a multi; one a node at the end of a session
}

func (t *txn) failed() bool {
	return t.err != jute.OK || len(t.steps) > 0 && t.steps[len(t.steps)-1].op == jute.OpError
}

// step is one operation of a txn. In a multi that failed, all are OpError.
type step struct {
	op     jute.Op
	err    jute.Error
	path   string
	writes []write
}

// write is the new state of one node. In a step the node itself comes first,
// then its parent.
type write struct {
	path string
	r    *record // nil: removed
}

// request takes one request of a connection, in the order of their arrival.
// Reads are answered at once, unless the session has writes under way: then
// they wait behind these.
func (c *core) request(cl *client, in incoming, now time.Time) {
	c.stats.received++
	cl.stats.received++
	if cl.closed || cl.gone || cl.session == nil {
		return
	}
	s := cl.session
	if !s.closing {
		c.expiry.touch(s, now, cl.timeout)
	}
	r := &request{client: cl, session: s, xid: in.Xid, op: in.Op, body: in.body, bad: in.bad, late: s.closing, at: now, size: in.size}
	switch in.Op {
	case jute.OpAuth:
		c.authenticate(r)
		return
	case jute.OpCreate, jute.OpCreate2, jute.OpDelete, jute.OpSetData, jute.OpSetACL, jute.OpCheck,
		jute.OpMulti, jute.OpCloseSession, jute.OpSync, jute.OpCreateContainer, jute.OpCreateTTL, jute.OpReconfig:
		c.take(r)
		c.prepare(r, now)
	case jute.OpExists, jute.OpGetData, jute.OpGetACL, jute.OpGetChildren, jute.OpGetChildren2, jute.OpMultiRead,
		jute.OpPing, jute.OpSetWatches, jute.OpSetWatches2, jute.OpAddWatch, jute.OpCheckWatches, jute.OpRemoveWatches,
		jute.OpGetEphemerals, jute.OpGetAllChildrenNumber, jute.OpWhoAmI:
		c.take(r)
		c.enqueue(r, nil)
	default:
		c.send(cl, &jute.ReplyHeader{Xid: in.Xid, Err: jute.ErrUnimplemented})
		c.close(cl)
	}
}

// authenticate answers an AuthPacket at once: it changes what later requests
// may do (ZooKeeperServer.processPacket).
func (c *core) authenticate(r *request) {
	a, ok := r.body.(*jute.AuthPacket)
	if !ok || r.bad {
		c.close(r.client)
		return
	}
	var id jute.ID
	switch a.Scheme {
	case "digest":
		if id = digestID(a.Auth); c.super != "" && id.ID == c.super && !slices.Contains(r.client.auth, superID) {
			r.client.auth = append(r.client.auth, superID)
		}
	case "ip":
		id = r.client.auth[0] // known since it connected
	default:
		c.stats.authFailed++
		c.send(r.client, &jute.ReplyHeader{Xid: r.xid, Err: jute.ErrAuthFailed})
		c.close(r.client)
		return
	}
	if !slices.Contains(r.client.auth, id) {
		r.client.auth = append(r.client.auth, id)
	}
	c.send(r.client, &jute.ReplyHeader{Xid: r.xid})
}

// enqueue puts a request in its session's order. t is nil for a read.
func (c *core) enqueue(r *request, t *txn) {
	r.txn = t
	if t != nil {
		c.pending = append(c.pending, t)
		r.session.queue = append(r.session.queue, r)
	} else if len(r.session.queue) > 0 {
		r.session.queue = append(r.session.queue, r)
	} else {
		c.answerRead(r, r.at)
	}
}

// prepare checks a write against the pending state and puts it in the order.
// Each takes the next zxid, those that fail too.
func (c *core) prepare(r *request, now time.Time) {
	t := &txn{session: r.session, client: r.client, op: r.op, xid: r.xid, at: now.UnixMilli()}
	if c.failed {
		t.err = jute.ErrSystemError
		c.enqueue(r, t)
		return
	}
	switch r.op {
	case jute.OpSync:
		if t.err = checkSession(r); r.bad {
			t.err = jute.ErrMarshallingError
		}
		c.enqueue(r, t)
		return
	case jute.OpCloseSession:
		c.prepareClose(r, now)
		return
	case jute.OpReconfig:
		if r.bad { // ZooKeeper reads this one before it takes a zxid
			t.err = jute.ErrMarshallingError
			c.enqueue(r, t)
			return
		}
	}
	c.zxid++
	t.zxid = c.zxid
	if r.bad {
		t.err = jute.ErrMarshallingError
		c.enqueue(r, t)
		return
	}
	c.undo = c.undo[:0]
	if m, ok := r.body.(*jute.MultiRequest); ok {
		c.prepareMulti(t, r, m, now)
	} else {
		var st step
		if st, t.err = c.prepareStep(r, r.op, r.body, now); t.err == jute.OK {
			t.steps = []step{st}
		}
	}
	c.enqueue(r, t)
}

// prepareMulti prepares all operations of a multi, or none: then each result
// is an error, OK before the one that failed and RuntimeInconsistency after it.
func (c *core) prepareMulti(t *txn, r *request, m *jute.MultiRequest, now time.Time) {
	for _, op := range m.Ops {
		switch body := op.Request.(type) {
		case *jute.CreateRequest:
			if body.Mode < jute.Persistent || body.Mode > jute.Container { // a TTL is createTTL's
				t.err = jute.ErrMarshallingError
			}
		case *jute.PathWatchRequest: // a read has no place here
			t.err = jute.ErrMarshallingError
		}
	}
	if t.err != jute.OK {
		return
	}
	t.steps = make([]step, 0, len(m.Ops))
	for i, op := range m.Ops {
		kind := op.Op
		switch body := op.Request.(type) { // in a multi the mode may make it another operation (Op.Create)
		case *jute.CreateRequest:
			if body.Mode == jute.Container {
				kind = jute.OpCreateContainer
			}
		case *jute.CreateTTLRequest:
			if body.Mode == jute.Container {
				kind = jute.OpCreateContainer
			} else if !body.Mode.TTL() {
				kind = jute.OpCreate
			}
		}
		st, err := c.prepareStep(r, kind, op.Request, now)
		if err == jute.OK {
			t.steps = append(t.steps, st)
			continue
		}
		c.rollback(0)
		t.steps = t.steps[:0]
		for j := range m.Ops {
			e := jute.OK
			switch {
			case j == i:
				e = err
			case j > i:
				e = jute.ErrRuntimeInconsistency
			}
			t.steps = append(t.steps, step{op: jute.OpError, err: e})
		}
		return
	}
}

func checkSession(r *request) jute.Error {
	if r.late {
		return jute.ErrSessionExpired
	}
	return jute.OK
}

// prepareStep checks one operation, changes the pending state and returns what
// is to be done (PrepRequestProcessor.pRequest2Txn). The checks stand in
// ZooKeeper's order: it decides which of several errors a client gets.
func (c *core) prepareStep(r *request, op jute.Op, body jute.Record, now time.Time) (step, jute.Error) {
	switch body := body.(type) {
	case *jute.CreateTTLRequest:
		if op == jute.OpCreateTTL {
			return c.prepareCreate(r, op, &body.CreateRequest, body.TTL, now)
		}
		return c.prepareCreate(r, op, &body.CreateRequest, -1, now)
	case *jute.CreateRequest:
		return c.prepareCreate(r, op, body, -1, now)
	case *jute.PathRequest:
		return c.prepareDeleteContainer(body.Path)
	case *jute.ReconfigRequest:
		return step{}, jute.ErrReconfigDisabled
	case *jute.SetDataRequest:
		return c.prepareSetData(r, body, now)
	case *jute.SetACLRequest:
		return c.prepareSetACL(r, body)
	case *jute.PathVersionRequest:
		if op == jute.OpDelete {
			return c.prepareDelete(r, body)
		}
		return c.prepareCheck(r, body)
	}
	return step{}, jute.ErrMarshallingError
}

func (c *core) prepareCreate(r *request, op jute.Op, q *jute.CreateRequest, ttl int64, now time.Time) (step, jute.Error) {
	switch {
	case q.Mode < jute.Persistent || q.Mode > jute.PersistentSequentialTTL:
		return step{}, jute.ErrBadArguments
	case q.Mode.TTL() && !c.extended:
		return step{}, jute.ErrUnimplemented
	case q.Mode.TTL() != (op == jute.OpCreateTTL) || q.Mode.TTL() && (ttl <= 0 || ttl > maxTTL):
		return step{}, jute.ErrBadArguments
	case r.late:
		return step{}, jute.ErrSessionExpired
	}
	path := q.Path
	parentPath, _, ok := parentOf(path)
	if !ok || strings.Contains(path, "\x00") {
		return step{}, jute.ErrBadArguments
	}
	acl, err := fixACL(q.ACL, r.client.auth)
	if err != jute.OK {
		return step{}, err
	}
	parent, ok := c.node(parentPath)
	if !ok {
		return step{}, jute.ErrNoNode
	}
	if !allowed(parent.r.acl, jute.PermCreate, r.client.auth) {
		return step{}, jute.ErrNoAuth
	}
	if q.Mode.Sequential() {
		path = fmt.Sprintf("%s%010d", path, parent.r.cversion)
	}
	if !validPath(path) {
		return step{}, jute.ErrBadArguments
	}
	if _, ok := c.node(path); ok {
		return step{}, jute.ErrNodeExists
	}
	if kindOf(parent.r.owner) == sessionOwner {
		return step{}, jute.ErrNoChildrenForEphemerals
	}
	if err := c.checkQuota(path, int64(len(q.Data)), 1); err != jute.OK {
		return step{}, err
	}
	child := &record{
		path: path, data: cloneBytes(q.Data), acl: acl,
		czxid: c.zxid, mzxid: c.zxid, pzxid: c.zxid, ctime: now.UnixMilli(), mtime: now.UnixMilli(),
	}
	switch {
	case op == jute.OpCreateContainer:
		child.owner = containerValue
	case op == jute.OpCreateTTL:
		child.owner = ttlMask | ttl
	case q.Mode.Ephemeral():
		child.owner = r.session.id
	}
	p := *parent.r
	if p.cversion+1 > p.cversion { // at its end the counter stays, as in DataTree.createNode
		p.cversion++
		p.pzxid = c.zxid
	}
	c.setNode(p.path, pendingNode{&p, parent.children + 1, c.zxid})
	c.setNode(path, pendingNode{child, 0, c.zxid})
	return step{op: op, path: path, writes: []write{{path, child}, {p.path, &p}}}, jute.OK
}

func (c *core) prepareDelete(r *request, q *jute.PathVersionRequest) (step, jute.Error) {
	if r.late {
		return step{}, jute.ErrSessionExpired
	}
	parentPath, _, ok := parentOf(q.Path)
	if !ok || strings.Contains(q.Path, "\x00") || specialPath(q.Path) {
		return step{}, jute.ErrBadArguments
	}
	parent, ok := c.node(parentPath)
	if !ok {
		return step{}, jute.ErrNoNode
	}
	if !allowed(parent.r.acl, jute.PermDelete, r.client.auth) {
		return step{}, jute.ErrNoAuth
	}
	n, ok := c.node(q.Path)
	switch {
	case !ok:
		return step{}, jute.ErrNoNode
	case q.Version != -1 && q.Version != n.r.version:
		return step{}, jute.ErrBadVersion
	case n.children > 0:
		return step{}, jute.ErrNotEmpty
	}
	return c.deleteStep(n.r, parent), jute.OK
}

// deleteStep removes a node from the pending state. Only the parent's pzxid
// tells of it: its cversion counts creates.
func (c *core) deleteStep(r *record, parent pendingNode) step {
	p := *parent.r
	p.pzxid = max(p.pzxid, c.zxid)
	c.setNode(p.path, pendingNode{&p, parent.children - 1, c.zxid})
	c.setNode(r.path, pendingNode{nil, 0, c.zxid})
	return step{op: jute.OpDelete, path: r.path, writes: []write{{r.path, nil}, {p.path, &p}}}
}

func (c *core) prepareSetData(r *request, q *jute.SetDataRequest, now time.Time) (step, jute.Error) {
	n, err := c.target(r, q.Path, jute.PermWrite)
	if err == jute.OK {
		err = c.checkQuota(q.Path, int64(len(q.Data)-len(n.r.data)), 0)
	}
	if err != jute.OK {
		return step{}, err
	}
	if q.Version != -1 && q.Version != n.r.version {
		return step{}, jute.ErrBadVersion
	}
	next := *n.r
	next.data = cloneBytes(q.Data)
	next.version++
	next.mzxid, next.mtime = c.zxid, now.UnixMilli()
	return c.changeStep(jute.OpSetData, &next, n.children), jute.OK
}

func (c *core) prepareSetACL(r *request, q *jute.SetACLRequest) (step, jute.Error) {
	if err := checkSession(r); err != jute.OK {
		return step{}, err
	}
	if !validPath(q.Path) {
		return step{}, jute.ErrBadArguments
	}
	acl, err := fixACL(q.ACL, r.client.auth)
	if err != jute.OK {
		return step{}, err
	}
	n, err := c.target(r, q.Path, jute.PermAdmin)
	if err != jute.OK {
		return step{}, err
	}
	if q.Version != -1 && q.Version != n.r.aversion {
		return step{}, jute.ErrBadVersion
	}
	next := *n.r
	next.acl = acl
	next.aversion++
	return c.changeStep(jute.OpSetACL, &next, n.children), jute.OK
}

func (c *core) prepareCheck(r *request, q *jute.PathVersionRequest) (step, jute.Error) {
	n, err := c.target(r, q.Path, jute.PermRead)
	if err != jute.OK {
		return step{}, err
	}
	if q.Version != -1 && q.Version != n.r.version {
		return step{}, jute.ErrBadVersion
	}
	return step{op: jute.OpCheck, path: q.Path}, jute.OK
}

// target returns the pending state of the node that a request is about.
func (c *core) target(r *request, path string, perm int32) (pendingNode, jute.Error) {
	if r.late {
		return pendingNode{}, jute.ErrSessionExpired
	}
	if !validPath(path) {
		return pendingNode{}, jute.ErrBadArguments
	}
	n, ok := c.node(path)
	if !ok {
		return n, jute.ErrNoNode
	}
	if !allowed(n.r.acl, perm, r.client.auth) {
		return n, jute.ErrNoAuth
	}
	return n, jute.OK
}

func (c *core) changeStep(op jute.Op, next *record, children int) step {
	c.setNode(next.path, pendingNode{next, children, c.zxid})
	return step{op: op, path: next.path, writes: []write{{next.path, next}}}
}

// prepareClose prepares the end of a session: its ephemeral nodes go with it.
func (c *core) prepareClose(r *request, now time.Time) {
	c.zxid++
	t := &txn{zxid: c.zxid, session: r.session, client: r.client, op: jute.OpCloseSession, xid: r.xid, at: now.UnixMilli()}
	paths := maps.Clone(c.tree.ephemerals[r.session.id])
	if paths == nil {
		paths = map[string]struct{}{}
	}
	for path, p := range c.overlay {
		if p.r != nil && p.r.owner == r.session.id {
			paths[path] = struct{}{}
		} else {
			delete(paths, path)
		}
	}
	c.undo = c.undo[:0]
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		n, _ := c.node(path)
		parentPath, _, _ := parentOf(path)
		parent, _ := c.node(parentPath)
		t.steps = append(t.steps, c.deleteStep(n.r, parent))
	}
	r.session.closing = true
	c.enqueue(r, t)
}
