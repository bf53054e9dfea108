package broker

import (
	"context"
	"net"
	"net/netip"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/server"
)

// lookupTime bounds the lookup of one host of max.connections.per.ip.overrides.
const lookupTime = 5 * time.Second

// addressLimits is max.connections.per.ip.overrides by address. It belongs to
// serve, then to the goroutine of keepLimits.
type addressLimits struct {
	text   string // what it was made of
	failed bool   // something was not found
	limit  map[string]int
}

// refresh looks names up again when the property has changed, or one was not
// found.
func (a *addressLimits) refresh(ctx context.Context, b *Broker, c *config.Broker) {
	text := c.String("max.connections.per.ip.overrides")
	if text == a.text && !a.failed {
		return
	}
	a.text, a.failed, a.limit = text, false, map[string]int{} // not nil: with a limit of 0 nobody else may come in
	for host, n := range c.ConnectionOverrides() {
		address, err := lookup(ctx, host)
		if err != nil {
			b.log.Warn("a host of max.connections.per.ip.overrides is not known; it has no limit of its own", "host", host, "err", err)
			a.failed = true
			continue
		}
		a.limit[address] = n
	}
}

// lookup returns a host's address: of several the first of IPv4, as Java does.
func lookup(ctx context.Context, host string) (string, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().String(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", err
	}
	for _, address := range all {
		if address.Unmap().Is4() {
			return address.Unmap().String(), nil
		}
	}
	return all[0].String(), nil
}

// keepLimits puts each change of the limits in force. It has a goroutine of its
// own, since names may have to be looked up for it.
func (b *Broker) keepLimits(of *addressLimits, changed <-chan struct{}) {
	for {
		select {
		case <-changed:
			c := b.config.Load()
			of.refresh(b.ctx, b, c)
			b.server.SetLimits(b.limits(c, of))
		case <-b.ctx.Done():
			return
		}
	}
}

func (b *Broker) limits(c *config.Broker, of *addressLimits) server.Limits {
	ofListener := map[string]int{}
	for _, l := range b.info.Listeners {
		ofListener[l.Name] = b.descriptors.bound(c.ForListener(l.Name).Int("max.connections"))
	}
	return server.Limits{
		MaxRequestBytes: c.Int("socket.request.max.bytes"),
		MaxIdle:         c.Duration("connections.max.idle.ms"),
		MaxConnections:  b.descriptors.bound(c.Int("max.connections")),
		MaxOfListener:   ofListener,
		MaxPerIP:        c.Int("max.connections.per.ip"),
		MaxPerIPOf:      of.limit,
	}
}
