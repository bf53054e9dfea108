// Package load puts a cluster under load and checks what came of it: every
// acknowledged record is there, once, at its offset and in its order, and a
// consumer group got each, from where it had committed.
package load
