package keeper

import (
	"fmt"
	"math/rand/v2"

	"barnabas/internal/jute"
)

// op is one request of a script. Zxids and sessions in it are relative, so
// that it means the same on two servers.
type op struct {
	op   jute.Op
	body jute.Record
	cut  int   // bytes of the body to leave out
	lag  int64 // setWatches: how far before the last zxid
}

// step is one step of a script: requests of one client, sent in one go, or a
// change of its connection.
type step struct {
	client int
	kind   string // "ops", "drop", "attach", "steal", "wrong password", "close", "expire"
	ops    []op
}

func (s step) String() string {
	text := fmt.Sprintf("client %d: %s", s.client, s.kind)
	for _, o := range s.ops {
		text += fmt.Sprintf(" [%v %s cut %d lag %d]", o.op, show(o.body), o.cut, o.lag)
	}
	return text
}

func show(r jute.Record) string {
	if m, ok := r.(*jute.MultiRequest); ok {
		text := "{"
		for _, o := range m.Ops {
			text += fmt.Sprintf(" %v %s;", o.Op, show(o.Request))
		}
		return text + " }"
	}
	return fmt.Sprintf("%q", fmt.Sprintf("%+v", r))
}

// generator makes random steps. It knows nothing of the servers' state but
// which clients it dropped.
type generator struct {
	*rand.Rand
	dropped [clients]bool
	steps   int
	quotas  bool // hard ones, that are enforced: requests come one by one, since ZooKeeper checks against what is applied at that moment
}

const clients = 3

var (
	tops = []string{"/a", "/b", "/c", "/acl"}
	// superUser is the one who may do everything on both sides.
	superUser   = "super:secret"
	superDigest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="
	odd         = []string{"", "a", "/", "//", "/a/", "/a//b", "/a/./b", "/a/..", "/a/.b", "/a\x00b", "/\x01", "/a/\u009f", "/\uf8ff", "/\ufff0",
		"/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/a/ü", "/a/b/c/d"}
)

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) path() string {
	if g.chance(4) {
		return odd[g.IntN(len(odd))]
	}
	p := tops[g.IntN(len(tops))]
	for range g.IntN(3) {
		p += fmt.Sprintf("/n%d", g.IntN(4))
	}
	return p
}

func (g *generator) data() []byte {
	switch g.IntN(6) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	return fmt.Appendf(nil, "%0*d", g.IntN(20)+1, g.IntN(1000))
}

func (g *generator) version() int32 {
	if g.chance(60) {
		return -1
	}
	return int32(g.IntN(4))
}

func (g *generator) acl(path string) []jute.ACL {
	if len(path) < 4 || path[:4] != "/acl" || g.chance(30) {
		return jute.WorldACL()
	}
	perm := int32(g.IntN(32))
	return [][]jute.ACL{
		{{Perms: perm, ID: jute.ID{Scheme: "auth", ID: ""}}},
		{{Perms: perm, ID: jute.ID{Scheme: "digest", ID: "u1:eJiy5yZIAZ8V0BIYd0WvDk2X1fE="}}},
		{{Perms: perm, ID: jute.ID{Scheme: "world", ID: "anyone"}}, {Perms: jute.PermAll, ID: jute.ID{Scheme: "auth", ID: "x"}}},
		{{Perms: jute.PermAll, ID: jute.ID{Scheme: "ip", ID: "127.0.0.0/8"}}},
		{{Perms: jute.PermAll, ID: jute.ID{Scheme: "ip", ID: "10.0.0.1"}}, {Perms: jute.PermRead, ID: jute.ID{Scheme: "world", ID: "anyone"}}},
		{{Perms: perm, ID: jute.ID{Scheme: "world", ID: "someone"}}},
		{{Perms: perm, ID: jute.ID{Scheme: "digest", ID: "nocolon"}}},
		{{Perms: perm, ID: jute.ID{Scheme: "ip", ID: "1.2.3"}}},
		{{Perms: perm, ID: jute.ID{Scheme: "none", ID: "x"}}},
		{}, nil,
		{{Perms: jute.PermAll, ID: jute.ID{Scheme: "world", ID: "anyone"}}, {Perms: jute.PermAll, ID: jute.ID{Scheme: "world", ID: "anyone"}}},
	}[g.IntN(12)]
}

func (g *generator) create() *jute.CreateRequest {
	p := g.path()
	mode := jute.CreateMode(g.IntN(4))
	if g.chance(3) {
		mode = []jute.CreateMode{-1, 4, 5, 6, 7}[g.IntN(5)]
	}
	if mode.Sequential() && g.chance(20) {
		p += "/"
	}
	return &jute.CreateRequest{Path: p, Data: g.data(), ACL: g.acl(p), Mode: mode}
}

// write returns a request that may stand alone or in a multi.
func (g *generator) write(multi bool) (jute.Op, jute.Record) {
	switch n := g.IntN(100); {
	case n < 4:
		c := g.create()
		if c.Mode = jute.Container; g.chance(20) {
			c.Mode = []jute.CreateMode{jute.Persistent, jute.PersistentSequential}[g.IntN(2)]
		}
		return jute.OpCreateContainer, c
	case n < 8:
		c := &jute.CreateTTLRequest{CreateRequest: *g.create(), TTL: []int64{0, 1, 3_600_000, 1<<40 - 1, 1 << 40, 1<<63 - 1}[g.IntN(6)]}
		if g.chance(80) {
			c.Mode, c.TTL = jute.PersistentTTL+jute.CreateMode(g.IntN(2)), int64(g.IntN(1000)+1)*3_600_000
		}
		return jute.OpCreateTTL, c
	case n < 11:
		return g.quota()
	case n < 36:
		return jute.OpCreate, g.create()
	case n < 50:
		return jute.OpCreate2, g.create()
	case n < 72:
		return jute.OpDelete, &jute.PathVersionRequest{Path: g.path(), Version: g.version()}
	case n < 90 || !multi:
		return jute.OpSetData, &jute.SetDataRequest{Path: g.path(), Data: g.data(), Version: g.version()}
	}
	return jute.OpCheck, &jute.PathVersionRequest{Path: g.path(), Version: g.version()}
}

func (g *generator) op() op {
	switch n := g.IntN(100); {
	case n < 40:
		o, body := g.write(false)
		return op{op: o, body: body}
	case n < 55:
		m := &jute.MultiRequest{}
		for range g.IntN(5) {
			o, body := g.write(true)
			c, ok := body.(*jute.CreateRequest)
			if ttl, is := body.(*jute.CreateTTLRequest); is {
				c, ok = &ttl.CreateRequest, true
			}
			if ok && c.ACL == nil {
				c.ACL = []jute.ACL{} // Apache trips over null here and loses the request's zxid
			}
			m.Ops = append(m.Ops, jute.MultiOp{Op: o, Request: body})
		}
		if g.chance(2) {
			m.Ops = append(m.Ops, jute.MultiOp{Op: jute.OpGetData, Request: &jute.PathWatchRequest{Path: g.path()}})
		}
		return op{op: jute.OpMulti, body: m}
	case n < 58:
		m := &jute.MultiRequest{}
		for range g.IntN(4) {
			m.Ops = append(m.Ops, jute.MultiOp{Op: []jute.Op{jute.OpGetData, jute.OpGetChildren}[g.IntN(2)],
				Request: &jute.PathWatchRequest{Path: g.path()}})
		}
		return op{op: jute.OpMultiRead, body: m}
	case n < 61:
		p := g.path()
		if p == "/" || p == "" {
			p = "/acl"
		}
		return op{op: jute.OpSetACL, body: &jute.SetACLRequest{Path: p, ACL: g.acl(p), Version: g.version()}}
	case n < 64:
		return op{op: []jute.Op{jute.OpGetACL, jute.OpSync, jute.OpGetAllChildrenNumber, jute.OpGetEphemerals}[g.IntN(4)],
			body: &jute.PathRequest{Path: g.path()}}
	case n < 65 && g.chance(80):
		return op{op: jute.OpAuth, body: &jute.AuthPacket{Scheme: []string{"digest", "digest", "ip"}[g.IntN(3)], Auth: fmt.Appendf(nil, "u%d:p", g.IntN(3))}}
	case n < 65:
		return op{op: jute.OpAuth, body: &jute.AuthPacket{Scheme: "digest", Auth: []byte(superUser)}}
	case n < 67:
		return g.setWatches()
	case n < 71:
		return op{op: jute.OpAddWatch, body: &jute.AddWatchRequest{Path: g.path(), Mode: jute.WatchMode(g.IntN(33) % 3)}}
	case n < 74:
		p := g.path()
		if p == "a" { // it has no parent, and Apache falls over it
			p = "/a"
		}
		return op{op: []jute.Op{jute.OpRemoveWatches, jute.OpCheckWatches}[g.IntN(2)], body: &jute.WatchTypeRequest{Path: p, Type: jute.WatchType(g.IntN(5))}}
	case n < 75:
		if g.chance(20) {
			return op{op: jute.OpReconfig, body: &jute.ReconfigRequest{Members: "x", Config: -1}}
		}
		return op{op: jute.OpWhoAmI}
	}
	return op{op: []jute.Op{jute.OpExists, jute.OpGetData, jute.OpGetChildren, jute.OpGetChildren2}[g.IntN(4)],
		body: &jute.PathWatchRequest{Path: g.readable(), Watch: g.chance(60)}}
}

// readable is a path to read: one of a quota, too. Only quota writes these:
// numbers that are none make Apache stumble.
func (g *generator) readable() string {
	if g.chance(90) {
		return g.path()
	}
	return "/zookeeper/quota" + []string{"/b", "/b/n1", "/c"}[g.IntN(3)] + []string{"", "/zookeeper_limits", "/zookeeper_stats"}[g.IntN(3)]
}

func (g *generator) setWatches() op {
	paths := func() []string {
		list := []string{}
		for range g.IntN(4) {
			list = append(list, g.path())
		}
		return list
	}
	one := jute.SetWatchesRequest{Data: paths(), Exist: paths(), Child: paths()}
	if g.chance(50) {
		return op{op: jute.OpSetWatches, lag: int64(g.IntN(40)), body: &one}
	}
	return op{op: jute.OpSetWatches2, lag: int64(g.IntN(40)), body: &jute.SetWatches2Request{SetWatchesRequest: one, Persistent: paths(), PersistentRecursive: paths()}}
}

// quota returns a request about the quota of one of the paths.
func (g *generator) quota() (jute.Op, jute.Record) {
	p := "/zookeeper/quota" + []string{"/b", "/b/n1", "/c"}[g.IntN(3)]
	if g.chance(50) {
		return jute.OpCreate, &jute.CreateRequest{Path: p, ACL: jute.WorldACL()}
	}
	p += []string{"/zookeeper_limits", "/zookeeper_stats"}[g.IntN(2)]
	text := fmt.Sprintf("count=%d,bytes=%d", g.IntN(20)-1, g.IntN(200)-1)
	if g.quotas && g.chance(50) {
		text += fmt.Sprintf("=;byteHardLimit=%d;countHardLimit=%d", g.IntN(300)-1, g.IntN(30)-1)
	}
	switch n := g.IntN(10); {
	case n < 5:
		return jute.OpCreate, &jute.CreateRequest{Path: p, Data: []byte(text), ACL: jute.WorldACL()}
	case n < 8:
		return jute.OpSetData, &jute.SetDataRequest{Path: p, Data: []byte(text), Version: -1}
	}
	return jute.OpDelete, &jute.PathVersionRequest{Path: p, Version: -1}
}

// step returns the next step and how many operations it has.
func (g *generator) step() step {
	s := step{client: g.IntN(clients), kind: "ops"}
	if g.steps++; g.steps%2000 == 1000 {
		s.kind = "expire"
		return s
	}
	if g.dropped[s.client] {
		if s.kind = "attach"; g.chance(10) {
			s.kind = "wrong password"
		} else {
			g.dropped[s.client] = false
			s.ops = []op{g.setWatches()}
		}
		return s
	}
	switch n := g.IntN(3000); {
	case n < 60:
		s.kind = "drop"
		g.dropped[s.client] = true
		return s
	case n < 84:
		s.kind = "close"
		return s
	case n < 100:
		s.kind = "steal"
		return s
	}
	burst := 1
	if !g.quotas && g.chance(15) {
		burst += g.IntN(5)
	}
	for range burst {
		o := g.op()
		if burst > 1 && (o.op == jute.OpAuth || o.op == jute.OpSetWatches || o.op == jute.OpSetWatches2) {
			continue // the one is answered out of order, the other has no xid of its own
		}
		if g.chance(1) && o.op != jute.OpAuth && o.body != nil {
			o.cut = 1 + g.IntN(len(jute.Marshal(o.body)))
		}
		s.ops = append(s.ops, o)
	}
	return s
}
