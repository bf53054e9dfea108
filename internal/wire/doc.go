// Package wire holds the primitives of Kafka's network protocol: frames,
// request and response headers, cursors over a frame, identifiers and error
// codes.
//
// It owns no connection and starts no goroutine. A [Reader] walks a frame in
// place and never allocates more than the frame can back: each length and
// array count is checked against the bytes that are left before anything is
// made from it. A [Writer] appends to a slice that the caller owns.
//
// Message bodies that are not on a hot path are decoded by
// github.com/twmb/franz-go/pkg/kmsg; this package only cuts the header off.
//
// Everything on the wire is big-endian. "Flexible" versions are those of
// KIP-482: compact lengths (unsigned varint of length+1, 0 for null) and
// tagged fields.
package wire
