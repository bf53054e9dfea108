package groups

import (
	"maps"
	"strings"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"
)

// TestAStaticMemberComesBackToItsPartitions restarts one of two static members:
// it has what it had, and the other one hears of no rebalance. A second process
// with its instance id takes its place.
func TestAStaticMemberComesBackToItsPartitions(t *testing.T) {
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
		real.Until(t, 3*time.Minute, "every record to be read "+what, func() bool { return missing(outputs, records) == 0 })
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
	real.Until(t, 3*time.Minute, "the first process to be fenced", func() bool { return strings.Contains(one.output(), "FencedInstanceId") })
	more("by the second process")
	if after := assigned(); !maps.Equal(before, after) {
		t.Errorf("assigned were %q, are %q", before, after)
	}
	if n := strings.Count(other.output(), "Successfully joined group"); n != joins {
		t.Errorf("the other member joined %d times, before %d", n, joins)
	}
}
