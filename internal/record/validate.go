package record

// Origin is who appends (Kafka's AppendOrigin).
type Origin int8

// A client may not write control batches and must number its batches from 0; a
// coordinator, inside the broker, may write control batches.
const (
	OriginClient Origin = iota
	OriginCoordinator
)

// ValidateOptions are the rules of one append by a leader. The zero value
// accepts no limit and no timestamp bounds; set what the topic has.
type ValidateOptions struct {
	// Version is the version of the Produce request, which decides the formats
	// that are allowed. Coordinators use the newest, 11.
	Version int16
	Origin  Origin
	// Now is the broker's time in milliseconds since 1970.
	Now int64
	// Codec is compression.type; ProducerCodec keeps what came. Level is the
	// level for that codec, or DefaultLevel.
	Codec Codec
	Level int
	// TimestampType is message.timestamp.type.
	TimestampType TimestampType
	// BeforeMaxMs and AfterMaxMs are message.timestamp.before.max.ms and
	// message.timestamp.after.max.ms. Both are always applied (to CreateTime);
	// Kafka's default for the first, 2^63-1, is no bound.
	BeforeMaxMs, AfterMaxMs int64
	// Compacted topics take no record without a key.
	Compacted bool
	// MaxBatchBytes is max.message.bytes, checked on what came and again on
	// what a conversion made. 0 is no limit.
	MaxBatchBytes int
	// MaxRecords bounds the records of the set; 0 is no limit.
	MaxRecords int
	// DecompressLimit bounds the decompressed bytes; 0 is DefaultLimit.
	DecompressLimit int
}

// Validated is a set that may be appended, with the facts that the log needs.
type Validated struct {
	// Set is one v2 batch with base offset 0 (invariant 1), or empty if the
	// given set was, which only Produce v0 to v2 may send.
	Set []byte
	// Aliases tells that Set is part of the given set, changed in place.
	Aliases bool
	// Records is the number of records; LastOffsetDelta is one less.
	Records         int32
	LastOffsetDelta int32
	// MaxTimestamp is the largest timestamp in milliseconds, and
	// MaxTimestampDelta the offset delta of the first record that has it, -1 if
	// no record has one. With LogAppendTime it is Now, at the first record.
	MaxTimestamp      int64
	MaxTimestampDelta int32
	// LogAppendTime is Now for a topic with LogAppendTime, else NoTimestamp: it
	// is what the Produce response says.
	LogAppendTime int64
	// Codec is that of Set.
	Codec Codec
	// The producer's fields; LastSequence is that of the last record.
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	LastSequence  int32
	Transactional bool
	Control       bool
	// Converted is how many records were rebuilt: from an older format or for
	// another codec. 0 for a set that is stored as it came.
	Converted int32
}

// Validate checks a set as the leader of a partition does before it appends it
// (Kafka's LogValidator and UnifiedLog.analyzeAndValidateRecords, with v2 as
// the format of the log). It may change set in place: timestamp type and
// maximum timestamp, with the CRC, and the header that AssignOffsets changes
// later. The error is an [Error]; set has no use then.
func Validate(set []byte, o ValidateOptions) (Validated, error) {
	return validate(set, &o)
}
