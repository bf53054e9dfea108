package config

// IBP is a value of inter.broker.protocol.version: 2.4-IV0 to 3.9-IV0. Later
// versions compare greater.
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

// ParseIBP reads a version as Kafka does: "2.8" and "2.8.2" are the last 2.8
// (2.8-IV1), "2.8-IV0" is itself.
func ParseIBP(s string) (IBP, error) { panic("todo") }

// String returns the full name, such as 2.8-IV1.
func (v IBP) String() string { panic("todo") }

// LeaderAndIsr returns the request version that the controller sends.
func (v IBP) LeaderAndIsr() int16 { panic("todo") }

// UpdateMetadata returns the request version that the controller sends.
func (v IBP) UpdateMetadata() int16 { panic("todo") }

// StopReplica returns the request version that the controller sends.
func (v IBP) StopReplica() int16 { panic("todo") }

// ControlledShutdown returns the request version that a broker sends.
func (v IBP) ControlledShutdown() int16 { panic("todo") }

// Fetch returns the request version that a follower sends; 13 and later fall
// back to 12 when any topic has no id.
func (v IBP) Fetch() int16 { panic("todo") }

// ListOffsets returns the request version that a follower sends.
func (v IBP) ListOffsets() int16 { panic("todo") }

// OffsetsForLeaderEpoch returns the request version that a follower sends.
func (v IBP) OffsetsForLeaderEpoch() int16 { panic("todo") }

// WriteTxnMarkers returns the request version that a coordinator sends.
func (v IBP) WriteTxnMarkers() int16 { panic("todo") }
