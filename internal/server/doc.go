// Package server takes requests off the network and puts answers on it.
//
// # What it owns
//
// A [Server] owns the listeners that it was given, the connections that come
// in on them, and the memory of the frames that are being worked on. Each
// connection has one goroutine that reads frames and runs their handlers in
// order of arrival, and, from the first time that a request has to wait, a
// second one that writes answers. What a request means is package api's.
//
// A connection that sends nothing but heartbeats and commits rests (rest.go):
// one goroutine of a [poll.Poller] reads, handles and answers for many of them,
// at less than two thirds of the cost and without their stacks and buffers. It
// gets a goroutine again with the first request that is not of that kind.
//
// # What it refuses
//
// A frame whose length is not positive or larger than it may be, a header that
// is cut short, an API key or version that is not served: each closes its
// connection with one log line. Connections beyond the limits are closed or
// kept waiting as Kafka does. A listener without what its security protocol
// needs is an error of [New].
//
// On a TLS listener the handshake comes first, on the connection's own goroutine
// and within Options.Stall; files are copied then, not sent.
//
// On a SASL listener, package security says of each frame whether it may come,
// and how large it may be before the client has authenticated; a bare token is
// handled like a request.
//
// # Order
//
// Answers leave in the order of the requests. Kafka stops reading a connection
// until its answer is out; here only what waits overlaps, and at most
// maxUnanswered requests or maxUnansweredBytes are under way before reading
// stops. The answer to a request that did not wait, with nothing before it, is
// written by the goroutine that read it.
//
// # Memory
//
// A length is a claim: the buffer of a frame grows as its bytes arrive, and
// each growth is taken from one budget (queued.max.request.bytes) first, as is
// what decoding may expand it to. With the budget spent, connections wait; one
// at a time may go beyond it, so that frames that are half there can't block
// each other for ever.
//
// # Locks
//
// conn.mu guards a connection's queue of unanswered requests, and in whose hands
// its socket is; it is held over no I/O. The right to write is a token in it
// (conn.mu.turn), held over the write, and while a socket changes hands.
// Server.mu guards the set of connections, rests.mu those that rest, quota.mu
// the counts. rests.mu and the poller's lock may be taken under conn.mu; no
// others of these are held at once.
//
// # Invariants
//
//  1. Answers leave in the order in which their requests came; nothing is
//     written after an answer that closes the connection.
//  2. Each file slice of an answer is released exactly once, sent or not.
//  3. Nothing is allocated for bytes that did not arrive, beyond one buffer of
//     firstGrowth or what the same connection has already filled once.
//  4. Every goroutine ends within Close.
//  5. Nothing that a client sends, and no panic of a handler, ends more than
//     that client's connection.
package server
