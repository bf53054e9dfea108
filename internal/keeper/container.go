package keeper

import (
	"maps"
	"slices"
	"time"

	"barnabas/internal/jute"
)

// containerPolicy says when containers and nodes with a time to live go
// (ContainerManager).
type containerPolicy struct {
	every     time.Duration // between two looks
	perLook   int           // deletions at most in one
	neverUsed time.Duration // a container without a first child goes after this; 0: never
}

// perish ends containers that lost their last child, and nodes whose time to
// live is over.
func (c *core) perish(now time.Time) {
	if len(c.tree.perishable) == 0 || c.failed {
		return
	}
	left := c.containers.perLook
	for _, path := range slices.Sorted(maps.Keys(c.tree.perishable)) {
		n := c.tree.nodes[path]
		age := time.Duration(now.UnixMilli()-n.mtime) * time.Millisecond
		switch {
		case n.children() > 0:
			continue
		case kindOf(n.owner) == containerOwner:
			if n.cversion == 0 && (c.containers.neverUsed == 0 || age <= c.containers.neverUsed) {
				continue // a client made it and is about to fill it
			}
		case n.owner&maxTTL == 0 || age <= time.Duration(n.owner&maxTTL)*time.Millisecond:
			continue
		}
		if left--; left < 0 {
			return
		}
		c.prepare(&request{session: c.self, op: jute.OpDeleteContainer, body: &jute.PathRequest{Path: path}, at: now}, now)
	}
}

// prepareDeleteContainer checks the deletion again, against what is pending.
func (c *core) prepareDeleteContainer(path string) (step, jute.Error) {
	n, ok := c.node(path)
	switch {
	case !ok:
		return step{}, jute.ErrNoNode
	case n.children > 0:
		return step{}, jute.ErrNotEmpty
	case kindOf(n.r.owner) != containerOwner && kindOf(n.r.owner) != ttlOwner:
		return step{}, jute.ErrBadVersion
	}
	parentPath, _, _ := parentOf(path)
	parent, _ := c.node(parentPath)
	st := c.deleteStep(n.r, parent)
	return st, jute.OK
}
