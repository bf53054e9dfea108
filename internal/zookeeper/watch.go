package zookeeper

import (
	"maps"
	"slices"

	"barnabas/internal/jute"
)

// maxSetWatches bounds the paths of one setWatches request, in bytes, as
// ZooKeeper's own client does (ClientCnxn.SET_WATCHES_MAX_LENGTH): well below
// any jute.maxbuffer.
const maxSetWatches = 128 << 10

// watches are the watches in force, by server path: those that one event uses
// up, and those that stay.
type watches struct {
	data, exist, child    map[string]struct{}
	persistent, recursive map[string]struct{}
}

func newWatches() watches {
	return watches{map[string]struct{}{}, map[string]struct{}{}, map[string]struct{}{}, map[string]struct{}{}, map[string]struct{}{}}
}

// answered notes what the reply to a call with a watch left at the server, or
// took away.
func (w *watches) answered(call *Call, err jute.Error) {
	path := call.path
	switch {
	case call.code == jute.OpExists && err == jute.ErrNoNode:
		w.exist[path] = struct{}{}
	case err != jute.OK:
	case call.code == jute.OpGetData, call.code == jute.OpExists:
		w.data[path] = struct{}{}
	case call.code == jute.OpGetChildren2:
		w.child[path] = struct{}{}
	case call.code == jute.OpAddWatch && call.stays == jute.WatchPersistentRecursive:
		w.recursive[path] = struct{}{}
		delete(w.persistent, path)
	case call.code == jute.OpAddWatch:
		w.persistent[path] = struct{}{}
		delete(w.recursive, path)
	case call.code == jute.OpRemoveWatches:
		w.remove(path, call.which)
	}
}

func (w *watches) remove(path string, which jute.WatchType) {
	if which != jute.WatchTypeData {
		delete(w.child, path)
	}
	if which != jute.WatchTypeChildren {
		delete(w.data, path)
		delete(w.exist, path)
	}
	if which == jute.WatchTypeAny {
		delete(w.persistent, path)
		delete(w.recursive, path)
	}
}

// fired drops what an event used up.
func (w *watches) fired(t jute.EventType, path string) {
	switch t {
	case jute.EventNodeCreated, jute.EventNodeDataChanged:
		delete(w.data, path)
		delete(w.exist, path)
	case jute.EventNodeChildrenChanged:
		delete(w.child, path)
	case jute.EventNodeDeleted:
		delete(w.data, path)
		delete(w.exist, path)
		delete(w.child, path)
	}
}

// requests are the setWatches for a new connection of a client that saw zxid.
func (w *watches) requests(zxid int64) []jute.SetWatches2Request {
	var all []jute.SetWatches2Request
	size := maxSetWatches
	add := func(set map[string]struct{}, list func(*jute.SetWatches2Request) *[]string) {
		for _, path := range slices.Sorted(maps.Keys(set)) {
			if size += 4 + len(path); size > maxSetWatches {
				all = append(all, jute.SetWatches2Request{Persistent: []string{}, PersistentRecursive: []string{},
					SetWatchesRequest: jute.SetWatchesRequest{RelativeZxid: zxid, Data: []string{}, Exist: []string{}, Child: []string{}}})
				size = 40 + len(path)
			}
			to := list(&all[len(all)-1])
			*to = append(*to, path)
		}
	}
	add(w.data, func(r *jute.SetWatches2Request) *[]string { return &r.Data })
	add(w.exist, func(r *jute.SetWatches2Request) *[]string { return &r.Exist })
	add(w.child, func(r *jute.SetWatches2Request) *[]string { return &r.Child })
	add(w.persistent, func(r *jute.SetWatches2Request) *[]string { return &r.Persistent })
	add(w.recursive, func(r *jute.SetWatches2Request) *[]string { return &r.PersistentRecursive })
	return all
}
