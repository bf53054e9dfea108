package keeper

import (
	"maps"

	"barnabas/internal/jute"
)

// snapshot is the state of the tree at one moment, taken piece by piece while
// writes go on: records never change, so only those that are replaced or
// removed before their turn have to be kept. Taking it also closes the gaps
// that removed nodes left in tree.slots.
type snapshot struct {
	zxid     int64
	sessions map[int64]int32 // id to timeout in milliseconds

	end     int // slots[:end] belong to it
	next    int // the next slot to take
	filled  int // slots[:filled] have no gap
	saved   map[uint32]*record
	acls    []*sharedACL     // those of its nodes
	indexes map[string]int64 // of each, by its encoding
}

// beginSnapshot begins one; at most one is taken at a time.
func (c *core) beginSnapshot() *snapshot {
	sessions := map[int64]int32{}
	for id, session := range c.sessions {
		if !session.fresh {
			sessions[id] = int32(session.timeout.Milliseconds())
		}
	}
	return c.tree.begin(c.lastZxid, sessions)
}

func (t *tree) begin(zxid int64, sessions map[int64]int32) *snapshot {
	s := &snapshot{zxid: zxid, sessions: sessions, end: len(t.slots), saved: map[uint32]*record{}, indexes: make(map[string]int64, len(t.acls))}
	for key, a := range t.acls {
		s.acls = append(s.acls, &sharedACL{list: a.list})
		s.indexes[key] = int64(len(s.acls))
	}
	t.snap = s
	return s
}

// keep keeps the record of a node that is about to be replaced or removed.
func (s *snapshot) keep(n *node) {
	if s == nil || int(n.slot) < s.next || int(n.slot) >= s.end {
		return
	}
	if _, ok := s.saved[n.slot]; !ok {
		s.saved[n.slot] = n.record
	}
}

// take appends at most n records to out; none are left when it appends none.
func (t *tree) take(n int, out []*record) []*record {
	s := t.snap
	for ; s.next < s.end && n > 0; s.next++ {
		r, ok := s.saved[uint32(s.next)]
		if ok {
			delete(s.saved, uint32(s.next))
		}
		if at := t.slots[s.next]; at != nil {
			if !ok {
				r, ok = at.record, true
			}
			t.slots[s.next] = nil
			t.slots[s.filled] = at
			at.slot = uint32(s.filled)
			s.filled++
		}
		if ok {
			out = append(out, r)
			n--
		}
	}
	return out
}

// endSnapshot forgets the snapshot, and moves up what was created meanwhile.
func (t *tree) endSnapshot() {
	s := t.snap
	t.snap = nil
	if s.next < s.end || s.filled == s.end { // given up half way, or there was no gap
		return
	}
	for _, n := range t.slots[s.end:] {
		if n != nil {
			t.slots[s.filled] = n
			n.slot = uint32(s.filled)
			s.filled++
		}
	}
	clear(t.slots[s.filled:])
	t.slots = t.slots[:s.filled]
}

// replay does to a tree what a logged transaction did (DataTree.processTxn).
// It may have been done already: then it changes nothing but what it sets again.
func (img *image) replay(h txnHeader, t loggedTxn) {
	switch t.op {
	case jute.OpCreateSession:
		img.sessions[h.session] = t.timeout
	case jute.OpCloseSession:
		delete(img.sessions, h.session)
		paths := maps.Clone(img.tree.ephemerals[h.session])
		for path := range paths {
			img.delete(h, path)
		}
	case jute.OpMulti:
		for _, sub := range t.subs {
			if sub.op == jute.OpError {
				return
			}
		}
		for _, sub := range t.subs {
			img.replay(h, sub)
		}
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		img.create(h, t)
	case jute.OpDelete, jute.OpDeleteContainer:
		img.delete(h, t.path)
	case jute.OpSetData, jute.OpReconfig:
		if n := img.tree.get(t.path); n != nil {
			r := *n.record
			r.data, r.version, r.mzxid, r.mtime = t.data, t.version, h.zxid, h.time
			img.tree.put(&r)
		}
	case jute.OpSetACL:
		if n := img.tree.get(t.path); n != nil {
			r := *n.record
			r.acl, r.aversion = t.acl, t.version
			img.tree.put(&r)
		}
	}
}

func (img *image) create(h txnHeader, t loggedTxn) {
	parentPath, _, ok := parentOf(t.path)
	parent := img.tree.get(parentPath)
	if !ok || parent == nil {
		return
	}
	if t.parentVersion == -1 {
		t.parentVersion = parent.cversion + 1
	}
	if t.parentVersion > parent.cversion {
		p := *parent.record
		p.cversion, p.pzxid = t.parentVersion, h.zxid
		img.tree.change(parent, &p)
	}
	if img.tree.nodes[t.path] != nil {
		return
	}
	r := &record{path: t.path, data: t.data, acl: t.acl, czxid: h.zxid, mzxid: h.zxid, pzxid: h.zxid, ctime: h.time, mtime: h.time}
	switch {
	case t.op == jute.OpCreateContainer:
		r.owner = containerValue
	case t.op == jute.OpCreateTTL:
		r.owner = ttlMask | t.ttl&maxTTL
	case t.ephemeral:
		r.owner = h.session
	}
	r.acl = img.tree.share(r.acl)
	img.tree.add(&node{record: r}, parent)
}

func (img *image) delete(h txnHeader, path string) {
	parentPath, _, ok := parentOf(path)
	parent, n := img.tree.get(parentPath), img.tree.get(path)
	if !ok || path == rootPath || parent == nil {
		return
	}
	if h.zxid > parent.pzxid {
		p := *parent.record
		p.pzxid = h.zxid
		img.tree.change(parent, &p)
	}
	if n != nil && n.children() == 0 {
		img.tree.remove(path)
	}
}
