package keeper

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/vfs"
)

// sim drives a core without goroutines, clock and store: it holds commits until
// it is told to let them go, and shows what each client gets.
type sim struct {
	c       *core
	now     time.Time
	image   image // what a store would hold
	clients map[string]*simClient
	names   map[int64]string // of sessions
	out     []string
}

type simClient struct {
	cl       *client
	xid      int32
	ops      map[int32]jute.Op
	id       int64
	password []byte
}

func newSim() *sim {
	s := &sim{now: time.UnixMilli(1_000_000), clients: map[string]*simClient{}, names: map[int64]string{}, image: image{}}
	s.reopen()
	return s
}

// reopen makes a new core of what was committed.
func (s *sim) reopen() {
	o, err := Options{}.withDefaults()
	if err != nil {
		panic(err)
	}
	s.c = newCore(s.stored(), make([]byte, 32), o, s.now)
	for _, c := range s.clients {
		c.cl = nil
	}
}

// hold takes a batch; let makes it durable and shows it; fail loses it.
func (s *sim) hold() *batch { return s.c.takeBatch() }

func (s *sim) let(b *batch) {
	if b == nil {
		return
	}
	if b.durable {
		s.save(b)
	}
	s.c.committed(b, s.now)
	s.collect()
}

func (s *sim) fail(b *batch) {
	s.c.commitFailed(b, s.now)
	s.collect()
}

// save does to the image what a store does: the entries of the log, encoded,
// decoded and replayed.
func (s *sim) save(b *batch) {
	if s.image.tree == nil {
		s.image.tree, s.image.sessions = firstTree(), map[int64]int32{}
	}
	for _, t := range b.txns {
		if t.zxid == 0 {
			continue
		}
		entry := appendEntry(nil, t)
		h, logged, ok := decodeEntry(entry[12 : len(entry)-1])
		if !ok || h.zxid != t.zxid {
			panic("a transaction does not survive its encoding")
		}
		s.image.replay(h, logged)
		s.image.zxid = h.zxid
	}
	if b.secret != nil {
		s.image.secret = b.secret
	}
}

// stored returns the image as it comes back from a snapshot.
func (s *sim) stored() image {
	img := s.image
	if img.tree == nil {
		return img
	}
	var file memoryFile
	if err := writeSnapshot(&file, img.tree.clone(), img.sessions, img.zxid); err != nil {
		panic(err)
	}
	var err error
	if img.tree, img.sessions, err = readSnapshot(bytes.NewReader(file.b), int64(len(file.b))); err != nil {
		panic(err)
	}
	return img
}

// memoryFile is a file that only grows.
type memoryFile struct {
	vfs.File
	b []byte
}

func (f *memoryFile) WriteAt(p []byte, at int64) (int, error) {
	f.b = append(f.b[:at], p...)
	return len(p), nil
}

func (f *memoryFile) Sync() error { return nil }

// commit lets everything go that is prepared.
func (s *sim) commit() { s.let(s.hold()) }

func (s *sim) connect(name string, r jute.ConnectRequest) {
	c := s.clients[name]
	if c == nil {
		c = &simClient{}
		s.clients[name] = c
	}
	c.cl, c.ops = s.c.connected("127.0.0.1", "127.0.0.1:1", s.now), map[int32]jute.Op{}
	s.c.connect(c.cl, &r, s.now)
	s.collect()
}

func (s *sim) send(name string, op jute.Op, body jute.Record) {
	c := s.clients[name]
	h := jute.RequestHeader{Op: op}
	switch op {
	case jute.OpPing:
		h.Xid = jute.XidPing
	case jute.OpAuth:
		h.Xid = jute.XidAuth
	case jute.OpSetWatches:
		h.Xid = jute.XidSetWatches
	default:
		c.xid++
		h.Xid = c.xid
	}
	c.ops[h.Xid] = op
	s.c.request(c.cl, incoming{RequestHeader: h, body: body, size: 100}, s.now)
	s.collect()
}

func (s *sim) drop(name string) {
	s.c.disconnected(s.clients[name].cl)
	s.clients[name].cl = nil
}

// collect shows what the core queued.
func (s *sim) collect() {
	for _, cl := range s.c.dirty {
		cl.dirty = false
	}
	s.c.dirty = nil
	for _, name := range slices.Sorted(maps.Keys(s.clients)) {
		c := s.clients[name]
		if c.cl == nil {
			continue
		}
		for len(c.cl.out) > 0 {
			d := jute.NewDecoder(c.cl.out)
			frame := d.Buffer()
			c.cl.out = d.Rest()
			s.out = append(s.out, name+": "+s.frame(c, frame))
		}
		if c.cl.closed {
			s.out = append(s.out, name+": closed")
			s.drop(name)
		}
	}
}

func (s *sim) frame(c *simClient, b []byte) string {
	if c.ops[0] == 0 { // before the handshake
		var r jute.ConnectResponse
		if err := jute.Unmarshal(b, &r); err != nil {
			return err.Error()
		}
		c.ops[0] = jute.OpCreateSession
		if r.SessionID == 0 {
			return "no such session"
		}
		if c.id, c.password = r.SessionID, r.Password; s.names[c.id] == "" {
			s.names[c.id] = fmt.Sprint("s", len(s.names)+1)
		}
		return fmt.Sprintf("session %s timeout %d", s.names[c.id], r.Timeout)
	}
	var h jute.ReplyHeader
	d := jute.NewDecoder(b)
	h.Decode(d)
	if h.Xid == jute.XidNotification {
		var e jute.WatcherEvent
		e.Decode(d)
		return fmt.Sprintf("event %s %s", [...]string{"", "created", "deleted", "changed", "children"}[e.Type], e.Path)
	}
	text := fmt.Sprintf("%d zxid %x", h.Xid, h.Zxid)
	if h.Err != jute.OK {
		return text + " " + strings.TrimPrefix(h.Err.Error(), "zookeeper: ")
	}
	r := jute.NewResponse(c.ops[h.Xid])
	if len(d.Rest()) == 0 || r == nil {
		return text + " ok"
	}
	r.Decode(d)
	return text + " ok " + s.show(r)
}

func (s *sim) stat(st jute.Stat) string {
	owner := ""
	if st.EphemeralOwner != 0 {
		owner = " of " + s.names[st.EphemeralOwner]
	}
	return fmt.Sprintf("{c%x m%x p%x v%d cv%d av%d len%d kids%d%s}", st.Czxid, st.Mzxid, st.Pzxid, st.Version, st.Cversion, st.Aversion,
		st.DataLength, st.NumChildren, owner)
}

func (s *sim) show(r jute.Record) string {
	switch r := r.(type) {
	case *jute.CreateResponse:
		return r.Path
	case *jute.Create2Response:
		return r.Path + " " + s.stat(r.Stat)
	case *jute.Stat:
		return s.stat(*r)
	case *jute.GetDataResponse:
		return fmt.Sprintf("%q %s", r.Data, s.stat(r.Stat))
	case *jute.GetChildrenResponse:
		return fmt.Sprint(r.Children)
	case *jute.GetChildren2Response:
		return fmt.Sprint(r.Children, " ", s.stat(r.Stat))
	case *jute.GetACLResponse:
		return fmt.Sprint(r.ACL, " ", s.stat(r.Stat))
	case *jute.MultiResponse:
		var parts []string
		for _, m := range r.Results {
			switch m.Op {
			case jute.OpError:
				parts = append(parts, strings.TrimPrefix(m.Err.Error(), "zookeeper: "))
			case jute.OpSetData:
				parts = append(parts, "setData "+s.stat(m.Stat))
			case jute.OpCreate2:
				parts = append(parts, "create2 "+m.Path+" "+s.stat(m.Stat))
			case jute.OpGetData:
				parts = append(parts, fmt.Sprintf("getData %q", m.Data))
			case jute.OpGetChildren:
				parts = append(parts, fmt.Sprint("getChildren ", m.Children))
			default:
				parts = append(parts, strings.TrimSpace(fmt.Sprint(m.Op, " ", m.Path)))
			}
		}
		return "[" + strings.Join(parts, "; ") + "]"
	}
	return fmt.Sprintf("%+v", r)
}

// take returns what was shown since the last call.
func (s *sim) take() []string {
	out := s.out
	s.out = nil
	return out
}

// clone returns a tree with the same records.
func (t *tree) clone() *tree {
	c := newTree(len(t.nodes))
	for _, n := range t.slots {
		if n != nil {
			c.put(n.record)
		}
	}
	c.quotas = maps.Clone(t.quotas)
	return c
}

// writeSnapshot writes a tree into a file.
func writeSnapshot(f vfs.File, t *tree, sessions map[int64]int32, zxid int64) error {
	snap := t.begin(zxid, sessions)
	defer t.endSnapshot()
	w := newSnapshotFile(nil, snap, f)
	if err := w.writeAll(t); err != nil {
		return err
	}
	return w.seal()
}
