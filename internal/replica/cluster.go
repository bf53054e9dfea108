package replica

import (
	"context"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/peer"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cluster is what replication needs of the rest of the cluster.
type Cluster struct {
	IBP    config.IBP
	Config *config.Dynamic
	// Address returns host:port of a live broker's inter-broker listener.
	Address func(broker int32) (string, bool)
	// Alive tells whether a broker is registered.
	Alive    func(broker int32) bool
	Dialer   peer.Dialer
	ClientID string
	// AlterPartition asks the active controller for other ISRs: build makes the
	// request in the version that it serves, at most most.
	AlterPartition func(ctx context.Context, most int16, build func(version int16) *kmsg.AlterPartitionRequest) (*kmsg.AlterPartitionResponse, error)
	// ZooKeeper is where leaders below inter-broker protocol version 2.7-IV2
	// write their ISRs.
	ZooKeeper *zookeeper.Client
}

// startReplication begins what runs beside requests: it needs Options.Cluster.
func (m *Manager) startReplication() {
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.cluster = m.o.Cluster
	if m.cluster == nil {
		return
	}
	m.leading = newThrottle("leader.replication.throttled.rate", m.cluster.Config)
	m.following = newThrottle("follower.replication.throttled.rate", m.cluster.Config)
	m.fetchers = newFetchers(m)
	m.isr = newISRChanges(m)
	m.work.Go(func() { m.isr.run(m.ctx) })
	m.work.Go(func() { m.watchISRs(m.ctx) })
}

// watchISRs looks at every half of replica.lag.time.max.ms for followers that
// have fallen behind.
func (m *Manager) watchISRs(ctx context.Context) {
	for {
		timer := time.NewTimer(max(m.o.LagTime()/2, time.Millisecond))
		select {
		case <-timer.C:
			m.BrokersChanged() // as time, too, changes whom it waits for
			for _, p := range m.table.all() {
				p.checkISR()
			}
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// BrokersChanged tells that other brokers than before are alive: high watermarks
// do not wait for the dead ones, and who has caught up already joins the ISR.
func (m *Manager) BrokersChanged() {
	for _, p := range m.table.all() {
		if v := p.view.Load(); v.Role == Leader && !v.solo {
			p.advance(p.log.CommitEnd(), 0)
			p.expandISR()
		}
	}
}

func (m *Manager) brokerEpoch() int64 {
	if m.o.BrokerEpoch == nil {
		return -1
	}
	return m.o.BrokerEpoch()
}

// copy has a partition copied from its leader, or not any more.
func (m *Manager) copy(p *Partition) {
	if m.fetchers != nil {
		m.fetchers.update(p)
	}
}
