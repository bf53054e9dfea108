package groups

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestGroupsMoveBetweenTheProtocols has classic members and one of the consumer
// protocol share a group, in either order, until only the others are left. What
// was stored for it Kafka's own tools can read.
func TestGroupsMoveBetweenTheProtocols(t *testing.T) {
	t.Parallel()
	const partitions = 6
	b := real.Barnabas(t, 1, append([]string{"offsets.topic.num.partitions=1"}, consumerProtocol...)...)
	topic, group := raw.NewTopic(t, b.Addr, partitions), "moves"
	var outputs []func() string
	records := 0
	start := func(m startMember) member {
		t.Helper()
		one := m(t, b.Addr, group, topic)
		outputs = append(outputs, one.output)
		return one
	}
	shares := func(kind string, members int) {
		t.Helper()
		produce(t, b.Addr, topic, records, records+100)
		records += 100
		settled(t, b.Addr, group, topic, members, partitions)
		real.Until(t, patience, "every record to be read", func() bool { return missing(outputs, records) == 0 })
		if got := groupType(t, b.Addr, group); got != kind {
			t.Errorf("with %d members the group is %s, want %s", members, got, kind)
		}
	}
	classic, consumer := javaMember("3.9.1"), consumerMember()
	first := start(classic)
	shares("classic", 1)
	second := start(consumer)
	shares("consumer", 2)
	sticky := start(javaMember("3.9.1", "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor,org.apache.kafka.clients.consumer.RangeAssignor"))
	shares("consumer", 3)
	first.leave()
	shares("consumer", 2)
	second.kill()
	shares("classic", 1)
	third := start(consumer)
	shares("consumer", 2)
	sticky.kill()
	shares("consumer", 1)
	out := real.Run(t, patience, consumerGroups(t, "4.1.0", b.Addr, "--describe", "--group", group, "--members", "--verbose"))
	if !strings.Contains(out, topic+":0,1,2,3,4,5") || !strings.Contains(out, "consumer") {
		t.Errorf("described by Kafka's tool as\n%s", out)
	}
	for _, what := range []string{"--offsets", "--state", "--members"} {
		args := []string{"--describe", "--group", group, what}
		theirs := real.Run(t, patience, consumerGroups(t, "3.9.1", b.Addr, args...))
		ours := real.Run(t, patience, exec.Command(real.Binary(t), append([]string{"consumer-groups", "--bootstrap-server", b.Addr}, args...)...))
		if plain(ours) != plain(theirs) {
			t.Errorf("%s: Kafka's script says\n%s\nours\n%s", what, theirs, ours)
		}
	}
	third.leave()
	real.Until(t, patience, "the group to be empty", func() bool { return share(t, b.Addr, group, topic).state == "Empty" })
	b.Stop()
	dumped(t, b.Dir, "1", "2", "3", "4", "5", "6", "7", "8")
}

// groupType is what ListGroups tells.
func groupType(t *testing.T, addr, group string) string {
	t.Helper()
	r := kmsg.NewPtrListGroupsRequest()
	r.Version = 5
	for _, g := range raw.Ask[*kmsg.ListGroupsResponse](t, addr, r).Groups {
		if g.Group == group {
			return g.GroupType
		}
	}
	return ""
}

// dumped has Apache Kafka 4.1.0 decode every record of __consumer_offsets; kinds
// must be among them.
func dumped(t *testing.T, dir string, kinds ...string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "__consumer_offsets-0", "*.log"))
	if err != nil || len(segments) == 0 {
		t.Fatal(err, "no segment")
	}
	if info, err := os.Stat(segments[0]); err != nil || info.Size() == 0 {
		t.Fatal(err, "nothing was stored")
	}
	out := real.Run(t, patience, real.Java(t, "4.1.0", "kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", segments[0]))
	seen := map[string]bool{}
	for line := range strings.SplitSeq(out, "\n") {
		if _, key, ok := strings.Cut(line, `key: {"type":"`); ok {
			kind, _, _ := strings.Cut(key, `"`)
			seen[kind] = true
		} else if strings.HasPrefix(line, "|") {
			t.Errorf("not decoded: %s", line)
		}
	}
	for _, kind := range kinds {
		if !seen[kind] {
			t.Errorf("no record of kind %s was decoded, of those of %v:\n%.3000s", kind, seen, out)
		}
	}
}

// TestConsumerProtocolWaitsForEveryBrokerToBeBarnabas: its records would harm
// Apache Kafka's coordinators.
func TestConsumerProtocolWaitsForEveryBrokerToBeBarnabas(t *testing.T) {
	t.Parallel()
	join := func(addr string) int16 {
		r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		r.Group, r.MemberID, r.RebalanceTimeoutMillis, r.SubscribedTopicNames = "g", "m", 10000, []string{"t"}
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		return raw.Ask[*kmsg.ConsumerGroupHeartbeatResponse](t, addr, r).ErrorCode
	}
	off := real.Barnabas(t, 1)
	if code := join(off.Addr); code != 35 {
		t.Errorf("without the setting: error %d, want 35", code)
	}
	zk := real.ZooKeeper(t)
	b := real.Barnabas(t, 1, append([]string{"zookeeper.connect=" + zk, "offsets.topic.replication.factor=1"}, consumerProtocol...)...)
	raw.Coordinated(t, b.Addr, "g")
	if code := join(b.Addr); code != 0 {
		t.Errorf("alone: error %d", code)
	}
	k := real.Kafka(t, "3.9.1", 2, zk, "inter.broker.protocol.version=3.9")
	real.Until(t, patience, "the protocol to be off", func() bool { return join(b.Addr) == 35 })
	k.Stop()
	real.Until(t, patience, "the protocol to be on again", func() bool { return join(b.Addr) == 0 })
}
