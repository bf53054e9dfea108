// Package broker puts the parts together and runs their life: the order of a
// start, what happens when the ZooKeeper session expires or the registration
// is lost, and the order of a stop. It decides nothing itself.
//
// It owns the ZooKeeper session, the registration under /brokers/ids, and the
// file that remembers the session for the next run. One goroutine, run by
// Broker.watch, receives every ZooKeeper event: it hands them on and does the
// registration's own work. Another, the config watcher's, applies what
// /config/changes names. A third, kin's, asks the live brokers whether they are
// Barnabas.
//
// Invariants:
//  1. Nothing is registered before the log dirs are open, and nothing is served
//     before the broker is registered.
//  2. After an expiry the controller resigns before anything is sent in a new
//     session, and runs again only after the broker has registered in it.
//  3. A registration of another session is never deleted.
//  4. Parts are stopped in the reverse order of their start; the clean mark is
//     written only after everything that appends has ended.
package broker
