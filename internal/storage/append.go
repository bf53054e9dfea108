package storage

import "errors"

// Origin says who appends, for the checks of producer state.
type Origin uint8

// The origins, as Kafka's AppendOrigin has them.
const (
	Client      Origin = iota // all checks
	Coordinator               // group and transaction coordinators: epochs, not sequences
)

// AppendRequest is a validated set of records on its way into the log.
type AppendRequest struct {
	// Records is one or more v2 batches, as record.Validate left them: checked,
	// with offsets that count from 0. Append writes the offsets and the leader
	// epoch into them and keeps no reference.
	Records []byte
	// LeaderEpoch goes into each batch.
	LeaderEpoch int32
	// LogAppendTime is the time the broker gave the records (ms), or -1 for
	// CreateTime.
	LogAppendTime int64
	Origin        Origin
}

// AppendInfo says where a set went.
type AppendInfo struct {
	FirstOffset    int64
	LastOffset     int64
	MaxTimestamp   int64 // largest of the set, -1 when it has none
	LogAppendTime  int64 // -1 for CreateTime; for a duplicate, the timestamp of the batch kept
	LogStartOffset int64
	// Duplicate: an idempotent producer sent the set before; nothing was
	// appended, and the offsets are those of then.
	Duplicate bool
}

// Append writes a leader's set at the end of the log, in the page cache; it is
// readable when the call returns. Sets of one log are appended in the order in
// which they got the lock. Errors: ErrClosed, ErrOffline, ErrBatchTooLarge,
// ErrOutOfOrderSequence, ErrProducerFenced, ErrInvalidTxnState,
// ErrCoordinatorFenced, ErrInvalidBatch, or what the file system said.
func (l *Log) Append(req AppendRequest) (AppendInfo, error) { return AppendInfo{}, errors.ErrUnsupported }

// AppendFollower writes what a leader sent: whole batches of any format, with
// offsets and epochs given. The first must not lie below the end of the log
// (ErrUnexpectedOffset); gaps are what compaction leaves. Checksums are
// verified here, producers' sequences are not.
func (l *Log) AppendFollower(set []byte) (AppendInfo, error) { return AppendInfo{}, errors.ErrUnsupported }
