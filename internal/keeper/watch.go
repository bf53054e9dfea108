package keeper

import "barnabas/internal/jute"

// watchKind tells the two tables of one-shot watches apart.
type watchKind int

const (
	dataWatch  watchKind = iota // left by getData and exists
	childWatch                  // left by getChildren
	watchKinds
)

// watch leaves a one-shot watch of a connection on a path, which need not exist.
func (c *core) watch(kind watchKind, path string, cl *client) {
	if c.watches[kind][path] == nil {
		c.watches[kind][path] = map[*client]struct{}{}
	}
	c.watches[kind][path][cl] = struct{}{}
	if cl.watches[kind] == nil {
		cl.watches[kind] = map[string]struct{}{}
	}
	cl.watches[kind][path] = struct{}{}
}

// unwatchAll drops what a connection watches.
func (c *core) unwatchAll(cl *client) {
	for kind := range watchKinds {
		for path := range cl.watches[kind] {
			if delete(c.watches[kind][path], cl); len(c.watches[kind][path]) == 0 {
				delete(c.watches[kind], path)
			}
		}
		cl.watches[kind] = nil
	}
}

// trigger fires the watches on path and returns the connections that had one,
// so that a deletion tells each of them once only. An event goes only to those
// that may read the node; the watch of others is spent without a word.
func (c *core) trigger(kind watchKind, path string, event jute.EventType, acl []jute.ACL, told map[*client]struct{}) map[*client]struct{} {
	watchers := c.watches[kind][path]
	delete(c.watches[kind], path)
	for cl := range watchers {
		delete(cl.watches[kind], path)
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
			c.watch(dataWatch, path, cl)
		}
	}
	for _, path := range r.Exist {
		if c.tree.get(path) != nil {
			c.notify(cl, jute.EventNodeCreated, path)
		} else {
			c.watch(dataWatch, path, cl)
		}
	}
	for _, path := range r.Child {
		switch n := c.tree.get(path); {
		case n == nil:
			c.notify(cl, jute.EventNodeDeleted, path)
		case n.pzxid > r.RelativeZxid:
			c.notify(cl, jute.EventNodeChildrenChanged, path)
		default:
			c.watch(childWatch, path, cl)
		}
	}
}
