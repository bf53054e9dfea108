package tool

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// Limits of a node and all below it are in quotaRoot/PATH/zookeeper_limits, and
// what they have beside it (org.apache.zookeeper.Quotas).
const (
	quotaRoot  = "/zookeeper/quota"
	limitsNode = "/zookeeper_limits"
	statsNode  = "/zookeeper_stats"
)

// limitOf is what an option of setquota and delquota limits.
var limitOf = map[string]string{"n": "count", "b": "bytes", "N": "countHardLimit", "B": "byteHardLimit"}

// readLimits reads the limits of a node and what it has; nil: it has none.
func (s *shell) readLimits(of string) (limit, has znode.StatsTrack, err error) {
	ctx := s.call.Context
	data, _, err := s.zk.Get(ctx, quotaRoot+of+limitsNode)
	if errors.Is(err, jute.ErrNoNode) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	stat, _, err := s.zk.Get(ctx, quotaRoot+of+statsNode)
	if err != nil && !errors.Is(err, jute.ErrNoNode) {
		return nil, nil, err
	}
	return limits(data), limits(stat), nil
}

// limits reads a node's text; what makes no sense limits nothing.
func limits(data []byte) znode.StatsTrack {
	t, ok := znode.ParseStatsTrack(data)
	if !ok {
		t = znode.StatsTrack{}
	}
	t["count"], t["bytes"] = t.Get("count"), t.Get("bytes")
	return t
}

func (s *shell) listQuota(_ map[string]string, args []string) error {
	of := args[0]
	fmt.Fprintln(s.call.Err, "absolute path is "+quotaRoot+of+limitsNode)
	limit, has, err := s.readLimits(of)
	switch {
	case err != nil && zookeeper.ValidatePath(of) == nil:
		return err
	case s.call.JSON:
		return s.call.printJSON(map[string]any{"path": of, "quota": limit, "stat": has})
	case limit == nil:
		fmt.Fprintf(s.call.Err, "quota for %s does not exist.\n", of)
		return nil
	}
	s.print(fmt.Sprintf("Output quota for %s %v", of, limit))
	s.print(fmt.Sprintf("Output stat for %s %v", of, has))
	return nil
}

func (s *shell) setQuota(flags map[string]string, args []string) error {
	of := args[0]
	name, value := "", int64(0)
	for flag, text := range flags { // there is one at most
		n, err := strconv.ParseInt(text, 10, 64)
		name, value = limitOf[flag], n
		switch bytes := flag == "b" || flag == "B"; {
		case err != nil:
			return s.refuse("NumberFormatException happens when parsing the option value")
		case !bytes && n < 1:
			return s.refuse("the num quota must be greater than zero")
		case bytes && n < 0:
			return s.refuse("the bytes quota must be greater than or equal to zero")
		}
	}
	switch {
	case name == "":
		return says("Missing required option: [-n num soft quota, -b bytes soft quota, -N num hard quota, -B bytes hard quota]")
	case strings.HasPrefix(of, quotaRoot):
		return s.refuse("cannot set a quota under the path: " + quotaRoot)
	}
	if _, exists, err := s.zk.Exists(s.call.Context, of); err != nil {
		return err
	} else if !exists {
		return says("%s does not exist.", of)
	}
	if of == "/" {
		return says("Path must not end with / character")
	}
	limit, has, err := s.readLimits(of)
	if err != nil {
		return err
	}
	if limit == nil {
		return s.newQuota(of, name, value)
	}
	limit[name] = value
	if _, err := s.zk.Set(s.call.Context, quotaRoot+of+limitsNode, []byte(limit.String()), zookeeper.AnyVersion); err != nil {
		return err
	}
	s.warnOfQuota(limit, has)
	return nil
}

// refuse says what is wrong, which here is no failure.
func (s *shell) refuse(what string) error {
	fmt.Fprintln(s.call.Err, what)
	return nil
}

// newQuota limits a node that has no limits, nor any above or below it.
func (s *shell) newQuota(of, name string, value int64) error {
	ctx := s.call.Context
	for above := path.Dir(of); above != "/"; above = path.Dir(above) {
		if _, exists, err := s.zk.Exists(ctx, quotaRoot+above+limitsNode); err != nil {
			return err
		} else if exists {
			return says("%s has a parent %s which has a quota", of, above)
		}
	}
	below := ""
	err := s.walk(quotaRoot+of, func(node string) error {
		if at, ok := strings.CutSuffix(node, limitsNode); ok && below == "" {
			below = strings.TrimPrefix(at, quotaRoot)
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, jute.ErrNoNode):
		return err
	case below != "":
		return says("%s has a child %s which has a quota", of, below)
	}
	if err := s.zk.EnsurePaths(ctx, quotaRoot+of); err != nil {
		return err
	}
	limit := znode.StatsTrack{"count": -1, "bytes": -1, "countHardLimit": -1, "byteHardLimit": -1}
	limit[name] = value
	if _, _, err := s.zk.Create(ctx, quotaRoot+of+limitsNode, []byte(limit.String()), zookeeper.Persistent); err != nil {
		return err
	}
	none := znode.StatsTrack{"count": 0, "bytes": 0} // the server counts
	if _, _, err := s.zk.Create(ctx, quotaRoot+of+statsNode, []byte(none.String()), zookeeper.Persistent); err != nil {
		return err
	}
	_, has, err := s.readLimits(of)
	s.warnOfQuota(limit, has)
	return err
}

// warnOfQuota warns of limits that are reached already.
func (s *shell) warnOfQuota(limit, has znode.StatsTrack) {
	for _, kind := range []struct{ unit, soft, hard string }{{"count", "count", "countHardLimit"}, {"bytes", "bytes", "byteHardLimit"}} {
		for _, name := range []string{kind.soft, kind.hard} {
			if n := limit.Get(name); n >= 0 && n < has[kind.unit] {
				s.print(fmt.Sprintf("[Warning]: the %s quota you create is less than the existing %s:%d", kind.unit, kind.unit, has[kind.unit]))
				break
			}
		}
	}
}

func (s *shell) delQuota(flags map[string]string, args []string) error {
	ctx, of := s.call.Context, args[0]
	limit, _, err := s.readLimits(of)
	switch {
	case err != nil && zookeeper.ValidatePath(of) == nil:
		return err
	case limit == nil:
		s.print("Quota does not exist for " + of)
		return nil
	}
	for flag := range flags {
		limit[limitOf[flag]] = -1
		_, err := s.zk.Set(ctx, quotaRoot+of+limitsNode, []byte(limit.String()), zookeeper.AnyVersion)
		return err
	}
	for _, node := range []string{limitsNode, statsNode} {
		if err := s.zk.Delete(ctx, quotaRoot+of+node, zookeeper.AnyVersion); err != nil && !errors.Is(err, jute.ErrNoNode) {
			return err
		}
	}
	return s.trimQuota(ctx, of)
}

// trimQuota deletes the nodes of a path under quotaRoot that have nothing below.
func (s *shell) trimQuota(ctx context.Context, of string) error {
	for ; of != "/"; of = path.Dir(of) {
		switch err := s.zk.Delete(ctx, quotaRoot+of, zookeeper.AnyVersion); {
		case errors.Is(err, jute.ErrNotEmpty):
			return nil
		case err != nil && !errors.Is(err, jute.ErrNoNode):
			return err
		}
	}
	return nil
}
