// Package txn decides for transactions: who may write as a transactional id,
// which partitions its transaction has, and how it ends
// (kafka.coordinator.transaction.TransactionCoordinator).
//
// # What it owns
//
// A [Machine] is the transactional ids of one partition of __transaction_state,
// as a coordinator.Machine: requests, timers and records come in with the time,
// and records, replies, timers and commands come out. Its bytes are those of
// Kafka in ZooKeeper mode (see record.go). Package markers carries out one of the
// commands: it has the leaders of a transaction's partitions write its end.
//
// # What it refuses
//
// A Machine has no I/O, clock, lock or goroutine; it takes producer ids as
// arguments and knows of no topic.
//
// # Invariants
//
//  1. A transactional id has one producer id and epoch at a time. Each
//     InitProducerId that succeeds raises the epoch, or takes a new id when there
//     is no higher one; all older ones are fenced.
//  2. What a transaction becomes is decided once: by the record PrepareCommit or
//     PrepareAbort. Markers are written only after that is committed, and again
//     by each later coordinator until the record Complete* is there.
//  3. No transaction begins for an id before Complete* of the one before.
//  4. lastEpoch, which makes the retry of an InitProducerId whose answer was
//     lost succeed, lives in memory only, as in Kafka.
package txn
