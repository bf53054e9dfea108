// Package keeper is the embedded ZooKeeper server: it speaks the protocol of
// Apache ZooKeeper 3.8 to any client and keeps its tree in that server's own
// files.
//
// It owns the tree of nodes, the sessions, the watches, the quotas, the store
// and the connections of its clients. It refuses to be an ensemble (reconfig),
// SASL, and a client's deleteContainer, which ZooKeeper takes from anybody. It
// knows nothing of Kafka.
//
// # Parts
//
// The core decides and does nothing else: no I/O, clock, lock or goroutine. The
// Server calls it under one lock and passes the time. A write is prepared by
// the core against the pending state, waits for the goroutine that commits, is
// committed with everything else that waited, and is then applied: the tree
// changes, watches fire, the reply is queued. What is queued is sent by the
// goroutine that made it, as far as the socket takes it without a wait; what is
// left, the connection's poller or writer sends.
//
// # Goroutines and connections
//
// The Server has a goroutine that commits, one that expires sessions, one that
// looks for containers, one while a snapshot is taken, and the pollers: one for
// each processor, which serves many connections (internal/poll).
//
// A connection begins with a goroutine that waits for its first frame. With
// that, a plain TCP connection is given to a poller and needs none any more: the
// poller owns its descriptor, reads and handles its requests, and closes it. A
// connection with TLS or inside the process, one whose client does not take its
// answers at once, and one with more under way than may be, has two goroutines,
// which own its net.Conn: a reader, and a writer for what nobody else could send.
// It keeps them. Where there is no poller all connections have them.
//
// Whoever has set conn.sending may write on the connection; nobody else does, and
// nobody closes its descriptor or takes it from the poller then. Close waits for
// all of them.
//
// # Invariants
//
//  1. Reads, events and replies show committed state only. With a commit held
//     back, nothing of its writes is visible.
//  2. A write is checked against all writes before it, committed or not.
//  3. The requests of a session are answered in their order: a read waits for
//     the session's earlier writes, even those of an earlier connection.
//  4. Events of a write are queued before its reply, and before anything that
//     shows it.
//  5. Each write takes a zxid, one that fails too, and so does the beginning
//     and the end of a session. After a restart zxids go on in a new epoch, so
//     none is given out twice although failed writes are not committed.
//  6. Nothing is answered before its commit is on the disk. After a commit of
//     which certainly nothing was written, as on a full disk, its writes are
//     answered with ErrSystemError, and the next commit may go better. After
//     one that failed in another way, its connections are closed without an
//     answer and all later writes are refused with ErrSystemError.
//  7. Records never change once they are in the tree; a write makes new ones.
//     So a snapshot is of one moment although it is taken piece by piece.
//  8. One goroutine at a time sends on a connection, in the order of the queue;
//     what it can't send is sent later, and a connection that is not read from
//     holds up no other.
//  9. Sessions, with their ids and passwords, survive restarts and kills; they
//     expire when nobody attaches to them again in their timeout.
//
// # Locks
//
// Server.mu, over the core and the output buffers: it is never held over a
// commit, a read or a write. A poller's own lock may be taken while it is held,
// not the other way round. And fileStore.spare, over the log that is made
// beforehand; no other is taken while it is held.
//
// # On disk
//
// Transaction logs and snapshots in Options.Dir/version-2, both in Apache
// ZooKeeper's formats, each drawn beside its code: txnlog.go, snapfile.go. What
// recovery does with damaged ones is a table in filestore_test.go. The tree is
// in memory as a whole.
//
// Of the newest log, the end that is not whole was answered to nobody: it is
// cut. An older log that is not whole, or no snapshot that is, is ErrCorrupt;
// a damaged newest snapshot is passed over for the one before it, whose logs
// are still there.
package keeper
