package keeper

import (
	"slices"
	"strings"

	"barnabas/internal/jute"
)

// record is what the server keeps of one node. It never changes: a write makes
// a new one, so that what is committed, what is pending and what a snapshot
// still has to write can stand side by side.
type record struct {
	path string
	data []byte     // nil is null
	acl  []jute.ACL // nil is world:anyone with everything

	czxid, mzxid, pzxid         int64
	ctime, mtime                int64 // milliseconds since 1970
	version, cversion, aversion int32 // cversion counts creates of children only
	owner                       int64 // see ownerKind
}

// The kinds of nodes by what ends them, other than a delete (EphemeralType).
type ownerKind int

const (
	noOwner        ownerKind = iota // nothing does
	sessionOwner                    // the end of the session of that id
	containerOwner                  // losing its last child
	ttlOwner                        // being without children, and unchanged, for its time to live
)

// Values of Stat.ephemeralOwner that are no session's id.
const (
	containerValue = -1 << 63
	ttlMask        = -1 << 56 // and the time in milliseconds in the lowest 40 bits
	maxTTL         = 1<<40 - 1
)

func kindOf(owner int64) ownerKind {
	switch {
	case owner == 0:
		return noOwner
	case owner == containerValue:
		return containerOwner
	case owner&^maxTTL == ttlMask:
		return ttlOwner
	}
	return sessionOwner
}

// stat returns the counters as clients see them. ZooKeeper stores the number
// of creates and shows the number of changes: creates and deletes, which is
// twice the creates less the children that are still there. What is no session
// in owner is not shown (DataNode.copyStat).
func (r *record) stat(children int) jute.Stat {
	owner := r.owner
	if kindOf(owner) != sessionOwner {
		owner = 0
	}
	return jute.Stat{
		Czxid: r.czxid, Mzxid: r.mzxid, Pzxid: r.pzxid, Ctime: r.ctime, Mtime: r.mtime,
		Version: r.version, Cversion: r.cversion*2 - int32(children), Aversion: r.aversion,
		EphemeralOwner: owner, DataLength: int32(len(r.data)), NumChildren: int32(children),
	}
}

// node is the place of a record in the tree.
type node struct {
	*record
	kids *kids  // nil: never had any
	at   uint32 // its index in its parent's kids
	slot uint32 // its index in tree.slots
}

// kids are the children of a node, in no order.
type kids struct {
	nodes  []*node
	sorted []string // the names in order; nil after a change
}

func (n *node) children() int {
	if n.kids == nil {
		return 0
	}
	return len(n.kids.nodes)
}

// names returns the children's names in order.
func (n *node) names() []string {
	if n.children() == 0 {
		return []string{}
	}
	k := n.kids
	if k.sorted == nil {
		k.sorted = make([]string, 0, len(k.nodes))
		for _, child := range k.nodes {
			k.sorted = append(k.sorted, nameOf(child.path))
		}
		slices.Sort(k.sorted)
	}
	return k.sorted
}

func (n *node) adopt(child *node) {
	if n.kids == nil {
		n.kids = &kids{}
	}
	child.at = uint32(len(n.kids.nodes))
	n.kids.nodes = append(n.kids.nodes, child)
	n.kids.sorted = nil
}

func (n *node) orphan(child *node) {
	k := n.kids
	last := k.nodes[len(k.nodes)-1]
	k.nodes[child.at], last.at = last, child.at
	k.nodes[len(k.nodes)-1] = nil
	k.nodes = k.nodes[:len(k.nodes)-1]
	k.sorted = nil
	if len(k.nodes) == 0 {
		n.kids = nil
	}
}

// tree is the committed state of the nodes.
type tree struct {
	nodes      map[string]*node
	slots      []*node                       // in the order of their creation, so parents before children; nil where one was removed
	ephemerals map[int64]map[string]struct{} // by session
	perishable map[string]struct{}           // containers and nodes with a time to live
	quotas     map[string]struct{}           // paths that have a limit
	acls       map[string]*sharedACL         // of the nodes that have one of their own, by their encoding
	bytes      int64                         // of paths and data
	snap       *snapshot                     // being taken
}

func newTree(size int) *tree {
	return &tree{
		nodes: make(map[string]*node, size), slots: make([]*node, 0, size), ephemerals: map[int64]map[string]struct{}{},
		perishable: map[string]struct{}{}, quotas: map[string]struct{}{}, acls: map[string]*sharedACL{},
	}
}

// get returns a node or nil. The root also answers to "", as in ZooKeeper.
func (t *tree) get(path string) *node {
	if path == "" {
		path = rootPath
	}
	return t.nodes[path]
}

// put installs a record: a new node, whose parent is there, or a new state of one.
func (t *tree) put(r *record) {
	if n := t.nodes[r.path]; n != nil {
		t.change(n, r)
		return
	}
	r.acl = t.share(r.acl)
	t.add(&node{record: r}, nil)
}

// change gives a node a new state.
func (t *tree) change(n *node, r *record) {
	t.snap.keep(n)
	t.bytes += int64(len(r.data) - len(n.data))
	if len(r.acl) != len(n.acl) || len(r.acl) > 0 && &r.acl[0] != &n.acl[0] {
		t.release(n.acl)
		r.acl = t.share(r.acl)
	}
	n.record = r
}

// sharedACL is an ACL that several nodes have.
type sharedACL struct {
	list  []jute.ACL
	nodes int
}

// share returns the ACL that stands for all that are equal.
func (t *tree) share(acl []jute.ACL) []jute.ACL {
	if acl == nil {
		return nil
	}
	key := aclKey(acl)
	a := t.acls[key]
	if a == nil {
		a = &sharedACL{list: acl}
		t.acls[key] = a
	}
	a.nodes++
	return a.list
}

// release takes back one share.
func (t *tree) release(acl []jute.ACL) {
	if acl == nil {
		return
	}
	key := aclKey(acl)
	if a := t.acls[key]; a != nil {
		if a.nodes--; a.nodes == 0 {
			delete(t.acls, key)
		}
	}
}

func aclKey(acl []jute.ACL) string {
	var e jute.Encoder
	e.ACLs(acl)
	return string(e.B)
}

// add puts a new node in. parent may be nil: then it is looked up.
func (t *tree) add(n *node, parent *node) {
	r := n.record
	n.slot = uint32(len(t.slots))
	t.slots = append(t.slots, n)
	t.nodes[r.path] = n
	t.bytes += int64(len(r.path) + len(r.data))
	if r.path != rootPath {
		if parent == nil {
			path, _, _ := parentOf(r.path)
			parent = t.nodes[path]
		}
		parent.adopt(n)
	}
	switch kindOf(r.owner) {
	case sessionOwner:
		if t.ephemerals[r.owner] == nil {
			t.ephemerals[r.owner] = map[string]struct{}{}
		}
		t.ephemerals[r.owner][r.path] = struct{}{}
	case containerOwner, ttlOwner:
		t.perishable[r.path] = struct{}{}
	}
}

// remove takes a node out.
func (t *tree) remove(path string) {
	n := t.nodes[path]
	t.snap.keep(n)
	t.slots[n.slot] = nil
	t.release(n.acl)
	delete(t.nodes, path)
	t.bytes -= int64(len(path) + len(n.data))
	parent, _, _ := parentOf(path)
	t.nodes[parent].orphan(n)
	switch kindOf(n.owner) {
	case sessionOwner:
		if delete(t.ephemerals[n.owner], path); len(t.ephemerals[n.owner]) == 0 {
			delete(t.ephemerals, n.owner)
		}
	case containerOwner, ttlOwner:
		delete(t.perishable, path)
	}
}

// countBelow returns how many nodes stand below path (getAllChildrenNumber).
func (t *tree) countBelow(path string) int {
	switch path {
	case rootPath:
		return len(t.nodes) - 1
	case "": // ZooKeeper counts the root to what is below the root's other name
		return len(t.nodes)
	}
	n, _ := t.sum(t.get(path))
	return n - 1
}

// sum counts a node and all below it, and the bytes of their data.
func (t *tree) sum(n *node) (count int, bytes int64) {
	if n == nil {
		return 0, 0
	}
	stack := []*node{n}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		count++
		bytes += int64(len(n.data))
		if n.kids != nil {
			stack = append(stack, n.kids.nodes...)
		}
	}
	return count, bytes
}

// firstRecords are the nodes of an empty server. /zookeeper/config may be read
// by all and written by none, which ZooKeeper stores with an ACL version of -1.
func firstRecords() []*record {
	return []*record{
		{path: rootPath, data: []byte{}},
		{path: zookeeperPath, data: []byte{}},
		{path: quotaPath, data: []byte{}},
		{path: configPath, data: []byte{}, aversion: -1,
			acl: []jute.ACL{{Perms: jute.PermRead, ID: jute.ID{Scheme: "world", ID: "anyone"}}}},
	}
}

// firstTree is the tree of an empty server.
func firstTree() *tree {
	t := newTree(0)
	for _, r := range firstRecords() {
		t.put(r)
	}
	return t
}

// nameOf returns the last name of a path.
func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
