package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// absentEvery is how often the log says that ZooKeeper can't be reached.
const absentEvery = 10 * time.Second

// connect opens the ZooKeeper session, once that of the last run is closed, and
// makes the paths that every broker makes.
func (b *Broker) connect(ctx context.Context) error {
	c := b.config.Load()
	if c.Bool("zookeeper.set.acl") { // Kafka too refuses it without an identity
		return errors.New("zookeeper.set.acl=true needs SASL or TLS towards ZooKeeper, which is not supported yet; set it to false")
	}
	if err := b.closeLastSession(ctx, c); err != nil {
		return err
	}
	o, err := b.zkOptions(c)
	if err != nil {
		return err
	}
	zk, err := zookeeper.New(o)
	if err != nil {
		return err
	}
	if err := b.whileAbsent(ctx, zk.Start); err != nil {
		zk.Close()
		return err
	}
	b.zk = zk
	b.onClose("ZooKeeper session", func() error {
		connected := zk.Connected()
		zk.Close()
		if !connected { // the session lives on until it expires or the next run closes it
			b.log.Warn("ZooKeeper is not there to close the session")
			return nil
		}
		return forgetSession(c.LogDirs()[0])
	})
	return nil
}

func (b *Broker) zkOptions(c *config.Broker) (zookeeper.Options, error) {
	o := zookeeper.Options{SessionTimeout: sessionTimeout(c), Logger: b.log.With("part", "zookeeper")}
	if b.keeper != nil {
		// The name is for the log; Dial ignores it.
		if o.Connect = b.info.Keeper; o.Connect == "" {
			o.Connect = "embedded:0" // it listens nowhere
		}
		o.Dial = func(ctx context.Context, _ string) (net.Conn, error) { return b.keeper.Dial(ctx) }
		return o, nil
	}
	o.Connect = c.String("zookeeper.connect")
	secure, err := zkTLS(c)
	if secure != nil {
		dialer := tls.Dialer{Config: secure}
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }
	}
	return o, err
}

// closeLastSession takes over the session of the last run, if it is still
// there, and closes it: the registration that a crash left behind goes at once
// instead of after the session's timeout.
func (b *Broker) closeLastSession(ctx context.Context, c *config.Broker) error {
	last, ok := readSession(c.LogDirs()[0])
	if !ok || last.Connect != c.String("zookeeper.connect") {
		return nil
	}
	o, err := b.zkOptions(c)
	if err != nil {
		return err
	}
	o.SessionID, o.Password = last.ID, last.Password
	zk, err := zookeeper.New(o)
	if err != nil {
		return err
	}
	err = b.whileAbsent(ctx, zk.Start)
	switch {
	case errors.Is(err, jute.ErrSessionExpired):
		b.log.Debug("the session of the last run has expired", "session", fmt.Sprintf("0x%x", uint64(last.ID)))
	case err != nil:
		zk.Detach()
		return err
	default:
		b.log.Info("closed the ZooKeeper session of the last run", "session", fmt.Sprintf("0x%x", uint64(last.ID)))
	}
	zk.Close()
	return forgetSession(c.LogDirs()[0])
}

// whileAbsent calls f, and says every absentEvery that it has not returned: the
// client tries again until ZooKeeper is there.
func (b *Broker) whileAbsent(ctx context.Context, f func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	// The first line comes early, so that whoever watches knows what it waits for.
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-timer.C:
			b.log.Warn("ZooKeeper does not answer; trying until it does", "zookeeper.connect", b.config.Load().String("zookeeper.connect"))
			timer.Reset(absentEvery)
		}
	}
}

// saveSession keeps the session for the next run.
func (b *Broker) saveSession() {
	c := b.config.Load()
	dir := c.LogDirs()[0]
	s := lastSession{Connect: c.String("zookeeper.connect"), ID: b.zk.SessionID(), Password: b.zk.Password()}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.log.Warn("the ZooKeeper session can't be kept for the next run", "err", err)
		return
	}
	if err := writeSession(dir, s); err != nil {
		b.log.Warn("the ZooKeeper session can't be kept for the next run", "err", err)
	}
}

// makePaths makes the persistent paths that every Kafka broker makes when it
// starts, in Kafka's order, and the cluster id if there is none.
func (b *Broker) makePaths(ctx context.Context) error {
	if err := b.zk.EnsurePaths(ctx, znode.BootPaths()...); err != nil {
		return fmt.Errorf("ZooKeeper: making Kafka's paths: %w", err)
	}
	return nil
}
