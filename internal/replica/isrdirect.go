package replica

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// Kafka's IsrChangePropagationConfig: the controller is told of a change once
// none has come for noteQuiet, or after noteLatest; looked at each noteCheck.
const (
	noteCheck  = 2500 * time.Millisecond
	noteQuiet  = 5 * time.Second
	noteLatest = 60 * time.Second
)

// directISR changes ISRs by writing the partitions' states, as leaders below
// inter-broker protocol version 2.7-IV2 do, and tells the controller by nodes
// under /isr_change_notification (Kafka's ZkIsrManager).
type directISR struct {
	m  *Manager
	mu struct {
		sync.Mutex
		changed      map[wire.TopicPartition]struct{} // of which the controller is not told yet
		first, quiet time.Time                        // of the first and the last of them
	}
}

// write carries out changes; what ZooKeeper did not answer is left.
func (d *directISR) write(ctx context.Context, list []*isrChange) (left []*isrChange, err error) {
	zk := d.m.cluster.ZooKeeper
	ops := make([]zookeeper.Op, len(list))
	for i, c := range list {
		ops[i] = zookeeper.SetOp(znode.StatePath(c.p.Topic, c.p.Index), d.state(c).Encode(), c.version)
	}
	for i, call := range zk.GoAll(ops) {
		c := list[i]
		result, callErr := call.Wait(ctx)
		switch {
		case callErr == nil:
			d.note(c)
			c.done(c.leaderEpoch, result.Stat.Version, c.isr)
		case errors.Is(callErr, jute.ErrBadVersion):
			ours, readErr := d.ours(ctx, c)
			if readErr != nil { // it may be ours: nothing else would come of it
				left, err = append(left, c), readErr
			} else if !ours {
				d.m.o.Logger.Info("the state of a partition has changed; waiting for the controller", "partition", c.p.TopicPartition.String(), "isr", c.isr)
			}
		case errors.Is(callErr, jute.ErrNoNode): // the topic is being deleted
		default:
			left, err = append(left, c), callErr
		}
	}
	if err != nil && errors.Is(err, jute.ErrConnectionLoss) {
		_ = zk.WaitConnected(ctx) // what comes of it shows with the next try
	}
	return left, err
}

func (d *directISR) state(c *isrChange) znode.PartitionState {
	return znode.PartitionState{Leader: d.m.o.BrokerID, LeaderEpoch: c.leaderEpoch, ControllerEpoch: c.controller, ISR: c.isr}
}

// ours tells whether the state is the one that was to be written: a write whose
// answer was lost. ErrNoNode is no error: the topic is being deleted.
func (d *directISR) ours(ctx context.Context, c *isrChange) (bool, error) {
	data, stat, err := d.m.cluster.ZooKeeper.Get(ctx, znode.StatePath(c.p.Topic, c.p.Index))
	if errors.Is(err, jute.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s, err := znode.DecodePartitionState(data)
	want := d.state(c)
	if err != nil || s.Leader != want.Leader || s.LeaderEpoch != want.LeaderEpoch || s.ControllerEpoch != want.ControllerEpoch || !slices.Equal(s.ISR, want.ISR) {
		return false, nil
	}
	d.note(c)
	c.done(c.leaderEpoch, stat.Version, c.isr)
	return true, nil
}

func (d *directISR) note(c *isrChange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.changed == nil {
		d.mu.changed, d.mu.first = map[wire.TopicPartition]struct{}{}, d.m.o.Now()
	}
	d.mu.changed[c.p.TopicPartition] = struct{}{}
	d.mu.quiet = d.m.o.Now()
}

// run tells the controller, until ctx ends.
func (d *directISR) run(ctx context.Context) {
	tick := time.NewTicker(noteCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.tell(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (d *directISR) tell(ctx context.Context) {
	d.mu.Lock()
	now, changed := d.m.o.Now(), d.mu.changed
	due := changed != nil && (now.Sub(d.mu.quiet) > noteQuiet || now.Sub(d.mu.first) > noteLatest)
	if due {
		d.mu.changed = nil
	}
	d.mu.Unlock()
	if !due {
		return
	}
	var list []wire.TopicPartition
	for tp := range changed {
		list = append(list, tp)
	}
	zk := d.m.cluster.ZooKeeper
	err := zk.Retry(ctx, func() error {
		_, _, err := zk.Create(ctx, znode.ISRChanges+"/"+znode.ISRChangePrefix, znode.EncodeISRChange(list), zookeeper.PersistentSequential)
		return err
	})
	if err == nil || ctx.Err() != nil {
		return
	}
	d.m.o.Logger.Warn("the controller can't be told of changed ISRs; trying again", "err", err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.changed == nil {
		d.mu.changed, d.mu.first, d.mu.quiet = map[wire.TopicPartition]struct{}{}, now, now
	}
	for tp := range changed {
		d.mu.changed[tp] = struct{}{}
	}
}
