package broker

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/keeper"
)

// openKeeper starts the embedded ZooKeeper when no ensemble is configured.
func (b *Broker) openKeeper(context.Context) error {
	c := b.config.Load()
	if !c.EmbeddedKeeper() {
		return nil
	}
	dir := c.String("keeper.dir")
	k, err := keeper.Open(keeper.Options{Dir: dir, Logger: b.log.With("part", "keeper"), MaxSessionTimeout: max(40*time.Second, sessionTimeout(c))})
	if err != nil {
		return fmt.Errorf("keeper.dir %s: %w", absolute(dir), err)
	}
	b.keeper = k
	b.onClose("keeper", k.Close)
	listen := c.String("keeper.listen")
	if listen == "" {
		return nil
	}
	socket, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("keeper.listen=%s: %w; choose another port, or none (keeper.listen=) to keep the embedded ZooKeeper inside the process", listen, err)
	}
	b.info.Keeper = socket.Addr().String()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := k.Serve(socket); err != nil && b.ctx.Err() == nil {
			b.fail(fmt.Errorf("embedded ZooKeeper: %w", err))
		}
	}()
	b.onClose("keeper's listener", func() error {
		err := closeOnce(socket)()
		<-served
		return err
	})
	return nil
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
