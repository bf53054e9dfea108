// Package client holds the Go clients of the era in which Kafka was coordinated
// by ZooKeeper: a [Producer], synchronous or asynchronous, and a [Consumer], a
// member of a consumer group that ZooKeeper coordinates. Both take code or the
// properties files of Kafka, with the names of 0.8 and with today's.
//
// It owns no file. It refuses to lose a record silently: each record that is
// handed to a producer comes back, with its partition and offset or with its
// error, in the return value, in its callback or in the producer's error
// callback. It starts goroutines that end with Close.
//
// Producer:
//
//  1. A record is retried message.send.max.retries times (3) and then given
//     back in a [SendError], together with those that were waiting behind it in
//     the same partition, so that their order holds.
//  2. The queue holds at most the configured records and bytes. With a full
//     queue Send waits, waits at most a time, or drops, and what is dropped is
//     counted and told to a callback.
//  3. The same key and number of partitions give the same partition as the
//     Java or Scala partitioner whose name the partitioner bears.
//
// Consumer:
//
//  4. A partition is consumed only while the node of its owner in ZooKeeper
//     names this consumer's thread, in a session that is known to be alive.
//  5. An offset is committed only for records that the caller has taken from a
//     stream; a partition's offset is committed before its owner node is given
//     up, and read after its owner node is made.
//  6. Shares are computed by the pure functions in assign.go from what ZooKeeper
//     holds, as every member of the group computes them, whichever program it
//     is (kafka.consumer.PartitionAssignor of 0.8.2).
//
// Locks: each type names its own; none is held over I/O.
package client
