// Package core decides what the active controller does. It holds the cluster as
// the controller sees it (brokers, topics, assignments, leaders and ISRs,
// the states of partitions and replicas, deletions, reassignments) and turns
// events into effects: reads and fenced writes of ZooKeeper, requests to
// brokers, answers to callers.
//
// It owns memory only: no I/O, clock, lock or goroutine. The same events in
// the same order give the same effects, byte for byte. It refuses what other
// writers put into ZooKeeper and cannot be carried out, with one line of log
// for each such node, and goes on with the rest.
//
// An event runs to its end before the next one begins. Where it must wait for
// ZooKeeper, it leaves a continuation under a tag; events that arrive meanwhile
// are queued in order, and only the results of reads and writes go past them.
//
// Invariants:
//  1. The leader and ISR in memory are those of the last write or read of the
//     state node, with its data version; they change only when a write is
//     known to have happened.
//  2. A request is made after the write that it tells of, in the same event.
//  3. Every change of a leader or an ISR by the controller raises the leader
//     epoch by one; a change that a leader asked for leaves it (KIP-497).
//  4. A state whose controller_epoch is above this term's is never written:
//     another controller is active, and the term ends.
//  5. An ISR never becomes empty; a leader is in its ISR or is none.
//  6. Slices of replicas and ISRs are replaced and never changed in place:
//     requests and answers share them.
//  7. Effects that come from a map are ordered by topic and partition, or by
//     broker.
package core
