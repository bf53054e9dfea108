package keeper

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
)

// The model: the tree as a map that is copied whole at each write. It knows
// what a client must be told when, from three rules: writes take effect one
// after the other in the order in which they came; a read sees the state as of
// its session's last write, or, if that is answered already, as of the last
// write that was committed; nothing else is seen.

type modelNode struct {
	data    string
	version int32
	creates int
	owner   string
}

type model struct {
	nodes map[string]modelNode
	zxid  int64
}

func (m *model) clone() *model { return &model{maps.Clone(m.nodes), m.zxid} }

func (m *model) children(path string) []string {
	names := []string{}
	for p := range m.nodes {
		if parent, name, _ := parentOf(p); parent == path && p != "/" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// one does one operation and returns what a multi's result shows of it.
func (m *model) one(session string, op jute.Op, body jute.Record) (string, jute.Error) {
	switch q := body.(type) {
	case *jute.CreateRequest:
		parent, _, _ := parentOf(q.Path)
		p, ok := m.nodes[parent]
		path := q.Path
		if q.Mode.Sequential() {
			path += fmt.Sprintf("%010d", p.creates)
		}
		if !ok {
			return "", jute.ErrNoNode
		}
		if _, there := m.nodes[path]; there {
			return "", jute.ErrNodeExists
		}
		if p.owner != "" {
			return "", jute.ErrNoChildrenForEphemerals
		}
		p.creates++
		m.nodes[parent] = p
		n := modelNode{data: string(q.Data)}
		if q.Mode.Ephemeral() {
			n.owner = session
		}
		m.nodes[path] = n
		return "create " + path, jute.OK
	case *jute.SetDataRequest:
		n, ok := m.nodes[q.Path]
		if !ok {
			return "", jute.ErrNoNode
		}
		if q.Version != -1 && q.Version != n.version {
			return "", jute.ErrBadVersion
		}
		n.data = string(q.Data)
		n.version++
		m.nodes[q.Path] = n
		return "setData", jute.OK
	case *jute.PathVersionRequest:
		n, ok := m.nodes[q.Path]
		parent, _, _ := parentOf(q.Path)
		_, parentThere := m.nodes[parent]
		switch {
		case !ok || !parentThere:
			return "", jute.ErrNoNode
		case q.Version != -1 && q.Version != n.version:
			return "", jute.ErrBadVersion
		case op == jute.OpCheck:
			return "check", jute.OK
		case len(m.children(q.Path)) > 0:
			return "", jute.ErrNotEmpty
		}
		delete(m.nodes, q.Path)
		return "delete", jute.OK
	}
	panic("no such write")
}

// write does a request and returns its answer.
func (m *model) write(session string, op jute.Op, body jute.Record) string {
	m.zxid++
	multi, ok := body.(*jute.MultiRequest)
	if !ok {
		text, err := m.one(session, op, body)
		if err != jute.OK {
			return strings.TrimPrefix(err.Error(), "zookeeper: ")
		}
		return strings.TrimPrefix(text, "create ")
	}
	var results []string
	try := m.clone()
	for i, o := range multi.Ops {
		text, err := try.one(session, o.Op, o.Request)
		if err == jute.OK {
			results = append(results, text)
			continue
		}
		results = nil
		for j := range multi.Ops {
			switch {
			case j < i:
				results = append(results, "ok")
			case j == i:
				results = append(results, strings.TrimPrefix(err.Error(), "zookeeper: "))
			default:
				results = append(results, "runtime inconsistency")
			}
		}
		try = m
		break
	}
	m.nodes = try.nodes
	return "[" + strings.Join(results, "; ") + "]"
}

func (m *model) read(op jute.Op, path string) string {
	n, ok := m.nodes[path]
	switch {
	case !ok:
		return "no node"
	case op == jute.OpGetData:
		return fmt.Sprintf("%q v%d kids%d", n.data, n.version, len(m.children(path)))
	}
	return fmt.Sprint(m.children(path))
}

// brief cuts the core's answer to what the model knows.
func brief(op jute.Op, body string) string {
	body = strings.TrimPrefix(body, "ok ")
	switch op {
	case jute.OpGetData:
		if data, stat, ok := strings.Cut(body, " {"); ok {
			f := strings.Fields(stat)
			return data + " " + f[3] + " " + strings.TrimSuffix(f[7], "}")
		}
	case jute.OpSetData:
		if strings.HasPrefix(body, "{") {
			return "setData"
		}
	case jute.OpDelete:
		if body == "ok" {
			return "delete"
		}
	case jute.OpMulti: // the Stats of setData
		for {
			a := strings.Index(body, " {")
			if a < 0 {
				break
			}
			body = body[:a] + body[a+strings.Index(body[a:], "}")+1:]
		}
	}
	return body
}

func testSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	if text := os.Getenv("BARNABAS_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("BARNABAS_SEED=%d", seed)
	return seed
}

func TestRandomOperationsAnswerAsTheModel(t *testing.T) {
	g := rand.New(rand.NewPCG(testSeed(t), 2))
	for range 30 {
		runModel(t, g)
	}
}

// modelRun is one random run: the core, the states that the model went through,
// and what each client is owed.
type modelRun struct {
	*sim
	t      *testing.T
	g      *rand.Rand
	states []*model
	shown  int                        // states[shown] is what is committed
	last   map[string]int             // the state after each client's last write
	due    map[string][]func() string // answers in their order, as functions of when
	ops    map[string][]jute.Op
}

var modelClients = []string{"a", "b", "c"}

func newModelRun(t *testing.T, g *rand.Rand) *modelRun {
	r := &modelRun{sim: newSim(), t: t, g: g, last: map[string]int{}, due: map[string][]func() string{}, ops: map[string][]jute.Op{}}
	first := &model{nodes: map[string]modelNode{"/": {}, "/zookeeper": {}, "/zookeeper/quota": {}, "/zookeeper/config": {}}}
	for _, n := range modelClients {
		r.connect(n, jute.ConnectRequest{Timeout: 40000})
		first.zxid++
	}
	r.states = []*model{first}
	r.commit()
	r.take()
	return r
}

func (r *modelRun) path() string {
	p := ""
	for range 1 + r.g.IntN(2) {
		p += fmt.Sprintf("/n%d", r.g.IntN(3))
	}
	return p
}

func (r *modelRun) write() (jute.Op, jute.Record) {
	version := int32(r.g.IntN(4)) - 1
	switch r.g.IntN(4) {
	case 0, 1:
		return jute.OpCreate, create(r.path(), fmt.Sprint(r.g.IntN(99)), jute.CreateMode(r.g.IntN(4)))
	case 2:
		return jute.OpDelete, &jute.PathVersionRequest{Path: r.path(), Version: version}
	}
	return jute.OpSetData, &jute.SetDataRequest{Path: r.path(), Data: fmt.Append(nil, r.g.IntN(99)), Version: version}
}

func (r *modelRun) sendWrite(name string) {
	op, body := r.write()
	if r.g.IntN(5) == 0 {
		m := &jute.MultiRequest{}
		for range 1 + r.g.IntN(3) {
			o, b := r.write()
			m.Ops = append(m.Ops, jute.MultiOp{Op: o, Request: b})
		}
		op, body = jute.OpMulti, m
	}
	next := r.states[len(r.states)-1].clone()
	result := next.write(name, op, body)
	answer := fmt.Sprintf("zxid %x %s", next.zxid, result)
	r.states = append(r.states, next)
	r.last[name] = len(r.states) - 1
	r.owe(name, op, func() string { return answer })
	r.send(name, op, body)
}

func (r *modelRun) sendRead(name string) {
	op, p := []jute.Op{jute.OpGetData, jute.OpGetChildren}[r.g.IntN(2)], r.path()
	at := r.states[max(r.last[name], r.shown)]
	r.owe(name, op, func() string { return fmt.Sprintf("zxid %x %s", at.zxid, at.read(op, p)) })
	r.send(name, op, &jute.PathWatchRequest{Path: p})
}

func (r *modelRun) owe(name string, op jute.Op, answer func() string) {
	r.due[name], r.ops[name] = append(r.due[name], answer), append(r.ops[name], op)
}

// settle compares what came with what was due.
func (r *modelRun) settle() {
	for _, line := range r.take() {
		n, rest, _ := strings.Cut(line, ": ")
		fields := strings.SplitN(rest, " ", 4)
		if len(fields) < 4 || len(r.due[n]) == 0 {
			r.t.Fatalf("not due: %s", line)
		}
		if got, want := fmt.Sprintf("zxid %s %s", fields[2], brief(r.ops[n][0], fields[3])), r.due[n][0](); got != want {
			r.t.Fatalf("%s\n got %s\nwant %s", line, got, want)
		}
		r.due[n], r.ops[n] = r.due[n][1:], r.ops[n][1:]
	}
}

func runModel(t *testing.T, g *rand.Rand) {
	r := newModelRun(t, g)
	var held *batch
	var heldEnd int
	for range 300 {
		n := modelClients[g.IntN(len(modelClients))]
		switch k := g.IntN(10); {
		case k < 5:
			r.sendWrite(n)
		case k < 8:
			r.sendRead(n)
		case held == nil:
			held, heldEnd = r.hold(), len(r.states)-1
		default:
			r.shown = heldEnd
			r.let(held)
			held = nil
		}
		r.settle()
	}
	r.let(held)
	r.commit()
	r.settle()
	for n, d := range r.due {
		if len(d) > 0 {
			t.Fatalf("%s got no answer to %d requests", n, len(d))
		}
	}
	// What is on the disk is what is shown.
	before := r.c.tree
	r.reopen()
	if got, want := dump(r.c.tree), dump(before); got != want {
		t.Fatalf("after a restart\n%s\nbefore\n%s", got, want)
	}
	checkTree(t, r.c.tree)
	r.now = r.now.Add(time.Hour) // all sessions end, and their nodes with them
	r.c.expire(r.now)
	r.commit()
	checkTree(t, r.c.tree)
	if len(r.c.tree.ephemerals) != 0 || len(r.c.sessions) != 0 || len(r.image.sessions) != 0 {
		t.Fatalf("%d sessions with nodes, %d sessions, %d stored", len(r.c.tree.ephemerals), len(r.c.sessions), len(r.image.sessions))
	}
}

func dump(tr *tree) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(tr.nodes)) {
		n := tr.nodes[path]
		fmt.Fprintf(&b, "%s %q %v %+v\n", path, n.data, n.acl, n.stat(n.children()))
	}
	return b.String()
}

// checkTree checks what must hold of every tree.
func checkTree(t *testing.T, tr *tree) {
	t.Helper()
	kids, bytes, owned := map[string]int{}, int64(0), 0
	for path, n := range tr.nodes {
		bytes += int64(len(path) + len(n.data))
		if n.path != path {
			t.Errorf("%s calls itself %s", path, n.path)
		}
		if path != "/" {
			parent, name, _ := parentOf(path)
			kids[parent]++
			p := tr.nodes[parent]
			if p.kids.nodes[n.at] != n {
				t.Errorf("%s does not know %s", parent, name)
			}
			if p.slot >= n.slot {
				t.Errorf("%s comes after its child", parent)
			}
		}
		if tr.slots[n.slot] != n {
			t.Errorf("%s is not in its slot", path)
		}
		if kindOf(n.owner) == sessionOwner {
			owned++
			if _, ok := tr.ephemerals[n.owner][path]; !ok {
				t.Errorf("%s is not among its session's nodes", path)
			}
		}
	}
	for _, paths := range tr.ephemerals {
		owned -= len(paths)
	}
	for path, n := range tr.nodes {
		if n.children() != kids[path] || len(n.names()) != kids[path] {
			t.Errorf("%s has %d children, counts %d, names %v", path, kids[path], n.children(), n.names())
		}
	}
	if bytes != tr.bytes || owned != 0 {
		t.Errorf("bytes %d, counted %d; %d ephemeral nodes too few", bytes, tr.bytes, owned)
	}
}
