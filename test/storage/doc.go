// Package storage tests that a data folder moves between Apache Kafka and
// Barnabas in both directions: the brokers take turns on one folder and one
// Apache ZooKeeper, after clean stops and after kill -9, and every record that
// one wrote is served by the other.
package storage
