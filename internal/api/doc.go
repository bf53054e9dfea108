// Package api serves Kafka's requests: one file for each API key, which holds
// the versions it serves, what each version added, its limits and its handler,
// and registers itself. The registry feeds dispatch, ApiVersions, the memory
// limits and docs/apis.md, so they can't drift apart.
//
// Handlers run on the goroutine that reads the connection and must not block:
// what has to wait (acks=all, fetch waits) is parked and finished later from
// another goroutine; what asks ZooKeeper runs in the background, on a goroutine
// that Broker owns and ends. State lives in the lower packages; a handler checks
// its input, calls them, and writes the answer.
//
// It refuses null where Kafka has none, versions and kinds it does not know,
// and what Apache Kafka 3.9 refuses, with Kafka's codes; what reaches a client
// of another error is UNKNOWN_SERVER_ERROR, and its text goes to the log.
//
// In ZooKeeper it writes what Kafka's brokers write: /config with
// /config/changes, /latest_producer_id_block, and /consumers for the offsets of
// version 0. Topics are the controller's to write.
//
// Locks: Broker.work guards the life of background goroutines; producerIDs.mu
// guards the block of producer ids in use. Neither is held over I/O, nor while
// the other is taken, but for producerIDs.mu, then Broker.work.
//
// Invariants:
//  1. Each request ends in exactly one of Request.Done, Skip or Fail.
//  2. A malformed body never panics and closes the connection. A panic in
//     background work costs its client the connection, and no more.
//  3. Nothing is advertised that is not served.
//  4. Requests of one connection that work in the background follow one
//     another.
//  5. A producer id is handed out once: its block was taken from ZooKeeper by
//     a write on the version that was read.
//  6. Entities are configured whole or not at all, and every write of a config
//     is followed by its notification.
package api
