package peer

import (
	"context"
	"fmt"
	"net"
	"time"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
)

const (
	maxToken  = 512 << 10 // of an answer while authenticating
	maxTokens = 16        // no mechanism needs as many
)

// SASL connects by another Dialer and then authenticates: SaslHandshake v1 and
// SaslAuthenticate v1, which every broker from 2.2 on serves.
type SASL struct {
	Dialer    Dialer
	Mechanism sasl.Mechanism
	ClientID  string
	Timeout   time.Duration // of each answer; 0: 30 s
}

// Dial connects to host:port and authenticates.
func (s SASL) Dial(ctx context.Context, address string) (net.Conn, error) {
	nc, err := s.Dialer.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	lifetime, err := s.authenticate(ctx, nc, address)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("%w: authenticating to %s with %s: %w", ErrUnsafe, address, s.Mechanism.Name(), err)
	}
	if lifetime == 0 {
		return nc, nil
	}
	// Earlier than it has to be, as Java's clients do.
	return limited{nc, time.Now().Add(lifetime - lifetime/8)}, nil
}

// limited is a connection whose session ends: it is made anew before that.
type limited struct {
	net.Conn
	renew time.Time
}

func (s SASL) authenticate(ctx context.Context, nc net.Conn, address string) (lifetime time.Duration, err error) {
	c := New(Options{ClientID: s.ClientID, Timeout: s.Timeout, MaxAnswer: maxToken})
	c.nc = nc
	hello := kmsg.NewPtrSASLHandshakeRequest()
	hello.Version, hello.Mechanism = 1, s.Mechanism.Name()
	answer := hello.ResponseKind().(*kmsg.SASLHandshakeResponse)
	if err := c.once(ctx, hello, answer); err != nil {
		return 0, err
	}
	if code := wire.Code(answer.ErrorCode); code != wire.None {
		return 0, fmt.Errorf("%w; it has %v", code, answer.SupportedMechanisms)
	}
	session, token, err := s.Mechanism.Authenticate(ctx, address)
	if err != nil {
		return 0, err
	}
	for range maxTokens {
		r := kmsg.NewPtrSASLAuthenticateRequest()
		r.Version, r.SASLAuthBytes = 1, token
		answer := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		if err := c.once(ctx, r, answer); err != nil {
			return 0, err
		}
		if code := wire.Code(answer.ErrorCode); code != wire.None {
			if answer.ErrorMessage != nil {
				return 0, fmt.Errorf("%w: %s", code, *answer.ErrorMessage)
			}
			return 0, code
		}
		done, next, err := session.Challenge(answer.SASLAuthBytes)
		if err != nil {
			return 0, err
		}
		if done {
			return time.Duration(max(answer.SessionLifetimeMillis, 0)) * time.Millisecond, nil
		}
		token = next
	}
	return 0, fmt.Errorf("%w: the authentication has no end", ErrBadAnswer)
}

// once asks on a connection that is being made.
func (c *Conn) once(ctx context.Context, r kmsg.Request, answer kmsg.Response) error {
	body, err := c.ask(ctx, wire.Header{Key: r.Key(), Version: r.GetVersion(), Flexible: r.IsFlexible()}, r.AppendTo)
	if err != nil {
		return err
	}
	answer.SetVersion(r.GetVersion())
	if err := answer.ReadFrom(body); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBadAnswer, kmsg.NameForKey(r.Key()), err)
	}
	return nil
}
