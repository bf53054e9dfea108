// Package replica holds the partitions that this broker has a replica of: who
// leads, who is in sync, and up to where a partition is replicated.
//
// # What it owns
//
// A [Manager] owns the table of partitions and applies the controller's
// LeaderAndIsr and StopReplica requests to it. A [Partition] owns its role, its
// leader epoch, its ISR, its high watermark and the waits that hang on them:
// produce requests with acks=all wait for the high watermark, fetch requests
// for something new. The bytes belong to storage.Log.
//
// With [Options.Cluster] it also owns the goroutines that replicate: fetchers
// copy what other brokers lead, num.replica.fetchers a leader, each with one
// connection and one fetch session; one looks at every half of
// replica.lag.time.max.ms for followers that have fallen behind; one carries
// out changes of ISRs, one request in flight: through the controller
// (AlterPartition) or, below inter-broker protocol version 2.7-IV2, by writing
// the partition's state and a node under /isr_change_notification. All end with
// [Manager.Close].
//
// What decides (which ISR, which high watermark, up to where a follower keeps
// its log) has no lock, clock or I/O and lies alone in isr.go and
// truncation.go; the rest applies it.
//
// # What it refuses
//
// It validates no records and knows no wire format but that of the controller's
// requests and of Fetch as a follower speaks it. It polls nothing but leaders: a
// wait is woken by the append, the movement of
// the high watermark or the change of role that ends it, or by its own timer.
//
// # Locks
//
// Manager.mu orders the controller's requests; they create and open logs under
// it, which is its purpose (Kafka's replicaStateChangeLock). Logs are configured
// under it too, so that none is made with what was replaced meanwhile; a
// subscriber of config.Dynamic, which has a lock of its own, does so: nothing
// under Manager.mu changes or subscribes to that. Lookups take no lock.
// Partition.role is held shared over an append and exclusively over a change of
// role, so that nothing is appended under an epoch that has ended: it is, with
// the log's append lock, the exception to "no lock over I/O".
// fetchers.mu guards which fetcher copies what and what has changed of that; a
// fetcher's own state belongs to its goroutine. Partition.mu guards the
// replicas' progress, the change of the ISR that was asked for and, where there
// are followers, the movement of the high watermark; Partition.acks and
// Partition.subs guard the waits. throttle.mu guards the counts of one throttle
// and is a leaf. Order: Manager.mu, Partition.role, Partition.acks, then
// Partition.mu; the log's locks and subs are taken with neither acks nor
// Partition.mu held. subs is a leaf as far as this package goes: a [Subscriber]
// is called under it and takes no lock of this package.
//
// # Invariants
//
//  1. A leader's high watermark never goes back, and it is never beyond what
//     every member of the maximal ISR has. It moves in the same step in which it
//     is found how far it may, so that nobody joins the ISR in between.
//  2. A partition's leader epoch never goes back. A request of the controller
//     with an older epoch changes nothing.
//  3. Nothing is appended by a leader whose epoch has ended.
//  4. Each wait ends exactly once. A wait that begins looks again after it has
//     been entered, so that it misses no movement.
//  5. The newest leader epoch is in the log's epochs before the first append
//     under it, also when none comes.
//  6. A follower appends and truncates only under the leader epoch in force, and
//     appends only what begins at its end.
//  7. An ISR that was asked for counts with the one in force, whichever is
//     larger, until the answer is known: an answer that may be lost takes
//     nothing back.
//  8. A follower joins the ISR only with everything below the high watermark and
//     the start of the leader's epoch.
//  9. A change of the ISR follows the version in force: it is asked for under
//     Partition.mu, under which that version changes too.
package replica
