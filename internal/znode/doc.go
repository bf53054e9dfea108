// Package znode knows every node that Kafka keeps in ZooKeeper: its path, and
// its data in each version that Kafka 0.8 to 3.9 reads and writes.
//
// It owns names and bytes only. It does no I/O, holds no lock, starts no
// goroutine and reads no clock. It refuses to know who writes or watches a
// node; that belongs to the components which do. One file holds one family:
// path functions, the struct, Encode and Decode.
//
// Bytes: Kafka's data is UTF-8 JSON (or plain decimal text, or nothing). The
// key order of JSON is of no meaning to any reader; we write the order that
// Kafka's own brokers write, so that a person who compares two trees sees
// equal text.
//
// What holds:
//
//  1. Whatever the bytes, a decoder returns a value or an error that is
//     [ErrFormat], [ErrVersion] or [ErrTooLarge] (with errors.Is); it never
//     panics and never allocates more than a small multiple of its input.
//  2. Unknown keys are skipped, a repeated key counts where it stands last,
//     and bytes after the first JSON value are ignored, as in Kafka's parser
//     (kafka.utils.Json over Jackson).
//  3. A number with a fraction or an exponent is never an integer, and one
//     that does not fit is never cut.
//  4. No JSON number above 2^31-1 is written below /brokers, /consumers and
//     /controller: clients of 0.8 stop at one wherever it stands. Timestamps
//     and producer ids are therefore decimal strings.
//  5. Decoding what was encoded gives an equal value.
//
// Paths are relative to the chroot of zookeeper.connect.
package znode
