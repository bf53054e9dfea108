package storage

import (
	"errors"

	"barnabas/internal/config"
	"barnabas/internal/wire"
)

// Log is one partition on this broker. All methods may be called from any
// goroutine. The first call that needs the files loads them.
type Log struct{}

// Partition returns the topic and partition.
func (l *Log) Partition() wire.TopicPartition { return wire.TopicPartition{} }

// TopicID returns the id in partition.metadata, zero when there is none.
func (l *Log) TopicID() wire.UUID { return wire.UUID{} }

// SetTopicID stores the topic's id in partition.metadata when there is none
// yet; ErrInconsistentTopicID when there is another.
func (l *Log) SetTopicID(id wire.UUID) error { return errors.ErrUnsupported }

// Dir returns the log directory that holds the partition.
func (l *Log) Dir() string { return "" }

// Config returns the topic's configuration in force.
func (l *Log) Config() *config.Topic { return nil }

// SetConfig replaces the topic's configuration; it takes effect at the next
// append, roll or round of retention.
func (l *Log) SetConfig(c *config.Topic) {}

// StartOffset returns the first offset that may be read.
func (l *Log) StartOffset() int64 { return 0 }

// EndOffset returns the offset that the next record will get (LEO).
func (l *Log) EndOffset() int64 { return 0 }

// HighWatermark returns what SetHighWatermark was last told, at first what the
// checkpoint says (0 without one), never outside of start and end.
func (l *Log) HighWatermark() int64 { return 0 }

// SetHighWatermark tells the log up to where (exclusive) it is replicated. The
// log writes it to replication-offset-checkpoint every few seconds and deletes
// no segment above it. It may go back (a new follower's).
func (l *Log) SetHighWatermark(offset int64) {}

// LastStableOffset returns the first offset of the earliest transaction that is
// still open below the high watermark, or the high watermark.
func (l *Log) LastStableOffset() int64 { return 0 }

// AbortedTransactions returns the aborted transactions with records in
// [from, upTo), for read_committed.
func (l *Log) AbortedTransactions(from, upTo int64) ([]AbortedTxn, error) {
	return nil, errors.ErrUnsupported
}

// RecoveryPoint returns the offset up to which the log is known to be on disk.
func (l *Log) RecoveryPoint() int64 { return 0 }

// Size returns the bytes of all segments.
func (l *Log) Size() int64 { return 0 }

// Err returns nil while the log can be used: else ErrOffline, ErrClosed, or why
// it could not be loaded.
func (l *Log) Err() error { return nil }

// Flush makes everything appended so far durable and moves the recovery point.
func (l *Log) Flush() error { return errors.ErrUnsupported }

// OffsetForTimestamp finds the first record with a timestamp (ms) of at least
// ts, as ListOffsets means it; found is false when there is none.
func (l *Log) OffsetForTimestamp(ts int64) (at TimestampOffset, found bool, err error) {
	return TimestampOffset{}, false, errors.ErrUnsupported
}

// MaxTimestamp finds the first record with the largest timestamp (ListOffsets
// with -3, KIP-734); found is false in an empty log.
func (l *Log) MaxTimestamp() (at TimestampOffset, found bool, err error) {
	return TimestampOffset{}, false, errors.ErrUnsupported
}

// LatestEpoch returns the newest leader epoch known, or -1.
func (l *Log) LatestEpoch() int32 { return -1 }

// EpochForOffset returns the leader epoch of an offset, or -1.
func (l *Log) EpochForOffset(offset int64) int32 { return -1 }

// AssignEpoch notes that a leader epoch begins at the end of the log, with or
// without a record to come; epochs that are not newer change nothing.
func (l *Log) AssignEpoch(epoch int32) error { return errors.ErrUnsupported }

// EndOffsetForEpoch answers OffsetForLeaderEpoch as Kafka's LeaderEpochFileCache
// does: the end offset of the largest epoch not above the one asked for.
func (l *Log) EndOffsetForEpoch(epoch int32) EpochEnd { return EpochEnd{-1, -1} }

// TruncateTo drops all batches that reach offset or beyond; the end becomes
// offset if it was larger.
func (l *Log) TruncateTo(offset int64) error { return errors.ErrUnsupported }

// TruncateFullyAndStartAt drops everything; start and end become offset.
func (l *Log) TruncateFullyAndStartAt(offset int64) error { return errors.ErrUnsupported }

// DeleteRecordsTo raises the start offset to offset (at most the high watermark,
// else ErrOffsetOutOfRange) and returns the start offset, which never goes back.
// -1 means the high watermark. On a topic that is only compacted it is ErrPolicy.
func (l *Log) DeleteRecordsTo(offset int64) (int64, error) { return 0, errors.ErrUnsupported }

// RaiseStartOffset is DeleteRecordsTo for a follower, which is told by its
// leader: no policy applies.
func (l *Log) RaiseStartOffset(offset int64) error { return errors.ErrUnsupported }
