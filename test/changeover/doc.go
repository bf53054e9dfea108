// Package changeover tests that a running Apache Kafka cluster changes over to
// Barnabas broker by broker, on the same folders, ids and server.properties,
// and back again, while a producer and a consumer group go on. The steps are
// those of docs/operations/changeover.md.
package changeover
