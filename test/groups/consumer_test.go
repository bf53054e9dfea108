package groups

import (
	"testing"

	"barnabas/test/real"
)

// consumerProtocol are the properties that turn the group protocol of KIP-848
// on, with short times.
var consumerProtocol = []string{
	"group.coordinator.rebalance.protocols=classic,consumer", "group.consumer.migration.policy=bidirectional",
	"group.consumer.min.session.timeout.ms=6000", "group.consumer.session.timeout.ms=6000",
	"group.consumer.min.heartbeat.interval.ms=300", "group.consumer.heartbeat.interval.ms=300",
	"group.initial.rebalance.delay.ms=100",
}

// TestMembersOfTheConsumerProtocolShareARecordStream is
// TestMembersShareARecordStream with the protocol of KIP-848.
func TestMembersOfTheConsumerProtocolShareARecordStream(t *testing.T) {
	t.Parallel()
	b := real.Barnabas(t, 1, consumerProtocol...)
	for name, start := range map[string]startMember{
		"java-4.1.0":       consumerMember(),
		"java-4.1.0-range": consumerMember("group.remote.assignor=range"),
		"confluent-kafka":  python("confluent-kafka-consumer"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shareStream(t, b.Addr, name, start)
		})
	}
}
