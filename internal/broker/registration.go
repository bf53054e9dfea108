package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// ErrIDTaken tells that another live broker has this broker's id.
var ErrIDTaken = errors.New("broker.id is taken")

// register writes /brokers/ids/N for the first time. A node of another session
// is a live broker, or what is left of a dead one: wait for one session
// timeout, then give up.
func (b *Broker) register(ctx context.Context) error {
	b.saveSession()
	wait, cancel := context.WithTimeout(ctx, sessionTimeout(b.config.Load())+6*time.Second) // ZooKeeper rounds up to its ticks
	defer cancel()
	for {
		err := b.writeRegistration(ctx)
		if !errors.Is(err, ErrIDTaken) {
			return err
		}
		gone, watchErr := b.waitForDeletion(wait, znode.BrokerPath(b.info.ID), err)
		if watchErr != nil {
			return watchErr
		}
		if !gone {
			return err
		}
	}
}

// waitForDeletion waits until a node is gone, or the context ends.
func (b *Broker) waitForDeletion(ctx context.Context, path string, why error) (gone bool, err error) {
	said := false
	for {
		_, ok, err := b.zk.ExistsW(ctx, path)
		if ctx.Err() != nil {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("ZooKeeper: watching %s: %w", path, err)
		}
		if !ok {
			return true, nil
		}
		if !said {
			said = true
			b.log.Warn("waiting for the other registration to go", "why", why, "at most", sessionTimeout(b.config.Load()))
		}
		select {
		case <-ctx.Done():
			return false, nil
		case _, open := <-b.zk.Events():
			if !open {
				return false, jute.ErrSessionExpired
			}
		}
	}
}

// registration returns the node's data.
func (b *Broker) registration() []byte {
	c := b.config.Load()
	version := int32(5)
	if c.IBP() < config.V2_7IV0 {
		version = 4
	}
	var endpoints []znode.Endpoint
	for _, l := range b.info.Advertised {
		endpoints = append(endpoints, znode.Endpoint{Listener: l.Name, Protocol: l.Protocol.String(), Host: l.Host, Port: int32(l.Port)})
	}
	var rack *string
	if c.Has("broker.rack") {
		r := c.String("broker.rack")
		rack = &r
	}
	return znode.NewBroker(version, endpoints, rack, time.Now().UnixMilli()).Encode()
}

// writeRegistration makes the node in one transaction (create without data,
// then set, so that its version is 1 as with Kafka) and notes its czxid as the
// broker epoch.
func (b *Broker) writeRegistration(ctx context.Context) error {
	path, data := znode.BrokerPath(b.info.ID), b.registration()
	for {
		results, err := b.zk.Multi(ctx, zookeeper.CreateOp(path, nil, zookeeper.Ephemeral), zookeeper.SetOp(path, data, 0))
		switch {
		case err == nil:
			b.epoch.Store(results[1].Stat.Czxid)
			b.log.Info("registered", "path", path, "epoch", results[1].Stat.Czxid)
			return nil
		case errors.Is(err, jute.ErrNodeExists):
			found, stat, err := b.zk.Get(ctx, path)
			if errors.Is(err, jute.ErrNoNode) {
				continue // it went in between
			}
			if err != nil {
				return fmt.Errorf("ZooKeeper: reading %s: %w", path, err)
			}
			if stat.EphemeralOwner == b.zk.SessionID() { // our own write, whose answer was lost
				b.epoch.Store(stat.Czxid)
				return nil
			}
			return b.idTaken(found, stat)
		case errors.Is(err, jute.ErrConnectionLoss):
			if err := b.zk.WaitConnected(ctx); err != nil {
				return err
			}
		default:
			return fmt.Errorf("ZooKeeper: registering %s: %w", path, err)
		}
	}
}

func (b *Broker) idTaken(data []byte, stat jute.Stat) error {
	where := "an unknown host"
	if other, err := znode.DecodeBroker(data); err == nil && len(other.Endpoints) > 0 {
		where = other.Endpoints[0].String()
	}
	return fmt.Errorf("%w: another broker is registered with broker.id=%d at %s (ZooKeeper session 0x%x). Each broker needs an id of its own",
		ErrIDTaken, b.info.ID, where, uint64(stat.EphemeralOwner))
}

// watchOwnNode puts a watch on the registration and writes it again when it is
// gone, as when somebody deleted it by hand. What ZooKeeper refuses is tried
// again after a pause, by watch.
func (b *Broker) watchOwnNode(ctx context.Context) {
	said := b.again != nil // the try before was refused
	b.again = nil
	path := znode.BrokerPath(b.info.ID)
	stat, ok, err := b.zk.ExistsW(ctx, path)
	switch {
	case err != nil:
	case !ok:
		if !said {
			b.log.Warn("the registration is gone; registering again", "path", path)
		}
		if err = b.writeRegistration(ctx); err == nil {
			b.controller.Elect()
			b.watchOwnNode(ctx)
		} else if !said {
			b.log.Error("registering again", "err", err)
		}
	case stat.EphemeralOwner != b.zk.SessionID():
		b.log.Error("the registration belongs to another session: another broker uses this broker.id", "path", path)
	}
	// A lost connection sets the watch again, an expiry registers anew.
	if err != nil && !errors.Is(err, jute.ErrConnectionLoss) && !errors.Is(err, jute.ErrSessionExpired) {
		b.again = time.After(refusedPause)
	}
}
