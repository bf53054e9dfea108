package groups

import (
	"strings"
	"testing"

	"barnabas/test/raw"
	"barnabas/test/real"
)

// TestMembersSubscribeByRegularExpressions has the coordinator find out which
// topics Java's SubscriptionPattern matches, also those that come later, in a
// group with a member that names its topic; what it stores Kafka's tool can read.
func TestMembersSubscribeByRegularExpressions(t *testing.T) {
	t.Parallel()
	b := real.Barnabas(t, 1, append([]string{"offsets.topic.num.partitions=1"}, consumerProtocol...)...)
	const group = "patterns"
	for _, topic := range []string{"orders-1", "orders-2", "old-orders-1"} {
		raw.CreateTopic(t, b.Addr, topic, 2)
	}
	produce(t, b.Addr, "old-orders-1", 0, 100) // matched in part only: nobody reads it
	produce(t, b.Addr, "orders-1", 100, 200)
	pattern := func(expression string) member { return consumerMember()(t, b.Addr, group, "/"+expression) }
	first := pattern(`orders-\d+|(?i)LATE[a-z]{2}`)
	outputs := []func() string{first.output}
	read := func(from, to int) {
		t.Helper()
		real.Until(t, patience, "every record to be read", func() bool { return missing(outputs, to) == from })
	}
	for _, topic := range []string{"orders-1", "orders-2"} {
		settled(t, b.Addr, group, topic, 1, 2)
	}
	read(100, 200)
	if s := share(t, b.Addr, group, "old-orders-1"); len(s.owners) != 0 {
		t.Errorf("a topic that is not matched is read by %v", s.owners)
	}

	raw.CreateTopic(t, b.Addr, "latest", 4)
	raw.CreateTopic(t, b.Addr, "earlier", 1)
	produce(t, b.Addr, "latest", 200, 300)
	settled(t, b.Addr, group, "latest", 1, 4)
	read(100, 300)

	named := consumerMember()(t, b.Addr, group, "latest")
	outputs = append(outputs, named.output)
	for topic, partitions := range map[string]int32{"orders-1": 2, "orders-2": 2, "latest": 4} {
		settled(t, b.Addr, group, topic, 2, partitions)
	}
	produce(t, b.Addr, "latest", 300, 400)
	produce(t, b.Addr, "orders-2", 400, 500)
	read(100, 500)

	first.kill()
	settled(t, b.Addr, group, "latest", 1, 4)
	real.Until(t, patience, "the other topics to be without owners", func() bool { return len(share(t, b.Addr, group, "orders-1").owners) == 0 })
	second := pattern("ear.*")
	outputs = append(outputs, second.output)
	settled(t, b.Addr, group, "earlier", 2, 1)
	bad := pattern("(orders")
	real.Until(t, patience, "an invalid expression to be refused", func() bool {
		return strings.Contains(bad.output(), "InvalidRegularExpression")
	})

	b.Kill()
	b.Restart(t)
	produce(t, b.Addr, "earlier", 500, 600)
	settled(t, b.Addr, group, "earlier", 2, 1)
	read(100, 600)
	second.leave()
	named.leave()
	real.Until(t, patience, "the group to be empty", func() bool { return share(t, b.Addr, group, "latest").state == "Empty" })
	b.Stop()
	dumped(t, b.Dir, "3", "4", "5", "6", "7", "8", "16")
}
