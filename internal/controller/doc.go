// Package controller runs the cluster's controller in this broker: it takes
// part in the election through /controller, and while it is the active
// controller it watches the znodes of brokers, topics and administrative acts,
// decides leaders, ISRs and replica placement, writes the outcome to ZooKeeper
// and tells the brokers by LeaderAndIsr, UpdateMetadata and StopReplica.
//
// The decisions are made in package core, which has no I/O. This package is
// the shell around it: one goroutine steps the core, one event to its end and
// then the next; others carry out its reads and writes and send its requests.
//
// It owns /controller, /controller_epoch, the partition states, /feature, and
// while it is active the topic nodes' replica lists. It keeps no file. It
// refuses every service with NOT_CONTROLLER while another broker is active.
//
// Locks: Controller.mu guards the queue of events and the answers to what was
// asked; it is never held over I/O. sender.mu guards a broker's queue of
// requests. Neither is taken while the other is held.
//
// Invariants:
//  1. Every write of an active controller is a multi that checks
//     /controller_epoch at the version of this controller's election
//     (KAFKA-6082). A failed check is the end of the term.
//  2. A request leaves only after the writes that it tells of are done.
//  3. Requests to one broker leave in the order the core made them, one in
//     flight, each repeated until the broker answers or its registration goes.
//  4. When a session has expired nothing is written until the term and the look
//     at /controller have ended: [Controller.SessionExpired] returns after that.
//     There is no election until the broker is registered anew and calls Elect.
//  5. /controller is created and deleted, never set (other brokers check its
//     version, 0, when they write configurations).
package controller
