package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// errTaken is the error of a try when partitions of our share still have
// another owner.
var errTaken = errors.New("partitions of this consumer's share have another owner")

// life is what run keeps between events.
type life struct {
	need     bool // a rebalance is due
	register bool // our registration is to be made first
	first    bool // the first rebalance is not done
	lost     bool // what was owned was given up when ZooKeeper was silent
	tries    int
	again    <-chan time.Time // the next try
	silent   <-chan time.Time // by then ZooKeeper holds the session for dead
	lastErr  error
}

// run is the consumer's life in its group.
func (c *Consumer) run() {
	defer close(c.done)
	l := &life{need: true, register: true, first: true}
	var commits <-chan time.Time
	if c.config.autoCommit {
		ticker := time.NewTicker(c.config.commitInterval)
		defer ticker.Stop()
		commits = ticker.C
	}
	for c.ctx.Err() == nil {
		if l.need {
			c.try(l)
			continue
		}
		select {
		case <-c.ctx.Done():
		case e, ok := <-c.zk.Events():
			if !ok {
				return
			}
			c.take(l, e)
		case <-commits:
			if !c.zk.Connected() {
				continue // nothing is written to a ZooKeeper that is away
			}
			if err := c.commitSoon(c.ctx, c.all()); err != nil {
				c.config.logger.Warn("offsets were not committed; the next time will", "err", err)
			}
		case r := <-c.commits:
			r.done <- c.commitSoon(r.ctx, c.all())
		case <-l.again:
			l.again = nil
			l.need = true
			c.countTry(l)
		case <-l.silent:
			l.silent, l.lost = nil, true
			c.lose()
		}
	}
	c.leave()
}

// take notes an event, and all that wait behind it.
func (c *Consumer) take(l *life, e zookeeper.Event) {
	for more := true; more; {
		switch {
		case e.Type != jute.EventNone:
			l.need = true
		case e.State == jute.StateExpired:
			c.lose()
			l.need, l.register, l.silent, l.lost = true, true, nil, false
		case e.State == jute.StateDisconnected:
			l.silent = time.After(c.zk.SessionTimeout())
		case e.State == jute.StateSyncConnected:
			l.need = l.need || l.lost || l.again != nil
			l.silent, l.lost = nil, false
		}
		select {
		case e, more = <-c.zk.Events():
		default:
			more = false
		}
	}
}

// try makes one try of a rebalance and plans the next if it fails.
func (c *Consumer) try(l *life) {
	l.need = false
	err := c.attempt(l)
	switch {
	case c.ctx.Err() != nil:
		return
	case err == nil:
		l.tries, l.again, l.lastErr = 0, nil, nil
		if l.first {
			l.first = false
			c.first <- nil
		}
		return
	case errors.Is(err, jute.ErrSessionExpired):
		return // the event of it is on its way
	}
	l.lastErr = err
	if errors.Is(err, context.DeadlineExceeded) && !c.zk.Connected() {
		l.silent, l.lost = nil, true // by now the session may be gone
		c.lose()
	}
	if l.again == nil {
		l.again = time.After(c.config.backoff)
	}
}

// commitSoon is commit which does not hold the loop up for so long that the
// session may end unseen.
func (c *Consumer) commitSoon(ctx context.Context, parts []*owned) error {
	ctx, cancel := context.WithTimeout(ctx, c.zk.SessionTimeout()/3)
	defer cancel()
	return c.commit(ctx, parts)
}

// countTry counts the pauses that passed without success.
func (c *Consumer) countTry(l *life) {
	if l.tries++; l.tries <= c.config.retries {
		return
	}
	l.tries = 0
	err := fmt.Errorf("%w after %d retries: %w", ErrRebalance, c.config.retries, l.lastErr)
	c.config.logger.Error("the rebalance failed; it is tried on", "group", c.config.group, "err", l.lastErr)
	if c.config.listener.Failed != nil {
		c.config.listener.Failed(err)
	}
	if l.first {
		l.first = false
		c.first <- err
	}
}

func (c *Consumer) attempt(l *life) error {
	if l.register {
		if err := c.zk.Renew(c.ctx); err != nil {
			return err
		}
		if err := c.register(c.ctx); err != nil {
			return err
		}
		l.register = false
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.zk.SessionTimeout())
	defer cancel()
	view, err := c.read(ctx)
	if err != nil {
		l.register = l.register || errors.Is(err, jute.ErrNoNode) // somebody deleted the group
		return err
	}
	if !slices.ContainsFunc(view.group, func(m member) bool { return m.id == c.id }) {
		l.register = true
		l.need = true
		return nil
	}
	if len(view.brokers) == 0 {
		return nil // as 0.8: nothing changes until one comes; it is watched
	}
	if err := c.kafka.UpdateSeedBrokers(view.brokers...); err != nil {
		c.config.logger.Warn("brokers in ZooKeeper cannot be used", "err", err)
	}
	want, err := share(c.config.strategy, view.group, view.partitions, c.id)
	if err != nil {
		return err
	}
	return c.apply(ctx, want)
}

// register makes this consumer's ephemeral node. While one of another session
// has the name, it tries on.
func (c *Consumer) register(ctx context.Context) error {
	path, data := znode.ConsumerIDPath(c.config.group, c.id), c.registration.Encode()
	for {
		err := c.zk.Retry(ctx, func() error {
			_, _, err := c.zk.CreateRecursive(ctx, path, data, zookeeper.Ephemeral)
			return err
		})
		if !errors.Is(err, jute.ErrNodeExists) {
			return err
		}
		stat, exists, err := c.zk.Exists(ctx, path)
		if err != nil || exists && stat.EphemeralOwner == c.zk.SessionID() {
			return err
		}
		c.config.logger.Info("the consumer's id is registered by another session; waiting for its end", "id", c.id)
		select {
		case <-time.After(min(c.config.backoff+50*time.Millisecond, time.Second)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// view is what a rebalance knows.
type view struct {
	group      []member
	partitions map[string][]int32
	brokers    []string // host:port
}

// read reads what every member reads, and leaves the watches.
func (c *Consumer) read(ctx context.Context) (view, error) {
	v := view{partitions: map[string][]int32{}}
	ids, _, err := c.zk.ChildrenW(ctx, znode.ConsumerIDsPath(c.config.group))
	if err != nil {
		return v, err
	}
	slices.Sort(ids)
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = znode.ConsumerIDPath(c.config.group, id)
	}
	reads, err := c.zk.GetMany(ctx, paths, false)
	if err != nil {
		return v, err
	}
	registrations := map[string]znode.ConsumerRegistration{}
	wild := false
	for i, r := range reads {
		if errors.Is(r.Err, jute.ErrNoNode) {
			continue // it left just now; the watch tells
		}
		if r.Err != nil {
			return v, r.Err
		}
		registration, err := znode.DecodeConsumerRegistration(r.Data)
		if err != nil {
			return v, fmt.Errorf("%s: %w", paths[i], err)
		}
		registrations[ids[i]] = registration
		wild = wild || isWild(registration)
	}
	var topics []string
	if wild {
		if topics, _, err = c.zk.ChildrenW(ctx, znode.Topics); err != nil && !errors.Is(err, jute.ErrNoNode) {
			return v, err
		}
		slices.Sort(topics)
	}
	for _, id := range slices.Sorted(maps.Keys(registrations)) {
		m, err := expand(id, registrations[id], topics, c.config.hideInternal)
		if err != nil {
			return v, err
		}
		v.group = append(v.group, m)
	}
	if err := c.readTopics(ctx, &v); err != nil {
		return v, err
	}
	return v, c.readBrokers(ctx, &v)
}

// readTopics reads the partitions of every topic that some member consumes.
func (c *Consumer) readTopics(ctx context.Context, v *view) error {
	set := map[string]bool{}
	for _, m := range v.group {
		for topic := range m.topics {
			set[topic] = true
		}
	}
	topics := slices.Sorted(maps.Keys(set))
	paths := make([]string, len(topics))
	for i, topic := range topics {
		paths[i] = znode.TopicPath(topic)
	}
	reads, err := c.zk.GetMany(ctx, paths, true)
	if err != nil {
		return err
	}
	for i, r := range reads {
		if errors.Is(r.Err, jute.ErrNoNode) {
			if _, exists, err := c.zk.ExistsW(ctx, paths[i]); err != nil {
				return err
			} else if exists {
				return fmt.Errorf("topic %q was made just now", topics[i])
			}
			continue
		}
		if r.Err != nil {
			return r.Err
		}
		topic, err := znode.DecodeTopic(r.Data)
		if err != nil {
			return fmt.Errorf("%s: %w", paths[i], err)
		}
		v.partitions[topics[i]] = slices.Sorted(maps.Keys(topic.Partitions))
	}
	return nil
}

func (c *Consumer) readBrokers(ctx context.Context, v *view) error {
	ids, _, err := c.zk.ChildrenW(ctx, znode.BrokerIDs)
	if errors.Is(err, jute.ErrNoNode) {
		_, _, err = c.zk.ExistsW(ctx, znode.BrokerIDs)
	}
	if err != nil {
		return err
	}
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = znode.BrokerIDs + "/" + id
	}
	reads, err := c.zk.GetMany(ctx, paths, false)
	if err != nil {
		return err
	}
	for i, r := range reads {
		if errors.Is(r.Err, jute.ErrNoNode) {
			continue
		}
		if r.Err != nil {
			return r.Err
		}
		b, err := znode.DecodeBroker(r.Data)
		if err != nil {
			return fmt.Errorf("%s: %w", paths[i], err)
		}
		if b.Host != "" && b.Port > 0 {
			v.brokers = append(v.brokers, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
		} else if len(b.Endpoints) > 0 {
			e := b.Endpoints[0]
			v.brokers = append(v.brokers, net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))))
		}
	}
	return nil
}

// all returns what is owned.
func (c *Consumer) all() []*owned { return slices.Collect(maps.Values(c.owned)) }

func (c *Consumer) ownerPath(tp wire.TopicPartition) string {
	return znode.ConsumerOwnerPath(c.config.group, tp.Topic, tp.Partition)
}
