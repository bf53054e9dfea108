// Package client holds no code, only tests of the Go clients in package
// barnabas/client against Apache Kafka and beside its own clients.
package client
