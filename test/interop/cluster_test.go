package interop

import (
	"testing"

	"barnabas/test/load"
	"barnabas/test/real"
)

// TestScenarioOfTwoBrokers takes clusters of two brokers through the whole
// scenario: Barnabas alone, and Barnabas beside Apache Kafka with either as the
// controller, which is the one that starts first; on Apache ZooKeeper and on the
// embedded one.
func TestScenarioOfTwoBrokers(t *testing.T) {
	ours := func(t *testing.T, zk string, id int) string {
		return real.Barnabas(t, id, "zookeeper.connect="+zk, "inter.broker.protocol.version=2.8",
			"offsets.topic.replication.factor=1", "group.initial.rebalance.delay.ms=0").Addr
	}
	apache := func(version string) func(t *testing.T, zk string, id int) string {
		return func(t *testing.T, zk string, id int) string { return real.Kafka(t, version, id, zk).Addr }
	}
	for _, c := range []struct {
		name, golden  string
		first, second func(t *testing.T, zk string, id int) string
		embedded      bool // in a short run too
	}{
		{"barnabas", "znodes-2.8.2", ours, ours, true},
		{"barnabas-and-kafka-2.8.2", "znodes-2.8.2", ours, apache("2.8.2"), false},
		{"kafka-2.8.2-and-barnabas", "znodes-2.8.2", apache("2.8.2"), ours, false},
		{"barnabas-and-kafka-3.9.1", "znodes-3.9.1", ours, apache("3.9.1"), false},
		{"kafka-3.9.1-and-barnabas", "znodes-3.9.1", apache("3.9.1"), ours, true},
	} {
		scenarioOn := func(t *testing.T, zk string) {
			bootstrap := c.first(t, zk, 1)
			c.second(t, zk, 2)
			runScenario(t, connect(t, zk), bootstrap, c.golden, wholeScenario(t))
		}
		t.Run(c.name, func(t *testing.T) { scenarioOn(t, real.ZooKeeper(t)) })
		if c.embedded || load.Soak() {
			t.Run(c.name+"-embedded", func(t *testing.T) { scenarioOn(t, startKeeper(t)) })
		}
	}
}
