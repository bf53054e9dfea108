package controller

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/controller/core"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// Controller is this broker's part in the cluster's controller. Its methods may
// be called by several goroutines.
type Controller struct {
	opts    Options
	machine *core.Machine // of the loop's goroutine
	term    *term         // of the loop's goroutine; nil: not active
	alarm   *time.Timer   // of the loop's goroutine; nil: none set

	absent    bool        // of the loop's goroutine: the session expired, and Elect was not called since
	found     <-chan seen // of the loop's goroutine: the outcome of the look at /controller; nil: none is under way
	lookAgain bool        // of the loop's goroutine: something happened since it began
	lookErr   string      // of the loop's goroutine: why looks fail, as the log was told
	later     *time.Timer // of the loop's goroutine; nil: none set. It has the loop look again

	ctx    context.Context // ends at Close
	cancel context.CancelFunc
	work   sync.WaitGroup // the loop and the looks at /controller

	activeID atomic.Int32
	epoch    atomic.Int32 // of this broker's term, 0: not active

	mu struct {
		sync.Mutex
		started, closed bool
		queue           []any                 // events for the loop
		waiting         map[uint64]chan<- any // calls without an answer
		lastCall        uint64
	}
	wake chan struct{} // room for one: the queue is not empty
}

// Events of the loop, beside those of core.
type (
	zkEvent  struct{ event zookeeper.Event }
	elect    struct{} // the broker is registered: read /controller, and run for it if it is free
	expired  struct{ done chan<- struct{} }
	delivery struct{ all chan<- []<-chan struct{} } // asks for sender.delivered of each
	fromTerm struct {                               // an event that counts in one term only
		term *term
		ev   core.Event
	}
	termFailed struct {
		term *term
		err  error
	}
)

// New returns a Controller that does nothing until Start.
func New(o Options) *Controller {
	o.fill()
	c := &Controller{opts: o, wake: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.mu.waiting = map[uint64]chan<- any{}
	c.activeID.Store(-1)
	c.machine = core.New(core.Config{
		BrokerID:            o.BrokerID,
		IBP:                 o.IBP,
		InterBrokerListener: o.InterBrokerListener,
		DeleteTopicEnable:   o.DeleteTopicEnable,
		UncleanElection:     o.UncleanElectionEnable,
		AutoRebalance:       o.AutoRebalanceEnable,
		ImbalancePercentage: o.ImbalancePercentage,
		ImbalanceInterval:   o.ImbalanceCheckInterval,
		NewTopicID:          o.NewTopicID,
	})
	return c
}

// Start begins to watch /controller and to run for it. The broker's own znode
// must be registered before. It returns at once; the work ends with Close.
func (c *Controller) Start() {
	c.mu.Lock()
	begin := !c.mu.started && !c.mu.closed
	if begin {
		c.mu.started = true
		c.work.Add(1)
	}
	c.mu.Unlock()
	if begin {
		go func() { defer c.work.Done(); c.run() }()
		c.push(elect{})
	}
}

// Event passes on an event of the ZooKeeper client: all of them, in order. It
// never blocks.
func (c *Controller) Event(e zookeeper.Event) { c.push(zkEvent{e}) }

// Elect makes the controller read /controller again and run if it is free. The
// broker calls it after it has registered in a new session.
func (c *Controller) Elect() { c.push(elect{}) }

// SessionExpired ends the term, if this broker is the active controller, and the
// look at /controller, and returns when nothing more of them can reach ZooKeeper.
// There is no other before Elect. The broker calls it between the session's expiry
// and the client's Renew.
func (c *Controller) SessionExpired(ctx context.Context) error {
	done := make(chan struct{})
	if !c.push(expired{done}) {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-c.ctx.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Delivered returns when every broker has answered what the active controller
// has told it so far, or ctx ends. A broker that stops while it is the controller
// waits for that: else its successor would have to say it all again.
func (c *Controller) Delivered(ctx context.Context) {
	answer := make(chan []<-chan struct{}, 1)
	if !c.push(delivery{answer}) {
		return
	}
	select {
	case all := <-answer:
		for _, ch := range all {
			select {
			case <-ch:
			case <-ctx.Done():
				return
			}
		}
	case <-c.ctx.Done():
	case <-ctx.Done():
	}
}

// Close ends the term and every goroutine. /controller is left to the close of
// the session, which deletes it.
func (c *Controller) Close() error {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
	c.answerAll()
	return nil
}

// ActiveID returns the broker that /controller names, -1 when none is known.
// Clients are told the id that the last UpdateMetadata carried instead.
func (c *Controller) ActiveID() int32 { return c.activeID.Load() }

// IsActive tells whether this broker is the active controller.
func (c *Controller) IsActive() bool { return c.epoch.Load() > 0 }

// Epoch returns the epoch of this broker's term, 0 when it is not active.
func (c *Controller) Epoch() int32 { return c.epoch.Load() }

// push queues an event for the loop; false when it has ended.
func (c *Controller) push(ev any) bool {
	c.mu.Lock()
	ok := c.mu.started && !c.mu.closed
	if ok {
		c.mu.queue = append(c.mu.queue, ev)
	}
	c.mu.Unlock()
	if ok {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return ok
}

func (c *Controller) run() {
	defer func() {
		c.endTerm("the broker stops")
		for _, t := range []*time.Timer{c.alarm, c.later} {
			if t != nil {
				t.Stop()
			}
		}
	}()
	for {
		var alarm, later <-chan time.Time
		if c.alarm != nil {
			alarm = c.alarm.C
		}
		if c.later != nil {
			later = c.later.C
		}
		select {
		case <-c.ctx.Done():
			return
		case <-alarm:
			c.alarm = nil
			c.step(core.Tick{})
		case <-later:
			c.later = nil
			c.startLook()
		case s := <-c.found:
			c.found = nil
			c.looked(s)
		case <-c.wake:
			c.mu.Lock()
			queue := c.mu.queue
			c.mu.queue = nil
			c.mu.Unlock()
			for _, ev := range queue {
				if c.ctx.Err() != nil {
					return
				}
				c.handle(ev)
			}
		}
	}
}

func (c *Controller) handle(ev any) {
	switch ev := ev.(type) {
	case zkEvent:
		c.zooKeeperEvent(ev.event)
	case elect:
		c.absent = false
		c.startLook()
	case expired:
		c.endTerm("the ZooKeeper session expired")
		c.endLook()
		c.absent = true // a look would run for /controller before the broker is registered
		c.activeID.Store(-1)
		close(ev.done)
	case delivery:
		var all []<-chan struct{}
		if c.term != nil {
			for _, s := range c.term.senders {
				all = append(all, s.delivered())
			}
		}
		ev.all <- all
	case fromTerm:
		if ev.term == c.term {
			c.step(ev.ev)
		}
	case termFailed:
		if ev.term == c.term {
			c.opts.Logger.Warn("the controller cannot go on", "err", ev.err)
			c.endTerm("ZooKeeper: " + ev.err.Error())
			c.lookLater() // what was refused in this term would be in the next
		}
	case core.Event:
		c.step(ev)
	}
}

func (c *Controller) zooKeeperEvent(e zookeeper.Event) {
	switch {
	case e.State == jute.StateExpired:
		c.endTerm("the ZooKeeper session expired")
	case e.Type == jute.EventNone:
	case e.Path == znode.ControllerPath || e.Path == znode.ControllerEpochPath:
		c.startLook()
	case c.term != nil:
		c.step(core.Changed{Path: e.Path})
	}
}

// step gives an event to the core and carries out the effects.
func (c *Controller) step(ev core.Event) {
	c.perform(c.machine.Step(c.opts.Now(), ev, nil))
}

func (c *Controller) perform(effects []core.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case core.Reads:
			c.term.read(e)
		case core.Writes:
			c.term.write(e)
		case core.Connect:
			c.term.connect(e)
		case core.Disconnect:
			c.term.disconnect(e.Broker)
		case core.Send:
			c.term.send(e)
		case core.Reply:
			c.answer(e.Call, e.Result)
		case core.Log:
			c.opts.Logger.Log(c.ctx, e.Level, e.Text)
		case core.Alarm:
			c.setAlarm(e.At)
		case core.Resign:
			c.resigned(e.Reason)
			// Whoever moved it holds /controller now; if it is still ours, the
			// look deletes it and runs again.
			c.startLook()
		}
	}
}

func (c *Controller) setAlarm(at time.Time) {
	if c.alarm != nil {
		c.alarm.Stop()
	}
	c.alarm = time.NewTimer(at.Sub(c.opts.Now()))
}

// beginTerm makes the core the active controller's.
func (c *Controller) beginTerm(epoch, epochVersion int32) {
	c.opts.Logger.Info("this broker is the controller", "epoch", epoch)
	c.term = newTerm(c, epochVersion)
	c.activeID.Store(c.opts.BrokerID)
	c.epoch.Store(epoch)
	c.step(core.Elected{Epoch: epoch})
}

// endTerm ends the term from outside of the core, and waits until nothing of it
// is under way.
func (c *Controller) endTerm(reason string) {
	for _, e := range c.machine.Stop(c.opts.Now(), reason, nil) {
		switch e := e.(type) {
		case core.Reply:
			c.answer(e.Call, e.Result)
		case core.Resign:
			c.resigned(e.Reason)
		}
	}
}

// resigned cleans up after the core has ended the term.
func (c *Controller) resigned(reason string) {
	c.opts.Logger.Info("this broker is no longer the controller", "reason", reason)
	c.epoch.Store(0)
	if c.alarm != nil {
		c.alarm.Stop()
		c.alarm = nil
	}
	if c.term != nil {
		c.term.end()
		c.term = nil
	}
}
