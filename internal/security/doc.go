// Package security says who a client is: SASL with PLAIN, SCRAM-SHA-256 and
// SCRAM-SHA-512, as Kafka's SaslServerAuthenticator does it.
//
// It owns what a listener takes ([Listener], made once from the properties),
// the SCRAM credentials of all users as /config/users holds them
// ([Credentials]), and the state of one connection's authentication
// ([Session]). It has no socket, clock or goroutine: package server asks
// whether a frame may come, package api hands over what came in it.
//
// # What it refuses
//
// Mechanisms that need Java or a third party (GSSAPI, OAUTHBEARER), callback
// handlers, JAAS entries that Kafka's own login modules could not read. A
// client hears of a wrong password what Kafka says and no more: the text never
// tells whether a SCRAM user exists.
//
// # Locks
//
// Credentials.mu guards the map of credentials; nothing else is locked. A
// Listener never changes. A Session belongs to the goroutine that reads its
// connection.
//
// # Invariants
//
//  1. Nothing but ApiVersions, SaslHandshake and SaslAuthenticate is let through
//     before a session is authenticated, and none of them after its end.
//  2. A session never changes its user or mechanism.
//  3. No password and no key is in an error or in what is printed.
//  4. Passwords and proofs are compared in constant time.
package security
