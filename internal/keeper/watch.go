package keeper

import (
	"strings"

	"barnabas/internal/jute"
)

// watchKind tells the two tables of watches apart (DataTree.dataWatches and
// childWatches).
type watchKind int

const (
	dataWatch  watchKind = iota // left by getData and exists
	childWatch                  // left by getChildren
	watchKinds
)

// watchMode is how long a watch stays and what it sees (WatcherMode). A
// connection has one watch of a kind on a path: the last mode that was asked
// for counts, as in ZooKeeper 3.8.
type watchMode uint8

const (
	once       watchMode = iota // gone when it fires
	persistent                  // stays
	recursive                   // stays, and sees all nodes below too, but no NodeChildrenChanged
)

// watch leaves a watch of a connection on a path, which need not exist.
func (c *core) watch(kind watchKind, path string, cl *client, mode watchMode) {
	t := &c.watches[kind]
	if t.byPath[path] == nil {
		t.byPath[path] = map[*client]watchMode{}
	}
	was, had := t.byPath[path][cl]
	t.byPath[path][cl] = mode
	t.count(was, had, -1)
	t.count(mode, true, +1)
	if cl.watches[kind] == nil {
		cl.watches[kind] = map[string]struct{}{}
	}
	cl.watches[kind][path] = struct{}{}
}

// watchTable holds the watches of one kind.
type watchTable struct {
	byPath    map[string]map[*client]watchMode
	recursive int // how many see more than their own path
	total     int
}

func (t *watchTable) count(mode watchMode, there bool, by int) {
	if !there {
		return
	}
	t.total += by
	if mode == recursive {
		t.recursive += by
	}
}

// unwatch takes a watch of any mode away and says whether there was one.
func (c *core) unwatch(kind watchKind, path string, cl *client) bool {
	t := &c.watches[kind]
	mode, ok := t.byPath[path][cl]
	if !ok {
		return false
	}
	t.count(mode, true, -1)
	if delete(t.byPath[path], cl); len(t.byPath[path]) == 0 {
		delete(t.byPath, path)
	}
	delete(cl.watches[kind], path)
	return true
}

// unwatchAll drops what a connection watches.
func (c *core) unwatchAll(cl *client) {
	for kind := range watchKinds {
		for path := range cl.watches[kind] {
			c.unwatch(kind, path, cl)
		}
		cl.watches[kind] = nil
	}
}

// trigger fires the watches on path, and the recursive ones above it, and
// returns the connections that had one, so that a deletion tells each of them
// once only. An event goes only to those that may read the node; a one-shot
// watch of others is spent without a word.
func (c *core) trigger(kind watchKind, path string, event jute.EventType, acl []jute.ACL, told map[*client]struct{}) map[*client]struct{} {
	t := &c.watches[kind]
	if t.total == 0 {
		return nil
	}
	var watchers map[*client]struct{}
	add := func(cl *client) {
		if watchers == nil {
			watchers = map[*client]struct{}{}
		}
		watchers[cl] = struct{}{}
	}
	for cl, mode := range t.byPath[path] {
		switch {
		case mode == recursive && event == jute.EventNodeChildrenChanged:
			continue
		case mode == once:
			c.unwatch(kind, path, cl)
		}
		add(cl)
	}
	if t.recursive > 0 && event != jute.EventNodeChildrenChanged {
		for p := path; p != rootPath && p != ""; {
			if p, _, _ = parentOf(p); p == "" {
				break
			}
			for cl, mode := range t.byPath[p] {
				if mode == recursive {
					add(cl)
				}
			}
		}
	}
	for cl := range watchers {
		if _, ok := told[cl]; !ok && allowed(acl, jute.PermRead, cl.auth) {
			c.notify(cl, event, path)
		}
	}
	return watchers
}

// notify queues one event.
func (c *core) notify(cl *client, event jute.EventType, path string) {
	c.send(cl, &jute.ReplyHeader{Xid: jute.XidNotification, Zxid: -1},
		&jute.WatcherEvent{Type: event, State: jute.StateSyncConnected, Path: path})
}

// addWatch answers addWatch (DataTree.addWatch).
func (c *core) addWatch(cl *client, q *jute.AddWatchRequest) (jute.Record, jute.Error) {
	var mode watchMode
	switch q.Mode {
	case jute.WatchPersistent:
		mode = persistent
	case jute.WatchPersistentRecursive:
		mode = recursive
	default:
		return nil, jute.ErrMarshallingError
	}
	for kind := range watchKinds {
		c.watch(kind, q.Path, cl, mode)
	}
	return &jute.ErrorResponse{}, jute.OK
}

// watchesOf answers checkWatches and removeWatches.
func (c *core) watchesOf(cl *client, op jute.Op, q *jute.WatchTypeRequest) jute.Error {
	if q.Type < jute.WatchTypeChildren || q.Type > jute.WatchTypeAny {
		return jute.ErrMarshallingError
	}
	found := false
	for kind := range watchKinds {
		if kind == dataWatch && q.Type == jute.WatchTypeChildren || kind == childWatch && q.Type == jute.WatchTypeData {
			continue
		}
		if op == jute.OpRemoveWatches {
			found = c.unwatch(kind, q.Path, cl) || found
		} else { // ZooKeeper 3.8 does not look whose they are
			found = q.Path != "" && len(c.watches[kind].byPath[q.Path]) > 0 || found
		}
	}
	if !found {
		return jute.ErrNoWatcher
	}
	return jute.OK
}

// setWatches puts back the watches that a client had on an earlier connection,
// and tells at once what changed since (DataTree.setWatches).
func (c *core) setWatches(cl *client, r *jute.SetWatchesRequest) {
	for _, path := range r.Data {
		switch n := c.tree.get(path); {
		case n == nil:
			c.notify(cl, jute.EventNodeDeleted, path)
		case n.mzxid > r.RelativeZxid:
			c.notify(cl, jute.EventNodeDataChanged, path)
		default:
			c.watch(dataWatch, path, cl, once)
		}
	}
	for _, path := range r.Exist {
		if c.tree.get(path) != nil {
			c.notify(cl, jute.EventNodeCreated, path)
		} else {
			c.watch(dataWatch, path, cl, once)
		}
	}
	for _, path := range r.Child {
		switch n := c.tree.get(path); {
		case n == nil:
			c.notify(cl, jute.EventNodeDeleted, path)
		case n.pzxid > r.RelativeZxid:
			c.notify(cl, jute.EventNodeChildrenChanged, path)
		default:
			c.watch(childWatch, path, cl, once)
		}
	}
}

// setWatches2 is setWatches and the watches that stay: these are told nothing
// of what they missed.
func (c *core) setWatches2(cl *client, r *jute.SetWatches2Request) {
	c.setWatches(cl, &r.SetWatchesRequest)
	for kind := range watchKinds {
		for _, path := range r.Persistent {
			c.watch(kind, path, cl, persistent)
		}
		for _, path := range r.PersistentRecursive {
			c.watch(kind, path, cl, recursive)
		}
	}
}

// whoAmI answers with the identities of a connection: the user of a digest, the
// address of an ip.
func whoAmI(auth []jute.ID) *jute.WhoAmIResponse {
	r := &jute.WhoAmIResponse{}
	for _, id := range auth {
		if id.Scheme == "digest" {
			id.ID, _, _ = strings.Cut(id.ID, ":")
		}
		r.IDs = append(r.IDs, id)
	}
	return r
}
