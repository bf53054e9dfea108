package storage

import (
	"errors"
	"fmt"

	"barnabas/internal/wire"
)

// The errors of this package; all but [CorruptionError] are compared with
// errors.Is. [Code] maps each to the protocol.
var (
	// ErrClosed: the log or manager was closed, or the log deleted.
	ErrClosed = errors.New("log is closed")
	// ErrOffline: the log directory failed (a write that could not be taken
	// back, or a sync) and serves no more until the broker starts again.
	ErrOffline = errors.New("log directory is offline")
	// ErrDiskFull: the disk of the log directory is almost full.
	ErrDiskFull = errors.New("the disk is full")
	// ErrOffsetOutOfRange: the offset lies below the start or beyond the end.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrUnexpectedOffset: a follower's append does not continue the log.
	ErrUnexpectedOffset = errors.New("offsets do not continue the log")
	// ErrBatchTooLarge: the set is larger than segment.bytes.
	ErrBatchTooLarge = errors.New("record set is larger than a segment")
	// ErrOutOfOrderSequence: an idempotent producer left a gap, or repeats a
	// batch that is no longer remembered.
	ErrOutOfOrderSequence = errors.New("producer sequence out of order")
	// ErrProducerFenced: the producer's epoch is older than one seen.
	ErrProducerFenced = errors.New("producer epoch is fenced")
	// ErrInvalidTxnState: a batch does not fit the producer's transaction.
	ErrInvalidTxnState = errors.New("batch does not fit the transaction's state")
	// ErrCoordinatorFenced: a transaction marker from an older coordinator.
	ErrCoordinatorFenced = errors.New("transaction coordinator epoch is fenced")
	// ErrInvalidBatch: a set that no validation can have passed.
	ErrInvalidBatch = errors.New("malformed record set")
	// ErrInconsistentTopicID: the folder belongs to another topic of the name.
	ErrInconsistentTopicID = errors.New("partition folder holds another topic id")
	// ErrExists: the partition exists already.
	ErrExists = errors.New("partition exists")
	// ErrNotFound: no such partition here.
	ErrNotFound = errors.New("no such partition")
	// ErrPolicy: records of a compact-only topic are not deleted by offset.
	ErrPolicy = errors.New("cleanup.policy does not allow deleting records")
	// ErrNoDir: no log directory is online.
	ErrNoDir = errors.New("no log directory is online")
	// ErrNoSuchDir: the broker has no log directory of this name.
	ErrNoSuchDir = errors.New("no such log directory")
	// ErrMeta: meta.properties is damaged or belongs to somebody else.
	ErrMeta = errors.New("meta.properties does not fit")
)

// CorruptionError says where stored bytes are not what was written.
type CorruptionError struct {
	Path    string // the file
	Segment int64  // base offset of the segment, -1 for other files
	Offset  int64  // record offset as far as it is known, else -1
	Pos     int64  // byte position in the file
	Cause   error
}

func (e *CorruptionError) Error() string {
	return fmt.Sprintf("corrupt at byte %d of %s (segment %d, offset %d): %v", e.Pos, e.Path, e.Segment, e.Offset, e.Cause)
}

func (e *CorruptionError) Unwrap() error { return e.Cause }

// Code returns the error code that tells a client of err: wire.None for nil,
// the code itself where err carries one, and KAFKA_STORAGE_ERROR for what the
// disk did (Kafka answers so, and clients then look for another leader).
func Code(err error) wire.Code {
	var code wire.Code
	var corrupt *CorruptionError
	switch {
	case err == nil:
		return wire.None
	case errors.Is(err, ErrClosed), errors.Is(err, ErrNotFound):
		return wire.NotLeaderOrFollower
	case errors.Is(err, ErrOffline), errors.Is(err, ErrNoDir), errors.Is(err, ErrDiskFull):
		return wire.KafkaStorageError
	case errors.Is(err, ErrOffsetOutOfRange):
		return wire.OffsetOutOfRange
	case errors.Is(err, ErrUnexpectedOffset), errors.Is(err, ErrMeta), errors.Is(err, ErrExists):
		return wire.UnknownServerError
	case errors.Is(err, ErrBatchTooLarge):
		return wire.RecordListTooLarge
	case errors.Is(err, ErrOutOfOrderSequence):
		return wire.OutOfOrderSequenceNumber
	case errors.Is(err, ErrProducerFenced):
		return wire.InvalidProducerEpoch
	case errors.Is(err, ErrInvalidTxnState):
		return wire.InvalidTxnState
	case errors.Is(err, ErrCoordinatorFenced):
		return wire.TransactionCoordinatorFenced
	case errors.Is(err, ErrInvalidBatch), errors.As(err, &corrupt):
		return wire.CorruptMessage
	case errors.Is(err, ErrInconsistentTopicID):
		return wire.InconsistentTopicID
	case errors.Is(err, ErrNoSuchDir):
		return wire.LogDirNotFound
	case errors.Is(err, ErrPolicy):
		return wire.PolicyViolation
	case errors.As(err, &code):
		return code
	default:
		return wire.KafkaStorageError
	}
}
