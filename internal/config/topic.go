package config

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Topic is the immutable, resolved configuration of a topic. Sizes are in
// bytes, times in milliseconds, -1 means no limit where Kafka says so.
type Topic struct {
	SegmentBytes       int32
	SegmentMs          int64
	SegmentJitterMs    int64
	SegmentIndexBytes  int32
	IndexIntervalBytes int32

	RetentionMs    int64 // -1: none
	RetentionBytes int64 // -1: none

	MaxMessageBytes int32

	Compression      Compression
	CompressionLevel int // of that codec, in its own scale; 0 for codecs without levels

	Delete  bool // cleanup.policy holds "delete"
	Compact bool // cleanup.policy holds "compact"

	MinInsyncReplicas           int32
	UncleanLeaderElectionEnable bool

	LogAppendTime        bool  // message.timestamp.type is LogAppendTime
	TimestampBeforeMaxMs int64 // how far a record's time may lie behind the broker's
	TimestampAfterMaxMs  int64 // how far a record's time may lie ahead of the broker's

	FlushMessages     int64 // math.MaxInt64: leave it to the system
	FlushMs           int64 // math.MaxInt64: leave it to the system
	FileDeleteDelayMs int64
	Preallocate       bool

	MinCleanableDirtyRatio float64
	MinCompactionLagMs     int64
	MaxCompactionLagMs     int64
	DeleteRetentionMs      int64

	MessageDownconversionEnable bool

	LeaderThrottledReplicas   ThrottledReplicas
	FollowerThrottledReplicas ThrottledReplicas
}

// Compression is compression.type of a topic.
type Compression int8

// The values of compression.type. The codecs have the numbers of the attributes
// of a batch; Producer keeps what the producer chose.
const (
	Producer     Compression = -1
	Uncompressed Compression = 0
	Gzip         Compression = 1
	Snappy       Compression = 2
	LZ4          Compression = 3
	Zstd         Compression = 4
)

var compressions = map[string]Compression{
	"producer": Producer, "uncompressed": Uncompressed, "gzip": Gzip, "snappy": Snappy, "lz4": LZ4, "zstd": Zstd,
}

// ThrottledReplicas is the value of leader. or
// follower.replication.throttled.replicas.
type ThrottledReplicas struct {
	All bool // "*"
	Of  []PartitionReplica
}

// PartitionReplica names one replica of a topic.
type PartitionReplica struct{ Partition, Broker int32 }

// Has reports whether the replica of a partition on a broker is throttled.
func (t ThrottledReplicas) Has(partition, broker int32) bool {
	return t.All || slices.Contains(t.Of, PartitionReplica{partition, broker})
}

var throttledPair = regexp.MustCompile(`^([0-9]+):([0-9]+)$`)

// parseThrottled reads a list of partition:broker, or a lone "*". Empty members
// are let through, as in Kafka (ThrottledReplicaListValidator).
func parseThrottled(items []string) (t ThrottledReplicas, ok bool) {
	if trim(strings.Join(items, "")) == "*" {
		return ThrottledReplicas{All: true}, true
	}
	for _, item := range items {
		if item == "" {
			continue
		}
		m := throttledPair.FindStringSubmatch(item)
		if m == nil {
			return t, false
		}
		partition, err1 := strconv.ParseInt(m[1], 10, 32)
		broker, err2 := strconv.ParseInt(m[2], 10, 32)
		if err1 == nil && err2 == nil { // larger ones name nothing that exists
			t.Of = append(t.Of, PartitionReplica{int32(partition), int32(broker)})
		}
	}
	return t, true
}

// DefaultTopic returns the configuration of a topic with no overrides on a
// broker with no properties.
func DefaultTopic() *Topic {
	b, err := NewBroker(nil)
	if err != nil {
		panic("config: the defaults are not valid: " + err.Error())
	}
	return b.topicDefault
}

// deriveTopic works out what a topic without overrides has, which is what the
// broker's properties say (KafkaConfig.extractLogConfigMap).
func (b *Broker) deriveTopic(p *problems) {
	m := make(map[string]value, len(topicTable.sorted))
	for _, d := range topicTable.sorted {
		if d.BrokerKey != "" {
			m[d.Name] = b.values[d.BrokerKey]
		} else {
			m[d.Name], _ = d.parse(d.Default)
		}
	}
	m["retention.ms"] = b.retentionMs()
	m["segment.ms"] = b.rollMs()
	m["segment.jitter.ms"] = b.rollJitterMs()
	m["flush.ms"] = b.firstOf("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
	difference := m["message.timestamp.difference.max.ms"]
	for _, key := range []string{"message.timestamp.before.max.ms", "message.timestamp.after.max.ms"} {
		if m[key] == int64(math.MaxInt64) {
			m[key] = difference
		}
	}
	if b.ibp >= V3_0IV0 {
		// Ignored since then (KIP-724).
		m["message.format.version"] = topicTable.get("message.format.version").Default
	}
	b.topicValues = m
	b.topicDefault = resolveTopic(m)
	checkTopic(p, m, map[string]string{
		"min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
		"max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
	})
}

// Topic resolves a topic's properties: its overrides, else what the broker's
// properties of the matching names say. The error is an [Errors] that names
// every override that Kafka would refuse. Even then the Topic is usable: what
// is wrong is left out of it, so that a znode somebody else wrote can't take a
// topic away.
func (b *Broker) Topic(overrides map[string]string) (*Topic, error) {
	if len(overrides) == 0 {
		return b.topicDefault, nil
	}
	var p problems
	values := b.topicOverrides(overrides, &p)
	checkTopic(&p, values, nil)
	return resolveTopic(values), p.err()
}

// ValidateTopic checks a topic's overrides as [Broker.Topic] does.
func (b *Broker) ValidateTopic(overrides map[string]string) error {
	_, err := b.Topic(overrides)
	return err
}

// topicOverrides returns the values of a topic by key.
func (b *Broker) topicOverrides(overrides map[string]string, p *problems) map[string]value {
	values := maps.Clone(b.topicValues)
	for key, text := range overrides {
		d := topicTable.get(key)
		if d == nil {
			p.add(UnknownKey, key, "Unknown topic config name: "+key)
			continue
		}
		v, reason := d.parse(text)
		if reason != "" {
			p.value(d, key, text, v, reason)
			continue
		}
		values[key] = v
	}
	return values
}

// checkTopic checks values against each other (LogConfig.validateValues and the
// rules on tiered storage in ZooKeeper mode). names maps topic keys to what the
// reader wrote, where that differs.
func checkTopic(p *problems, v map[string]value, names map[string]string) {
	name := func(key string) string {
		if n, ok := names[key]; ok {
			return n
		}
		return key
	}
	low, high := v["min.compaction.lag.ms"].(int64), v["max.compaction.lag.ms"].(int64)
	p.conflict(low <= high, name("min.compaction.lag.ms"), fmt.Sprintf("conflict topic config setting %s (%d) > %s (%d)",
		name("min.compaction.lag.ms"), low, name("max.compaction.lag.ms"), high))
	p.conflict(v["remote.storage.enable"] == false, "remote.storage.enable",
		"Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.")
	for _, key := range []string{"remote.log.copy.disable", "remote.log.delete.on.disable"} {
		p.conflict(v[key] == false, key,
			"It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under Zookeeper's mode.")
	}
}

// resolveTopic turns values into fields.
func resolveTopic(v map[string]value) *Topic {
	i32 := func(key string) int32 { return int32(v[key].(int64)) }
	i64 := func(key string) int64 { return v[key].(int64) }
	yes := func(key string) bool { return v[key].(bool) }
	policy := v["cleanup.policy"].([]string)
	t := &Topic{
		SegmentBytes:                i32("segment.bytes"),
		SegmentMs:                   i64("segment.ms"),
		SegmentJitterMs:             i64("segment.jitter.ms"),
		SegmentIndexBytes:           i32("segment.index.bytes"),
		IndexIntervalBytes:          i32("index.interval.bytes"),
		RetentionMs:                 i64("retention.ms"),
		RetentionBytes:              i64("retention.bytes"),
		MaxMessageBytes:             i32("max.message.bytes"),
		Compression:                 compressions[v["compression.type"].(string)],
		Delete:                      slices.Contains(policy, "delete"),
		Compact:                     slices.Contains(policy, "compact"),
		MinInsyncReplicas:           i32("min.insync.replicas"),
		UncleanLeaderElectionEnable: yes("unclean.leader.election.enable"),
		LogAppendTime:               v["message.timestamp.type"] == "LogAppendTime",
		TimestampBeforeMaxMs:        i64("message.timestamp.before.max.ms"),
		TimestampAfterMaxMs:         i64("message.timestamp.after.max.ms"),
		FlushMessages:               i64("flush.messages"),
		FlushMs:                     i64("flush.ms"),
		FileDeleteDelayMs:           i64("file.delete.delay.ms"),
		Preallocate:                 yes("preallocate"),
		MinCleanableDirtyRatio:      v["min.cleanable.dirty.ratio"].(float64),
		MinCompactionLagMs:          i64("min.compaction.lag.ms"),
		MaxCompactionLagMs:          i64("max.compaction.lag.ms"),
		DeleteRetentionMs:           i64("delete.retention.ms"),
		MessageDownconversionEnable: yes("message.downconversion.enable"),
	}
	switch t.Compression {
	case Gzip, LZ4, Zstd:
		t.CompressionLevel = int(i64("compression." + v["compression.type"].(string) + ".level"))
	}
	difference := i64("message.timestamp.difference.max.ms")
	if t.TimestampBeforeMaxMs == math.MaxInt64 {
		t.TimestampBeforeMaxMs = difference
	}
	if t.TimestampAfterMaxMs == math.MaxInt64 {
		t.TimestampAfterMaxMs = difference
	}
	t.LeaderThrottledReplicas, _ = parseThrottled(v["leader.replication.throttled.replicas"].([]string))
	t.FollowerThrottledReplicas, _ = parseThrottled(v["follower.replication.throttled.replicas"].([]string))
	return t
}
