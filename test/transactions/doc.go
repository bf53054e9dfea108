// Package transactions has real clients write in transactions, die, and be
// fenced; and asks the same raw questions of Barnabas and of Apache Kafka 3.9.1.
package transactions
