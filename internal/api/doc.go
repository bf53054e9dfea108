// Package api serves Kafka's requests: one file for each API key, which holds
// the versions it serves, what each version added, its limits and its handler,
// and registers itself. The registry feeds dispatch, ApiVersions and the
// memory limits, so they can't drift apart.
//
// Handlers run on the goroutine that reads the connection and must not block:
// what has to wait (acks=all, fetch waits) is parked and finished later from
// another goroutine. State lives in the lower packages; a handler checks its
// input, calls them, and writes the answer.
//
// Invariants:
//  1. Each request ends in exactly one of Request.Done, Skip or Fail.
//  2. A malformed body never panics and closes the connection.
//  3. Nothing is advertised that is not served.
package api
