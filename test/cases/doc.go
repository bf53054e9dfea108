// Package cases holds behaviour that people filed bugs about, in Kafka and in
// its kin: each case is asked of a Barnabas broker and of Apache Kafka 3.9.1 in
// one run, and both must give the right value. Where Kafka itself is wrong or
// poor the case says so and only Barnabas is held to the better one.
package cases
