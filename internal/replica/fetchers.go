package replica

import (
	"context"
	"slices"
	"sync"

	"barnabas/internal/config"
	"barnabas/internal/peer"
)

// fetchers copies the partitions that other brokers lead: num.replica.fetchers
// fetchers a leader, each with one connection and one fetch session.
type fetchers struct {
	m *Manager

	mu struct {
		sync.Mutex
		all   map[fetcherKey]*fetcher
		where map[*Partition]*fetcher
	}
}

type fetcherKey struct {
	leader int32
	n      int
}

func newFetchers(m *Manager) *fetchers {
	s := &fetchers{m: m}
	s.mu.all = map[fetcherKey]*fetcher{}
	s.mu.where = map[*Partition]*fetcher{}
	return s
}

// update follows a partition's role: it is copied from its leader, or not at
// all. It does not wait: what an earlier role or fetcher still does is refused by
// the partition itself.
func (s *fetchers) update(p *Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, old := p.view.Load(), s.mu.where[p]
	leaves := s.m.leaving.Load() && !slices.Contains(v.ISR, s.m.o.BrokerID)
	if v.Role != Follower || v.LeaderID < 0 || leaves {
		if old != nil {
			delete(s.mu.where, p)
			old.changeLocked(p, nil)
		}
		return
	}
	key := fetcherKey{v.LeaderID, fetcherOf(p, s.count())}
	f := s.mu.all[key]
	if f == nil {
		f = s.startLocked(key)
	}
	if old != nil && old != f {
		old.changeLocked(p, nil)
	}
	s.mu.where[p] = f
	f.changeLocked(p, v)
}

func (s *fetchers) count() int { return max(1, s.m.cluster.Config.Load().Int("num.replica.fetchers")) }

// fetcherOf spreads partitions as Kafka does (AbstractFetcherManager.getFetcherId).
func fetcherOf(p *Partition, count int) int {
	h := int32(0)
	for _, c := range p.Topic { // topic names are ASCII
		h = 31*h + c
	}
	h = 31*h + p.Index
	if h == -1<<31 {
		h = 0
	}
	return int(max(h, -h)) % count
}

func (s *fetchers) startLocked(key fetcherKey) *fetcher {
	o := s.m.cluster
	c := o.Config.Load()
	f := &fetcher{
		all: s, m: s.m, key: key, wake: make(chan struct{}, 1),
		conn: peer.New(peer.Options{
			Address:  func() (string, bool) { return o.Address(key.leader) },
			ClientID: o.ClientID, Timeout: c.Duration("replica.socket.timeout.ms"), MaxPause: c.Duration("replica.fetch.backoff.ms"),
			MaxAnswer: maxAnswer(c), Dialer: o.Dialer,
		}),
		topics:  map[string]*followedTopic{},
		onFetch: o.IBP >= config.V2_7IV1,
		ids:     map[[16]byte]*followedTopic{},
	}
	f.pending = map[*Partition]*View{}
	s.mu.all[key] = f
	s.m.work.Go(func() { f.run(s.m.ctx) })
	return f
}

// maxAnswer bounds an answer: Kafka's leaders keep to the limit of the request
// but for a first batch that is larger, which message.max.bytes of its topic
// bounds, and the parts around the records.
func maxAnswer(c *config.Broker) int {
	return max(100<<20, 2*c.Int("replica.fetch.response.max.bytes"))
}

// leave ends a fetcher that has nothing to copy; false if something came.
func (s *fetchers) leave(f *fetcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(f.pending) > 0 {
		return false
	}
	delete(s.mu.all, f.key)
	return true
}

// takeChanges returns the changes since the last call.
func (s *fetchers) takeChanges(f *fetcher) map[*Partition]*View {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(f.pending) == 0 {
		return nil
	}
	changes := f.pending
	f.pending = map[*Partition]*View{}
	return changes
}

// begin makes a context for one fetch, which a change may end early.
func (s *fetchers) begin(ctx context.Context, f *fetcher) (context.Context, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(f.pending) > 0 {
		return nil, false
	}
	ctx, f.interrupt = context.WithCancel(ctx)
	f.interrupted = false
	return ctx, true
}

func (s *fetchers) end(f *fetcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.interrupt()
	f.interrupt = nil
}
