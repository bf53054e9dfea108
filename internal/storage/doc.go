// Package storage keeps the partitions of a broker in Kafka's own folders and
// files, so that Apache Kafka can open what this package wrote and the other
// way round.
//
// # What it owns
//
// A [Manager] owns the log directories: their locks, meta.properties, the
// checkpoints, and one [Log] for each partition. A Log owns a partition's
// folder: its segments with their indexes, the producer state, the leader
// epochs, and what offsets mean. The bytes of each kind of file are drawn in
// docs/formats and beside their codecs here:
//
//	<log dir>/.lock                                     held while the directory is in use
//	<log dir>/meta.properties                           which broker of which cluster this is
//	<log dir>/.kafka_cleanshutdown                      present after a clean stop only
//	<log dir>/.barnabas_boot_id                         the machine's boot id of the last start
//	<log dir>/replication-offset-checkpoint             high watermarks
//	<log dir>/recovery-point-offset-checkpoint          up to where each log is on the disk
//	<log dir>/log-start-offset-checkpoint               starts raised by DeleteRecords
//	<log dir>/cleaner-offset-checkpoint                 up to where logs were compacted
//	<log dir>/topic-P/00000000000000000000.log          batches, as clients sent them
//	<log dir>/topic-P/00000000000000000000.index        offset -> position, sparse
//	<log dir>/topic-P/00000000000000000000.timeindex    time -> offset, sparse
//	<log dir>/topic-P/00000000000000000000.txnindex     aborted transactions
//	<log dir>/topic-P/00000000000000000000.snapshot     producers up to this offset
//	<log dir>/topic-P/leader-epoch-checkpoint           epoch -> first offset
//	<log dir>/topic-P/partition.metadata                the topic's id
//	<log dir>/topic-P/00000000000000000000.log.7.cut    what recovery cut off at byte 7
//	<log dir>/topic-P/.barnabas_moved                   it came from another directory, see move
//	<log dir>/topic-P.<32 hex digits>-delete            a partition on its way out
//	<log dir>/topic-P.<32 hex digits>-future            a copy of one in another directory
//
// # What it refuses
//
// It does not validate or convert records (package record does, before), knows
// nothing of replicas, and decides no high watermark: it is told.
//
// # Locks
//
// Log.mu is the append lock. It is held over one write to the page cache and
// never over a sync, a roll, an open or a read; who needs those marks the end of
// the log as busy under the lock, works, and takes the lock again. Readers take
// no lock: they use the published list of segments and the published tail (end
// offset and positions, a seqlock). A reader whose segment has gone waits for
// maintenance and looks again.
//
// Log.maintenance, Manager.changing and logDir.checkpoints order slow work (first
// loading, syncs, truncation, deletion; creating and deleting logs; writing
// checkpoint files) and are held over its I/O. Nobody who appends to or reads a
// loaded log takes them, but for the sync that flush.messages asks for.
// Manager.mu guards the table of logs and is held over no I/O.
//
// Order: Manager.changing, Log.maintenance (of a log, then of its copy), logDir.checkpoints, Manager.mu,
// index.check, Log.mu, then the leaves (epochs, txnIndex, logDir.mu, fileCache),
// which call nothing.
//
// # Invariants
//
//  1. Offsets of a log only grow, and a batch is published to readers after all
//     of its bytes are in the page cache.
//  2. A failed or short write is cut back before the next append; when that
//     fails too, the directory goes offline.
//  3. A failed sync takes the directory offline; nothing in it is synced again.
//  4. The recovery point never passes what was synced, with the epochs and
//     indexes that go with it, and is lowered on the disk before the log grows
//     again where it was truncated. What a crash may bring back (a removed
//     snapshot, a renamed segment, a cut tail) never lies below it.
//  5. No segment below the recovery point is cut. From there on the log is cut
//     at the first bad batch, and what was cut is kept aside in a file.
//  6. .kafka_cleanshutdown is removed before any log is loaded, and written only
//     by a clean stop after a good start.
//  7. Indexes are hints: a lookup that does not land on a batch rebuilds them.
//     The time index on the disk covers all below the recovery point.
//  8. A slice that was handed out stays readable until it is released, also when
//     its segment is deleted.
//  9. Start-up cost after a clean stop does not grow with what is stored: a log
//     is loaded when it is first used, and its end is known before.
//  10. Two offsets tell what is durable: FlushedOffset for records (what
//     flush.messages waits for), RecoveryPoint for records with all that goes
//     with them (what a start trusts).
//  11. Nothing is written for a log in which nothing changed. A folder without a
//     producer snapshot, left by a clean stop, means that there was no producer;
//     epochs without a record are in no file.
//  12. The cleaner's output is synced, with its name, before the first of the
//     segments it replaces is renamed. After a crash at any step no record has
//     gone that compaction keeps.
//  13. A log that moves to another directory is, at each moment and after a crash,
//     whole in one of the two; the copy is on the disk before it counts.
//  14. After a truncation no epoch begins at the log's end or beyond, also when
//     no record had to go: a leader would take a follower with one for diverging,
//     for ever.
package storage
