package core

import (
	"fmt"

	"barnabas/internal/wire"
)

// controlledShutdown moves leadership away from a broker that is about to stop
// and takes its replicas out of the ISRs (KafkaController.doControlledShutdown).
func (m *Machine) controlledShutdown(call uint64, r ControlledShutdown) {
	b := m.brokers[r.Broker]
	switch {
	case b == nil:
		m.reply(call, ShutdownResult{Refusal: Refusal{wire.BrokerNotAvailable, fmt.Sprintf("Broker id %d does not exist.", r.Broker)}})
		return
	case r.Epoch != -1 && r.Epoch < b.epoch:
		m.reply(call, ShutdownResult{Refusal: Refusal{wire.StaleBrokerEpoch,
			fmt.Sprintf("Stale broker epoch %d: the broker is registered with %d.", r.Epoch, b.epoch)}})
		return
	}
	b.shuttingDown = true
	var led []*partition
	var followed []replica
	for _, p := range inOrder(m.onBroker[b.id]) {
		switch {
		case len(p.replicas) < 2 || !p.led || p.topic.deletion:
		case p.lead.Leader == b.id:
			led = append(led, p)
		default:
			followed = append(followed, replica{p, b.id})
		}
	}
	m.infof("broker %d is shutting down: it leads %d partitions and follows %d", b.id, len(led), len(followed))
	m.partitionsOnline(led, electShutdown, func([]*partition) {
		m.replicasOffline(followed, func() {
			result := ShutdownResult{Remaining: []wire.TopicPartition{}}
			for _, p := range led {
				if p.lead.Leader == b.id {
					result.Remaining = append(result.Remaining, p.tp())
				}
			}
			m.reply(call, result)
		})
	})
}
