package controller

import (
	"context"
	"errors"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// seen is what a look at /controller found.
type seen struct {
	id           int32 // of the controller, -1: none, or unreadable
	mine         bool  // this session holds /controller
	won          bool  // it has just been created
	epoch        int32 // when won
	epochVersion int32 // data version of /controller_epoch, when won
	err          error // nothing was found out
}

// errNoEpoch is a /controller_epoch that is no number.
var errNoEpoch = errors.New("controller: /controller_epoch cannot be read")

// lookPause is the pause before /controller is read again after an error that
// no event ends.
const lookPause = time.Second

// startLook reads /controller in a goroutine of its own, once more if one is
// already reading it.
func (c *Controller) startLook() {
	switch {
	case c.absent:
		return
	case c.found != nil:
		c.lookAgain = true
		return
	}
	found := make(chan seen, 1)
	c.found = found
	e := election{zk: c.opts.ZooKeeper, brokerID: c.opts.BrokerID, now: func() int64 { return c.opts.Now().UnixMilli() },
		active: c.term != nil, warn: c.opts.Logger.Warn}
	c.work.Add(1)
	go func() {
		defer c.work.Done()
		found <- e.look(c.ctx)
	}()
}

// endLook waits for the end of a look of a session that has expired, and forgets
// what it found and the looks that were to follow.
func (c *Controller) endLook() {
	if c.found != nil {
		<-c.found
		c.found = nil
	}
	c.lookAgain = false
	if c.later != nil {
		c.later.Stop()
		c.later = nil
	}
}

// looked takes the outcome of a look.
func (c *Controller) looked(s seen) {
	again := c.lookAgain
	c.lookAgain = false
	if s.err == nil {
		c.lookErr = ""
	}
	switch {
	case s.err != nil:
		c.lookFailed(s.err)
	case s.won && c.term == nil:
		c.beginTerm(s.epoch, s.epochVersion)
	case s.mine && c.term != nil && s.id == c.opts.BrokerID:
		c.activeID.Store(s.id)
	default:
		c.activeID.Store(s.id)
		if c.term != nil {
			c.endTerm("/controller does not name this broker any more")
			again = true
		}
	}
	if again {
		c.startLook()
	}
}

// lookFailed notes that nothing was found out. Where no event must follow, as
// when ZooKeeper refuses a write for want of room, it looks again after a pause.
func (c *Controller) lookFailed(err error) {
	switch {
	case errors.Is(err, context.Canceled):
		return
	case errors.Is(err, jute.ErrSessionExpired), errors.Is(err, jute.ErrAuthFailed), errors.Is(err, zookeeper.ErrClosed):
		// The session's owner calls Elect in the next one.
	case errors.Is(err, errNoEpoch):
		// The watch on it brings the next try when somebody repairs it.
	default:
		c.lookLater()
	}
	if why := err.Error(); why != c.lookErr {
		c.lookErr = why
		c.opts.Logger.Warn("the election waits", "err", err)
	}
}

func (c *Controller) lookLater() {
	if c.later != nil {
		c.later.Stop()
	}
	c.later = time.NewTimer(lookPause)
}

// election reads /controller and runs for it (KafkaController.elect,
// KafkaZkClient.registerControllerAndIncrementControllerEpoch).
type election struct {
	zk       *zookeeper.Client
	brokerID int32
	now      func() int64
	active   bool // this broker is in a term: only look
	warn     func(msg string, args ...any)

	tried int32 // the epoch of a create whose answer was lost; 0: none
}

func (e *election) look(ctx context.Context) seen {
	for {
		s, done, err := e.try(ctx)
		switch {
		case err == nil && done:
			return s
		case err == nil:
			// Somebody was faster, or something was in the way: read again.
		case errors.Is(err, jute.ErrConnectionLoss):
			if err := e.zk.WaitConnected(ctx); err != nil {
				return seen{id: -1, err: err}
			}
		default:
			return seen{id: -1, err: err}
		}
		if ctx.Err() != nil {
			return seen{id: -1, err: ctx.Err()}
		}
	}
}

// controllerNode is what the two nodes of the election hold.
type controllerNode struct {
	exists  bool
	id      int32 // -1 when the data is no controller's
	bad     error // why
	mine    bool  // it is of this session
	owned   bool  // it is of some session
	version int32

	hasEpoch     bool
	epoch        int32
	epochVersion int32
	badEpoch     error
}

// read reads both nodes, leaving watches on them, in one round trip.
func (e *election) read(ctx context.Context) (n controllerNode, err error) {
	calls := e.zk.GoAll([]zookeeper.Op{
		zookeeper.ExistsOp(znode.ControllerPath, true),
		zookeeper.GetOp(znode.ControllerPath, false),
		zookeeper.GetOp(znode.ControllerEpochPath, false),
	})
	n.id = -1
	if _, err := calls[0].Wait(ctx); err != nil && !errors.Is(err, jute.ErrNoNode) {
		return n, err
	}
	switch r, err := calls[1].Wait(ctx); {
	case err == nil:
		n.exists, n.version = true, r.Stat.Version
		n.owned = r.Stat.EphemeralOwner != 0
		n.mine = n.owned && r.Stat.EphemeralOwner == e.zk.SessionID()
		var c znode.Controller
		if c, n.bad = znode.DecodeController(r.Data); n.bad == nil {
			n.id = c.BrokerID
		}
	case !errors.Is(err, jute.ErrNoNode):
		return n, err
	}
	switch r, err := calls[2].Wait(ctx); {
	case err == nil:
		n.hasEpoch, n.epochVersion = true, r.Stat.Version
		n.epoch, n.badEpoch = znode.DecodeControllerEpoch(r.Data)
	case !errors.Is(err, jute.ErrNoNode):
		return n, err
	}
	return n, nil
}

// try looks once. done is false when it is to be done again at once.
func (e *election) try(ctx context.Context) (s seen, done bool, err error) {
	n, err := e.read(ctx)
	if err != nil {
		return s, false, err
	}
	s = seen{id: n.id, mine: n.mine}
	switch {
	case !n.exists && !e.active:
		return e.create(ctx, n)
	case !n.exists || e.active && n.mine && n.bad == nil:
		return s, true, nil
	case n.mine && n.id == e.brokerID && e.tried > 0 && n.epoch == e.tried && !e.active:
		// Our create went through and its answer was lost.
		s.won, s.epoch, s.epochVersion = true, n.epoch, n.epochVersion
		return s, true, nil
	case e.active:
		return s, true, nil
	case n.mine || n.bad != nil && !n.owned:
		// Ours of an earlier term, or data that is no controller's and that no
		// live session vouches for: it counts as no controller.
		err := e.zk.Delete(ctx, znode.ControllerPath, n.version)
		switch {
		case err == nil:
			e.warn("/controller was deleted: no controller stood behind it", "broker", n.id, "err", n.bad)
		case errors.Is(err, jute.ErrNoNode), errors.Is(err, jute.ErrBadVersion):
			err = nil
		}
		return s, false, err
	}
	return s, true, nil
}

// create makes /controller and raises the epoch in one transaction.
func (e *election) create(ctx context.Context, n controllerNode) (s seen, done bool, err error) {
	if n.badEpoch != nil {
		data, _, err := e.zk.GetW(ctx, znode.ControllerEpochPath)
		if err != nil {
			return s, false, err
		}
		if _, bad := znode.DecodeControllerEpoch(data); bad == nil {
			return s, false, nil // repaired before the watch was there
		}
		return s, false, errors.Join(errNoEpoch, n.badEpoch)
	}
	var ops []zookeeper.Op
	if !n.hasEpoch {
		n.epoch, n.epochVersion = znode.InitialControllerEpoch, 0
		ops = append(ops, zookeeper.CreateOp(znode.ControllerEpochPath, znode.EncodeControllerEpoch(n.epoch), zookeeper.Persistent))
	}
	data := znode.Controller{Version: 2, BrokerID: e.brokerID, Timestamp: e.now(), KRaftEpoch: znode.NoKRaftEpoch}
	ops = append(ops,
		zookeeper.CreateOp(znode.ControllerPath, data.Encode(), zookeeper.Ephemeral),
		zookeeper.SetOp(znode.ControllerEpochPath, znode.EncodeControllerEpoch(n.epoch+1), n.epochVersion))
	e.tried = n.epoch + 1
	results, err := e.zk.Multi(ctx, ops...)
	switch {
	case err == nil:
		return seen{id: e.brokerID, mine: true, won: true, epoch: e.tried,
			epochVersion: results[len(results)-1].Stat.Version}, true, nil
	case errors.Is(err, jute.ErrNodeExists), errors.Is(err, jute.ErrBadVersion), errors.Is(err, jute.ErrNoNode):
		return s, false, nil
	}
	return s, false, err
}
