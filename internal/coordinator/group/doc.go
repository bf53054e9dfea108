// Package group decides for consumer groups of the classic protocol: who is a
// member, when a group rebalances, and which offsets are committed
// (kafka.coordinator.group.GroupCoordinator, GroupMetadataManager).
//
// # What it owns
//
// A [Machine] is the groups of one partition of __consumer_offsets. It is a
// coordinator.Machine: requests, timers and records come in with the time, and
// records, replies and timers come out. Its bytes are those of Kafka 2.4 to 3.9
// in ZooKeeper mode (see records.go); the key versions of the newer protocol
// (KIP-848) are foreign.
//
// # What it refuses
//
// It has no I/O, clock, lock, goroutine or source of randomness. It knows of no
// topic and no permission: its callers check those. What a protocol type other
// than "consumer" puts into metadata and assignments, it passes on unread.
//
// # Invariants
//
//  1. A group's generation grows by one with each join phase that ends.
//  2. In one generation each member gets what the leader of that generation
//     assigned, once that is committed, or nothing.
//  3. An offset that was answered as committed is there until it is committed
//     anew, deleted or expired, whatever is loaded again.
//  4. Members are named by ids that only the coordinator makes; a static
//     member's older id is fenced as soon as there is a newer one.
//  5. Replaying the log gives the state that made it, less what only lives in
//     memory: join phases, requests that wait, timers.
package group
