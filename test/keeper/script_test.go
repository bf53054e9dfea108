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
}

const clients = 3

var (
	tops = []string{"/a", "/b", "/c", "/acl"}
	odd  = []string{"", "a", "/", "//", "/a/", "/a//b", "/a/./b", "/a/..", "/a/.b", "/a\x00b", "/\x01", "/a/\u009f", "/\uf8ff", "/\ufff0",
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
	if g.chance(2) {
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
	case n < 35:
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
			if c, ok := body.(*jute.CreateRequest); ok {
				if c.ACL == nil {
					c.ACL = []jute.ACL{} // Apache trips over null here and loses the request's zxid
				}
				if c.Mode == jute.Container { // refused by the embedded server
					c.Mode = jute.Persistent
				}
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
	case n < 65:
		return op{op: jute.OpAuth, body: &jute.AuthPacket{Scheme: []string{"digest", "digest", "ip"}[g.IntN(3)], Auth: fmt.Appendf(nil, "u%d:p", g.IntN(3))}}
	case n < 67:
		return g.setWatches()
	}
	return op{op: []jute.Op{jute.OpExists, jute.OpGetData, jute.OpGetChildren, jute.OpGetChildren2}[g.IntN(4)],
		body: &jute.PathWatchRequest{Path: g.path(), Watch: g.chance(60)}}
}

func (g *generator) setWatches() op {
	paths := func() []string {
		list := []string{}
		for range g.IntN(4) {
			list = append(list, g.path())
		}
		return list
	}
	return op{op: jute.OpSetWatches, lag: int64(g.IntN(40)), body: &jute.SetWatchesRequest{Data: paths(), Exist: paths(), Child: paths()}}
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
	if g.chance(15) {
		burst += g.IntN(5)
	}
	for range burst {
		o := g.op()
		if burst > 1 && (o.op == jute.OpAuth || o.op == jute.OpSetWatches) {
			continue // the one is answered out of order, the other has no xid of its own
		}
		if g.chance(1) && o.op != jute.OpAuth {
			o.cut = 1 + g.IntN(len(jute.Marshal(o.body)))
		}
		s.ops = append(s.ops, o)
	}
	return s
}
