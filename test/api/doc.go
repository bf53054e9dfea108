// Package api sends the same requests to Apache Kafka 3.9.1 and to barnabas and
// compares the answers: codes, values, which fields are null, which connections
// are closed. Texts of messages may differ, and so may the order of lists,
// which is Kafka's hash order. Where barnabas answers otherwise on purpose, the
// step says why.
package api
