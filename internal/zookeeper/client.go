package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"barnabas/internal/jute"
)

// closeTimeout bounds how long Close waits for the server to end the session.
const closeTimeout = 3 * time.Second

type state int

const (
	connecting state = iota // no connection; calls fail with ErrConnectionLoss
	connected
	expired    // until Renew
	authFailed // until Renew
)

// Client is one session with a ZooKeeper ensemble. All methods may be called
// by several goroutines.
type Client struct {
	options Options
	servers []string
	chroot  string
	events  *eventQueue

	ctx      context.Context // ends at Close
	cancel   context.CancelFunc
	ended    chan struct{} // closed when run has ended
	shutOnce sync.Once
	room     *sync.Cond // on mu: there may be room for calls, or no connection

	mu struct {
		sync.Mutex
		state   state
		changed chan struct{} // closed and replaced when state or closing changes
		started bool
		closing bool
		renew   bool  // Renew was called, run has not taken notice yet
		lastErr error // of the last try to connect

		sessionID int64
		password  []byte
		timeout   time.Duration // granted
		lastZxid  int64

		wake     chan struct{} // of the current connection's writer
		xid      int32
		out      []byte    // encoded requests for the writer
		pending  callQueue // calls without a reply, in the order of out
		waiting  int       // callers that wait for room
		watches  watches
		auth     []Auth
		chrooted bool // the chroot is known to exist
	}
}

// New checks options and makes a client that does nothing yet. The error is
// ErrConnect.
func New(options Options) (*Client, error) {
	options.fill()
	servers, chroot, err := parseConnect(options.Connect)
	if err != nil {
		return nil, err
	}
	c := &Client{options: options, servers: servers, chroot: chroot, events: newEventQueue(), ended: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.room = sync.NewCond(&c.mu)
	c.mu.changed = make(chan struct{})
	c.mu.sessionID = options.SessionID
	c.mu.password = bytes.Clone(options.Password)
	c.mu.timeout = options.SessionTimeout
	c.mu.watches = newWatches()
	c.mu.auth = slices.Clone(options.Auth)
	c.mu.chrooted = chroot == ""
	return c, nil
}

// Start connects, and makes the chroot if it is missing. It returns when the
// session is there; or with jute.ErrSessionExpired if the one to re-attach is
// gone (then Renew begins a new one); or with ctx's error joined to the last
// one of connecting, and the client goes on trying until Close.
func (c *Client) Start(ctx context.Context) error {
	c.mu.Lock()
	if !c.mu.started && !c.mu.closing {
		c.mu.started = true
		go c.run()
	}
	c.mu.Unlock()
	return c.WaitConnected(ctx)
}

// Renew begins a new session after an expiry, and waits as Start does. Without
// an expiry it only waits. The owner first ends what it did under the old
// session: nothing of that session is left, neither ephemeral nodes nor
// watches.
func (c *Client) Renew(ctx context.Context) error {
	c.mu.Lock()
	if !c.mu.closing && (c.mu.state == expired || c.mu.state == authFailed) {
		c.mu.sessionID, c.mu.password, c.mu.lastZxid = 0, nil, 0
		c.mu.renew = true
		c.setStateLocked(connecting)
	}
	c.mu.Unlock()
	return c.WaitConnected(ctx)
}

// WaitConnected returns when there is a connection. Its errors are
// jute.ErrSessionExpired, jute.ErrAuthFailed, ErrClosed, or ctx's joined to
// the last error of connecting.
func (c *Client) WaitConnected(ctx context.Context) error {
	for {
		c.mu.Lock()
		err, changed := c.refusalLocked(), c.mu.changed
		c.mu.Unlock()
		if !errors.Is(err, jute.ErrConnectionLoss) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.mu.lastErr != nil {
				return fmt.Errorf("%w: %w", ctx.Err(), c.mu.lastErr)
			}
			return ctx.Err()
		}
	}
}

// AddAuth adds an identity to the session, on this connection and on each
// further one. A server that refuses it ends the session (jute.ErrAuthFailed).
func (c *Client) AddAuth(a Auth) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refusalLocked(); err != nil {
		return err
	}
	c.mu.auth = append(c.mu.auth, a)
	c.queueFrameLocked(jute.XidAuth, jute.OpAuth, &jute.AuthPacket{Scheme: a.Scheme, Auth: a.Data})
	return nil
}

// Close ends the session at the server, so that its ephemeral nodes go at
// once, and all goroutines. Calls made before it are answered first. Without
// a connection the session is left to time out. Events is closed. A second
// Close waits for the first.
func (c *Client) Close() { c.shut(true) }

// Detach ends the connection and all goroutines but not the session: another
// client can re-attach it by SessionID and Password until it times out.
func (c *Client) Detach() { c.shut(false) }

func (c *Client) shut(session bool) {
	c.shutOnce.Do(func() {
		c.mu.Lock()
		var last *Call
		if session && c.mu.state == connected {
			last = &Call{code: jute.OpCloseSession, xid: c.nextXidLocked(), done: make(chan struct{})}
			c.queueFrameLocked(last.xid, last.code, nil)
			c.mu.pending.push(last)
		}
		c.mu.closing = true
		if !c.mu.started {
			close(c.ended)
		}
		c.setStateLocked(c.mu.state)
		c.mu.Unlock()
		if last != nil {
			timer := time.NewTimer(closeTimeout)
			select {
			case <-last.done:
			case <-timer.C:
			}
			timer.Stop()
		}
		c.cancel()
		<-c.ended
		c.mu.Lock()
		c.failAllLocked(ErrClosed)
		c.mu.Unlock()
		c.events.close()
	})
}

// Events is the one stream of watch events and changes of state, for one
// reader. It is closed by Close.
func (c *Client) Events() <-chan Event { return c.events.ch }

// SessionID is the id of the session, 0 before the first connection.
func (c *Client) SessionID() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.sessionID
}

// Password is what re-attaching the session takes.
func (c *Client) Password() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.mu.password)
}

// SessionTimeout is what the server granted, and what was asked for before the
// first connection.
func (c *Client) SessionTimeout() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.timeout
}

// Connected tells whether there is a connection just now.
func (c *Client) Connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.state == connected
}

// setStateLocked wakes all who wait for a change.
func (c *Client) setStateLocked(s state) {
	c.mu.state = s
	close(c.mu.changed)
	c.mu.changed = make(chan struct{})
	c.room.Broadcast()
}
