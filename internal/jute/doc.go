// Package jute holds ZooKeeper's encoding: the primitives, the records that a
// client and a server exchange, the operation numbers and the error codes of
// ZooKeeper 3.8.
//
// It owns no connection, reads no clock and starts no goroutine. Each record
// is a plain struct with Encode and Decode.
//
// On the wire (zookeeper.jute, Apache ZooKeeper 3.8) everything is big-endian:
//
//	int      4 bytes, signed
//	long     8 bytes, signed
//	boolean  1 byte; 0 is false, anything else true
//	buffer   int length and that many bytes; length -1 is null
//	ustring  the same, UTF-8
//	vector   int count and that many elements; count -1 is null
//
// A frame is an int length and that many bytes: a ConnectRequest or
// ConnectResponse first, then a RequestHeader and the request's record, or a
// ReplyHeader and the response's record (none when Err is not 0).
//
// Invariants:
//
//  1. A Decoder never allocates more than the bytes that are left can back:
//     each length and count is checked against them first.
//  2. After the first failure a Decoder returns zero values; Err tells.
//  3. Bytes after the last field of a record are left alone, as ZooKeeper does.
package jute
