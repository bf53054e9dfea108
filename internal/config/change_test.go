package config

import (
	"strings"
	"testing"
)

// pairs reads "a=b c=d".
func pairs(s string) map[string]string {
	m := map[string]string{}
	for pair := range strings.FieldsSeq(s) {
		k, v, _ := strings.Cut(pair, "=")
		m[k] = v
	}
	return m
}

func TestDynamicChangesAreRefusedAsInKafka(t *testing.T) {
	const own, all = true, false
	tests := []struct {
		perBroker bool
		change    string
		kind      Kind   // when want is not ""
		want      string // part of the message; "" is taken
	}{
		{own, "num.partitions=4", NotDynamic, "Cannot update these configs dynamically: Set(num.partitions)"},
		{own, "broker.id=7", NotDynamic, "Cannot update these configs dynamically: Set(broker.id)"},
		{own, "log.retention.hours=5", NotDynamic, "Cannot update these configs dynamically"},
		{own, "keeper.dir=x", NotDynamic, "Cannot update these configs dynamically"},
		{own, "num.io.threads=100", TooFarAtOnce, "Dynamic thread count update validation failed for num.io.threads=100, value should not be greater than double the current value 8"},
		{own, "num.io.threads=3", TooFarAtOnce, "Dynamic thread count update validation failed for num.io.threads=3, value should be at least half the current value 8"},
		{own, "num.io.threads=0", BadValue, "Invalid value 0 for configuration num.io.threads: Value must be at least 1"},
		{own, "num.io.threads=abc", BadValue, "Invalid value abc for configuration num.io.threads: Not a number of type INT"},
		{own, "num.io.threads=16", 0, ""},
		{own, "num.replica.fetchers=3", TooFarAtOnce, "value should not be greater than double the current value 1"},
		{own, "background.threads=30", TooFarAtOnce, "value should not be greater than double the current value 10"},
		{own, "log.cleaner.threads=2", 0, ""},
		{own, "log.cleaner.threads=9", TooFarAtOnce, "log.cleaner.threads"},
		{own, "log.cleaner.threads=0", Conflict, "log.cleaner.threads"},
		{own, "foo.bar2=zz", 0, ""},
		{all, "foo.bar2=zz", 0, ""},
		{all, "listeners=PLAINTEXT://:1", NeedsBroker, "Cannot update these configs at default cluster level, broker id must be specified: Set(listeners)"},
		{own, "ssl.keystore.location=/x", NeedsListener, "These security configs can be dynamically updated only per-listener using the listener prefix"},
		{own, "listener.name.plaintext.ssl.keystore.type=PKCS12", 0, ""},
		{all, "listener.name.plaintext.ssl.keystore.type=PKCS12", NeedsBroker, "broker id must be specified"},
		{all, "listener.name.plaintext.max.connections=5", 0, ""},
		{all, "listener.name.plaintext.num.partitions=2", NeedsBroker, "broker id must be specified"},
		{own, "listener.name.plaintext.num.partitions=2", 0, ""},
		{own, "listener.name.nosuch.max.connections=2", 0, ""},
		{own, "listener.name.plaintext.max.connections=-1", BadValue, "Invalid value -1 for configuration max.connections: Value must be at least 0"},
		{own, "listeners=PLAINTEXT://localhost:9092,FOO://localhost:0", Conflict, "No security protocol defined for listener FOO"},
		{own, "listeners=", Conflict, "There must be at least one broker advertised listener."},
		{own, "listeners=PLAINTEXT://localhost:9092,FOO://localhost:0 listener.security.protocol.map=PLAINTEXT:PLAINTEXT,FOO:PLAINTEXT", 0, ""},
		{own, "listener.security.protocol.map=PLAINTEXT:SSL", Conflict, "Security protocol cannot be updated for existing listener PLAINTEXT"},
		{own, "advertised.listeners=PLAINTEXT://example.com:9092", 0, ""},
		{own, "log.retention.ms=0", Conflict, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"},
		{own, "log.retention.ms=7777", 0, ""},
		{all, "log.retention.ms=8888", 0, ""},
		{own, "log.roll.ms=0", Conflict, "log.roll.ms must be greater than or equal to 1"},
		{own, "log.roll.jitter.ms=-1", Conflict, "log.roll.jitter.ms must be greater than or equal to 0"},
		{own, "leader.replication.throttled.rate=1000", 0, ""},
		{all, "follower.replication.throttled.rate=2000", 0, ""},
		{own, "replica.alter.log.dirs.io.max.bytes.per.second=-1", BadValue, "Value must be at least 0"},
		{own, "message.max.bytes=-1", BadValue, "Invalid value -1 for configuration message.max.bytes: Value must be at least 0"},
		{own, "min.insync.replicas=", BadValue, "Invalid value  for configuration min.insync.replicas: Not a number of type INT"},
		{own, "unclean.leader.election.enable=true", 0, ""},
		{own, "max.connections.per.ip=0", Conflict, "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."},
		{own, "max.connections.per.ip=0 max.connections.per.ip.overrides=127.0.0.1:100", 0, ""},
		{own, "max.connections.per.ip.overrides=a:b", Conflict, `For input string: "b"`},
		{own, "max.connections.per.ip.overrides=bad_host!:100", Conflict, "max.connections.per.ip.overrides contains invalid addresses : bad_host!"},
		{own, "log.cleanup.policy=abc", BadValue, "Invalid value abc for configuration log.cleanup.policy: String must be one of: compact, delete"},
		{own, "log.message.timestamp.type=abc", BadValue, "String must be one of: CreateTime, LogAppendTime"},
		{own, "log.cleaner.dedupe.buffer.size=100", Conflict, "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."},
		{own, "compression.type=none", BadValue, "String must be one of: uncompressed, zstd"},
	}
	b := mustBroker(t, map[string]string{"zookeeper.connect": "localhost:2181", "broker.id": "1", "listeners": "PLAINTEXT://localhost:9092"})
	for _, test := range tests {
		var err error
		if test.perBroker {
			_, err = b.Alter(pairs(test.change), nil)
		} else {
			_, err = b.Alter(nil, pairs(test.change))
		}
		switch e := First(err); {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.change, err)
		case test.want != "" && (e == nil || e.Kind != test.kind || !strings.Contains(e.Text, test.want)):
			t.Errorf("%s:\n got %v\nwant %s (kind %d)", test.change, err, test.want, test.kind)
		}
	}
}

func TestDynamicLayersCoverEachOther(t *testing.T) {
	b := mustBroker(t, map[string]string{"log.retention.hours": "1", "max.connections": "9"})
	next, err := b.With(pairs("log.retention.ms=7"), pairs("log.retention.ms=8 max.connections=5"))
	if err != nil {
		t.Fatal(err)
	}
	if next.topicDefault.RetentionMs != 7 || next.Int("max.connections") != 5 {
		t.Errorf("got %d and %d", next.topicDefault.RetentionMs, next.Int("max.connections"))
	}
	if next.Int("log.retention.hours") != 168 {
		t.Error("a dynamic value takes the static ones of its family away")
	}
	if b.topicDefault.RetentionMs != 3600e3 || b.Int("max.connections") != 9 {
		t.Error("the old snapshot changed")
	}
	if again, err := next.With(nil, nil); err != nil || again.Int("max.connections") != 9 || again.topicDefault.RetentionMs != 3600e3 {
		t.Error("without dynamic properties the static ones are back")
	}
}

func TestGeneratedIDSurvivesAChange(t *testing.T) {
	b := mustBroker(t, map[string]string{"zookeeper.connect": "localhost:2181"}).WithID(1001)
	next, err := b.With(pairs("max.connections=5"), nil)
	if err != nil || next.ID() != 1001 {
		t.Errorf("got %v, %v", next.ID(), err)
	}
}

func TestStoredPropertiesThatAreWrongAreLeftOut(t *testing.T) {
	b := mustBroker(t, map[string]string{"num.io.threads": "4"})
	next, warnings := b.WithStored(
		pairs("num.partitions=9 num.io.threads=100 log.retention.ms=abc max.connections=7 log.roll.ms=0"),
		pairs("listeners=PLAINTEXT://:1 compression.type=gzip"))
	var keys []string
	for _, w := range warnings {
		keys = append(keys, w.Key)
	}
	if got := strings.Join(keys, " "); got != "listeners log.retention.ms log.roll.ms num.partitions" {
		t.Errorf("warnings on %s", got)
	}
	if next.Int("num.io.threads") != 100 || next.Int("max.connections") != 7 || next.topicDefault.Compression != Gzip || next.Int("num.partitions") != 1 {
		t.Error("what is right has to count")
	}
	// A rule across properties, of which the one at fault is static.
	b = mustBroker(t, map[string]string{"log.cleaner.min.compaction.lag.ms": "100"})
	next, warnings = b.WithStored(pairs("log.cleaner.max.compaction.lag.ms=50 max.connections=7"), nil)
	if len(warnings) == 0 || next.Int64("log.cleaner.max.compaction.lag.ms") == 50 {
		t.Errorf("got %v", warnings)
	}
}

func TestForListener(t *testing.T) {
	b := mustBroker(t, map[string]string{
		"listeners": "PLAINTEXT://localhost:1,OTHER://localhost:2", "max.connections": "100",
		"listener.security.protocol.map":      "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
		"listener.name.other.max.connections": "5",
	})
	if b.ForListener("OTHER").Int("max.connections") != 5 || b.ForListener("PLAINTEXT").Int("max.connections") != 100 || b.Int("max.connections") != 100 {
		t.Error("a listener's own value counts for it alone")
	}
}
