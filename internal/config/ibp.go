package config

import (
	"fmt"
	"slices"
	"strings"
)

// IBP is a value of inter.broker.protocol.version: 2.4-IV0 to 3.9-IV0. Later
// versions compare greater. It fixes the request versions on the channels that
// never negotiate (MetadataVersion, ControllerChannelManager,
// ReplicaFetcherThread).
type IBP int8

// The inter-broker protocol versions.
const (
	V2_4IV0 IBP = iota
	V2_4IV1
	V2_5IV0
	V2_6IV0
	V2_7IV0
	V2_7IV1
	V2_7IV2
	V2_8IV0
	V2_8IV1
	V3_0IV0
	V3_0IV1
	V3_1IV0
	V3_2IV0
	V3_3IV0
	V3_3IV1
	V3_3IV2
	V3_3IV3
	V3_4IV0
	V3_5IV0
	V3_5IV1
	V3_5IV2
	V3_6IV0
	V3_6IV1
	V3_6IV2
	V3_7IV0
	V3_7IV1
	V3_7IV2
	V3_7IV3
	V3_7IV4
	V3_8IV0
	V3_9IV0

	LatestIBP = V3_9IV0
)

// allVersions are the names that Kafka 3.9.1 knows (MetadataVersion), oldest
// first.
var allVersions = strings.Fields(`0.8.0 0.8.1 0.8.2 0.9.0 0.10.0-IV0 0.10.0-IV1
	0.10.1-IV0 0.10.1-IV1 0.10.1-IV2 0.10.2-IV0 0.11.0-IV0 0.11.0-IV1 0.11.0-IV2
	1.0-IV0 1.1-IV0 2.0-IV0 2.0-IV1 2.1-IV0 2.1-IV1 2.1-IV2 2.2-IV0 2.2-IV1
	2.3-IV0 2.3-IV1 2.4-IV0 2.4-IV1 2.5-IV0 2.6-IV0 2.7-IV0 2.7-IV1 2.7-IV2
	2.8-IV0 2.8-IV1 3.0-IV0 3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2
	3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0
	3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1`)

var oldestIBP = slices.Index(allVersions, "2.4-IV0")

// resolveVersion returns the full name of a version as MetadataVersion finds
// it: only the first two numbers count (three, if the first is 0), and a name
// without IV means the last of its kind, unless that was not released with 3.9
// (4.0). It returns "" for no version.
func resolveVersion(s string) string {
	parts, keep := strings.Split(s, "."), 2
	if strings.HasPrefix(s, "0.") {
		keep = 3
	}
	if len(parts) > keep {
		s = strings.Join(parts[:keep], ".")
	}
	for _, name := range slices.Backward(allVersions) {
		if short, _, _ := strings.Cut(name, "-"); s == name || s == short && short != "4.0" {
			return name
		}
	}
	return ""
}

// ParseIBP reads a version as Kafka does: "2.8" and "2.8.2" are the last 2.8
// (2.8-IV1), "2.8-IV0" is itself. The error says which versions are supported.
func ParseIBP(s string) (IBP, error) {
	name := resolveVersion(trim(s))
	if name == "" {
		//lint:ignore ST1005 Kafka's words
		return 0, fmt.Errorf("Version %s is not a valid version", s)
	}
	v := slices.Index(allVersions, name) - oldestIBP
	if v < 0 || v > int(LatestIBP) {
		return 0, fmt.Errorf("version %s is not supported here: use one of 2.4 to 3.9", s)
	}
	return IBP(v), nil
}

// String returns the full name, such as 2.8-IV1.
func (v IBP) String() string { return allVersions[oldestIBP+int(v)] }

// step is the request version in use from an IBP on.
type step struct {
	from    IBP
	version int16
}

func at(v IBP, steps ...step) int16 {
	version := steps[0].version
	for _, s := range steps {
		if v >= s.from {
			version = s.version
		}
	}
	return version
}

// LeaderAndIsr returns the request version that the controller sends.
func (v IBP) LeaderAndIsr() int16 {
	return at(v, step{V2_4IV0, 3}, step{V2_4IV1, 4}, step{V2_8IV1, 5}, step{V3_2IV0, 6}, step{V3_4IV0, 7})
}

// UpdateMetadata returns the request version that the controller sends.
func (v IBP) UpdateMetadata() int16 {
	return at(v, step{V2_4IV0, 5}, step{V2_4IV1, 6}, step{V2_8IV1, 7}, step{V3_4IV0, 8})
}

// StopReplica returns the request version that the controller sends.
func (v IBP) StopReplica() int16 {
	return at(v, step{V2_4IV0, 1}, step{V2_4IV1, 2}, step{V2_6IV0, 3}, step{V3_4IV0, 4})
}

// ControlledShutdown returns the request version that a broker sends.
func (v IBP) ControlledShutdown() int16 { return at(v, step{V2_4IV0, 2}, step{V2_4IV1, 3}) }

// Fetch returns the request version that a follower sends; 13 and later fall
// back to 12 when any topic has no id.
func (v IBP) Fetch() int16 {
	return at(v, step{V2_4IV0, 11}, step{V2_7IV1, 12}, step{V3_1IV0, 13}, step{V3_5IV0, 14},
		step{V3_5IV1, 15}, step{V3_7IV4, 16}, step{V3_9IV0, 17})
}

// ListOffsets returns the request version that a follower sends.
func (v IBP) ListOffsets() int16 {
	return at(v, step{V2_4IV0, 5}, step{V2_8IV0, 6}, step{V3_0IV1, 7}, step{V3_5IV0, 8}, step{V3_9IV0, 9})
}

// OffsetsForLeaderEpoch returns the request version that a follower sends.
func (v IBP) OffsetsForLeaderEpoch() int16 { return at(v, step{V2_4IV0, 3}, step{V2_8IV0, 4}) }

// WriteTxnMarkers returns the request version that a coordinator sends.
func (v IBP) WriteTxnMarkers() int16 { return at(v, step{V2_4IV0, 0}, step{V2_8IV0, 1}) }
