package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"barnabas/internal/jute"
)

// Defaults of Options.
const (
	DefaultSessionTimeout = 18 * time.Second // zookeeper.session.timeout.ms of Kafka
	DefaultConnectTimeout = 10 * time.Second
	// DefaultMaxRequest is the longest frame that a ZooKeeper server takes
	// unless its jute.maxbuffer is set.
	DefaultMaxRequest = 0xfffff
	// DefaultMaxFrame is Kafka 3.9's jute.maxbuffer for its client.
	DefaultMaxFrame = 4 << 20
)

// defaultPort is for servers of a connect string that name none.
const defaultPort = "2181"

// ErrConnect is the cause of New's error for a connect string that can't be
// read.
var ErrConnect = errors.New("zookeeper: bad connect string")

// Auth is one identity that is added to the session on each connection.
type Auth struct {
	Scheme string // "digest"
	Data   []byte // for digest: user:password
}

// DigestAuth is the identity of a user under the digest scheme.
func DigestAuth(user, password string) Auth {
	return Auth{"digest", []byte(user + ":" + password)}
}

// Options configure a Client. The zero value of each but Connect is good.
type Options struct {
	// Connect is "host:port,host:port/chroot". A chroot that is missing is
	// made at the first connection.
	Connect string
	// SessionTimeout is asked for; the server may grant another, see
	// Client.SessionTimeout.
	SessionTimeout time.Duration
	// ConnectTimeout bounds one try of one server, handshake included.
	ConnectTimeout time.Duration
	// Dial makes a connection to host:port; nil: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// SessionID and Password re-attach a session of before. If it is gone,
	// the client starts out expired.
	SessionID int64
	Password  []byte
	// Auth is sent on each connection before anything else.
	Auth []Auth
	// ACL gives the access list of a node that is created without one; nil:
	// world-open.
	ACL func(path string) []jute.ACL
	// MaxRequest bounds a request and MaxFrame a reply, in bytes.
	MaxRequest, MaxFrame int
	// Logger takes one line for each connection won and lost; nil: none.
	Logger *slog.Logger
}

func (o *Options) fill() {
	if o.SessionTimeout <= 0 {
		o.SessionTimeout = DefaultSessionTimeout
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.MaxRequest <= 0 {
		o.MaxRequest = DefaultMaxRequest
	}
	if o.MaxFrame <= 0 {
		o.MaxFrame = DefaultMaxFrame
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ACL == nil {
		world := jute.WorldACL()
		o.ACL = func(string) []jute.ACL { return world }
	}
	if o.Dial == nil {
		dialer := net.Dialer{}
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }
	}
}

// parseConnect splits a connect string as org.apache.zookeeper's
// ConnectStringParser does. The servers come in random order, so that the
// clients of an ensemble spread.
func parseConnect(connect string) (servers []string, chroot string, err error) {
	hosts := connect
	if i := strings.IndexByte(connect, '/'); i >= 0 {
		hosts, chroot = connect[:i], connect[i:]
		if chroot == "/" {
			chroot = ""
		} else if err := ValidatePath(chroot); err != nil {
			return nil, "", fmt.Errorf("%w: %q is no path", ErrConnect, chroot)
		}
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if host = strings.TrimSpace(host); host == "" {
			continue
		}
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name, port = strings.Trim(host, "[]"), defaultPort
			if strings.Contains(name, ":") && !strings.HasPrefix(host, "[") {
				return nil, "", fmt.Errorf("%w: %q is no host:port", ErrConnect, host)
			}
		}
		if name == "" || port == "" {
			return nil, "", fmt.Errorf("%w: %q is no host:port", ErrConnect, host)
		}
		servers = append(servers, net.JoinHostPort(name, port))
	}
	if len(servers) == 0 {
		return nil, "", fmt.Errorf("%w: no server in %q", ErrConnect, connect)
	}
	rand.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	return servers, chroot, nil
}
