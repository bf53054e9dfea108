package keeper

import (
	"slices"
	"strings"

	"barnabas/internal/jute"
)

// record is what the server keeps of one node. It never changes: a write makes
// a new one, so that what is committed and what is pending can stand side by
// side.
type record struct {
	id   uint64 // key in the store; counts up, so a parent's is below its children's
	path string
	data []byte     // nil is null
	acl  []jute.ACL // nil is world:anyone with everything

	czxid, mzxid, pzxid         int64
	ctime, mtime                int64 // milliseconds since 1970
	version, cversion, aversion int32 // cversion counts creates of children only
	owner                       int64 // session of an ephemeral node, 0 otherwise
}

// stat returns the counters as clients see them. ZooKeeper stores the number
// of creates and shows the number of changes: creates and deletes, which is
// twice the creates less the children that are still there.
func (r *record) stat(children int) jute.Stat {
	return jute.Stat{
		Czxid: r.czxid, Mzxid: r.mzxid, Pzxid: r.pzxid, Ctime: r.ctime, Mtime: r.mtime,
		Version: r.version, Cversion: r.cversion*2 - int32(children), Aversion: r.aversion,
		EphemeralOwner: r.owner, DataLength: int32(len(r.data)), NumChildren: int32(children),
	}
}

// node is a record in the tree, with its children's names.
type node struct {
	*record
	children map[string]struct{}
	sorted   []string // the names in order; nil after a change
}

func (n *node) names() []string {
	if n.sorted == nil {
		n.sorted = make([]string, 0, len(n.children))
		for name := range n.children {
			n.sorted = append(n.sorted, name)
		}
		slices.Sort(n.sorted)
	}
	return n.sorted
}

// tree is the committed state of the nodes.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{} // by session
	bytes      int64                         // of paths and data
}

func newTree() *tree {
	return &tree{nodes: map[string]*node{}, ephemerals: map[int64]map[string]struct{}{}}
}

// get returns a node or nil. The root also answers to "", as in ZooKeeper.
func (t *tree) get(path string) *node {
	if path == "" {
		path = rootPath
	}
	return t.nodes[path]
}

// put installs a record: a new node, or a new state of one.
func (t *tree) put(r *record) {
	if n := t.nodes[r.path]; n != nil {
		t.bytes += int64(len(r.data) - len(n.data))
		n.record = r
		return
	}
	t.nodes[r.path] = &node{record: r}
	t.bytes += int64(len(r.path) + len(r.data))
	if parent, name, _ := parentOf(r.path); r.path != rootPath {
		p := t.nodes[parent]
		if p.children == nil {
			p.children = map[string]struct{}{}
		}
		p.children[name] = struct{}{}
		p.sorted = nil
	}
	if r.owner != 0 {
		if t.ephemerals[r.owner] == nil {
			t.ephemerals[r.owner] = map[string]struct{}{}
		}
		t.ephemerals[r.owner][r.path] = struct{}{}
	}
}

// remove takes a node out.
func (t *tree) remove(path string) {
	n := t.nodes[path]
	delete(t.nodes, path)
	t.bytes -= int64(len(path) + len(n.data))
	parent, name, _ := parentOf(path)
	p := t.nodes[parent]
	delete(p.children, name)
	p.sorted = nil
	if n.owner != 0 {
		if delete(t.ephemerals[n.owner], path); len(t.ephemerals[n.owner]) == 0 {
			delete(t.ephemerals, n.owner)
		}
	}
}

// countBelow returns how many nodes stand below path (getAllChildrenNumber).
func (t *tree) countBelow(path string) int {
	if path == rootPath {
		return len(t.nodes) - 1
	}
	n := 0
	for p := range t.nodes {
		if strings.HasPrefix(p, path) && len(p) > len(path) && p[len(path)] == '/' {
			n++
		}
	}
	return n
}

// firstRecords are the nodes of an empty server. /zookeeper/config may be read
// by all and written by none, which ZooKeeper stores with an ACL version of -1.
func firstRecords() []*record {
	return []*record{
		{id: 1, path: rootPath, data: []byte{}},
		{id: 2, path: zookeeperPath, data: []byte{}},
		{id: 3, path: quotaPath, data: []byte{}},
		{id: 4, path: configPath, data: []byte{}, aversion: -1,
			acl: []jute.ACL{{Perms: jute.PermRead, ID: jute.ID{Scheme: "world", ID: "anyone"}}}},
	}
}
