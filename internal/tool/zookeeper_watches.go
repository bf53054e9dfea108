package tool

import (
	"path"
	"sync"

	"barnabas/internal/jute"
)

// shellWatches are the watches that the shell has at the server, by the server's
// paths: events of others are not shown. zookeeper.Client sets watches for
// reasons of its own too.
type shellWatches struct {
	mu sync.Mutex
	at map[watch]bool
}

// watch is one of them.
type watch struct {
	kind watchKind
	path string
}

type watchKind int

const (
	watchData watchKind = iota // and those for a node that is not there yet
	watchChildren
	watchPersistent
	watchRecursive
)

func newShellWatches() *shellWatches { return &shellWatches{at: map[watch]bool{}} }

// note notes a watch, or that it is gone.
func (s *shellWatches) note(w watch, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there {
		s.at[w] = true
	} else {
		delete(s.at, w)
	}
}

// forget drops all watches, which have gone with their session.
func (s *shellWatches) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.at)
}

// kept returns those of kinds that the shell has at a node.
func (s *shellWatches) kept(path string, kinds ...watchKind) (all []watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range kinds {
		if w := (watch{kind, path}); s.at[w] {
			all = append(all, w)
		}
	}
	return all
}

// fired tells whether an event is of a watch that the shell has, and forgets
// those that it uses up.
func (s *shellWatches) fired(t jute.EventType, at string) bool {
	var once []watchKind
	switch t {
	case jute.EventNodeChildrenChanged:
		once = []watchKind{watchChildren}
	case jute.EventNodeDeleted:
		once = []watchKind{watchData, watchChildren}
	default:
		once = []watchKind{watchData}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.at[watch{watchPersistent, at}]
	for _, kind := range once {
		w := watch{kind, at}
		seen = seen || s.at[w]
		delete(s.at, w)
	}
	for above := at; !seen && t != jute.EventNodeChildrenChanged; above = path.Dir(above) {
		seen = s.at[watch{watchRecursive, above}]
		if above == "/" {
			break
		}
	}
	return seen
}
