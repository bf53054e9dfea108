// Package group decides for groups: who is a member, when a group rebalances,
// and which offsets are committed (kafka.coordinator.group.GroupCoordinator,
// GroupMetadataManager). Groups are of the classic protocol, in which a member
// assigns, or of the consumer protocol (KIP-848), in which the coordinator does
// (org.apache.kafka.coordinator.group.GroupMetadataManager); one may become the
// other while it has members.
//
// # What it owns
//
// A [Machine] is the groups of one partition of __consumer_offsets. It is a
// coordinator.Machine: requests, timers and records come in with the time, and
// records, replies and timers come out. Its bytes are those of Kafka 2.4 to 3.9
// (see records.go and consumer_records.go).
//
// # What it refuses
//
// It has no I/O, clock, lock, goroutine or source of randomness. It knows of no
// permission, and of topics what Config.Topic tells: its callers check the rest,
// and whether the consumer protocol is on. What a protocol type other
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
//  6. Of a consumer group's partitions each has at most one owner: a member is
//     given one only when no other has it or has yet to give it up, and what it
//     was given is stored before it is told.
package group
