package replica

import "barnabas/internal/storage"

// epochEnds answers where a leader epoch ended in a follower's own log
// (storage.Log.EndOffsetForEpoch).
type epochEnds func(epoch int32) storage.EpochEnd

// truncation decides up to where a follower keeps its log, given the leader's
// answer for the follower's latest epoch, and whether that is all: if not, the
// leader is asked again for the epoch that is then the latest
// (AbstractFetcherThread.getOffsetTruncationState).
func truncation(leader storage.EpochEnd, own epochEnds, end, hw int64) (target int64, done bool) {
	switch {
	case leader.EndOffset < 0: // it knows of no such epoch
		return hw, true
	case leader.Epoch < 0: // it is of a time before epochs were told
		return min(leader.EndOffset, end), true
	}
	mine := own(leader.Epoch)
	switch {
	case mine.EndOffset < 0:
		return min(leader.EndOffset, end), true
	case mine.Epoch != leader.Epoch: // the leader's epoch is not in this log
		return min(mine.EndOffset, end), false
	default:
		return min(mine.EndOffset, leader.EndOffset, end), true
	}
}
