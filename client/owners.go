package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// apply brings what is owned to what the share says: what falls away is
// committed and released first, then the rest is claimed. What stays is
// consumed on without a break; 0.8 releases and claims all of it.
func (c *Consumer) apply(ctx context.Context, want map[wire.TopicPartition]int) error {
	var release []*owned
	for tp, o := range c.owned {
		if thread, keep := want[tp]; !keep || c.streamOf(tp.Topic, thread) != o.stream {
			release = append(release, o)
		}
	}
	if err := c.release(ctx, release, 0); err != nil {
		return err
	}
	var claim []*owned
	for tp, t := range want {
		if c.owned[tp] == nil {
			claim = append(claim, &owned{TopicPartition: tp, stream: c.streamOf(tp.Topic, t), owner: thread{c.id, t}.String(), next: -1, committed: -1})
		}
	}
	slices.SortFunc(claim, func(a, b *owned) int { return comparePartitions(a.TopicPartition, b.TopicPartition) })
	got, taken, err := c.claim(ctx, claim)
	if err != nil {
		return err
	}
	if err := c.begin(ctx, got); err != nil {
		return err
	}
	if taken > 0 {
		return fmt.Errorf("%w: %d of %d", errTaken, taken, len(want))
	}
	return nil
}

func comparePartitions(a, b wire.TopicPartition) int {
	if c := compareUTF16(a.Topic, b.Topic); c != 0 {
		return c
	}
	return int(a.Partition) - int(b.Partition)
}

// stop ends the streams' part in partitions: nothing more of them comes out.
func (c *Consumer) stop(parts []*owned) {
	for _, o := range parts {
		o.stream.revoke(o)
	}
	c.feed.remove(parts)
}

// release gives partitions up. A commit that fails is tried again so many times.
func (c *Consumer) release(ctx context.Context, parts []*owned, retries int) error {
	if len(parts) > 0 {
		c.stop(parts)
		if f := c.config.listener.BeforeRelease; f != nil {
			f(byTopic(parts), func(ctx context.Context) error { return c.commit(ctx, parts) })
		}
		for try := 0; c.config.autoCommit && ctx.Err() == nil; try++ {
			err := c.commit(ctx, parts)
			if err == nil {
				break
			}
			c.config.logger.Warn("offsets of released partitions were not committed", "err", err)
			if try == retries {
				break
			}
			select {
			case <-time.After(time.Second): // offsets.channel.backoff.ms
			case <-ctx.Done():
			}
		}
		for _, o := range parts {
			delete(c.owned, o.TopicPartition)
			c.stale[o.TopicPartition] = o.owner
		}
	}
	return c.deleteStale(ctx)
}

// deleteStale deletes the owner nodes that we do not want any more, if they are
// still ours.
func (c *Consumer) deleteStale(ctx context.Context) error {
	if len(c.stale) == 0 {
		return nil
	}
	var parts []wire.TopicPartition
	var ops []zookeeper.Op
	for tp := range c.stale {
		parts = append(parts, tp)
		ops = append(ops, zookeeper.GetOp(c.ownerPath(tp), false))
	}
	var deletes []zookeeper.Op
	for i, call := range c.zk.GoAll(ops) {
		r, err := call.Wait(ctx)
		switch {
		case errors.Is(err, jute.ErrNoNode), err == nil && r.Stat.EphemeralOwner != c.zk.SessionID():
			delete(c.stale, parts[i])
		case err != nil:
			return err
		default:
			deletes = append(deletes, zookeeper.DeleteOp(c.ownerPath(parts[i]), r.Stat.Version))
		}
	}
	for _, call := range c.zk.GoAll(deletes) {
		if _, err := call.Wait(ctx); err != nil && !errors.Is(err, jute.ErrNoNode) {
			return err
		}
	}
	clear(c.stale)
	return nil
}

// claim makes owner nodes and returns those partitions that are ours now, and
// how many another has; those are watched.
func (c *Consumer) claim(ctx context.Context, parts []*owned) (got []*owned, taken int, err error) {
	if len(parts) == 0 {
		return nil, 0, nil
	}
	var folders []string
	var ops []zookeeper.Op
	for _, o := range parts {
		if folder := znode.ConsumerOwnersPath(c.config.group, o.Topic); len(folders) == 0 || folders[len(folders)-1] != folder {
			folders = append(folders, folder)
		}
		ops = append(ops, zookeeper.CreateOp(c.ownerPath(o.TopicPartition), []byte(o.owner), zookeeper.Ephemeral))
		c.stale[o.TopicPartition] = o.owner // until it is known to be ours and begun
	}
	if err := c.zk.EnsurePaths(ctx, folders...); err != nil {
		return nil, 0, err
	}
	for i, call := range c.zk.GoAll(ops) {
		o := parts[i]
		_, err := call.Wait(ctx)
		if errors.Is(err, jute.ErrNodeExists) {
			mine, err := c.ownedAlready(ctx, o)
			if err != nil {
				return nil, 0, err
			}
			if !mine {
				delete(c.stale, o.TopicPartition)
				taken++
				continue
			}
		} else if err != nil {
			return nil, 0, err
		}
		got = append(got, o)
	}
	return got, taken, nil
}

// ownedAlready tells whether an owner node that exists is this session's, of an
// earlier try. If it is not, its deletion is watched.
func (c *Consumer) ownedAlready(ctx context.Context, o *owned) (bool, error) {
	data, stat, err := c.zk.GetW(ctx, c.ownerPath(o.TopicPartition))
	switch {
	case errors.Is(err, jute.ErrNoNode):
		return false, fmt.Errorf("%w, who let go just now", errTaken)
	case err != nil:
		return false, err
	}
	return stat.EphemeralOwner == c.zk.SessionID() && string(data) == o.owner, nil
}

// begin reads the offsets of partitions that are ours now, and starts them.
func (c *Consumer) begin(ctx context.Context, parts []*owned) error {
	if len(parts) == 0 {
		return nil
	}
	names := make([]wire.TopicPartition, len(parts))
	for i, o := range parts {
		names[i] = o.TopicPartition
	}
	offsets, err := c.store.load(ctx, names)
	if err != nil {
		return err
	}
	var without []*owned
	for _, o := range parts {
		if offset, ok := offsets[o.TopicPartition]; ok && offset >= 0 {
			o.begin(offset)
			o.committed = offset
		} else {
			without = append(without, o)
		}
	}
	failed, reset := c.resetOffsets(c.ctx, without)
	parts = slices.DeleteFunc(parts, func(o *owned) bool { return failed[o] })
	if f := c.config.listener.BeforeStart; f != nil && len(parts) > 0 {
		f(byTopic(parts))
	}
	var start []*owned
	for _, o := range parts {
		c.owned[o.TopicPartition] = o
		delete(c.stale, o.TopicPartition)
		if o.position() >= 0 {
			start = append(start, o)
		}
	}
	c.feed.add(start)
	return reset
}

// resetOffsets gives partitions without an offset the one that
// auto.offset.reset says. It returns those that it could not, and why.
func (c *Consumer) resetOffsets(ctx context.Context, parts []*owned) (failed map[*owned]bool, err error) {
	if len(parts) == 0 {
		return nil, nil
	}
	if c.config.reset == FailReset {
		for _, o := range parts {
			o.stream.fail(fmt.Errorf("client: group %q has no offset of %s/%d, and auto.offset.reset is none", c.config.group, o.Topic, o.Partition))
		}
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var topics []string
	for topic := range byTopic(parts) {
		topics = append(topics, topic)
	}
	list := c.store.admin.ListEndOffsets
	if c.config.reset == Smallest {
		list = c.store.admin.ListStartOffsets
	}
	listed, err := list(ctx, topics...)
	failed = map[*owned]bool{}
	for _, o := range parts {
		l, ok := listed.Lookup(o.Topic, o.Partition)
		switch {
		case !ok && err == nil:
			err = fmt.Errorf("no leader of %s/%d tells its offsets", o.Topic, o.Partition)
			fallthrough
		case !ok:
			failed[o] = true
		case l.Err != nil:
			failed[o] = true
			err = fmt.Errorf("%s/%d: %w", o.Topic, o.Partition, l.Err)
		default:
			o.begin(l.Offset)
		}
	}
	if len(failed) == 0 {
		err = nil // of partitions that are not ours
	}
	return failed, err
}

// commit writes the offsets of partitions that have moved.
func (c *Consumer) commit(ctx context.Context, parts []*owned) error {
	moved := map[wire.TopicPartition]int64{}
	for _, o := range parts {
		if at := o.position(); at >= 0 && at != o.committed {
			moved[o.TopicPartition] = at
		}
	}
	if err := c.store.store(ctx, moved); err != nil {
		return err
	}
	for _, o := range parts {
		if at, ok := moved[o.TopicPartition]; ok {
			o.committed = at
		}
	}
	return nil
}

// lose forgets what was owned: the session is gone or as good as gone, and
// others may own it.
func (c *Consumer) lose() {
	parts := c.all()
	clear(c.owned)
	if len(parts) == 0 {
		return
	}
	c.stop(parts)
	for _, o := range parts {
		c.stale[o.TopicPartition] = o.owner
	}
	if f := c.config.listener.Lost; f != nil {
		f(byTopic(parts))
	}
}

// closing bounds what Close takes when ZooKeeper or the brokers are away.
const closing = 10 * time.Second

// leave is the last thing that run does.
func (c *Consumer) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	for _, list := range c.streams {
		for _, s := range list {
			s.close()
		}
	}
	parts := c.all()
	if len(parts) == 0 || !c.zk.Connected() {
		return
	}
	if err := c.release(ctx, parts, c.config.commitRetries); err != nil {
		c.config.logger.Warn("the consumer did not leave its group cleanly; its session's end will do it", "err", err)
	}
}
