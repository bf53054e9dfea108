package keeper

import (
	"strings"
	"time"

	"barnabas/internal/jute"
)

// apply makes a committed write show: tree, watches, reply.
func (c *core) apply(t *txn, now time.Time) {
	r := t.session.queue[0]
	c.lastZxid = max(c.lastZxid, t.zxid)
	results := make([]jute.MultiResult, 0, len(t.steps))
	for i := range t.steps {
		res := c.applyStep(&t.steps[i], t.zxid)
		if res.Op == jute.OpCreateContainer || res.Op == jute.OpCreateTTL { // OpResult.CreateResult
			res.Op = jute.OpCreate2
		}
		results = append(results, res)
	}
	if t.err != jute.OK {
		c.reply(r, t.err, nil, now)
		return
	}
	switch t.op {
	case jute.OpCreateSession:
		t.session.fresh = false
		if t.client != nil {
			t.client.lastOp, t.client.lastXid, t.client.lastZxid, t.client.lastReply = shortNames[t.op], 0, c.lastZxid, now
			c.welcome(t.client)
		}
		return
	case jute.OpCloseSession:
		c.removeSession(t.session)
		if t.client != nil {
			c.reply(r, jute.OK, nil, now)
			c.close(t.client)
		}
		if t.session.client != nil { // it expired, or closed itself over an older connection
			c.close(t.session.client)
		}
		return
	}
	var body jute.Record
	switch t.op {
	case jute.OpMulti:
		body = &jute.MultiResponse{Results: results}
	case jute.OpCreate:
		body = &jute.CreateResponse{Path: results[0].Path}
	case jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		body = &jute.Create2Response{Path: results[0].Path, Stat: results[0].Stat}
	case jute.OpSetData, jute.OpSetACL:
		body = &results[0].Stat
	case jute.OpSync:
		body = r.body
	}
	c.reply(r, jute.OK, body, now)
}

// applyStep changes the tree and fires watches: first those of the node, then
// those of its parent. The Stat in the result is that of this moment, between
// the operations of a multi.
func (c *core) applyStep(st *step, zxid int64) jute.MultiResult {
	res := jute.MultiResult{Op: st.op, Err: st.err, Path: st.path}
	if st.op == jute.OpError {
		return res
	}
	parentPath, _, _ := parentOf(st.path)
	var gone []jute.ACL
	if st.op == jute.OpDelete {
		gone = c.tree.get(st.path).acl
	}
	c.tree.apply(st)
	for _, w := range st.writes {
		if p, ok := c.overlay[w.path]; ok && p.zxid == zxid {
			delete(c.overlay, w.path)
		}
	}
	switch st.op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		n := c.tree.get(st.path)
		res.Stat = st.writes[0].r.stat(0) // before the counts of quotas change
		c.trigger(dataWatch, st.path, jute.EventNodeCreated, n.acl, nil)
		c.trigger(childWatch, parentPath, jute.EventNodeChildrenChanged, c.tree.get(parentPath).acl, nil)
	case jute.OpDelete:
		told := c.trigger(dataWatch, st.path, jute.EventNodeDeleted, gone, nil)
		c.trigger(childWatch, st.path, jute.EventNodeDeleted, gone, told)
		c.trigger(childWatch, parentPath, jute.EventNodeChildrenChanged, c.tree.get(parentPath).acl, nil)
	case jute.OpSetData:
		n := c.tree.get(st.path)
		res.Stat = n.stat(n.children())
		c.trigger(dataWatch, st.path, jute.EventNodeDataChanged, n.acl, nil)
	case jute.OpSetACL:
		n := c.tree.get(st.path)
		res.Stat = n.stat(n.children())
	}
	return res
}

// apply changes the tree by one operation, and with it the counts of quotas.
func (t *tree) apply(st *step) {
	var before int
	if st.op == jute.OpDelete || st.op == jute.OpSetData {
		before = len(t.get(st.path).data)
	}
	for _, w := range st.writes {
		if w.r != nil {
			t.put(w.r)
		} else {
			t.remove(w.path)
		}
	}
	switch st.op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		t.quotaCreated(st.path, len(st.writes[0].r.data))
	case jute.OpDelete:
		t.quotaDeleted(st.path, before)
	case jute.OpSetData:
		t.quotaChanged(st.path, len(st.writes[0].r.data)-before, 0)
	}
}

// reply queues the answer to a request.
func (c *core) reply(r *request, err jute.Error, body jute.Record, now time.Time) {
	if r.client == nil {
		return
	}
	c.done(r)
	c.stats.latency(now.Sub(r.at))
	cl := r.client
	cl.stats.latency(now.Sub(r.at))
	cl.lastOp, cl.lastZxid, cl.lastReply = shortNames[r.op], c.lastZxid, now
	if r.xid >= 0 {
		cl.lastXid = r.xid
	}
	c.send(r.client, &jute.ReplyHeader{Xid: r.xid, Zxid: c.lastZxid, Err: err}, body)
}

// answerRead answers a request that changes nothing from the committed state
// (FinalRequestProcessor).
func (c *core) answerRead(r *request, now time.Time) {
	if r.client.closed || r.client.gone {
		c.done(r)
		return
	}
	body, err := c.read(r)
	if err != jute.OK {
		body = nil
	}
	c.reply(r, err, body, now)
}

func (c *core) read(r *request) (jute.Record, jute.Error) {
	if err := checkSession(r); err != jute.OK {
		return nil, err
	}
	if r.bad {
		return nil, jute.ErrMarshallingError
	}
	switch q := r.body.(type) {
	case *jute.PathWatchRequest:
		return c.readNode(r.client, r.op, q)
	case *jute.PathRequest:
		return c.readPath(r, q.Path)
	case *jute.SetWatchesRequest:
		c.setWatches(r.client, q)
	case *jute.SetWatches2Request:
		c.setWatches2(r.client, q)
	case *jute.AddWatchRequest:
		return c.addWatch(r.client, q)
	case *jute.WatchTypeRequest:
		return nil, c.watchesOf(r.client, r.op, q)
	case *jute.MultiRequest:
		m := &jute.MultiResponse{}
		for _, op := range q.Ops {
			w, ok := op.Request.(*jute.PathWatchRequest)
			if !ok {
				return nil, jute.ErrMarshallingError
			}
			body, err := c.readNode(r.client, op.Op, w)
			res := jute.MultiResult{Op: op.Op}
			switch body := body.(type) {
			case *jute.GetDataResponse:
				res.Data, res.Stat = body.Data, body.Stat
			case *jute.GetChildrenResponse:
				res.Children = body.Children
			default:
				res = jute.MultiResult{Op: jute.OpError, Err: err}
			}
			m.Results = append(m.Results, res)
		}
		return m, jute.OK
	}
	if r.op == jute.OpWhoAmI {
		return whoAmI(r.client.auth), jute.OK
	}
	return nil, jute.OK // ping
}

// readNode answers exists, getData, getChildren and getChildren2.
func (c *core) readNode(cl *client, op jute.Op, q *jute.PathWatchRequest) (jute.Record, jute.Error) {
	if op == jute.OpExists && strings.Contains(q.Path, "\x00") {
		return nil, jute.ErrBadArguments
	}
	n := c.tree.get(q.Path)
	if n == nil {
		if op == jute.OpExists && q.Watch {
			c.watch(dataWatch, q.Path, cl, once)
		}
		return nil, jute.ErrNoNode
	}
	if !allowed(n.acl, jute.PermRead, cl.auth) {
		return nil, jute.ErrNoAuth
	}
	if q.Watch {
		kind := dataWatch
		if op == jute.OpGetChildren || op == jute.OpGetChildren2 {
			kind = childWatch
		}
		c.watch(kind, q.Path, cl, once)
	}
	stat := n.stat(n.children())
	switch op {
	case jute.OpGetData:
		return &jute.GetDataResponse{Data: n.data, Stat: stat}, jute.OK
	case jute.OpGetChildren:
		return &jute.GetChildrenResponse{Children: n.names()}, jute.OK
	case jute.OpGetChildren2:
		return &jute.GetChildren2Response{Children: n.names(), Stat: stat}, jute.OK
	}
	return &stat, jute.OK
}

// readPath answers getACL, getEphemerals and getAllChildrenNumber.
func (c *core) readPath(r *request, path string) (jute.Record, jute.Error) {
	if r.op == jute.OpGetEphemerals {
		return c.ephemeralsOf(r.session, path), jute.OK
	}
	n := c.tree.get(path)
	if n == nil {
		return nil, jute.ErrNoNode
	}
	perm := jute.PermRead
	if r.op == jute.OpGetACL {
		perm |= jute.PermAdmin
	}
	if !allowed(n.acl, perm, r.client.auth) {
		return nil, jute.ErrNoAuth
	}
	if r.op == jute.OpGetAllChildrenNumber {
		return &jute.CountResponse{Count: int32(c.tree.countBelow(path))}, jute.OK
	}
	acl := aclOf(n.acl)
	if !allowed(n.acl, jute.PermAdmin, r.client.auth) {
		acl = hideDigests(acl)
	}
	return &jute.GetACLResponse{ACL: acl, Stat: n.stat(n.children())}, jute.OK
}
