// Package poll watches many TCP connections from one goroutine.
//
// A connection with a goroutine of its own costs a small request about twice
// what reading and answering it costs: a wakeup of the goroutine, a read that
// finds nothing before it sleeps again, the turn of Go's scheduler. Where very
// many connections send little - the heartbeats of group members, the clients
// of ZooKeeper - that is most of a server's work.
//
// A [Poller] has an epoll set of its own, whose descriptor waits in Go's
// poller like any other: its goroutine sleeps without a thread, and one wakeup
// serves all connections that have something. The sockets must leave Go's own
// poller for that ([Take]), or both are woken by each arrival; [Give] leads
// back. There is none on systems other than Linux.
//
// # Ownership
//
// Whoever took a descriptor owns it: reads, writes, and closes it once. What
// [Poller.Add] was given is called on the poller's goroutine, one at a time;
// [Poller.Post] lets others do something there.
package poll

import "errors"

// ErrAgain says that a socket has nothing to read, or takes nothing more now.
var ErrAgain = errors.New("poll: not now")

// ErrClosed says that a Poller was closed.
var ErrClosed = errors.New("poll: closed")
