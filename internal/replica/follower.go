package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"barnabas/internal/record"
	"barnabas/internal/storage"
)

var (
	// errNotFollowing: the partition is not followed under this epoch any more.
	errNotFollowing = errors.New("the partition is not followed in this leader epoch")
	// errMoved: the log does not end where the fetch began.
	errMoved = errors.New("the log has another end than the fetch was for")
)

// following runs f while this broker follows in that leader epoch: a change of
// role waits for it (invariant 3).
func (p *Partition) following(epoch int32, f func(*storage.Log) error) error {
	p.role.RLock()
	defer p.role.RUnlock()
	if v := p.view.Load(); v.Role != Follower || v.LeaderEpoch != epoch {
		return errNotFollowing
	}
	return f(p.log)
}

// copied is what a leader sent for one partition.
type copied struct {
	offset             int64 // that was asked for
	set                []byte
	hw, start          int64 // the leader's
	divergingEpoch     int32 // -1: not diverging
	divergingEndOffset int64
}

// place is where a follower's log lies, as it tells the leader.
type place struct {
	start, end int64
	epoch      int32 // the latest, -1: none
}

func placeOf(log *storage.Log) place {
	return place{log.StartOffset(), log.EndOffset(), log.LatestEpoch()}
}

// take appends what the leader sent, and follows its high watermark and start
// (ReplicaFetcherThread.processPartitionData).
func (p *Partition) take(epoch int32, d *copied) (at place, err error) {
	set, err := wholeBatches(d.set)
	if err != nil {
		return at, err
	}
	err = p.following(epoch, func(log *storage.Log) error {
		if end := log.EndOffset(); end != d.offset {
			at = placeOf(log)
			return fmt.Errorf("%w: %d, not %d", errMoved, end, d.offset)
		}
		if len(set) > 0 {
			if _, err := log.AppendFollower(set); err != nil {
				return err
			}
		}
		p.follow(log, min(d.hw, log.EndOffset()))
		if d.start > log.StartOffset() {
			if err := log.RaiseStartOffset(d.start); err != nil {
				return err
			}
		}
		at = placeOf(log)
		return nil
	})
	return at, err
}

// follow sets a follower's high watermark, which may go back.
func (p *Partition) follow(log *storage.Log, hw int64) {
	if hw < 0 {
		return
	}
	log.SetHighWatermark(hw) // also when an ended leadership's last word came late
	if p.hw.Swap(hw) != hw {
		p.tellCommitted()
	}
}

// wholeBatches leaves out the piece of a batch that may end an answer.
func wholeBatches(set []byte) ([]byte, error) {
	s := record.Split(set)
	for s.Next() {
	}
	if err := s.Err(); err != nil && !errors.Is(err, record.ErrTorn) {
		return nil, err
	}
	return set[:s.Whole()], nil
}

// cutTo drops what the leader does not have.
func (p *Partition) cutTo(epoch int32, target int64) (at place, err error) {
	err = p.following(epoch, func(log *storage.Log) error {
		if end := log.EndOffset(); target < end {
			hw, level, what := p.hw.Load(), slog.LevelInfo, "truncating to what the leader has"
			if target < hw {
				level, what = slog.LevelWarn, "the leader does not have records that were acknowledged: they are lost"
			}
			p.m.o.Logger.Log(context.Background(), level, what, "partition", p.TopicPartition.String(),
				"records", end-target, "acknowledged", max(0, hw-target), "end", end, "to", target, "epoch", epoch)
		}
		if err := log.TruncateTo(target); err != nil { // of epochs without records, when not of records
			return err
		}
		at = placeOf(log)
		p.follow(log, min(p.hw.Load(), at.end))
		return nil
	})
	return at, err
}

// restart drops everything: the leader begins beyond the end of this log.
func (p *Partition) restart(epoch int32, start int64) (at place, err error) {
	err = p.following(epoch, func(log *storage.Log) error {
		p.m.o.Logger.Warn("the leader begins beyond the end of this log; starting anew there", "partition", p.TopicPartition.String(),
			"end", log.EndOffset(), "leader's start", start)
		if err := log.TruncateFullyAndStartAt(start); err != nil {
			return err
		}
		at = placeOf(log)
		p.follow(log, start)
		return nil
	})
	return at, err
}
