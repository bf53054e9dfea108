package coordinator

import (
	"errors"
	"io"

	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

// Log is what a shard asks of its partition.
type Log interface {
	// Append writes one batch at the end, for all replicas, and returns the
	// offset after it. It fails with a wire.Code or an error of storage: with
	// NOT_LEADER_OR_FOLLOWER when the run of leadership that the Log stands for
	// has ended. verified is storage.AppendRequest's.
	Append(set []byte, verified int64) (end int64, err error)
	// Await and what it calls are as replica.Partition's.
	Await(offset int64, w replica.AckWaiter, index int) (wire.Code, bool)
	// Bounds returns the start and the end of the log.
	Bounds() (start, end int64)
	// Read fills buf with batches from the one that holds offset on, the last of
	// which may be cut, none at or above upTo. If buf is too small for the first
	// batch, it returns a larger one.
	Read(offset, upTo int64, buf []byte) (read []byte, err error)
	// Epoch is the leader epoch in which the run began: the coordinator's epoch.
	Epoch() int32
	// MaxBatch is the largest batch that may be appended, in bytes.
	MaxBatch() int
}

// LeaderLog is the Log of a partition that this broker leads, for the run of
// leadership that goes on now.
func LeaderLog(p *replica.Partition) Log { return leaderLog{p, p.View().LeaderSince} }

type leaderLog struct {
	*replica.Partition
	since int32
}

func (l leaderLog) Append(set []byte, verified int64) (int64, error) {
	info, err := l.AppendSince(l.since, storage.AppendRequest{Records: set, LogAppendTime: -1, Origin: storage.Coordinator, Verified: verified})
	return info.LastOffset + 1, err
}

func (l leaderLog) Bounds() (start, end int64) {
	return l.Log().StartOffset(), l.Log().EndOffset()
}

func (l leaderLog) Epoch() int32 { return l.since }

func (l leaderLog) MaxBatch() int { return int(l.Log().Config().MaxMessageBytes) }

func (l leaderLog) Read(offset, upTo int64, buf []byte) ([]byte, error) {
	s, err := l.Log().Read(offset, len(buf), upTo, true)
	if err != nil {
		return nil, err
	}
	defer s.Release()
	if s.Len > len(buf) {
		buf = make([]byte, s.Len)
	}
	n, err := s.ReadAt(buf[:s.Len], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return buf[:n], nil
}

// Code turns what became of an append into what the client of a coordinator is
// told (Kafka's GroupMetadataManager and TransactionStateManager agree on
// these).
func Code(err error) wire.Code {
	switch code := storage.Code(err); code {
	case wire.UnknownTopicOrPartition, wire.NotEnoughReplicas, wire.NotEnoughReplicasAfterAppend, wire.RequestTimedOut:
		return wire.CoordinatorNotAvailable
	case wire.NotLeaderOrFollower, wire.KafkaStorageError:
		return wire.NotCoordinator
	case wire.MessageTooLarge, wire.RecordListTooLarge, wire.InvalidFetchSize:
		return wire.UnknownServerError
	default:
		return code
	}
}
