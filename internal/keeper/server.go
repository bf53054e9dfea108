package keeper

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/vfs"
)

// ErrClosed says that the Server was closed.
var ErrClosed = errors.New("keeper: closed")

// Options of a Server. The zero value of each field but Dir has a default.
type Options struct {
	Dir                  string        // of the store; "": nothing is kept (for tests)
	TickTime             time.Duration // 2 s
	MinSessionTimeout    time.Duration // 2 ticks
	MaxSessionTimeout    time.Duration // 20 ticks
	MaxClientConnections int           // of one address; 0: no limit
	MaxConnections       int           // from outside the process (maxCnxns); 0: no limit
	MaxBuffer            int           // bytes of a frame (jute.maxbuffer); 4 MiB, as Kafka's clients set it
	HandshakeTimeout     time.Duration // 10 s for the first frame
	Words                []string      // four-letter words that are served (4lw.commands.whitelist), "*" all; ruok, srvr, mntr, isro
	SuperDigest          string        // "user:hash" of who may do everything (DigestAuthenticationProvider.superDigest); "": nobody
	NoTTLNodes           bool          // refuse them, as ZooKeeper does unless extendedTypesEnabled is set
	EnforceQuota         bool          // hard limits are enforced (enforceQuota)
	ContainerInterval    time.Duration // between two looks for containers to delete (znode.container.checkIntervalMs); 1 min
	ContainersPerMinute  int           // deletions at most (znode.container.maxPerMinute); 10,000
	ContainerNeverUsed   time.Duration // a container that never had a child goes after this (znode.container.maxNeverUsedIntervalMs); 0: never
	Logger               *slog.Logger

	fs    vfs.FS // where Dir is
	store store  // a test's own
}

// dataDir is where ZooKeeper would say that its data is.
func (o Options) dataDir() string {
	if o.Dir == "" {
		return "<memory>"
	}
	dir := filepath.Join(o.Dir, dataFolder)
	if absolute, err := filepath.Abs(dir); err == nil {
		return absolute
	}
	return dir
}

func (o Options) containers() containerPolicy {
	return containerPolicy{every: o.ContainerInterval, neverUsed: o.ContainerNeverUsed,
		perLook: max(1, int(float64(o.ContainersPerMinute)*o.ContainerInterval.Minutes()))}
}

func (o Options) withDefaults() (Options, error) {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.TickTime, 2*time.Second)
	set(&o.MinSessionTimeout, 2*o.TickTime)
	set(&o.MaxSessionTimeout, 20*o.TickTime)
	set(&o.HandshakeTimeout, 10*time.Second)
	set(&o.ContainerInterval, time.Minute)
	if o.ContainersPerMinute == 0 {
		o.ContainersPerMinute = 10_000
	}
	if o.fs == nil {
		o.fs = vfs.OS
	}
	if o.MaxBuffer == 0 {
		o.MaxBuffer = 4 << 20
	}
	if o.Words == nil {
		o.Words = defaultWords
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.TickTime < time.Millisecond || o.MinSessionTimeout < time.Millisecond || o.MinSessionTimeout > o.MaxSessionTimeout || o.MaxBuffer < 64 || o.MaxClientConnections < 0 || o.MaxConnections < 0 {
		return o, fmt.Errorf("keeper: options: tick %v, session timeouts %v to %v, buffer %d, connections %d and %d",
			o.TickTime, o.MinSessionTimeout, o.MaxSessionTimeout, o.MaxBuffer, o.MaxClientConnections, o.MaxConnections)
	}
	return o, nil
}

// Server is an embedded ZooKeeper server. Its methods may be called from any
// goroutine.
type Server struct {
	o       Options
	store   store
	started time.Time
	done    chan struct{} // closed by Close
	work    chan struct{} // there are pending writes; capacity 1
	timer   chan struct{} // sessions came: the expirer must look again; capacity 1
	taking  atomic.Bool   // a snapshot is being taken
	full    bool          // the last commit was refused; of commitLoop
	wg      sync.WaitGroup

	polling sync.Once
	pollers []*poller     // set by polling
	turn    atomic.Uint32 // whose the next connection is

	// mu guards the core and with it all output buffers, the listeners and the
	// connections. Nothing is read, written or committed while it is held.
	mu struct {
		sync.Mutex
		core      *core
		listeners map[net.Listener]bool // true: TLS
		conns     map[*conn]struct{}
		byClient  map[*client]*conn
		closed    bool
	}
}

// Open loads the store, or makes it, and starts the server. It listens to
// nobody before Serve or Dial.
func Open(o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, store: o.store, started: time.Now(), done: make(chan struct{}), work: make(chan struct{}, 1), timer: make(chan struct{}, 1)}
	switch {
	case s.store != nil:
	case o.Dir == "":
		s.store = memoryStore{}
	default:
		if s.store, err = openFiles(o.fs, o.Dir, o.Logger); err != nil {
			return nil, err
		}
	}
	img, err := s.store.load()
	if err == nil {
		seed := make([]byte, 32)
		_, _ = rand.Read(seed) // never fails
		s.mu.core = newCore(img, seed, o, s.started)
	}
	if err != nil {
		return nil, errors.Join(err, s.store.close())
	}
	s.mu.listeners, s.mu.conns, s.mu.byClient = map[net.Listener]bool{}, map[*conn]struct{}{}, map[*client]*conn{}
	s.wg.Go(s.commitLoop)
	s.wg.Go(s.expireLoop)
	s.wg.Go(s.containerLoop)
	return s, nil
}

// Serve accepts connections until the listener or the server is closed. It
// returns nil when the server was closed, and closes the listener.
func (s *Server) Serve(l net.Listener) error { return s.serve(l, false) }

// ServeTLS is Serve for clients that speak TLS.
func (s *Server) ServeTLS(l net.Listener, c *tls.Config) error {
	return s.serve(tls.NewListener(l, c), true)
}

func (s *Server) serve(l net.Listener, secure bool) error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return errors.Join(ErrClosed, l.Close())
	}
	s.mu.listeners[l] = secure
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.mu.listeners, l)
		s.mu.Unlock()
	}()
	for {
		nc, err := l.Accept()
		if err != nil {
			select {
			case <-s.done:
				return nil
			default:
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			s.o.Logger.Warn("keeper: accept failed", "err", err)
			select { // out of descriptors, perhaps: do not spin
			case <-s.done:
				return nil
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		if err := s.attach(nc); err != nil {
			s.o.Logger.Warn("keeper: connection refused", "from", nc.RemoteAddr(), "err", err)
			_ = nc.Close()
		}
	}
}

// Dial returns a connection to the server inside this process.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	if err := s.attach(far); err != nil {
		return nil, errors.Join(err, near.Close(), far.Close())
	}
	return near, nil
}

// attach makes a connection of nc and starts it.
func (s *Server) attach(nc net.Conn) error {
	addr, peer := "127.0.0.1", "127.0.0.1:0" // inside the process
	outside, _ := nc.RemoteAddr().(*net.TCPAddr)
	if outside != nil {
		addr, peer = outside.IP.String(), outside.String()
	}
	c := &conn{s: s, nc: nc, addr: addr}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return ErrClosed
	}
	if n := len(s.mu.conns); outside != nil && s.o.MaxConnections > 0 && n >= s.o.MaxConnections {
		s.mu.core.stats.rejected++
		return fmt.Errorf("keeper: too many connections: %d", n)
	}
	if s.o.MaxClientConnections > 0 {
		n := 0
		for other := range s.mu.conns {
			if other.addr == addr {
				n++
			}
		}
		if n >= s.o.MaxClientConnections {
			s.mu.core.stats.rejected++
			return fmt.Errorf("keeper: too many connections from %s: %d", addr, n)
		}
	}
	c.client = s.mu.core.connected(addr, peer, time.Now())
	s.mu.conns[c] = struct{}{}
	s.mu.byClient[c.client] = c
	s.wg.Go(c.begin)
	return nil
}

// detach forgets a connection.
func (s *Server) detach(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detachLocked(c)
}

func (s *Server) detachLocked(c *conn) {
	s.mu.core.disconnected(c.client)
	delete(s.mu.conns, c)
	delete(s.mu.byClient, c.client)
}

// step runs f on the core, sends what came of it and wakes whoever else has
// something to do then.
func (s *Server) step(f func(*core, time.Time)) {
	var out outputs
	s.decide(f, &out)
	out.send()
}

func (s *Server) decide(f func(*core, time.Time), out *outputs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.core
	f(c, time.Now()) // within the lock: times never run backwards
	for _, cl := range c.dirty {
		cl.dirty = false
		if conn := s.mu.byClient[cl]; conn != nil {
			if cl.closed && conn.nc != nil { // nobody waits long for a last answer to be read
				_ = conn.nc.SetWriteDeadline(time.Now().Add(s.o.HandshakeTimeout))
			}
			if !out.addLocked(conn) {
				conn.wakeLocked()
			}
			if cl.outstanding == 0 || cl.outstanding < maxOutstanding/2 && cl.bytes < maxUnanswered/2 {
				notify(conn.room)
			}
		}
	}
	c.dirty = c.dirty[:0]
	for _, n := range c.notes {
		s.o.Logger.Warn(n.text, "path", n.path, "what", n.what, "would be", n.have, "limit", n.limit, "refused", n.hard)
	}
	c.notes = c.notes[:0]
	if len(c.pending) > 0 && c.flying == nil {
		notify(s.work)
	}
}

// notify leaves a token that wakes the owner of a channel of capacity 1.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// commitLoop is the one goroutine that commits: it takes everything that was
// prepared while the last commit was under way, so that N writes in a row cost
// far less than N commits.
func (s *Server) commitLoop() {
	for {
		select {
		case <-s.done:
			return
		case <-s.work:
		}
		for s.commitOnce() {
		}
	}
}

func (s *Server) commitOnce() bool {
	s.mu.Lock()
	b := s.mu.core.takeBatch()
	s.mu.Unlock()
	if b == nil {
		return false
	}
	var err error
	if b.durable {
		err = s.store.commit(b)
	}
	s.step(func(c *core, now time.Time) {
		switch {
		case err == nil:
			c.committed(b, now)
		case errors.Is(err, errNotWritten):
			c.commitRefused(b, now)
		default:
			c.commitFailed(b, now)
		}
	})
	switch refused := errors.Is(err, errNotWritten); {
	case err == nil && s.full && b.durable:
		s.full = false
		s.o.Logger.Info("keeper: the store can be written again")
	case refused && !s.full:
		s.full = true
		s.o.Logger.Error("keeper: the store can't be written; writes are refused with SystemError until it can", "err", err)
	case err != nil && !refused:
		s.o.Logger.Error("keeper: the store can't be written; writes are refused from now on", "err", err, "lost", len(b.txns))
	}
	if err == nil && b.durable && s.store.due() {
		s.startSnapshot()
	}
	return true
}

// recordsAtOnce is how many records of a snapshot are collected under the lock:
// some tens of microseconds.
const recordsAtOnce = 256

// startSnapshot starts one unless one is being taken or the server is closing.
func (s *Server) startSnapshot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.closed && s.taking.CompareAndSwap(false, true) {
		s.wg.Go(s.takeSnapshot)
	}
}

// takeSnapshot writes a snapshot beside what else goes on.
func (s *Server) takeSnapshot() {
	defer s.taking.Store(false)
	s.mu.Lock()
	snap := s.mu.core.beginSnapshot()
	tree := s.mu.core.tree
	s.mu.Unlock()
	w, err := s.store.snapshot(snap)
	records := make([]*record, 0, recordsAtOnce)
	for err == nil {
		select {
		case <-s.done:
			err = ErrClosed
			continue
		default:
		}
		s.mu.Lock()
		records = tree.take(recordsAtOnce, records[:0])
		s.mu.Unlock()
		if len(records) == 0 {
			break
		}
		err = w.write(records)
	}
	s.mu.Lock()
	tree.endSnapshot()
	s.mu.Unlock()
	switch {
	case w == nil:
	case err == nil:
		err = w.finish()
	default:
		w.drop()
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		s.o.Logger.Warn("keeper: no snapshot could be taken; the logs grow until one can", "err", err)
	}
}

// containerLoop ends containers and nodes whose time to live is over.
func (s *Server) containerLoop() {
	tick := time.NewTicker(s.o.ContainerInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
			s.step((*core).perish)
		}
	}
}

// expireLoop ends sessions whose time is up.
func (s *Server) expireLoop() {
	for {
		s.mu.Lock()
		d, ok := s.mu.core.expiry.wait(time.Now())
		s.mu.Unlock()
		var tick <-chan time.Time
		if ok {
			tick = time.After(max(d, time.Millisecond))
		}
		select {
		case <-s.done:
			return
		case <-s.timer:
		case <-tick:
			s.step((*core).expire)
		}
	}
}

// Close stops the server: what was prepared is committed, connections are
// closed, sessions stay in the store. It returns when all is done.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return nil
	}
	s.mu.closed = true
	close(s.done)
	for l := range s.mu.listeners {
		_ = l.Close()
	}
	conns := make([]net.Conn, 0, len(s.mu.conns))
	for c := range s.mu.conns {
		if c.nc != nil {
			conns = append(conns, c.nc)
		} else {
			c.ends = true
			c.wakeLocked()
		}
	}
	s.mu.Unlock()
	for _, nc := range conns {
		_ = nc.Close()
	}
	s.wg.Wait()
	for _, p := range s.pollers {
		p.Close()
	}
	for s.commitOnce() {
	}
	return s.store.close()
}
