package record

import (
	"errors"
	"fmt"

	"barnabas/internal/wire"
)

// ErrTorn is what a Splitter ends with when the bytes after the last whole
// entry are the beginning of another one. Kafka ignores such a tail in a
// request and cuts it from a log.
var ErrTorn = errors.New("torn entry at the end of the set")

// ErrDecompressedTooLarge is wrapped by the error of a compressed entry that
// grows beyond the limit that was given.
var ErrDecompressedTooLarge = errors.New("decompressed records exceed the limit")

// Error is what is wrong with a set or an entry. Its Code is what Kafka answers
// for it, and errors.Is(err, wire.CorruptMessage) holds for that code.
type Error struct {
	// Code is the error code for the client.
	Code wire.Code
	// Message says what is wrong, for people.
	Message string
	// Position is the byte position, in the set, of the entry that is wrong.
	Position int
	// Records are the records that were rejected, at most MaxRecordErrors.
	// Empty when the whole batch is wrong. (Produce v8 and later, KIP-467.)
	Records []RecordError

	cause error
}

// RecordError is one rejected record: its index in the batch and why.
type RecordError struct {
	Index   int32
	Message string
}

// MaxRecordErrors bounds Error.Records. Kafka lists all; a client that finds a
// record of a rejected batch missing in the list treats it as rejected because
// of the others, which is so.
const MaxRecordErrors = 1000

func (e *Error) Error() string { return e.Message }

// Is tells whether target is the code of e.
func (e *Error) Is(target error) bool {
	c, ok := target.(wire.Code)
	return ok && c == e.Code
}

// Unwrap returns the cause, such as ErrDecompressedTooLarge or ErrTorn.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code that Kafka answers for err: that of an [Error], None
// for nil, UnknownServerError for the rest.
func CodeOf(err error) wire.Code {
	var e *Error
	var c wire.Code
	switch {
	case err == nil:
		return wire.None
	case errors.As(err, &e):
		return e.Code
	case errors.As(err, &c):
		return c
	}
	return wire.UnknownServerError
}

func corrupt(format string, args ...any) *Error {
	return &Error{Code: wire.CorruptMessage, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *Error {
	return &Error{Code: wire.InvalidRecord, Message: fmt.Sprintf(format, args...)}
}
