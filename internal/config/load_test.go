package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// write makes a server.properties and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadReadsTheFileAndLetsOverridesWin(t *testing.T) {
	path := write(t, `# A comment
broker.id=3
num.partitions : 4
log.dirs=/a, \
         /b
max.connections=10
max.connections=11
`)
	b, warnings, err := Load(path, []string{"num.partitions=5", "zookeeper.connect=zk:2181/kafka=x", "num.partitions=6"})
	if err != nil {
		t.Fatal(err)
	}
	if b.ID() != 3 || b.Int32("num.partitions") != 6 || !slices.Equal(b.LogDirs(), []string{"/a", "/b"}) || b.Int("max.connections") != 11 {
		t.Errorf("got %d %d %v %d", b.ID(), b.Int("num.partitions"), b.LogDirs(), b.Int("max.connections"))
	}
	if b.ZooKeeper().Chroot != "/kafka=x" || b.EmbeddedKeeper() {
		t.Errorf("got %v", b.ZooKeeper())
	}
	if len(warnings) != 1 || warnings[0].String() != path+":7: max.connections is set already in line 6; this line counts" {
		t.Errorf("got %v", warnings)
	}
}

func TestEveryBadValueIsAnErrorWithFileAndLine(t *testing.T) {
	path := write(t, "num.partitions=x\n\nlog.retention.hours=0\nauto.create.topics.enable=yes\nlisteners=FOO://a:1\n"+
		"ssl.key.password=\\u12\nlog.segment.bytes=5\nprocess.roles=broker\ncreate.topic.policy.class.name=a.B\nauthorizer.class.name=kafka.security.authorizer.AclAuthorizer\n")
	_, _, err := Load(path, []string{"min.insync.replicas=0"})
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.Split(strings.ReplaceAll(err.Error(), path, "F"), "\n")
	want := []string{
		"--override: Invalid value 0 for configuration min.insync.replicas: Value must be at least 1",
		"F:1: Invalid value x for configuration num.partitions: Not a number of type INT",
		"F:3: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
		"F:4: Invalid value yes for configuration auto.create.topics.enable: Expected value to be either true or false",
		"F:5: Error creating broker listeners from 'FOO://a:1': No security protocol defined for listener FOO; add FOO:PLAINTEXT or another protocol to listener.security.protocol.map",
		`F:6: Malformed \uxxxx encoding: a backslash and u need four hexadecimal digits after them`,
		"F:7: Invalid value 5 for configuration log.segment.bytes: Value must be at least 14",
		"F:8: process.roles asks for KRaft, which this broker does not have: take it out, and set zookeeper.connect or leave that out too",
		"F:9: create.topic.policy.class.name: the Java class a.B decides what clients may do, and this broker can't run it: leave it out only if they may do without",
		"F:10: authorizer.class.name: the Java class kafka.security.authorizer.AclAuthorizer decides what clients may do, and this broker can't run it: leave it out only if they may do without",
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d:\n%s", i+1, strings.Join(got, "\n"))
		}
	}
}

func TestLoadWarnsOfWhatHasNoEffect(t *testing.T) {
	tests := []struct{ line, want string }{
		{"num.partition=3", "num.partition is not known, and has no effect; is num.partitions meant?"},
		{"completely.else=3", "completely.else is not known, and has no effect"},
		{"retention.ms=5", "retention.ms is a topic's property and has no effect here: the default of all topics is log.retention.ms"},
		{"port=9092", "port is of an earlier version of Kafka and has no effect: use listeners"},
		{"leader.replication.throttled.rate=5", "leader.replication.throttled.rate has no effect in this file: it can only be set while the broker runs"},
		{"metric.reporters=a.B", "metric.reporters has no effect on this broker. Java classes that report metrics; none can be loaded here."},
		{"metric.reporters=", ""},
		{"listener.name.plaintext.max.connections=5", ""},
		{"listener.name.plaintext.foo=5", "listener.name.plaintext.foo is not known, and has no effect"},
		{"broker.rack=\xc3\xa9", `the file is read as ISO 8859-1, as Kafka reads it; write other characters as \uXXXX`},
		{"# caf\xc3\xa9", ""},
		{"keeper.listen=", ""},
	}
	for _, test := range tests {
		_, warnings, err := Load(write(t, "\n"+test.line+"\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", test.line, err)
		}
		var got []string
		for _, w := range warnings {
			if w.Line != 2 {
				t.Errorf("%s: line %d", test.line, w.Line)
			}
			got = append(got, w.Text)
		}
		if text := strings.Join(got, "\n"); text != test.want {
			t.Errorf("%s: got %q", test.line, text)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	if _, _, err := Load(filepath.Join(t.TempDir(), "nothing"), nil); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
	for _, arg := range []string{"a", "=b", ""} {
		if _, _, err := Load("", []string{arg}); err == nil || !strings.Contains(err.Error(), "name=value") {
			t.Errorf("%q: got %v", arg, err)
		}
	}
	big := write(t, strings.Repeat("#\n", maxPropertiesSize))
	if _, _, err := Load(big, nil); err == nil {
		t.Error("a file of any size is read")
	}
}

func TestDefaultsWhileTheBrokerRunsItsOwnZooKeeper(t *testing.T) {
	b, _, err := Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := words(b.ID(), b.Listeners(), b.LogDirs(), b.String("keeper.dir"), b.String("keeper.listen"), b.EmbeddedKeeper(),
		b.Int16("offsets.topic.replication.factor"), b.Int16("transaction.state.log.replication.factor"),
		b.Int("transaction.state.log.min.isr"), b.Duration("group.initial.rebalance.delay.ms"))
	want := "0 [PLAINTEXT://localhost:9092] [barnabas-data/logs] barnabas-data/keeper 127.0.0.1:2181 true 1 1 1 0s"
	if got != want {
		t.Errorf("got %s", got)
	}
	b, _, err = Load("", []string{"zookeeper.connect=localhost:2181"})
	if err != nil {
		t.Fatal(err)
	}
	got = words(b.ID(), b.Listeners(), b.LogDirs(), b.EmbeddedKeeper(), b.Int16("offsets.topic.replication.factor"),
		b.Int("transaction.state.log.min.isr"), b.Duration("group.initial.rebalance.delay.ms"))
	if want = "-1 [PLAINTEXT://:9092] [/tmp/kafka-logs] false 3 2 3s"; got != want {
		t.Errorf("got %s", got)
	}
	b, _, err = Load("", []string{"log.dir=/x", "node.id=7", "offsets.topic.replication.factor=3"})
	if err != nil || words(b.LogDirs(), b.ID(), b.Int("offsets.topic.replication.factor")) != "[/x] 7 3" {
		t.Errorf("got %v %d, %v", b.LogDirs(), b.ID(), err)
	}
}

func TestQueuedRequestBytesAreBoundedUnlessSet(t *testing.T) {
	tests := []struct {
		overrides []string
		want      int64
	}{
		{nil, 256 << 20},
		{[]string{"queued.max.request.bytes=-1"}, -1},
		{[]string{"socket.request.max.bytes=500000000"}, 500000000},
		{[]string{"queued.max.request.bytes=200000000"}, 200000000},
	}
	for _, test := range tests {
		b, _, err := Load("", test.overrides)
		if err != nil || b.Int64("queued.max.request.bytes") != test.want {
			t.Errorf("%v: got %v, %v", test.overrides, b.Int64("queued.max.request.bytes"), err)
		}
	}
}

func TestGetters(t *testing.T) {
	b := mustBroker(t, map[string]string{"broker.rack": "r1", "sasl.enabled.mechanisms": "PLAIN, SCRAM-SHA-256", "log.roll.ms": "9223372036854775807"})
	got := words(b.Bool("auto.create.topics.enable"), b.Int("num.partitions"), b.Int16("offsets.topic.replication.factor"),
		b.Int64("log.segment.bytes"), b.Float64("log.cleaner.min.cleanable.ratio"), b.String("broker.rack"),
		b.List("sasl.enabled.mechanisms"), b.Has("broker.rack"), b.Has("advertised.listeners"), b.String("advertised.listeners"),
		b.Int("log.retention.minutes"))
	if want := "true 1 1 1073741824 0.5 r1 [PLAIN SCRAM-SHA-256] true false  0"; got != want {
		t.Errorf("got %s", got)
	}
	durations := map[string]time.Duration{
		"log.roll.ms": 1<<63 - 1, "leader.imbalance.check.interval.seconds": 300 * time.Second, "offsets.retention.minutes": 168 * time.Hour,
		"log.retention.hours": 168 * time.Hour, "connections.max.idle.ms": 10 * time.Minute, "log.retention.ms": 0,
	}
	for key, want := range durations {
		if got := b.Duration(key); got != want {
			t.Errorf("%s: got %v", key, got)
		}
	}
	for name, use := range map[string]func(){
		"an undefined key": func() { b.Int("no.such.key") },
		"the wrong type":   func() { b.Bool("num.partitions") },
		"null, undefined":  func() { b.Has("no.such.key") },
		"no unit":          func() { b.Duration("num.partitions") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			use()
		}()
	}
}

// words prints its arguments with a blank between any two.
func words(args ...any) string { return strings.TrimSuffix(fmt.Sprintln(args...), "\n") }
