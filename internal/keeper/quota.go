package keeper

import (
	"slices"
	"strings"

	"barnabas/internal/jute"
	"barnabas/internal/znode"
)

// Quotas, as ZooKeeper has them: /zookeeper/quota/PATH/zookeeper_limits holds
// what PATH and all below it may have, zookeeper_stats beside it what they have.
// The server keeps the second up to date: its data changes without a zxid, a
// version or an event. A soft limit is logged; a hard one is enforced if
// Options.EnforceQuota says so (Quotas, StatsTrack, DataTree).
const (
	limitName = "zookeeper_limits"
	statName  = "zookeeper_stats"
)

// quotaOf returns the nearest path at or above path that has a limit, or "".
func (t *tree) quotaOf(path string) string {
	if len(t.quotas) == 0 {
		return ""
	}
	for path != rootPath && path != "" {
		if _, ok := t.quotas[path]; ok {
			return path
		}
		path, _, _ = parentOf(path)
	}
	return ""
}

// quotaCreated follows the creation of a node, which is in the tree.
func (t *tree) quotaCreated(path string, size int) {
	if under, ok := strings.CutPrefix(path, quotaPath+"/"); ok {
		switch parent, name, _ := parentOf("/" + under); {
		case parent == rootPath:
		case name == limitName:
			t.quotas[parent] = struct{}{}
		case name == statName:
			t.recount(parent)
		}
	}
	t.quotaChanged(path, size, 1)
}

// quotaDeleted follows the deletion of a node.
func (t *tree) quotaDeleted(path string, size int) {
	if under, ok := strings.CutPrefix(path, quotaPath+"/"); ok {
		if parent, name, _ := parentOf("/" + under); name == limitName {
			delete(t.quotas, parent)
		}
	}
	t.quotaChanged(path, -size, -1)
}

// quotaChanged counts a change of so many bytes and nodes at path.
func (t *tree) quotaChanged(path string, bytes, nodes int) {
	if q := t.quotaOf(path); q != "" {
		if n := t.nodes[quotaPath+q+"/"+statName]; n != nil {
			if v, ok := znode.ParseStatsTrack(n.data); ok {
				v["count"], v["bytes"] = v.Get("count")+int64(nodes), v.Get("bytes")+int64(bytes)
				t.setQuiet(n, v)
			}
		}
	}
}

// recount sets the stats node of a path anew.
func (t *tree) recount(path string) {
	if n := t.nodes[quotaPath+path+"/"+statName]; n != nil {
		count, bytes := t.sum(t.nodes[path])
		t.setQuiet(n, znode.StatsTrack{"count": int64(count), "bytes": bytes})
	}
}

func (t *tree) setQuiet(n *node, v znode.StatsTrack) {
	r := *n.record
	r.data = []byte(v.String())
	t.put(&r)
}

// loadQuotas finds the limits of a tree that was read from files, which have
// no stats that are up to date.
func (t *tree) loadQuotas() {
	top := t.nodes[quotaPath]
	if top == nil || top.children() == 0 {
		return
	}
	stack := slices.Clone(top.kids.nodes)
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n.kids != nil {
			stack = append(stack, n.kids.nodes...)
		} else if path, ok := strings.CutSuffix(n.path[len(quotaPath):], "/"+limitName); ok && path != "" {
			t.quotas[path] = struct{}{}
			t.recount(path)
		}
	}
}

// checkQuota says whether a create or setData would break a hard limit
// (ZooKeeperServer.checkQuota): it looks at committed counts only. A limit that
// is broken and not hard is noted for the log.
func (c *core) checkQuota(path string, bytes, nodes int64) jute.Error {
	if !c.hardQuotas {
		return jute.OK
	}
	q := c.tree.quotaOf(path)
	if q == "" {
		return jute.OK
	}
	limits, stats := c.tree.nodes[quotaPath+q+"/"+limitName], c.tree.nodes[quotaPath+q+"/"+statName]
	if limits == nil || stats == nil {
		return jute.OK
	}
	limit, ok := znode.ParseStatsTrack(limits.data)
	have, ok2 := znode.ParseStatsTrack(stats.data)
	if !ok || !ok2 {
		return jute.OK
	}
	for _, l := range []struct {
		name, soft, hard string
		by               int64
	}{{"count", "count", "countHardLimit", nodes}, {"bytes", "bytes", "byteHardLimit", bytes}} {
		most, hard := limit.Get(l.hard), true
		if most < 0 {
			most, hard = limit.Get(l.soft), false
		}
		if now := have.Get(l.name) + l.by; l.by != 0 && most >= 0 && now > most {
			c.notes = append(c.notes, note{"keeper: quota exceeded", q, l.name, now, most, hard})
			if hard {
				return jute.ErrQuotaExceeded
			}
		}
	}
	return jute.OK
}

// note is a line for the log that the core has to say.
type note struct {
	text, path, what string
	have, limit      int64
	hard             bool
}
