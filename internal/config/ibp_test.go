package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestVersionsAreReadAsInKafka(t *testing.T) {
	for _, row := range lines(t, "kafka-3.9.1-versions.txt") {
		if row[1] == "is" {
			want := row[2]
			if want == "none" {
				want = ""
			}
			if got := resolveVersion(row[0]); got != want {
				t.Errorf("%s: got %q, Kafka says %q", row[0], got, want)
			}
			continue
		}
		v, err := ParseIBP(row[0])
		if before, after := strings.HasPrefix(row[0], "4."), row[0] < "2.4" || strings.HasPrefix(row[0], "0."); before || after {
			if err == nil {
				t.Errorf("%s is taken, and not supported", row[0])
			}
			continue
		}
		got := fmt.Sprintf("fetch=%d listoffsets=%d epoch=%d", v.Fetch(), v.ListOffsets(), v.OffsetsForLeaderEpoch())
		if want := strings.Join(row[1:], " "); err != nil || v.String() != row[0] || got != want {
			t.Errorf("%s: got %s %s, %v; Kafka has %s", row[0], v, got, err, want)
		}
	}
}

// The versions of the channels whose requests Kafka's MetadataVersion does not
// list: from ControllerChannelManager, TransactionMarkerChannelManager and
// KafkaServer.
func TestControlRequestVersions(t *testing.T) {
	tests := []struct {
		from                                           IBP
		leaderAndIsr, update, stop, shutdown, txnMarks int16
	}{
		{V2_4IV0, 3, 5, 1, 2, 0},
		{V2_4IV1, 4, 6, 2, 3, 0},
		{V2_6IV0, 4, 6, 3, 3, 0},
		{V2_8IV0, 4, 6, 3, 3, 1},
		{V2_8IV1, 5, 7, 3, 3, 1},
		{V3_2IV0, 6, 7, 3, 3, 1},
		{V3_4IV0, 7, 8, 4, 3, 1},
	}
	for v := V2_4IV0; v <= LatestIBP; v++ {
		want := tests[0]
		for _, test := range tests {
			if v >= test.from {
				want = test
			}
		}
		got := want
		got.leaderAndIsr, got.update, got.stop = v.LeaderAndIsr(), v.UpdateMetadata(), v.StopReplica()
		got.shutdown, got.txnMarks = v.ControlledShutdown(), v.WriteTxnMarkers()
		if got != want {
			t.Errorf("%s: got %v, want %v", v, got, want)
		}
	}
}

func TestIBPOfABroker(t *testing.T) {
	if got := mustBroker(t, nil).IBP(); got != V3_9IV0 {
		t.Errorf("default: %s", got)
	}
	if got := mustBroker(t, map[string]string{"inter.broker.protocol.version": "2.8"}).IBP(); got != V2_8IV1 {
		t.Errorf("2.8: %s", got)
	}
	for _, text := range []string{"2.3", "0.11.0", "4.0-IV1"} {
		_, err := NewBroker(map[string]string{"inter.broker.protocol.version": text})
		if err == nil || !strings.Contains(err.Error(), "2.4 to 3.9") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
