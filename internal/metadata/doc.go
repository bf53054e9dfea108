// Package metadata keeps what the controller's UpdateMetadata requests told
// this broker: the live brokers with their addresses, who the controller is,
// and each partition's leader, ISR and replicas. It is what Metadata answers
// come from, and nothing else is: a broker that has heard nothing yet knows no
// broker, not even itself.
//
// It owns no file, no connection and no goroutine. Whether a request is stale is
// decided by who took it from the wire; what only [Cache.Update] can tell is that
// a later controller's was applied meanwhile.
//
// Locks: Cache.mu serializes updates and guards the waiters' channel. Readers
// take no lock.
//
// Invariants:
//  1. A [Cluster], a [Broker], a [Topic] and a [Partition] never change once
//     published. An update copies the topics it names and no others.
//  2. The live brokers and the controller replace what was known; partitions
//     merge; a leader of -2 removes its partition, and the last partition its
//     topic; topic ids merge, and a zero id removes the topic's
//     (ZkMetadataCache of Apache Kafka 3.9).
//  3. Brokers are published before topics: a reader may meet a partition whose
//     leader just went away, but none whose leader is not announced yet.
//  4. Whoever took the channel of [Cache.Changed] before looking misses no
//     later change.
package metadata
