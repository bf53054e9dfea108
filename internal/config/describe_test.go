package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// describedBroker is the broker behind testdata/describe.
func describedBroker(t *testing.T) *Broker {
	t.Helper()
	static := map[string]string{
		"broker.id": "1", "listeners": "PLAINTEXT://127.0.0.1:29092", "log.dirs": "/var/kafka",
		"zookeeper.connect": "127.0.0.1:22181", "inter.broker.protocol.version": "3.9",
		"offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr": "1", "group.initial.rebalance.delay.ms": "0",
		"foo.bar": "baz", "my.password": "x", "log.retention.minutes": "6000", "log.retention.hours": "100",
		"listener.name.plaintext.max.connections": "77", "max.connections": "999", "ssl.keystore.password": "secret",
		"log.roll.hours": "24", "compression.type": "lz4", "delegation.token.secret.key": "abc", "num.partitions": "3",
		"log.cleanup.policy": "delete,compact", "log.message.format.version": "2.8",
	}
	perBroker := map[string]string{
		"log.retention.ms": "7777", "foo.bar2": "zz", "log.cleaner.threads": "2",
		"listener.name.plaintext.num.partitions": "2", "leader.replication.throttled.rate": "1000",
		"listener.name.plaintext.max.connections": "55", "listener.name.plaintext.ssl.keystore.type": "PKCS12",
		"listener.name.nosuch.max.connections": "2", "unclean.leader.election.enable": "true",
		"listener.name.plaintext.num.network.threads": "2", "advertised.listeners": "PLAINTEXT://127.0.0.1:29092",
	}
	clusterWide := map[string]string{
		"compression.type": "gzip", "log.retention.ms": "8888",
		"follower.replication.throttled.rate": "2000", "max.connections": "500",
	}
	b, err := NewBroker(static)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = b.With(perBroker, clusterWide); err != nil {
		t.Fatal(err)
	}
	return b
}

// describedTopics are the overrides of the topics behind testdata/describe.
var describedTopics = map[string]map[string]string{
	"t1": {"retention.ms": "12345", "cleanup.policy": "compact", "max.message.bytes": "2000", "segment.bytes": "1000000",
		"leader.replication.throttled.replicas": "0:1", "unclean.leader.election.enable": "true"},
	"t2":  {},
	"e5":  {"cleanup.policy": ""},
	"e15": {"retention.ms": " 55 "},
	"e21": {"message.format.version": "0.10.0"},
}

func render(entries []Entry) string {
	text := func(s *string) string {
		if s == nil {
			return "<null>"
		}
		return fmt.Sprintf("%q", *s)
	}
	var w strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&w, "%s\t%s\tsource=%d\treadonly=%v\tsensitive=%v\ttype=%d\n", e.Name, text(e.Value), e.Source, e.ReadOnly, e.Sensitive, e.Type)
		for _, s := range e.Synonyms {
			fmt.Fprintf(&w, "\t%s\t%s\tsource=%d\n", s.Name, text(s.Value), s.Source)
		}
	}
	return w.String()
}

func compareText(t *testing.T, file, got string) {
	t.Helper()
	data, err := os.ReadFile("testdata/describe/" + file)
	if err != nil {
		t.Fatal(err)
	}
	want := string(data)
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		line := func(l []string) string {
			if i < len(l) {
				return l[i]
			}
			return "(nothing)"
		}
		if line(g) != line(w) {
			t.Fatalf("%s, line %d:\n got %s\nwant %s", file, i+1, line(g), line(w))
		}
	}
}

// withKafkasDefaults puts Kafka's defaults where others are in force here.
func withKafkasDefaults(text string) string {
	for _, d := range []struct{ key, ours, kafka string }{
		{"queued.max.request.bytes", "268435456", "-1"},
		{"socket.receive.buffer.bytes", "-1", "102400"},
		{"socket.send.buffer.bytes", "-1", "102400"},
	} {
		text = strings.ReplaceAll(text, "\n"+d.key+"\t\""+d.ours+"\"", "\n"+d.key+"\t\""+d.kafka+"\"")
		text = strings.ReplaceAll(text, "\n\t"+d.key+"\t\""+d.ours+"\"", "\n\t"+d.key+"\t\""+d.kafka+"\"")
	}
	return text
}

func TestDescribeAnswersAsKafka(t *testing.T) {
	b := describedBroker(t)
	compareText(t, "broker.txt", withKafkasDefaults(render(b.Describe(nil))))
	compareText(t, "default.txt", render(b.DescribeDefault(nil)))
	for topic, overrides := range describedTopics {
		compareText(t, "topic-"+topic+".txt", render(b.DescribeTopic(overrides, nil)))
	}
}

func TestDescribeOfSomeKeys(t *testing.T) {
	b := describedBroker(t)
	tests := []struct {
		name    string
		entries []Entry
		want    string
	}{
		{"one", b.DescribeTopic(nil, []string{"cleanup.policy"}), "cleanup.policy"},
		{"unknown", b.DescribeTopic(nil, []string{"zzz"}), ""},
		{"unknown beside known", b.Describe([]string{"zzz", "num.partitions", "broker.id"}), "broker.id num.partitions"},
		{"hidden", b.Describe([]string{"log.initial.task.delay.ms"}), ""},
		{"ours", b.Describe([]string{"keeper.dir"}), ""},
		{"default", b.DescribeDefault([]string{"max.connections", "num.io.threads"}), "max.connections"},
	}
	for _, test := range tests {
		var names []string
		for _, e := range test.entries {
			names = append(names, e.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	for _, keys := range [][]string{nil, {}} {
		if n := len(b.DescribeTopic(nil, keys)); n != 36 {
			t.Errorf("all keys of a topic: %d, want 36", n)
		}
	}
}

func TestDescribeTopicWithOverridesThatOthersWrote(t *testing.T) {
	b := describedBroker(t)
	entries := b.DescribeTopic(map[string]string{"foo": "bar", "segment.bytes": "abc"}, []string{"foo", "segment.bytes"})
	want := "foo\t<null>\tsource=1\treadonly=false\tsensitive=true\ttype=0\n" +
		"\tfoo\t<null>\tsource=1\n" +
		"segment.bytes\t\"abc\"\tsource=1\treadonly=false\tsensitive=false\ttype=3\n" +
		"\tsegment.bytes\t\"abc\"\tsource=1\n\tlog.segment.bytes\t\"1073741824\"\tsource=5\n"
	if got := render(entries); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestPasswordsNeverShow(t *testing.T) {
	const secret = "hunter2"
	static := map[string]string{"ssl.key.password": secret, "my.secret": secret,
		"listener.name.ssl.ssl.keystore.password": secret, "sasl.jaas.config": secret}
	b, err := NewBroker(static)
	if err != nil {
		t.Fatal(err)
	}
	all := render(b.Describe(nil)) + fmt.Sprintf("%v %+v %#v %s", b, b, b, b)
	if strings.Contains(all, secret) {
		t.Error("a password is shown")
	}
	_, err = b.With(map[string]string{"ssl.key.password": secret}, nil)
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
	if b.String("ssl.key.password") != secret {
		t.Error("the getter does not return it")
	}
}
