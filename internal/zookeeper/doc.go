// Package zookeeper is our client of ZooKeeper's protocol, for Apache
// ZooKeeper 3.5 and later and for the embedded server.
//
// It owns one session and, at any time, at most one connection, which it makes
// again whenever it is lost. It refuses policy: it repeats no write, makes no
// new session by itself, and knows nothing of Kafka's nodes. It keeps no file.
//
// What holds, in the order that callers rely on it:
//
//  1. Calls are sent in the order in which [Client.Go] took them, and are
//     answered in that order. The calls of one [Client.GoAll] are neighbours,
//     on one connection: if one of them fails by a lost connection, so do all
//     those after it.
//  2. The event for a change is in [Client.Events] before any reply that shows
//     the change is given out. A watch that a call left is in force when the
//     call's reply is given out.
//  3. Events come in the order of the changes, those of the session in their
//     place between them. None is dropped before Close, however slow the reader.
//  4. A lost connection fails every call that has no reply with
//     jute.ErrConnectionLoss, whether it was sent or not; whether the server
//     carried it out is unknown. A call made while there is no connection
//     fails so at once and was not carried out. Nothing waits for the next
//     connection; [Client.Retry] does.
//  5. A one-shot watch outlives its connection: on the next one it is set
//     again, against the last change that this client saw, so that a change in
//     between gives its event. One that stays ([AddWatchOp]) is set again too,
//     and tells nothing of changes in between. A server that refuses to set
//     them loses the connection.
//  6. When the server says that the session is gone, an event of StateExpired
//     is queued, then every call fails with jute.ErrSessionExpired, and so do
//     later ones. All watches are gone. Nothing is sent until the owner calls
//     [Client.Renew], so nothing meant for the old session reaches the new one.
//  7. A call whose context ends is not taken back: its reply is dropped when
//     it comes, the replies of others keep their order, and its watch stays.
//  8. Memory is bounded by what callers hold, save the events that are not
//     read: Go waits while 4 MiB are unsent or 16,384 calls unanswered. It
//     waits no longer than a silent connection is kept, two thirds of the
//     session timeout.
//  9. Bytes from the server that are no frame, reply or event, or a reply out
//     of order, end the connection with one log line. No length from the wire
//     is allocated beyond MaxFrame.
//
// Paths given and returned are relative to the chroot.
//
// Locks: one mutex, Client.mu, never held over I/O. Goroutines: one for the
// life of the client, which connects and reads; one for each connection, which
// writes and pings; one that moves events while the reader of Events lags.
// All have ended when Close returns. No call starts one.
package zookeeper
