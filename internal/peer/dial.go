package peer

import (
	"context"
	"net"
	"time"
)

// A Dialer makes the transport of a connection to another broker, ready for
// Kafka's requests.
type Dialer interface {
	Dial(ctx context.Context, address string) (net.Conn, error)
}

// Plaintext connects by TCP without any security. The zero value is ready.
type Plaintext struct {
	ReceiveBuffer int // replica.socket.receive.buffer.bytes; 0 or less: the system's
}

// Dial connects to host:port.
func (p Plaintext) Dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := nc.(*net.TCPConn); ok && p.ReceiveBuffer > 0 {
		if err := tcp.SetReadBuffer(p.ReceiveBuffer); err != nil {
			nc.Close()
			return nil, err
		}
	}
	return nc, nil
}
