package groups

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"barnabas/test/raw"
	"barnabas/test/real"
)

// member is a member of a group that prints what it reads.
type member struct {
	output func() string
	leave  func()
	kill   func()
	signal func(os.Signal)
}

type startMember func(t *testing.T, addr, group, topic string) member

func process(name string, cmd func(t *testing.T, addr, group, topic string) *exec.Cmd) startMember {
	return func(t *testing.T, addr, group, topic string) member {
		p := real.Start(t, name, cmd(t, addr, group, topic))
		return member{output: p.Output, kill: p.Kill, signal: p.Signal, leave: func() {
			p.Signal(syscall.SIGTERM)
			p.Wait(patience)
		}}
	}
}

var kcat = process("kcat", func(t *testing.T, addr, group, topic string) *exec.Cmd {
	return real.Kcat(t, "-u", "-q", "-b", addr, "-G", group, "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000",
		"-X", "heartbeat.interval.ms=500", "-X", "auto.commit.interval.ms=200", topic)
})

func javaMember(version string, properties ...string) startMember {
	return process("java-"+version, func(t *testing.T, addr, group, topic string) *exec.Cmd {
		class := "org.apache.kafka.tools.consumer.ConsoleConsumer"
		if version < "3" {
			class = "kafka.tools.ConsoleConsumer"
		}
		args := []string{"--bootstrap-server", addr, "--topic", topic, "--group", group, "--from-beginning"}
		for _, p := range append([]string{"auto.commit.interval.ms=200", "session.timeout.ms=6000", "heartbeat.interval.ms=500"}, properties...) {
			args = append(args, "--consumer-property", p)
		}
		return real.Java(t, version, class, args...)
	})
}

// consumerMember is one of the consumer protocol, of which the broker has the
// timeouts.
func consumerMember(properties ...string) startMember {
	return process("java-4.1.0-consumer", func(t *testing.T, addr, group, topic string) *exec.Cmd {
		return real.Java(t, "4.1.0", "testdata/ConsumerMember.java", append([]string{addr, group, topic}, properties...)...)
	})
}

func python(library string) startMember {
	return process(library, func(t *testing.T, addr, group, topic string) *exec.Cmd {
		return real.Python(t, "testdata/member.py", library, addr, group, topic)
	})
}

var kafkaJS = process("kafkajs", func(t *testing.T, addr, group, topic string) *exec.Cmd {
	return real.Node(t, "testdata/member.js", addr, group, topic)
})

// assigns is a Java consumer with one of its assignors.
func assigns(version, assignor string) startMember {
	return javaMember(version, "partition.assignment.strategy=org.apache.kafka.clients.consumer."+assignor+"Assignor")
}

// TestMembersShareARecordStream has members of one kind join one after another
// while records come, one leave, one stall and then be killed: every record is
// read, and each time that the group has settled, each partition has one owner.
func TestMembersShareARecordStream(t *testing.T) {
	t.Parallel()
	b := real.Barnabas(t, 1, "group.initial.rebalance.delay.ms=100")
	kinds := map[string]startMember{
		"kcat": kcat, "kafka-python": python("kafka-python"), "confluent-kafka": python("confluent-kafka"), "franz-go": goMember("franz-go"), "sarama": goMember("sarama"),
		"segmentio": goMember("segmentio"), "aiokafka": python("aiokafka"), "kafkajs": kafkaJS,
		"java-2.8.2-RoundRobin": assigns("2.8.2", "RoundRobin"), "java-2.8.2-Sticky": assigns("2.8.2", "Sticky"),
		"java-3.9.1-CooperativeSticky": assigns("3.9.1", "CooperativeSticky"), "java-4.1.0-Range": assigns("4.1.0", "Range"),
	}
	if os.Getenv("BARNABAS_SOAK") != "" {
		for _, version := range []string{"2.8.2", "3.9.1", "4.1.0"} {
			for _, assignor := range []string{"Range", "RoundRobin", "Sticky", "CooperativeSticky"} {
				kinds["java-"+version+"-"+assignor] = assigns(version, assignor)
			}
		}
	}
	for name, start := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shareStream(t, b.Addr, name, start)
		})
	}
}

func shareStream(t *testing.T, addr, name string, start startMember) {
	const partitions = 6
	topic, group := raw.NewTopic(t, addr, partitions), "group-"+name
	var outputs []func() string
	members := make([]member, 3)
	records := 0
	more := func() {
		produce(t, addr, topic, records, records+100)
		records += 100
	}
	all := func(what string) {
		t.Helper()
		real.Until(t, patience, "every record to be read "+what, func() bool { return missing(outputs, records) == 0 })
	}
	for i := range members {
		members[i] = start(t, addr, group, topic)
		outputs = append(outputs, members[i].output)
		settled(t, addr, group, topic, i+1, partitions)
		more()
		all("as members join")
	}
	members[0].leave()
	more()
	settled(t, addr, group, topic, 2, partitions)
	all("when one has left")
	members[1].signal(syscall.SIGSTOP)
	more()
	settled(t, addr, group, topic, 1, partitions)
	all("when one has stalled")
	members[1].signal(syscall.SIGCONT)
	settled(t, addr, group, topic, 2, partitions)
	more()
	all("when it goes on")
	members[1].kill()
	more()
	settled(t, addr, group, topic, 1, partitions)
	all("when one was killed")
	members[2].leave()
	real.Until(t, patience, "the group to be empty", func() bool { return share(t, addr, group, topic).state == "Empty" })
}

// TestAStalledMemberIsLeftOut stops one of two kcats, without its connection
// being closed: the other one gets all until it goes on.
func TestAStalledMemberIsLeftOut(t *testing.T) {
	t.Parallel()
	b := real.Barnabas(t, 1, "group.initial.rebalance.delay.ms=100")
	topic := raw.NewTopic(t, b.Addr, 4)
	members := []member{kcat(t, b.Addr, "stalls", topic), kcat(t, b.Addr, "stalls", topic)}
	outputs := []func() string{members[0].output, members[1].output}
	records := 0
	step := func(what string, members int) {
		t.Helper()
		produce(t, b.Addr, topic, records, records+100)
		records += 100
		settled(t, b.Addr, "stalls", topic, members, 4)
		real.Until(t, patience, "every record to be read "+what, func() bool { return missing(outputs, records) == 0 })
	}
	step("by both", 2)
	members[0].signal(syscall.SIGSTOP)
	step("by one", 1)
	members[0].signal(syscall.SIGCONT)
	step("by both again", 2)
	out := real.Run(t, patience, consumerGroups(t, "4.1.0", b.Addr, "--describe", "--group", "stalls", "--state"))
	if !strings.Contains(out, "Stable") {
		t.Errorf("described as\n%s", out)
	}
}
