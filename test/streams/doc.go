// Package streams runs Apache Kafka's own applications on barnabas: Kafka Streams
// counting words exactly once, and Kafka Connect in distributed mode, while
// brokers, applications and workers are killed.
package streams
