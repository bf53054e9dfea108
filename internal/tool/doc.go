// Package tool holds what the subcommands of barnabas do that stand for the
// scripts of Apache Kafka: kafka-topics, kafka-configs, kafka-console-producer
// and their kind.
//
// Each command is a [Command]: its options, and a function that runs it. From
// the same definition come parsing, help, shell completion and the page in
// docs/commands. It owns no file but those that a command line names. It
// refuses nothing that Kafka 3.9's script takes; what is ours besides is marked
// so in the help.
//
// Invariants:
//
//  1. For the same command line against the same cluster, standard output and
//     exit status are those of Kafka 3.9.1's script, save times, ids and the
//     order that a hash table gave; standard error begins with the same
//     sentence, without Java's stack traces, and ends with what to do next where
//     there is something.
//  2. Options are read as jopt-simple reads them without abbreviations: --name
//     value, --name=value, a value that begins with -- is a value.
//  3. With --output json standard output is one JSON document, or one in each
//     line for commands that go on.
//  4. Nothing is asked unless standard input is a terminal; --yes answers.
//
// A command has no lock. Its goroutines end before it returns.
package tool
