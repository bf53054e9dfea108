package peer

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
)

// TLS connects by another Dialer and then by TLS.
type TLS struct {
	Dialer Dialer
	Config func() *tls.Config // what is in force
}

// Dial connects to host:port and shakes hands.
func (t TLS) Dial(ctx context.Context, address string) (net.Conn, error) {
	nc, err := t.Dialer.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	c := t.Config().Clone()
	if c.ServerName, _, err = net.SplitHostPort(address); err != nil {
		nc.Close()
		return nil, err
	}
	secure := tls.Client(nc, c)
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, fmt.Errorf("%w: TLS to %s: %w", ErrUnsafe, address, err)
	}
	return secure, nil
}
