// Package config knows every property of the broker, of its topics and of its
// clients: name, type, default, bounds, what may change while the broker runs,
// and one line on what it does. It reads server.properties, checks it, and
// hands out immutable snapshots.
//
// It owns no other file, starts no goroutine and asks no clock. It refuses
// unknown topic and client keys, bad values and changes of read-only keys, and
// it names all that is wrong at once, with file and line where there is one.
//
// The definitions are those of Apache Kafka 3.9.1 in ZooKeeper mode
// (KafkaConfig, LogConfig, DynamicConfig, DynamicBrokerConfig), as dumped in
// testdata; what differs on purpose is listed beside the test that compares
// them.
//
// Locks: one, in [Dynamic], over the list of subscribers; it is held while they
// are called, so that all of them see every change, in order.
//
// Invariants:
//  1. A [*Broker] and a [*Topic] never change once made; share them freely.
//  2. Every value in a snapshot has passed its definition's checks; getters
//     parse nothing and cannot fail on input. A getter panics only for a key
//     that no definition has, or a type that the definition has not.
//  3. The precedence of a broker value is Kafka's: the broker's own dynamic
//     value, the cluster-wide dynamic default, server.properties, the default;
//     within each, a key before its synonyms.
//  4. A password leaves only through the getter that asks for it by name: never
//     in Describe, in an error or in a printed snapshot.
package config
