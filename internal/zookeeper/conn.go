package zookeeper

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"barnabas/internal/jute"
)

// Waiting between rounds over all servers; a connection that lived for
// steady resets it.
const (
	minBackoff = 10 * time.Millisecond
	maxBackoff = time.Second
	steady     = 200 * time.Millisecond
)

// errProtocol ends a connection whose server breaks the protocol.
var errProtocol = errors.New("zookeeper: protocol broken by the server")

// errEnded ends run's work on a session that is over.
var errEnded = errors.New("session over")

// run connects, reads, and connects again, until Close.
func (c *Client) run() {
	defer close(c.ended)
	backoff := minBackoff
	for at := 0; c.ctx.Err() == nil; at++ {
		began := time.Now()
		err := c.connection(c.servers[at%len(c.servers)])
		if errors.Is(err, errEnded) {
			if !c.waitForRenewal() {
				return
			}
			at--
			continue
		}
		if c.isClosing() {
			return
		}
		if time.Since(began) > steady {
			backoff = minBackoff
		}
		if (at+1)%len(c.servers) != 0 {
			continue
		}
		timer := time.NewTimer(backoff)
		select {
		case <-timer.C:
		case <-c.ctx.Done():
		}
		timer.Stop()
		backoff = min(2*backoff, maxBackoff)
	}
}

func (c *Client) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.closing
}

// waitForRenewal is false when the client is closed instead.
func (c *Client) waitForRenewal() bool {
	for {
		c.mu.Lock()
		renew, changed := c.mu.renew, c.mu.changed
		c.mu.renew = false
		c.mu.Unlock()
		if renew {
			return true
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return false
		}
	}
}

// connection lives through one connection to addr. errEnded: the session is
// over, and its owner was told.
func (c *Client) connection(addr string) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.options.ConnectTimeout)
	nc, err := c.options.Dial(ctx, addr)
	cancel()
	if err != nil {
		c.noConnection(addr, err)
		return err
	}
	// Close ends reads and writes by closing the socket.
	stop := context.AfterFunc(c.ctx, func() { nc.Close() })
	defer stop()
	defer nc.Close()

	in := &reader{nc: nc}
	in.Reader = bufio.NewReaderSize(in.source(), 32<<10)
	response, err := c.handshake(nc, in)
	if err != nil {
		c.noConnection(addr, err)
		return err
	}
	if response.Timeout <= 0 || response.SessionID == 0 {
		c.over(expired, jute.StateExpired, jute.ErrSessionExpired)
		return errEnded
	}
	wake, granted := make(chan struct{}, 1), time.Duration(response.Timeout)*time.Millisecond
	silence := granted * 2 / 3
	in.timeout = silence
	c.attach(wake, &response)
	c.options.Logger.Info("ZooKeeper session", "server", addr, "session", fmt.Sprintf("0x%x", response.SessionID), "timeout", granted)

	writerEnded := make(chan struct{})
	quit := make(chan struct{})
	go func() {
		defer close(writerEnded)
		c.write(nc, wake, quit, silence/2)
	}()
	err = c.read(in)
	nc.Close()
	close(quit)
	<-writerEnded
	return c.detach(addr, err)
}

// handshake asks for the session.
func (c *Client) handshake(nc net.Conn, in *reader) (jute.ConnectResponse, error) {
	c.mu.Lock()
	request := jute.ConnectRequest{
		LastZxidSeen: c.mu.lastZxid,
		Timeout:      int32(c.options.SessionTimeout / time.Millisecond),
		SessionID:    c.mu.sessionID,
		Password:     c.mu.password,
	}
	c.mu.Unlock()
	if len(request.Password) == 0 {
		request.Password = make([]byte, jute.PasswordSize)
	}
	var e jute.Encoder
	start := e.BeginFrame()
	request.Encode(&e)
	e.EndFrame(start)
	var response jute.ConnectResponse
	if err := nc.SetDeadline(time.Now().Add(c.options.ConnectTimeout)); err != nil {
		return response, err
	}
	if _, err := nc.Write(e.B); err != nil {
		return response, err
	}
	frame, err := in.frame(c.options.MaxFrame)
	if err != nil {
		return response, err
	}
	d := jute.NewDecoder(frame)
	response.Decode(d)
	if d.Err() != nil {
		return response, fmt.Errorf("%w: no connect response", errProtocol)
	}
	return response, nc.SetDeadline(time.Time{})
}

// noConnection notes a try that failed.
func (c *Client) noConnection(addr string, err error) {
	if c.ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	said := c.mu.lastErr != nil && c.mu.lastErr.Error() == err.Error()
	c.mu.lastErr = err
	c.mu.Unlock()
	if !said {
		c.options.Logger.Warn("no connection to ZooKeeper; trying again", "server", addr, "error", err)
	}
}

// attach begins a connection with the identities and watches, and opens it for
// calls; the first time only after the chroot is there.
func (c *Client) attach(wake chan struct{}, response *jute.ConnectResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.lastErr = nil
	c.mu.sessionID, c.mu.password = response.SessionID, bytes.Clone(response.Password)
	c.mu.timeout = time.Duration(response.Timeout) * time.Millisecond
	c.mu.wake = wake
	c.mu.out = c.mu.out[:0]
	for _, auth := range c.mu.auth {
		c.queueFrameLocked(jute.XidAuth, jute.OpAuth, &jute.AuthPacket{Scheme: auth.Scheme, Auth: auth.Data})
	}
	for _, request := range c.mu.watches.requests(c.mu.lastZxid) {
		if len(request.Persistent)+len(request.PersistentRecursive) > 0 {
			c.queueFrameLocked(jute.XidSetWatches, jute.OpSetWatches2, &request)
		} else { // which servers before 3.6 know
			c.queueFrameLocked(jute.XidSetWatches, jute.OpSetWatches, &request.SetWatchesRequest)
		}
	}
	if c.mu.chrooted {
		c.openLocked()
	} else {
		c.queueChrootLocked(jute.OpExists, c.chroot, &jute.PathWatchRequest{Path: c.chroot})
	}
}

func (c *Client) openLocked() {
	c.events.push(Event{Type: jute.EventNone, State: jute.StateSyncConnected})
	c.setStateLocked(connected)
}

// queueFrameLocked queues a request of our own behind all others.
func (c *Client) queueFrameLocked(xid int32, op jute.Op, record jute.Record) {
	e := jute.Encoder{B: c.mu.out}
	start := e.BeginFrame()
	(&jute.RequestHeader{Xid: xid, Op: op}).Encode(&e)
	if record != nil {
		record.Encode(&e)
	}
	e.EndFrame(start)
	c.mu.out = e.B
	c.wakeWriterLocked()
}

func (c *Client) queueChrootLocked(op jute.Op, path string, record jute.Record) {
	call := &Call{code: op, xid: c.nextXidLocked(), path: path, chroot: true, done: make(chan struct{})}
	c.queueFrameLocked(call.xid, op, record)
	c.mu.pending.push(call)
}

// chrootReplyLocked takes a reply to queueChrootLocked: makes what is missing,
// and opens the connection once the whole chroot exists.
func (c *Client) chrootReplyLocked(call *Call, err jute.Error) error {
	switch {
	case call.code == jute.OpExists && err == jute.ErrNoNode:
		for _, path := range withParents([]string{c.chroot}) {
			c.queueChrootLocked(jute.OpCreate, path, &jute.CreateRequest{Path: path, ACL: c.options.ACL(path), Mode: jute.Persistent})
		}
	case call.path != c.chroot: // one above it, which may exist or not be ours to make
	case err == jute.OK, call.code == jute.OpCreate && err == jute.ErrNodeExists:
		c.mu.chrooted = true
		c.openLocked()
	default:
		return fmt.Errorf("no chroot %s: %w", c.chroot, err)
	}
	return nil
}

// detach fails the calls of a connection that ended with err.
func (c *Client) detach(addr string, err error) error {
	if errors.Is(err, errEnded) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.wake = nil
	if c.mu.closing {
		c.mu.state = connecting
		c.failAllLocked(ErrClosed)
		return err
	}
	c.mu.lastErr = err
	if c.mu.state == connected {
		c.events.push(Event{Type: jute.EventNone, State: jute.StateDisconnected})
		c.setStateLocked(connecting)
	}
	c.failAllLocked(jute.ErrConnectionLoss)
	c.options.Logger.Warn("connection to ZooKeeper lost", "server", addr, "error", err)
	return err
}

// over ends the session for its owner (invariant 6).
func (c *Client) over(s state, event jute.KeeperState, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.wake = nil
	c.mu.watches = newWatches()
	c.events.push(Event{Type: jute.EventNone, State: event})
	c.setStateLocked(s)
	c.failAllLocked(err)
	c.options.Logger.Warn("ZooKeeper session over", "session", fmt.Sprintf("0x%x", c.mu.sessionID), "error", err)
}

func (c *Client) wakeWriterLocked() {
	select {
	case c.mu.wake <- struct{}{}:
	default:
	}
}

// write sends what is queued, and pings when nothing was sent for a while.
func (c *Client) write(nc net.Conn, wake, quit <-chan struct{}, idle time.Duration) {
	idle = min(idle, 10*time.Second)
	timer := time.NewTimer(idle)
	defer timer.Stop()
	var e jute.Encoder
	start := e.BeginFrame()
	(&jute.RequestHeader{Xid: jute.XidPing, Op: jute.OpPing}).Encode(&e)
	e.EndFrame(start)
	ping := e.B
	var spare []byte
	for {
		batch := ping
		select {
		case <-quit:
			return
		case <-timer.C:
		case <-wake:
			c.mu.Lock()
			batch = c.mu.out
			c.mu.out = spare[:0]
			if c.mu.waiting > 0 {
				c.room.Broadcast()
			}
			c.mu.Unlock()
			spare = batch
			if cap(spare) > maxUnsent {
				spare = nil
			}
		}
		if len(batch) > 0 {
			// A stuck write ends with the connection: the reader waits no
			// longer than silence, and then closes it.
			if _, err := nc.Write(batch); err != nil {
				nc.Close() // the reader sees it
				return
			}
		}
		timer.Reset(idle)
	}
}

// read takes replies and events until the connection ends.
func (c *Client) read(in *reader) error {
	for {
		frame, err := in.frame(c.options.MaxFrame)
		if err != nil {
			return err
		}
		d := jute.NewDecoder(frame)
		var h jute.ReplyHeader
		h.Decode(d)
		if d.Err() != nil {
			return fmt.Errorf("%w: no reply header", errProtocol)
		}
		switch h.Xid {
		case jute.XidPing:
		case jute.XidSetWatches:
			if h.Err != jute.OK {
				return fmt.Errorf("watches are not set again: %w", h.Err) // they may be on the next connection
			}
		case jute.XidAuth:
			if h.Err != jute.OK {
				c.over(authFailed, jute.StateAuthFailed, jute.ErrAuthFailed)
				return errEnded
			}
		case jute.XidNotification:
			if err := c.event(d); err != nil {
				return err
			}
		default:
			if err := c.reply(&h, d); err != nil {
				return err
			}
		}
	}
}

func (c *Client) event(d *jute.Decoder) error {
	var m jute.WatcherEvent
	m.Decode(d)
	if d.Err() != nil {
		return fmt.Errorf("%w: no event", errProtocol)
	}
	c.mu.Lock()
	c.mu.watches.fired(m.Type, m.Path)
	c.mu.Unlock()
	c.events.push(Event{Type: m.Type, State: jute.StateSyncConnected, Path: c.clientPath(m.Path)})
	return nil
}

func (c *Client) reply(h *jute.ReplyHeader, d *jute.Decoder) error {
	c.mu.Lock()
	call := c.mu.pending.first()
	c.mu.Unlock()
	if call == nil || call.xid != h.Xid {
		return fmt.Errorf("%w: a reply to request %d out of order", errProtocol, h.Xid)
	}
	switch h.Err {
	case jute.OK:
		c.decode(call, d)
		if d.Err() != nil {
			return fmt.Errorf("%w: malformed reply to %v", errProtocol, call.code)
		}
	case jute.ErrSessionExpired:
		c.over(expired, jute.StateExpired, jute.ErrSessionExpired)
		return errEnded
	case jute.ErrSessionMoved: // not carried out; the session goes on elsewhere
		return jute.ErrSessionMoved
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.pending.pop()
	c.mu.lastZxid = max(c.mu.lastZxid, h.Zxid)
	if call.path != "" && !call.chroot {
		c.mu.watches.answered(call, h.Err)
	}
	if c.mu.waiting > 0 && c.mu.pending.len() < maxPending/2 {
		c.room.Broadcast()
	}
	if call.chroot {
		return c.chrootReplyLocked(call, h.Err)
	}
	err := h.Err.OrNil()
	if err == nil && call.code == jute.OpMulti {
		err = multiError(call.paths, call.result.Multi)
	}
	call.finish(err)
	return nil
}

// reader cuts frames out of a connection.
type reader struct {
	*bufio.Reader
	nc      net.Conn
	timeout time.Duration // of silence; 0: the deadline is set already
}

// source sets the deadline before each read of the socket.
func (r *reader) source() io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if r.timeout > 0 {
			if err := r.nc.SetReadDeadline(time.Now().Add(r.timeout)); err != nil {
				return 0, err
			}
		}
		return r.nc.Read(p)
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// frame returns the next frame in memory of its own.
func (r *reader) frame(limit int) ([]byte, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(r.Reader, prefix[:]); err != nil {
		return nil, err
	}
	n := int32(binary.BigEndian.Uint32(prefix[:]))
	if n < 0 || int(n) > limit {
		return nil, fmt.Errorf("%w: a frame of %d bytes", errProtocol, n)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(r.Reader, frame); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return frame, nil
}
