package config

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func mustBroker(t *testing.T, static map[string]string) *Broker {
	t.Helper()
	b, err := NewBroker(static)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDefaultTopic(t *testing.T) {
	want := &Topic{
		SegmentBytes: 1 << 30, SegmentMs: 604800000, SegmentIndexBytes: 10485760, IndexIntervalBytes: 4096,
		RetentionMs: 604800000, RetentionBytes: -1, MaxMessageBytes: 1048588, Compression: Producer, Delete: true,
		MinInsyncReplicas: 1, TimestampBeforeMaxMs: math.MaxInt64, TimestampAfterMaxMs: math.MaxInt64,
		FlushMessages: math.MaxInt64, FlushMs: math.MaxInt64, FileDeleteDelayMs: 60000, MinCleanableDirtyRatio: 0.5,
		MaxCompactionLagMs: math.MaxInt64, DeleteRetentionMs: 86400000, MessageDownconversionEnable: true,
	}
	if got := DefaultTopic(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestTopicTakesTheBrokersValuesUnlessOverridden(t *testing.T) {
	b := mustBroker(t, map[string]string{
		"log.retention.hours": "2", "log.roll.hours": "3", "log.roll.jitter.hours": "1", "log.flush.scheduler.interval.ms": "70",
		"message.max.bytes": "5", "compression.type": "zstd", "compression.zstd.level": "7", "log.cleanup.policy": "compact,delete",
		"log.message.timestamp.difference.max.ms": "9", "log.message.timestamp.after.max.ms": "8",
		"log.message.timestamp.type": "LogAppendTime", "min.insync.replicas": "2",
	})
	topic, err := b.Topic(map[string]string{"min.insync.replicas": "3", "compression.type": "gzip", "compression.gzip.level": "4",
		"follower.replication.throttled.replicas": "*", "leader.replication.throttled.replicas": "0:1,2:3"})
	if err != nil {
		t.Fatal(err)
	}
	want := *b.topicDefault
	want.MinInsyncReplicas, want.Compression, want.CompressionLevel = 3, Gzip, 4
	want.FollowerThrottledReplicas.All = true
	want.LeaderThrottledReplicas.Of = []PartitionReplica{{0, 1}, {2, 3}}
	if !reflect.DeepEqual(topic, &want) {
		t.Errorf("got %+v\nwant %+v", topic, want)
	}
	d := b.topicDefault
	if d.RetentionMs != 2*3600e3 || d.SegmentMs != 3*3600e3 || d.SegmentJitterMs != 3600e3 || d.FlushMs != 70 || d.MaxMessageBytes != 5 ||
		d.Compression != Zstd || d.CompressionLevel != 7 || !d.Compact || !d.Delete || d.TimestampBeforeMaxMs != 9 ||
		d.TimestampAfterMaxMs != 8 || !d.LogAppendTime || d.MinInsyncReplicas != 2 {
		t.Errorf("got %+v", d)
	}
	if !topic.LeaderThrottledReplicas.Has(2, 3) || topic.LeaderThrottledReplicas.Has(2, 1) || !topic.FollowerThrottledReplicas.Has(7, 7) {
		t.Error("throttled replicas")
	}
}

func TestTopicOverridesAreRefusedAsInKafka(t *testing.T) {
	const throttled = "must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
	tests := []struct{ overrides, want string }{ // the answers of CreateTopics; "" is taken
		{"foo=bar", "Unknown topic config name: foo"},
		{"retention.ms=-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"},
		{"retention.ms=abc", "Invalid value abc for configuration retention.ms: Not a number of type LONG"},
		{"min.compaction.lag.ms=100 max.compaction.lag.ms=50", "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)"},
		{"cleanup.policy=", ""},
		{"cleanup.policy=DELETE", "Invalid value DELETE for configuration cleanup.policy: String must be one of: compact, delete"},
		{"cleanup.policy=delete,delete", ""},
		{"leader.replication.throttled.replicas=0:x", "Invalid value [0:x] for configuration leader.replication.throttled.replicas: leader.replication.throttled.replicas " + throttled},
		{"leader.replication.throttled.replicas=0:1,*", "Invalid value [0:1, *] for configuration leader.replication.throttled.replicas: leader.replication.throttled.replicas " + throttled},
		{"leader.replication.throttled.replicas=*", ""},
		{"message.format.version=9.9", "Invalid value 9.9 for configuration message.format.version: Version 9.9 is not a valid version"},
		{"message.format.version=0.10.0", ""},
		{"remote.storage.enable=true", "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."},
		{"remote.log.copy.disable=true", "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under Zookeeper's mode."},
		{"min.insync.replicas=0", "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1"},
		{"compression.type=zip", "Invalid value zip for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"},
		{"compression.gzip.level=0", "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1"},
		{"compression.lz4.level=18", "Invalid value 18 for configuration compression.lz4.level: Value must be no more than 17"},
		{"preallocate=yes", "Invalid value yes for configuration preallocate: Expected value to be either true or false"},
		{"min.cleanable.dirty.ratio=2", "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"},
		{"min.cleanable.dirty.ratio=NaN", ""},
		{"segment.bytes=2147483648", "Invalid value 2147483648 for configuration segment.bytes: Not a number of type INT"},
		{"segment.bytes=13", "Invalid value 13 for configuration segment.bytes: Value must be at least 14"},
		{"segment.ms=0", "Invalid value 0 for configuration segment.ms: Value must be at least 1"},
		{"local.retention.ms=100 retention.ms=50", ""},
		{"min.compaction.lag.ms=9223372036854775807", ""},
		{"flush.ms=", "Invalid value  for configuration flush.ms: Not a number of type LONG"},
	}
	b := mustBroker(t, nil)
	for _, test := range tests {
		overrides := map[string]string{}
		for pair := range strings.SplitSeq(test.overrides, " ") {
			k, v, _ := strings.Cut(pair, "=")
			overrides[k] = v
		}
		got := ""
		if err := b.ValidateTopic(overrides); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.overrides, got, test.want)
		}
	}
}

func TestAllBadOverridesAreNamedAndTheRestCounts(t *testing.T) {
	b := mustBroker(t, nil)
	topic, err := b.Topic(map[string]string{"retention.ms": "abc", "foo": "1", "segment.bytes": "2000", "min.insync.replicas": "0"})
	var all Errors
	if !errors.As(err, &all) || len(all) != 3 || all[0].Kind != UnknownKey || all[1].Kind != BadValue || First(err).Key != "foo" {
		t.Errorf("got %v", err)
	}
	if topic.SegmentBytes != 2000 || topic.RetentionMs != 604800000 || topic.MinInsyncReplicas != 1 {
		t.Errorf("got %+v", topic)
	}
}

func TestTopicRulesLookAtTheBrokersValuesToo(t *testing.T) {
	b := mustBroker(t, map[string]string{"log.cleaner.max.compaction.lag.ms": "1000"})
	err := b.ValidateTopic(map[string]string{"min.compaction.lag.ms": "2000"})
	if e := First(err); e == nil || e.Kind != Conflict {
		t.Errorf("got %v", err)
	}
}

func TestCompressionsHaveTheNumbersOfBatchAttributes(t *testing.T) {
	b := mustBroker(t, nil)
	for name, want := range map[string]Compression{"producer": -1, "uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4} {
		topic, err := b.Topic(map[string]string{"compression.type": name})
		if err != nil || topic.Compression != want {
			t.Errorf("%s: got %v, %v", name, topic.Compression, err)
		}
	}
}
