// Package coordinator runs the coordinators of groups and of transactions: the
// part that both have in common, as Kafka's CoordinatorRuntime is.
//
// # What it owns
//
// A [Runtime] owns one shard for each partition of an internal topic that this
// broker leads. A shard owns a [Machine], which is the coordinator's state and
// its decisions, and brings it events one at a time: requests, timers that have
// run out, the end of a load. What an event does comes back as [Effects]:
// records, replies and timers. The runtime appends the records to the partition
// with acks=all and has the machine replay them; at the start of leadership it
// has the machine replay the whole partition, by the same code.
//
// # What it refuses
//
// It knows no key and no value of a record. It polls nothing: timers are
// entries of a heap, and one time.Timer stands for the earliest. A shard
// without events has no goroutine.
//
// # Locks
//
// Runtime.mu guards the table of shards, shard.mu a shard's queue and its
// phase. Both are leaves: nothing is called under them. All else of a shard
// belongs to the goroutine that works its queue off; there is at most one, and
// it ends when the queue is empty. It is that of the caller of Do, for a while,
// if there is no other: so Do must not be called under a lock that callers,
// commands or the log take.
//
// # Invariants
//
//  1. Events of one partition are decided in the order in which they came, and
//     their records lie in the log in that order. Only a shard appends to its
//     partition: the markers of transactions in __consumer_offsets too.
//  2. Replay happens when the records are made, before they are committed. A
//     reply leaves when all records that its decision could have seen are
//     committed, unless the machine says that it need not wait.
//  3. If an append fails, the machine is dropped and, if this broker still leads,
//     the partition loaded again, after a pause that grows while appends fail;
//     there is no other rollback. Nothing decided by a machine that was dropped
//     is appended.
//  4. A shard appends only in the run of leadership in which it loaded.
//  5. Each [Caller] is answered or failed exactly once by the runtime.
//  6. Loading takes memory for one read of the log at a time, and for the state.
package coordinator
