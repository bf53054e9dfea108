package groups

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestAStaticMemberComesBackToItsPartitions restarts one of two static members:
// it has what it had, and the other one hears of no rebalance. A second process
// with its instance id takes its place.
func TestAStaticMemberComesBackToItsPartitions(t *testing.T) {
	t.Parallel()
	b := real.Barnabas(t, 1, "group.initial.rebalance.delay.ms=100")
	topic, group := raw.NewTopic(t, b.Addr, 4), "static"
	static := func(version, instance string) member {
		return javaMember(version, "group.instance.id="+instance, "session.timeout.ms=1800000")(t, b.Addr, group, topic)
	}
	one, other := static("2.8.2", "one"), static("3.9.1", "other")
	outputs := []func() string{one.output, other.output}
	records := 0
	more := func(what string) {
		t.Helper()
		produce(t, b.Addr, topic, records, records+100)
		records += 100
		settled(t, b.Addr, group, topic, 2, 4)
		real.Until(t, patience, "every record to be read "+what, func() bool { return missing(outputs, records) == 0 })
	}
	assigned := func() map[string]string {
		by := map[string]string{}
		for _, m := range describe(t, b.Addr, group).Members {
			by[*m.InstanceID] = string(m.MemberAssignment)
		}
		return by
	}
	more("at first")
	before, joins := assigned(), strings.Count(other.output(), "Successfully joined group")
	if joins == 0 {
		t.Errorf("the other member says nothing of having joined")
	}
	one.leave()
	one = static("2.8.2", "one")
	outputs = append(outputs, one.output)
	more("after a restart")
	if after := assigned(); !maps.Equal(before, after) {
		t.Errorf("assigned were %q, are %q", before, after)
	}
	outputs = append(outputs, static("2.8.2", "one").output)
	real.Until(t, patience, "the first process to be fenced", func() bool { return strings.Contains(one.output(), "FencedInstanceId") })
	more("by the second process")
	if after := assigned(); !maps.Equal(before, after) {
		t.Errorf("assigned were %q, are %q", before, after)
	}
	if n := strings.Count(other.output(), "Successfully joined group"); n != joins {
		t.Errorf("the other member joined %d times, before %d", n, joins)
	}
}

// instance is a member of the consumer protocol with an instance id.
type instance struct {
	id, partitions string
	epoch          int32
}

// statics are the members of a group by instance id.
func statics(t *testing.T, addr, group string) map[string]instance {
	t.Helper()
	r := kmsg.NewPtrConsumerGroupDescribeRequest()
	r.Groups = []string{group}
	by := map[string]instance{}
	for _, m := range raw.Ask[*kmsg.ConsumerGroupDescribeResponse](t, addr, r).Groups[0].Members {
		by[*m.InstanceID] = instance{m.MemberID, fmt.Sprint(m.Assignment.TopicPartitions), m.MemberEpoch}
	}
	return by
}

// TestAStaticMemberOfTheConsumerProtocolComesBackToItsPartitions is
// TestAStaticMemberComesBackToItsPartitions with the protocol of KIP-848: there a
// second process with the instance id of a member is refused.
func TestAStaticMemberOfTheConsumerProtocolComesBackToItsPartitions(t *testing.T) {
	t.Parallel()
	b := real.Barnabas(t, 1, append(slices.Clone(consumerProtocol), "group.consumer.max.session.timeout.ms=1800000", "group.consumer.session.timeout.ms=1800000")...)
	topic, group := raw.NewTopic(t, b.Addr, 4), "static"
	static := func(instance string) member {
		return consumerMember("group.instance.id="+instance)(t, b.Addr, group, topic)
	}
	one, other := static("one"), static("other")
	outputs := []func() string{one.output, other.output}
	records := 0
	more := func(what string) {
		t.Helper()
		produce(t, b.Addr, topic, records, records+100)
		records += 100
		settled(t, b.Addr, group, topic, 2, 4)
		real.Until(t, patience, "every record to be read "+what, func() bool { return missing(outputs, records) == 0 })
	}
	more("at first")
	before := statics(t, b.Addr, group)
	one.leave()
	away := statics(t, b.Addr, group)
	if away["one"].epoch != -2 || away["one"].partitions != before["one"].partitions || away["other"] != before["other"] {
		t.Errorf("before it left %+v, after %+v", before, away)
	}
	one = static("one")
	outputs = append(outputs, one.output)
	more("after a restart")
	after := statics(t, b.Addr, group)
	if after["one"].id == before["one"].id || after["one"].epoch != before["one"].epoch || after["one"].partitions != before["one"].partitions || after["other"] != before["other"] {
		t.Errorf("before %+v, after a restart %+v", before, after)
	}
	second := static("one")
	real.Until(t, patience, "a second process to be refused", func() bool { return strings.Contains(second.output(), "UnreleasedInstanceId") })
	more("beside a second process")
	if now := statics(t, b.Addr, group); !maps.Equal(now, after) {
		t.Errorf("before the second process %+v, after it %+v", after, now)
	}
}

// TestAStaticMemberMovesToTheConsumerProtocol restarts a static member with the
// other protocol, long before the session ends that it did not leave.
func TestAStaticMemberMovesToTheConsumerProtocol(t *testing.T) {
	t.Parallel()
	b := real.Barnabas(t, 1, consumerProtocol...)
	topic, group := raw.NewTopic(t, b.Addr, 4), "restarted"
	old := javaMember("3.9.1", "group.instance.id=one", "session.timeout.ms=1800000")(t, b.Addr, group, topic)
	produce(t, b.Addr, topic, 0, 100)
	settled(t, b.Addr, group, topic, 1, 4)
	real.Until(t, patience, "the first records to be read", func() bool { return missing([]func() string{old.output}, 100) == 0 })
	old.leave()
	restarted := consumerMember("group.instance.id=one")(t, b.Addr, group, topic)
	produce(t, b.Addr, topic, 100, 200)
	settled(t, b.Addr, group, topic, 1, 4)
	real.Until(t, patience, "every record to be read", func() bool { return missing([]func() string{old.output, restarted.output}, 200) == 0 })
	if got := groupType(t, b.Addr, group); got != "consumer" {
		t.Errorf("the group is %s", got)
	}
}

// TestAStaticMemberThatStalledIsFenced has another process take the place of a
// stalled one when its session has ended: when that goes on it hears of it.
func TestAStaticMemberThatStalledIsFenced(t *testing.T) {
	t.Parallel()
	b := real.Barnabas(t, 1, consumerProtocol...)
	topic, group := raw.NewTopic(t, b.Addr, 4), "stalled"
	static := func(instance string) member {
		return consumerMember("group.instance.id="+instance)(t, b.Addr, group, topic)
	}
	first := static("one")
	produce(t, b.Addr, topic, 0, 100)
	settled(t, b.Addr, group, topic, 1, 4)
	real.Until(t, patience, "the first records to be read", func() bool { return missing([]func() string{first.output}, 100) == 0 })
	first.signal(syscall.SIGSTOP)
	real.Until(t, patience, "its session to end", func() bool { return len(statics(t, b.Addr, group)) == 0 })
	second := static("one")
	settled(t, b.Addr, group, topic, 1, 4)
	fences := statics(t, b.Addr, group)
	first.signal(syscall.SIGCONT)
	real.Until(t, patience, "the first process to be fenced", func() bool { return strings.Contains(first.output(), "FencedInstanceId") })
	produce(t, b.Addr, topic, 100, 200)
	real.Until(t, patience, "every record to be read", func() bool { return missing([]func() string{first.output, second.output}, 200) == 0 })
	if now := statics(t, b.Addr, group); !maps.Equal(now, fences) {
		t.Errorf("the members were %+v, are %+v", fences, now)
	}
}
