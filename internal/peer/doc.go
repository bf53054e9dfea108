// Package peer is how this broker speaks to the others: one connection to one
// broker for one purpose (the controller's requests, a fetcher, transaction
// markers, questions to the controller), with one request in flight, so that
// what is asked first is answered first.
//
// A [Conn] connects when it is first used and again after a failure, with
// growing pauses. It has no goroutine: whoever asks connects, writes and reads,
// and the end of the caller's context ends the wait and the connection, since
// an answer that nobody waited for must not be taken for the next one's.
//
// Control, fetch and marker connections never negotiate: the caller sets the
// version, which follows inter.broker.protocol.version on both sides. Others
// ask for the peer's ApiVersions when they connect ([Options.Negotiate]).
//
// A [Dialer] makes the transport; it is the one place where security towards
// other brokers belongs: [Plaintext] is TCP alone, [TLS] and [SASL] are on top.
// A connection whose SASL session is about to end is made anew before the next
// request.
//
// The package refuses answers that are larger than [Options.MaxAnswer] before
// it takes memory for them, and answers that are not to the question.
//
// Locks: none is held over I/O but the turn itself, a channel of capacity one:
// who has it owns the connection's fields.
//
// Invariants:
//  1. At most one request of a Conn is unanswered.
//  2. An answer reaches the request that it is for, or nobody: any failure and
//     any cancelled wait closes the connection.
//  3. After Close returns no goroutine and no socket is left, once the call in
//     progress has returned.
package peer
