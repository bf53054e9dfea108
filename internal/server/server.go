package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/api"
)

// Server serves the connections of its listeners.
type Server struct {
	o          Options
	quota      *quota
	budget     *budget
	complaints *complaints
	maxRequest atomic.Int64
	maxIdle    atomic.Int64 // time.Duration

	stop     chan struct{} // closed when Close begins: accept nothing, read nothing more
	give     chan struct{} // closed when the time for running requests is over
	accepts  sync.WaitGroup
	conns    sync.WaitGroup
	requests sync.Pool // *request
	rests    *rests
	lastID   atomic.Int64

	mu struct {
		sync.Mutex
		conns   map[*conn]struct{}
		started bool
		closing bool
	}
}

// New checks the options. The listeners belong to the server from here on.
func New(o Options) (*Server, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	s := &Server{o: o, stop: make(chan struct{}), give: make(chan struct{})}
	o.Limits.fill()
	s.quota = newQuota(o.Limits)
	s.budget = newBudget(o.QueuedBytes)
	s.complaints = newComplaints(o.Logger)
	s.mu.conns = make(map[*conn]struct{})
	s.rests = newRests(s)
	s.SetLimits(o.Limits)
	return s, nil
}

// SetLimits replaces the limits. Connections that exist stay.
func (s *Server) SetLimits(l Limits) {
	l.fill()
	s.quota.set(l)
	s.maxRequest.Store(int64(l.MaxRequestBytes))
	s.maxIdle.Store(int64(l.MaxIdle))
	s.rests.closeIdle()
}

// Start begins to accept connections and returns.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.started || s.mu.closing {
		return
	}
	s.mu.started = true
	s.rests.start()
	for i := range s.o.Listeners {
		easeLoopback(s.o.Listeners[i].Listener)
		s.accepts.Go(func() { s.accept(&s.o.Listeners[i]) })
	}
}

func (s *Server) accept(l *Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			if !s.acceptFailed(l, err) {
				return
			}
			continue
		}
		host := hostOf(nc.RemoteAddr())
		if err := s.quota.enter(l, host, s.stop, func() { s.closeIdlest(l) }); err != nil {
			if errors.Is(err, errTooManyFromAddress) {
				s.complaints.add(host, time.Now(), "refused a connection", "listener", l.Name, "client", nc.RemoteAddr().String(), "err", err)
			}
			nc.Close()
			continue
		}
		c := newConn(s, l, nc, host)
		if !s.enter(c) {
			s.quota.leave(l, host)
			nc.Close()
			return
		}
		s.conns.Go(c.serve)
	}
}

// acceptFailed waits a little after an error that may pass (no descriptors are
// left, the client has gone already); false ends the accepting.
func (s *Server) acceptFailed(l *Listener, err error) bool {
	select {
	case <-s.stop:
		return false
	default:
	}
	if errors.Is(err, net.ErrClosed) {
		s.o.Logger.Error("listener was closed", "listener", l.Name)
		return false
	}
	s.complaints.add("accept "+l.Name, time.Now(), "cannot accept a connection", "listener", l.Name, "err", err)
	wait := time.NewTimer(50 * time.Millisecond)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-s.stop:
		return false
	}
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return false
	}
	s.mu.conns[c] = struct{}{}
	return true
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	delete(s.mu.conns, c)
	s.mu.Unlock()
	s.quota.leave(c.listener, c.info.RemoteHost)
}

// closeIdlest makes room for an inter-broker connection: the connection of
// another listener that has been quiet for longest goes.
func (s *Server) closeIdlest(not *Listener) {
	s.mu.Lock()
	var idlest *conn
	for c := range s.mu.conns {
		if c.listener != not && (idlest == nil || c.active.Load() < idlest.active.Load()) {
			idlest = c
		}
	}
	s.mu.Unlock()
	if idlest != nil {
		s.o.Logger.Info("closing a connection to make room for another broker", "client", idlest.info.RemoteAddr)
		idlest.hangUp()
	}
}

// Connections returns how many connections there are.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.conns)
}

// Close stops accepting and reading, lets the requests that are running finish
// until ctx ends, and closes everything. Waiting requests are answered with
// what there is.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.mu.closing {
		s.mu.Unlock()
		return nil
	}
	s.mu.closing = true
	conns := make([]*conn, 0, len(s.mu.conns))
	for c := range s.mu.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	close(s.stop)
	for i := range s.o.Listeners {
		s.o.Listeners[i].Close()
	}
	for _, c := range conns {
		c.stopReading() // the reading goroutine sees s.stop
	}
	s.rests.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.accepts.Wait()
		s.conns.Wait()
	}()
	select {
	case <-done:
		close(s.give)
		return nil
	case <-ctx.Done():
	}
	close(s.give)
	for _, c := range conns {
		c.hangUp()
	}
	<-done
	return ctx.Err()
}

// stopping tells whether Close has begun.
func (s *Server) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

func (s *Server) log() *slog.Logger { return s.o.Logger }

func (s *Server) getRequest(c *conn) *request {
	r, ok := s.requests.Get().(*request)
	if !ok {
		r = &request{s: s}
		r.finish = func(*api.Request) { r.c.finished(r) }
		r.release = func(*api.Request) { r.releaseFrame() }
		r.resume = func(_ *api.Request, f func(*api.Request)) { r.c.later(r, f) }
	}
	r.c = c
	r.Request.Conn = &c.info
	r.Request.Finish, r.Request.Frame, r.Request.Resume = r.finish, r.release, r.resume
	return r
}
