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

// watches are the one-shot watches in force, by server path.
type watches struct {
	data, exist, child map[string]struct{}
}

func newWatches() watches {
	return watches{map[string]struct{}{}, map[string]struct{}{}, map[string]struct{}{}}
}

// add notes what the reply to a watching call left at the server.
func (w *watches) add(code jute.Op, path string, err jute.Error) {
	switch {
	case code == jute.OpExists && err == jute.ErrNoNode:
		w.exist[path] = struct{}{}
	case err != jute.OK:
	case code == jute.OpGetData, code == jute.OpExists:
		w.data[path] = struct{}{}
	case code == jute.OpGetChildren2:
		w.child[path] = struct{}{}
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
func (w *watches) requests(zxid int64) []jute.SetWatchesRequest {
	var all []jute.SetWatchesRequest
	size := maxSetWatches
	add := func(set map[string]struct{}, list func(*jute.SetWatchesRequest) *[]string) {
		for _, path := range slices.Sorted(maps.Keys(set)) {
			if size += 4 + len(path); size > maxSetWatches {
				all = append(all, jute.SetWatchesRequest{RelativeZxid: zxid, Data: []string{}, Exist: []string{}, Child: []string{}})
				size = 32 + len(path)
			}
			to := list(&all[len(all)-1])
			*to = append(*to, path)
		}
	}
	add(w.data, func(r *jute.SetWatchesRequest) *[]string { return &r.Data })
	add(w.exist, func(r *jute.SetWatchesRequest) *[]string { return &r.Exist })
	add(w.child, func(r *jute.SetWatchesRequest) *[]string { return &r.Child })
	return all
}
