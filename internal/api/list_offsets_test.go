package api

import (
	"fmt"
	"testing"

	"barnabas/internal/storage"
)

func TestOldListOffsetsAnswersSegmentStarts(t *testing.T) {
	segments := []storage.SegmentTime{{Start: 0, Modified: 100}, {Start: 10, Modified: 200}, {Start: 20, Modified: 300}}
	for _, try := range []struct {
		timestamp int64
		most      int
		want      string
	}{
		{latestOffset, 10, "[25 20 10 0]"},
		{latestOffset, 1, "[25]"},
		{latestOffset, 0, "[]"},
		{earliestOffset, 10, "[0]"},
		{99, 10, "[]"},
		{100, 10, "[0]"},
		{250, 10, "[10 0]"},
		{250, 1, "[10]"},
		{5000, 2, "[25 20]"},
	} {
		if got := fmt.Sprint(offsetsBefore(segments, 25, try.timestamp, 1000, try.most)); got != try.want {
			t.Errorf("%d at most %d: %s, want %s", try.timestamp, try.most, got, try.want)
		}
	}
	if got := fmt.Sprint(offsetsBefore([]storage.SegmentTime{{Start: 0}}, 0, latestOffset, 1000, 9)); got != "[0]" {
		t.Errorf("empty log: %s", got)
	}
	if got := fmt.Sprint(belowWatermark([]int64{25, 20, 10, 0}, 15)); got != "[15 10 0]" {
		t.Errorf("below the high watermark: %s", got)
	}
}
