package replica

import (
	"testing"

	"barnabas/internal/storage"
)

func TestTruncationFollowsTheLeadersAnswer(t *testing.T) {
	// A follower's log: epoch 1 in [0, 10), epoch 3 in [10, 20), epoch 5 in [20, 30).
	own := func(epoch int32) storage.EpochEnd {
		switch {
		case epoch > 5 || epoch < 0:
			return storage.EpochEnd{Epoch: -1, EndOffset: -1}
		case epoch == 5:
			return storage.EpochEnd{Epoch: 5, EndOffset: 30}
		case epoch >= 3:
			return storage.EpochEnd{Epoch: 3, EndOffset: 20}
		case epoch >= 1:
			return storage.EpochEnd{Epoch: 1, EndOffset: 10}
		}
		return storage.EpochEnd{Epoch: epoch, EndOffset: 0}
	}
	for _, c := range []struct {
		what   string
		leader storage.EpochEnd
		target int64
		done   bool
	}{
		{"the leader knows nothing", storage.EpochEnd{Epoch: -1, EndOffset: -1}, 7, true},
		{"the leader tells no epoch", storage.EpochEnd{Epoch: -1, EndOffset: 25}, 25, true},
		{"the leader tells no epoch, and has more", storage.EpochEnd{Epoch: -1, EndOffset: 99}, 30, true},
		{"the leader ended the same epoch earlier", storage.EpochEnd{Epoch: 5, EndOffset: 22}, 22, true},
		{"the leader ended the same epoch later", storage.EpochEnd{Epoch: 5, EndOffset: 40}, 30, true},
		{"the leader has an older epoch only", storage.EpochEnd{Epoch: 3, EndOffset: 15}, 15, true},
		{"the leader has more of the older epoch", storage.EpochEnd{Epoch: 3, EndOffset: 28}, 20, true},
		{"the leader's epoch is unknown here", storage.EpochEnd{Epoch: 4, EndOffset: 26}, 20, false},
		{"the leader's epoch is before all here", storage.EpochEnd{Epoch: 0, EndOffset: 5}, 0, true},
		{"the leader's epoch is after all here", storage.EpochEnd{Epoch: 6, EndOffset: 27}, 27, true},
	} {
		if target, done := truncation(c.leader, own, 30, 7); target != c.target || done != c.done {
			t.Errorf("%s: to %d, done %v; want %d, %v", c.what, target, done, c.target, c.done)
		}
	}
}
