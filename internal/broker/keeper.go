package broker

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/keeper"
	"barnabas/internal/pemstore"
)

// openKeeper starts the embedded ZooKeeper when no ensemble is configured.
func (b *Broker) openKeeper(context.Context) error {
	c := b.config.Load()
	if !c.EmbeddedKeeper() {
		return nil
	}
	dir := c.String("keeper.dir")
	k, err := keeper.Open(keeper.Options{Dir: dir, Logger: b.log.With("part", "keeper"), MaxConnections: b.descriptors.keeper, MaxSessionTimeout: max(40*time.Second, sessionTimeout(c))})
	if err != nil {
		return fmt.Errorf("keeper.dir %s: %w", absolute(dir), err)
	}
	b.keeper = k
	b.onClose("keeper", k.Close)
	if listen := c.String("keeper.listen"); listen != "" {
		socket, err := net.Listen("tcp", listen)
		if err != nil {
			return fmt.Errorf("keeper.listen=%s: %w; choose another port, or none (keeper.listen=) to keep the embedded ZooKeeper inside the process", listen, err)
		}
		b.info.Keeper = socket.Addr().String()
		b.serveKeeper(socket, nil)
	}
	if listen := c.String("keeper.ssl.listen"); listen != "" {
		secure, err := pemstore.Server(c.String("keeper.ssl.keystore.location"), c.String("keeper.ssl.truststore.location"))
		if err != nil {
			return fmt.Errorf("keeper.ssl.keystore.location, keeper.ssl.truststore.location: %w", err)
		}
		socket, err := net.Listen("tcp", listen)
		if err != nil {
			return fmt.Errorf("keeper.ssl.listen=%s: %w", listen, err)
		}
		b.serveKeeper(socket, secure)
	}
	return nil
}

// serveKeeper serves the embedded ZooKeeper at a socket until the broker stops,
// over TLS if secure is not nil.
func (b *Broker) serveKeeper(socket net.Listener, secure *tls.Config) {
	serve := b.keeper.Serve
	if secure != nil {
		serve = func(l net.Listener) error { return b.keeper.ServeTLS(l, secure) }
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := serve(socket); err != nil && b.ctx.Err() == nil {
			b.fail(fmt.Errorf("embedded ZooKeeper: %w", err))
		}
	}()
	b.onClose("keeper's listener at "+socket.Addr().String(), func() error {
		err := closeOnce(socket)()
		<-served
		return err
	})
}

func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}

func sessionTimeout(c *config.Broker) time.Duration {
	return c.Duration("zookeeper.session.timeout.ms")
}
