package broker

import (
	"context"
	"errors"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// refusedPause is the pause before ZooKeeper is asked again for what it refused,
// as for want of room, and no event will bring.
const refusedPause = time.Second

// pause waits for a time, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	wait, cancel := context.WithTimeout(ctx, d)
	<-wait.Done()
	cancel()
}

// watch receives every ZooKeeper event until the session is closed.
func (b *Broker) watch() {
	b.watchOwnNode(b.ctx)
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.again:
			b.watchOwnNode(b.ctx)
		case e, open := <-b.zk.Events():
			if !open {
				return
			}
			b.event(e)
		}
	}
}

func (b *Broker) event(e zookeeper.Event) {
	switch {
	case e.State == jute.StateExpired:
		if err := b.sessionExpired(b.ctx); err != nil && b.ctx.Err() == nil {
			b.fail(err)
		}
		return
	case e.Type == jute.EventNone && e.State == jute.StateDisconnected:
		b.log.Warn("the connection to ZooKeeper is lost; serving on without it")
	case e.Type == jute.EventNone:
		b.watchOwnNode(b.ctx)
	case e.Path == znode.BrokerPath(b.info.ID):
		b.watchOwnNode(b.ctx)
	case e.Path == znode.ConfigChanges:
		b.configs.notify()
	}
	b.controller.Event(e)
}

// sessionExpired brings the broker back after its session expired: the
// controller resigns, then a new session, the registration, the election.
// Clients are served all the while.
func (b *Broker) sessionExpired(ctx context.Context) error {
	b.log.Warn("the ZooKeeper session expired; registering in a new one")
	if err := b.controller.SessionExpired(ctx); err != nil {
		return err
	}
	for {
		if err := b.whileAbsent(ctx, b.zk.Renew); err != nil {
			return err
		}
		err := b.register(ctx)
		if errors.Is(err, jute.ErrSessionExpired) {
			continue // this one is gone too
		}
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.log.Error("registering after the session expired; trying again", "err", err)
		pause(ctx, refusedPause)
	}
	b.configs.notify()
	b.controller.Elect()
	b.watchOwnNode(ctx)
	return nil
}
