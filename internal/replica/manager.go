package replica

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

// Options are the arguments of [NewManager]. All fields without "optional" are
// needed.
type Options struct {
	BrokerID int32
	Storage  *storage.Manager
	// Topic resolves a topic's configuration when its log is made and when the
	// defaults have changed; nil, for one that is not known, has no log made. It is
	// called under Manager.mu. Optional: the broker's defaults, which do not change.
	Topic func(name string) *config.Topic
	// BrokerEpoch returns this broker's epoch, the czxid of its registration; a
	// controller's request with an older one is meant for an earlier life of
	// this broker. Optional: unchecked.
	BrokerEpoch func() int64
	// LagTime is replica.lag.time.max.ms; optional: 30 s.
	LagTime func() time.Duration
	// RoleChanged is told of each change of a partition's role or leader epoch,
	// in order. It is called under Manager.mu: it must be quick, must not block
	// and must call nothing of Manager. Optional.
	RoleChanged func(p *Partition)
	Now         func() time.Time // optional
	Logger      *slog.Logger     // optional
	// Cluster is the way to other brokers; optional: without it nothing is
	// copied and no ISR changes.
	Cluster *Cluster
}

// Manager is the partitions of this broker.
type Manager struct {
	o          Options
	table      *table
	controller atomic.Int32 // highest controller epoch seen

	leaving atomic.Bool // see Leave

	cluster  *Cluster // nil: alone
	fetchers *fetchers
	isr      *isrChanges
	// leading and following bound the traffic of throttled replicas; nil: alone.
	leading, following *throttle
	ctx                context.Context // ends with Close
	cancel             context.CancelFunc
	work               sync.WaitGroup // fetchers and what watches ISRs

	mu struct {
		sync.Mutex // orders the controller's requests, guards changes of the table
	}
}

// NewManager returns a Manager without partitions: the controller names them.
func NewManager(o Options) *Manager {
	if o.LagTime == nil {
		o.LagTime = func() time.Duration { return 30 * time.Second }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	m := &Manager{o: o, table: newTable()}
	m.startReplication()
	return m
}

// Leave tells that the broker is about to stop: what it loses the leadership of,
// and is out of sync of, it does not copy any more. A leader would take it back
// into the ISR, and acknowledge nothing until it is out again.
func (m *Manager) Leave() { m.leaving.Store(true) }

// FetchersChanged spreads what is copied over another number of fetchers, when
// num.replica.fetchers has changed.
func (m *Manager) FetchersChanged() {
	for _, p := range m.table.all() {
		m.copy(p)
	}
}

func (m *Manager) roleChanged(p *Partition) {
	m.copy(p)
	if m.o.RoleChanged != nil {
		m.o.RoleChanged(p)
	}
}

// Topic returns the partitions of a topic, or nil. It takes no lock and keeps
// no reference to name.
func (m *Manager) Topic(name []byte) *Topic { return m.table.topic(name) }

// TopicByID returns the partitions of the topic with this id, or nil.
func (m *Manager) TopicByID(id wire.UUID) *Topic { return m.table.topicByID(id) }

// Partition returns a partition that this broker has, or nil.
func (m *Manager) Partition(tp wire.TopicPartition) *Partition {
	if t := m.table.topic([]byte(tp.Topic)); t != nil {
		return t.Partition(tp.Partition)
	}
	return nil
}

// Partitions returns all partitions, in no order.
func (m *Manager) Partitions() []*Partition { return m.table.all() }

// ControllerEpoch returns the highest epoch of a controller seen, 0 for none.
func (m *Manager) ControllerEpoch() int32 { return m.controller.Load() }

// CheckController judges who a controller's request (LeaderAndIsr, StopReplica,
// UpdateMetadata) is from and for, and remembers the controller's epoch:
// STALE_CONTROLLER_EPOCH if a later controller has spoken, STALE_BROKER_EPOCH
// if it means an earlier life of this broker (-1 is unchecked).
func (m *Manager) CheckController(controllerEpoch int32, brokerEpoch int64) wire.Code {
	if m.o.BrokerEpoch != nil && brokerEpoch != -1 && brokerEpoch < m.o.BrokerEpoch() {
		return wire.StaleBrokerEpoch
	}
	for {
		seen := m.controller.Load()
		if controllerEpoch < seen {
			return wire.StaleControllerEpoch
		}
		if controllerEpoch == seen || m.controller.CompareAndSwap(seen, controllerEpoch) {
			return wire.None
		}
	}
}

// DirFailed takes the partitions of a log directory offline.
func (m *Manager) DirFailed(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.table.all() {
		if p.log != nil && p.log.Dir() == dir {
			p.end(Offline)
		}
	}
}

// SetTopicConfig gives the logs of a topic another configuration.
func (m *Manager) SetTopicConfig(topic string, c *config.Topic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.table.topic([]byte(topic))
	if t == nil {
		return
	}
	parts := *t.partitions.Load()
	for i := range parts {
		if p := parts[i].Load(); p != nil && p.log != nil {
			p.configure(c)
		}
	}
}

// DefaultsChanged gives every log the configuration that Options.Topic resolves
// now. A log that is being made meanwhile is waited for: it may have been
// resolved before.
func (m *Manager) DefaultsChanged() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.o.Storage.Logs() {
		c := m.o.Topic(l.Partition().Topic)
		p := m.Partition(l.Partition())
		switch {
		case c == nil: // it keeps what it has
		case p != nil && p.log == l:
			p.configure(c)
		default: // the controller has not named it
			l.SetConfig(c)
		}
	}
}

// configure gives the log another configuration. Callers hold Manager.mu.
func (p *Partition) configure(c *config.Topic) {
	p.log.SetConfig(c)
	p.mu.Lock()
	p.mu.isr.min = c.MinInsyncReplicas
	p.mu.Unlock()
	p.changed()
}

// Close ends every wait: the partitions are gone for whoever still asks. Nothing
// is copied any more when it returns.
func (m *Manager) Close() {
	m.cancel()
	m.work.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.table.all() {
		p.end(Offline)
	}
}
