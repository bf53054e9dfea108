package config

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
	CompressionLevel int // of the codec named, in that codec's own scale; Kafka's default when unset

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

// ThrottledReplicas is the value of leader. or
// follower.replication.throttled.replicas.
type ThrottledReplicas struct {
	All bool // "*"
	Of  []PartitionReplica
}

// PartitionReplica names one replica of a topic.
type PartitionReplica struct{ Partition, Broker int32 }

// DefaultTopic returns the configuration of a topic with no overrides on a
// broker with no properties.
func DefaultTopic() *Topic { panic("todo") }

// ValidateTopic checks a topic's overrides as [Broker.Topic] does.
func (b *Broker) ValidateTopic(overrides map[string]string) error { panic("todo") }
