// Package record knows the bytes of messages as Kafka keeps and ships them:
// message sets of format v0 and v1, record batches of format v2, and the
// compression inside them.
//
// It owns these bytes and nothing else: no file, connection, clock or
// goroutine. The time is an argument. A set is a []byte of entries one after
// another; an entry is a [Batch], which is a v0 or v1 message (with, when it is
// compressed, a whole set inside its value) or a v2 record batch:
//
//	offset  0   offset        int64   v2: of the first record; v0, v1: of the last
//	        8   length        int32   bytes that follow this field
//	       12   ...                   v2: leader epoch; v0, v1: CRC-32
//	       16   magic         int8    0, 1 or 2, at the same place in each format
//	       17   ...
//
// The three formats are drawn in batch.go and legacy.go.
//
// The package refuses what it can't bound: a length is checked against the
// bytes that are there before it is used, and a decompression ends at a limit
// that the caller gives.
//
// # Locks
//
// A value of this package belongs to one goroutine at a time; functions may run
// at the same time on different sets. Decoders and encoders come from pools that
// are safe for concurrent use. Nothing is held across a call from outside, except
// that [Validate] may wait for its turn with a large set.
//
// # Invariants
//
//  1. What [Validate] returns is one v2 batch whose base offset is 0, whose
//     records have the offset deltas 0..n-1, and whose CRC, count, last offset
//     delta and maximum timestamp are right.
//  2. A batch that is valid and needs no conversion is never re-encoded and
//     costs no allocation: its bytes alias the input.
//  3. Bytes that are not whole are never an entry: a [Splitter] stops before
//     them and says how many bytes are whole.
//  4. Memory taken for an input is at most a small multiple of its length,
//     plus what its compressed parts really decompress to, plus a constant; and
//     never beyond the given limit.
//  5. Offset and leader epoch lie outside the CRC of v2, so assigning them
//     changes 12 bytes and leaves the CRC. Timestamp type and maximum timestamp
//     lie inside.
//  6. Sets from clients that decompress to more than 8 MiB are validated without
//     holding what they decompress to; where that can't be (snappy, lz4, another
//     codec or format for the log, records to be rejected one by one), two at a
//     time. So many small requests which grow (up to the limit each) can't take
//     all memory together.
package record
