package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/poll"
)

// A connection whose last requests were brief ones (api.API.Brief), all
// answered, rests: it has no goroutine of its own, no buffer, and no place in
// Go's poller. A watcher reads its next requests, answers them on the spot, and
// writes what is answered later. Anything else wakes it: it gets a goroutine,
// which goes on where the watcher stopped.

const (
	// calmEnough brief requests in a row let a connection rest. Who is woken
	// before restWorth of them needs twice as many the next time: coming and
	// going costs as much as some ten requests.
	calmEnough = 2
	calmAtMost = 1 << 10
	restWorth  = 32
)

var (
	errResting = errors.New("connection rests") // ends the reading goroutine, not the connection
	errNotBack = errors.New("connection cannot be taken back from its watcher")
)

// rests are the connections that rest, and who watches them.
type rests struct {
	s        *Server
	brief    func(*api.API) bool
	watchers []*watcher
	next     atomic.Uint32 // whose turn it is to take a connection

	mu struct {
		sync.Mutex
		conns map[*conn]struct{}
		sweep *time.Timer // when to look for idle ones; nil while nobody rests
		ended bool
	}
}

// watcher serves connections that rest, on its poller's goroutine.
type watcher struct {
	*poll.Poller
	buf [readAhead]byte // of that goroutine
}

// resting is what a connection needs for it. Of whoever reads the connection.
type resting struct {
	calm, enough    int      // brief requests in a row, and how many let it rest
	served          int      // while it rested
	watcher         *watcher // the same for ever: what was posted to it may come late
	fd              int
	readable, write func() // methods, bound once
}

func newRests(s *Server) *rests {
	r := &rests{s: s, brief: s.o.brief}
	r.mu.conns = map[*conn]struct{}{}
	return r
}

// start starts the watchers. Without any nobody rests.
func (r *rests) start() {
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		p, err := poll.New()
		if err != nil {
			if !errors.Is(err, errors.ErrUnsupported) {
				r.s.log().Warn("quiet connections keep their goroutines", "err", err)
			}
			return
		}
		r.watchers = append(r.watchers, &watcher{Poller: p})
	}
}

// end wakes all that rest, when the server stops and nobody begins to rest any
// more, and ends the watchers.
func (r *rests) end() {
	r.mu.Lock()
	r.mu.ended = true
	if r.mu.sweep != nil {
		r.mu.sweep.Stop()
	}
	r.mu.Unlock()
	for _, w := range r.watchers {
		w.Post(func() {
			for _, c := range r.of(w) {
				c.wakeUp(nil, nil)
			}
		})
		w.Close()
	}
}

func (r *rests) of(w *watcher) (list []*conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.mu.conns {
		if c.rest.watcher == w {
			list = append(list, c)
		}
	}
	return list
}

func (r *rests) add(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.conns[c] = struct{}{}
	if idle := time.Duration(r.s.maxIdle.Load()); r.mu.sweep == nil && idle > 0 {
		r.mu.sweep = time.AfterFunc(idle, r.closeIdle)
	}
}

func (r *rests) remove(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.conns, c)
}

// closeIdle closes who was idle for connections.max.idle.ms, and comes again
// when the next one may have been.
func (r *rests) closeIdle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	idle := time.Duration(r.s.maxIdle.Load())
	if r.mu.sweep != nil {
		r.mu.sweep.Stop()
		r.mu.sweep = nil
	}
	if r.mu.ended || idle < 0 || len(r.mu.conns) == 0 {
		return
	}
	next := idle
	for c := range r.mu.conns {
		if left := idle - time.Since(time.Unix(0, c.active.Load())); left > 0 {
			next = min(next, left)
		} else {
			c.rest.watcher.Post(c.idle)
		}
	}
	r.mu.sweep = time.AfterFunc(max(next, idle/16), r.closeIdle)
}

// mayRest counts a request that was handled.
func (c *conn) mayRest(a *api.API) bool {
	if !c.s.rests.brief(a) {
		c.rest.calm = 0
		return false
	}
	c.rest.calm++
	return c.rest.calm >= c.rest.enough
}

// lieDown has the connection rest, if nothing of it is under way. The reading
// goroutine calls it, and after a true touches the connection no more.
func (c *conn) lieDown() bool {
	r := c.s.rests
	tcp, ok := c.nc.(*net.TCPConn)
	if !ok || len(r.watchers) == 0 || c.in.r != c.in.w {
		return false
	}
	c.mu.Lock()
	quiet := c.mu.n == 0 && c.mu.turn == nobody && !c.mu.closing && !c.s.stopping()
	c.mu.Unlock()
	if !quiet {
		return false
	}
	fd, err := poll.Take(tcp)
	if err != nil {
		return false
	}
	if c.rest.watcher == nil {
		c.rest.watcher = r.watchers[int(r.next.Add(1))%len(r.watchers)]
	}
	w := c.rest.watcher
	c.rest.fd, c.rest.served = fd, 0
	c.in.buf = nil
	c.out.rest(fd)
	c.mu.Lock()
	defer c.mu.Unlock()
	// Who wants it closed, or stops, has seen it resting or is seen here.
	if !c.mu.hungUp && !c.s.stopping() && w.Add(fd, c.rest.readable) == nil {
		c.mu.resting = true
		r.add(c)
		return true
	}
	nc, err := poll.Give(fd)
	c.back(nc, err)
	if c.mu.hungUp {
		c.nc.Close()
	}
	return false
}

// back puts the socket in the connection's hands again.
func (c *conn) back(nc *net.TCPConn, err error) {
	if err == nil {
		c.nc = nc
	} // else it is the one that was closed
	c.in.armed, c.in.stalled = time.Time{}, false
	c.in.mark.init(c.nc)
	c.out.init(c.nc, c.s)
}

// wakeUp gives the connection a goroutine that goes on with bytes which were
// read, or ends it with an error. On the watcher's goroutine, where the turn is
// either nobody's or posted to it and not used yet: the new goroutine gets it,
// so that nobody writes before the socket is back and what was unsent is sent.
func (c *conn) wakeUp(b []byte, err error) {
	c.mu.Lock()
	c.mu.turn = reader
	c.mu.resting = false
	c.mu.Unlock()
	c.s.rests.remove(c)
	c.rest.watcher.Remove(c.rest.fd)
	unsent := c.out.unsent
	nc, failed := poll.Give(c.rest.fd)
	if failed != nil {
		err = fmt.Errorf("%w: %w", errNotBack, failed)
	}
	c.mu.Lock()
	c.back(nc, failed)
	end := c.mu.hungUp || c.mu.closing
	c.mu.Unlock()
	if end {
		c.nc.Close()
	}
	if len(b) > 0 {
		c.in.buf = make([]byte, readAhead)
		c.in.r, c.in.w = 0, copy(c.in.buf, b)
	}
	c.rest.calm = 0
	if c.rest.enough = min(2*c.rest.enough, calmAtMost); c.rest.served >= restWorth {
		c.rest.enough = calmEnough
	}
	c.s.conns.Go(func() {
		c.live(func() error {
			if err == nil && len(unsent) > 0 {
				err = c.out.write(unsent)
			}
			c.turnOver(reader, true)
			if err != nil {
				return err
			}
			return c.loop()
		})
	})
}

// readRequest is called when a connection that rests has something to read.
func (c *conn) readRequest() {
	defer c.survive()
	n, err := poll.Read(c.rest.fd, c.rest.watcher.buf[:])
	b := c.rest.watcher.buf[:n]
	if errors.Is(err, poll.ErrAgain) {
		return
	}
	if err != nil {
		c.wakeUp(nil, nil) // whose goroutine meets the same end
		return
	}
	f, ok := c.briefFrame(b)
	if !ok {
		c.wakeUp(b, nil)
		return
	}
	c.rest.served++
	c.mu.Lock()
	held := c.mu.turn == nobody
	if held {
		c.mu.turn = reader
	}
	c.mu.Unlock()
	err = c.handle(f)
	if held {
		c.turnOver(reader, true)
	}
	c.stayOrWake(err)
}

// stayOrWake wakes the connection if the watcher can do no more for it.
func (c *conn) stayOrWake(err error) {
	c.mu.Lock()
	closing := c.mu.closing
	c.mu.Unlock()
	if err != nil || closing || len(c.out.unsent) > 0 {
		c.wakeUp(nil, err)
	}
}

// briefFrame makes a frame of what was read if it is one brief request, whole,
// and there is memory for it.
func (c *conn) briefFrame(b []byte) (f frame, ok bool) {
	if len(b) < 8 || binary.BigEndian.Uint32(b) != uint32(len(b)-4) {
		return f, false
	}
	f.size = len(b) - 4
	limit, bare := c.in.limit()
	if bare || int64(f.size) > limit {
		return f, false
	}
	a, err := c.judge(int16(binary.BigEndian.Uint16(b[4:])), int16(binary.BigEndian.Uint16(b[6:])), f.size)
	if err != nil || !c.s.rests.brief(a) {
		return f, false
	}
	c.mu.Lock()
	room := c.mu.n < maxUnanswered-1 && c.mu.bytes < maxUnansweredBytes
	c.mu.Unlock()
	if !room || !c.s.budget.try(&f.claim, int64(bufferSize(f.size)+a.Expansion*f.size)) {
		return f, false
	}
	f.api, f.paid, f.buf = a, true, getBuffer(f.size)
	copy(f.buf.b, b[4:])
	return f, true
}

// writeAnswers is posted to the watcher with the turn to write. When the
// connection has been woken meanwhile that one took the turn.
func (c *conn) writeAnswers() {
	defer c.survive()
	c.mu.Lock()
	mine := c.mu.resting && c.mu.turn == writer
	c.mu.Unlock()
	if !mine {
		return
	}
	c.turnOver(writer, true)
	c.stayOrWake(nil)
}

// idle is posted to the watcher for a connection that sent nothing for long.
func (c *conn) idle() {
	c.mu.Lock()
	resting, waiting := c.mu.resting, c.mu.n > 0
	c.mu.Unlock()
	if resting && !waiting && time.Since(time.Unix(0, c.active.Load())) >= time.Duration(c.s.maxIdle.Load()) {
		c.wakeUp(nil, errIdle)
	}
}

// survive keeps a mistake of ours from ending the watcher.
func (c *conn) survive() {
	p := recover()
	if p == nil {
		return
	}
	c.s.log().Error("a connection panicked", "client", c.info.RemoteAddr, "panic", p, "stack", string(debug.Stack()))
	c.mu.Lock()
	c.mu.closing = true
	resting := c.mu.resting
	c.mu.turn = nobody
	c.mu.Unlock()
	if resting {
		c.wakeUp(nil, nil)
	}
}
