// Package replication tests clusters of several real brokers, Barnabas alone and
// together with Apache Kafka 2.8.2 and 3.9.1: that nothing acknowledged is lost,
// doubled or put out of order when brokers die and come back.
package replication
