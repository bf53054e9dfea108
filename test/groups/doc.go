// Package groups has the real clients share consumer groups: they join, leave,
// are killed, and read every record; and Kafka's tools and Kafka itself see of
// groups what they see of Kafka's.
//
// Most of that is waiting for sessions to end, so the tests run beside each other.
package groups
