package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/security"
)

// ErrProtocol is what New answers for a listener that has not what its protocol
// needs.
var ErrProtocol = errors.New("security protocol needs TLS or SASL, or has none")

// Listener is a bound socket and what the configuration calls it.
type Listener struct {
	net.Listener
	Name     string             // such as PLAINTEXT or INTERNAL
	Protocol string             // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
	TLS      *tls.Config        // of the protocols with SSL in their name
	SASL     *security.Listener // of those with SASL
	// InterBroker connections are let in beyond the broker-wide limit.
	InterBroker bool
}

// Limits are the bounds of connections and requests; they may change while the
// server runs ([Server.SetLimits]).
type Limits struct {
	MaxRequestBytes int            // socket.request.max.bytes; 0: 100 MiB
	MaxIdle         time.Duration  // connections.max.idle.ms; 0: 10 minutes, negative: none
	MaxConnections  int            // max.connections; 0: no limit
	MaxOfListener   map[string]int // listener.name.<name>.max.connections, by the listener's name; 0 or nil: no limit
	MaxPerIP        int            // max.connections.per.ip; 0 with a nil MaxPerIPOf: no limit
	MaxPerIPOf      map[string]int // max.connections.per.ip.overrides, by address; nil: none
}

// Options are the arguments of [New]. All fields without "optional" are needed.
type Options struct {
	Listeners []Listener
	Broker    *api.Broker
	Limits    Limits // optional
	// QueuedBytes is queued.max.request.bytes, the memory of frames and of what
	// they are decoded to; optional: 256 MiB.
	QueuedBytes int64
	// SendBuffer and ReceiveBuffer are socket.send.buffer.bytes and
	// socket.receive.buffer.bytes; 0 or less leaves them to the system.
	SendBuffer, ReceiveBuffer int
	// Stall is how long a client may take over the next piece of a frame that
	// it has begun, or to take more of an answer; optional: 30 s.
	Stall  time.Duration
	Logger *slog.Logger // optional

	brief func(*api.API) bool // tests may call everything brief
}

func (o *Options) fill() error {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.QueuedBytes <= 0 {
		o.QueuedBytes = 256 << 20
	}
	if o.Stall <= 0 {
		o.Stall = 30 * time.Second
	}
	if o.brief == nil {
		o.brief = func(a *api.API) bool { return a.Brief }
	}
	for _, l := range o.Listeners {
		if strings.HasSuffix(l.Protocol, "SSL") != (l.TLS != nil) || strings.HasPrefix(l.Protocol, "SASL") != (l.SASL != nil) {
			return fmt.Errorf("listener %s: %w: %s", l.Name, ErrProtocol, l.Protocol)
		}
	}
	return nil
}

func (l *Limits) fill() {
	if l.MaxRequestBytes <= 0 {
		l.MaxRequestBytes = 100 << 20
	}
	if l.MaxIdle == 0 {
		l.MaxIdle = 10 * time.Minute
	}
	if l.MaxPerIP == 0 && l.MaxPerIPOf == nil {
		l.MaxPerIP = math.MaxInt32
	}
}
