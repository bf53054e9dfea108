package broker

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/server"
)

const (
	// lookupTime bounds the lookup of one host of max.connections.per.ip.overrides.
	lookupTime = 5 * time.Second
	// lookupPause is the pause before hosts that were not found are looked up again.
	lookupPause = 30 * time.Second
)

// addressLimits is max.connections.per.ip.overrides by address. It belongs to
// serve, then to the goroutine of keep.
type addressLimits struct {
	log     *slog.Logger
	resolve func(ctx context.Context, network, host string) ([]netip.Addr, error) // net.Resolver.LookupNetIP

	text   string            // what it was made of
	known  map[string]string // by host, the address that was found last
	failed map[string]bool   // hosts whose last lookup failed
	limit  map[string]int
}

// refresh looks up again, when the property has changed, every host of it, else
// those that were not found. A host that is not found any more keeps its
// address: a name server that is away takes no limit away.
func (a *addressLimits) refresh(ctx context.Context, c *config.Broker) {
	text := c.String("max.connections.per.ip.overrides")
	same := text == a.text
	if same && len(a.failed) == 0 {
		return
	}
	known, failed := map[string]string{}, map[string]bool{}
	limit := map[string]int{} // not nil: with a limit of 0 nobody else may come in
	for host, n := range c.ConnectionOverrides() {
		address, found := a.known[host]
		if !same || a.failed[host] {
			now, err := a.lookup(ctx, host)
			switch {
			case err == nil:
				if a.failed[host] {
					a.log.Info("a host of max.connections.per.ip.overrides is known again", "host", host, "address", now)
				}
				address, found = now, true
			default:
				failed[host] = true
				if !a.failed[host] && ctx.Err() == nil { // else the broker stops
					a.sayUnknown(host, address, err)
				}
			}
		}
		if found {
			known[host], limit[address] = address, n
		}
	}
	a.text, a.known, a.failed, a.limit = text, known, failed, limit
}

func (a *addressLimits) sayUnknown(host, address string, err error) {
	if address == "" {
		a.log.Warn("a host of max.connections.per.ip.overrides is not known; it has no limit of its own until it is", "host", host, "err", err)
		return
	}
	a.log.Warn("a host of max.connections.per.ip.overrides is not known any more; its limit stays with the address that it had", "host", host, "address", address, "err", err)
}

// lookup returns a host's address: of several the first of IPv4, as Java does.
func (a *addressLimits) lookup(ctx context.Context, host string) (string, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().String(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	all, err := a.resolve(ctx, "ip", host)
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

// keep puts each change of the limits in force, until ctx ends. It has a
// goroutine of its own, since names may have to be looked up for it.
func (a *addressLimits) keep(ctx context.Context, of *config.Dynamic, changed <-chan struct{}, set func(*config.Broker)) {
	for {
		var again <-chan time.Time
		if len(a.failed) > 0 {
			again = time.After(lookupPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-again:
		}
		c := of.Load()
		a.refresh(ctx, c)
		set(c)
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
