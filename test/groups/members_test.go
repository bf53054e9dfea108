package groups

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/IBM/sarama"
	segmentio "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// member is a member of a group that prints what it reads.
type member struct {
	output func() string
	leave  func()
	// kill and signal are nil if the member is a part of the test.
	kill   func()
	signal func(os.Signal)
}

type startMember func(t *testing.T, addr, group, topic string) member

func process(name string, cmd func(t *testing.T, addr, group, topic string) *exec.Cmd) startMember {
	return func(t *testing.T, addr, group, topic string) member {
		p := real.Start(t, name, cmd(t, addr, group, topic))
		return member{output: p.Output, kill: p.Kill, signal: p.Signal, leave: func() {
			p.Signal(syscall.SIGTERM)
			p.Wait(30 * time.Second)
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
		timeouts := []string{"auto.commit.interval.ms=200", "session.timeout.ms=6000", "heartbeat.interval.ms=500"}
		if slices.Contains(properties, "group.protocol=consumer") { // the broker has them
			timeouts = timeouts[:1]
		}
		for _, p := range append(timeouts, properties...) {
			args = append(args, "--consumer-property", p)
		}
		return real.Java(t, version, class, args...)
	})
}

func python(library string) startMember {
	return process(library, func(t *testing.T, addr, group, topic string) *exec.Cmd {
		return real.Python(t, "testdata/member.py", library, addr, group, topic)
	})
}

// printed collects the lines of a member that runs in this process.
type printed struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *printed) add(line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(line)
	p.text.WriteByte('\n')
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func franz(t *testing.T, addr, group, topic string) member {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond), kgo.AutoCommitInterval(200*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	out, done := &printed{}, make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { out.add(r.Value) })
		}
	}()
	leave := sync.OnceFunc(func() { cancel(); <-done; client.Close() })
	t.Cleanup(leave)
	return member{output: out.String, leave: leave}
}

type saramaHandler struct{ out *printed }

func (saramaHandler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (saramaHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h saramaHandler) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for m := range c.Messages() {
		h.out.add(m.Value)
		s.MarkMessage(m, "")
	}
	return nil
}

func saramaMember(t *testing.T, addr, group, topic string) member {
	c := sarama.NewConfig()
	c.Version = sarama.V2_1_0_0
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Group.Session.Timeout, c.Consumer.Group.Heartbeat.Interval = 6*time.Second, 500*time.Millisecond
	c.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	g, err := sarama.NewConsumerGroup([]string{addr}, group, c)
	if err != nil {
		t.Fatal(err)
	}
	out, done := &printed{}, make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := g.Consume(ctx, []string{topic}, saramaHandler{out}); errors.Is(err, sarama.ErrClosedConsumerGroup) {
				return
			}
		}
	}()
	leave := sync.OnceFunc(func() { cancel(); <-done; g.Close() })
	t.Cleanup(leave)
	return member{output: out.String, leave: leave}
}

func segmentioMember(t *testing.T, addr, group, topic string) member {
	r := segmentio.NewReader(segmentio.ReaderConfig{Brokers: []string{addr}, GroupID: group, Topic: topic, StartOffset: segmentio.FirstOffset,
		SessionTimeout: 6 * time.Second, HeartbeatInterval: 500 * time.Millisecond, CommitInterval: 200 * time.Millisecond,
		MaxWait: 500 * time.Millisecond, JoinGroupBackoff: 100 * time.Millisecond})
	out, done := &printed{}, make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		for {
			m, err := r.ReadMessage(ctx)
			if err != nil {
				return
			}
			out.add(m.Value)
		}
	}()
	leave := sync.OnceFunc(func() { cancel(); <-done; r.Close() })
	t.Cleanup(leave)
	return member{output: out.String, leave: leave}
}

var kafkaJS = process("kafkajs", func(t *testing.T, addr, group, topic string) *exec.Cmd {
	return real.Node(t, "testdata/member.js", addr, group, topic)
})

// TestMembersShareARecordStream has members of one kind join one after another
// while records come, one leave and one be killed: every record is read, and
// each time that the group has settled, each partition has one owner.
func TestMembersShareARecordStream(t *testing.T) {
	b := real.Barnabas(t, 1, "group.initial.rebalance.delay.ms=100")
	for name, start := range map[string]startMember{
		"kcat": kcat, "kafka-python": python("kafka-python"), "confluent-kafka": python("confluent-kafka"), "franz-go": franz, "sarama": saramaMember,
		"segmentio": segmentioMember, "aiokafka": python("aiokafka"), "kafkajs": kafkaJS,
		"java-2.8.2": javaMember("2.8.2", "partition.assignment.strategy=org.apache.kafka.clients.consumer.RoundRobinAssignor"),
		"java-3.9.1": javaMember("3.9.1", "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor"),
		"java-4.1.0": javaMember("4.1.0"),
	} {
		t.Run(name, func(t *testing.T) { shareStream(t, b.Addr, name, start) })
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
		real.Until(t, time.Minute, "every record to be read "+what, func() bool { return missing(outputs, records) == 0 })
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
	if members[1].kill != nil {
		members[1].kill()
		more()
		settled(t, addr, group, topic, 1, partitions)
		all("when one was killed")
	} else {
		members[1].leave()
	}
	members[2].leave()
	real.Until(t, 30*time.Second, "the group to be empty", func() bool { return share(t, addr, group, topic).state == "Empty" })
}

// TestAStalledMemberIsLeftOut stops one of two kcats, without its connection
// being closed: the other one gets all until it goes on.
func TestAStalledMemberIsLeftOut(t *testing.T) {
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
		real.Until(t, time.Minute, "every record to be read "+what, func() bool { return missing(outputs, records) == 0 })
	}
	step("by both", 2)
	members[0].signal(syscall.SIGSTOP)
	step("by one", 1)
	members[0].signal(syscall.SIGCONT)
	step("by both again", 2)
	out := real.Run(t, time.Minute, consumerGroups(t, "4.1.0", b.Addr, "--describe", "--group", "stalls", "--state"))
	if !strings.Contains(out, "Stable") {
		t.Errorf("described as\n%s", out)
	}
}
