package znode

import (
	"errors"
	"strconv"
)

// MaxData is the largest node data that a decoder takes, in bytes: Kafka 3.9's
// jute.maxbuffer. ZooKeeper's own default limit is 1 MiB.
const MaxData = 4 << 20

var (
	// ErrFormat is the cause of a DecodeError for data that is not JSON, that
	// lacks a required key, or that holds a value of the wrong type.
	ErrFormat = errors.New("malformed znode data")
	// ErrVersion is the cause of a DecodeError for a "version" that Kafka 3.9
	// refuses too.
	ErrVersion = errors.New("unsupported znode version")
	// ErrTooLarge is the cause of a DecodeError for data above MaxData.
	ErrTooLarge = errors.New("znode data too large")
	// ErrPath is what path parsers answer for a path or a node name that is
	// not of their kind.
	ErrPath = errors.New("not a path of this kind")
)

// DecodeError tells why the data of a node could not be read. Its cause is
// ErrFormat, ErrVersion or ErrTooLarge. It is never retriable: the node has to
// change first.
type DecodeError struct {
	Kind   string // what was decoded, in words: "broker registration"
	Detail string // which key or position, and what is wrong with it
	Cause  error
}

// Error names the kind of node, the cause and the place.
func (e *DecodeError) Error() string {
	return e.Kind + ": " + e.Cause.Error() + ": " + e.Detail
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Cause }

func badVersion(kind string, version int32) error {
	return &DecodeError{Kind: kind, Cause: ErrVersion, Detail: strconv.Itoa(int(version))}
}
