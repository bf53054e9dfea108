package server

import (
	"errors"
	"net"
	"sync"
)

var errTooManyFromAddress = errors.New("too many connections from this address (max.connections.per.ip)")

// quota counts connections (Kafka's ConnectionQuotas).
type quota struct {
	mu struct {
		sync.Mutex
		limits     Limits
		total      int
		byHost     map[string]int
		byListener map[string]int
		changed    chan struct{} // closed when a connection has gone or limits changed
	}
}

func newQuota(l Limits) *quota {
	q := &quota{}
	q.mu.limits = l
	q.mu.byHost = make(map[string]int)
	q.mu.byListener = make(map[string]int)
	q.mu.changed = make(chan struct{})
	return q
}

func (q *quota) set(l Limits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.limits = l
	q.bumpLocked()
}

func (q *quota) bumpLocked() {
	close(q.mu.changed)
	q.mu.changed = make(chan struct{})
}

// enter counts a connection in. When its address has too many, the connection
// is refused; when the listener or the broker has, enter waits for a place, as
// Kafka does, and calls crowded before: an inter-broker connection is let in at
// once, and crowded makes another one go.
func (q *quota) enter(l *Listener, host string, stop <-chan struct{}, crowded func()) error {
	q.mu.Lock()
	limit, ok := q.mu.limits.MaxPerIPOf[host]
	if !ok {
		limit = q.mu.limits.MaxPerIP
	}
	if q.mu.byHost[host] >= limit {
		q.mu.Unlock()
		return errTooManyFromAddress
	}
	q.mu.byHost[host]++
	for {
		full := q.mu.limits.MaxConnections > 0 && q.mu.total >= q.mu.limits.MaxConnections
		most := q.mu.limits.MaxOfListener[l.Name]
		listenerFull := most > 0 && q.mu.byListener[l.Name] >= most
		if full && l.InterBroker && !listenerFull {
			q.admitLocked(l)
			q.mu.Unlock()
			crowded()
			return nil
		}
		if !full && !listenerFull {
			q.admitLocked(l)
			q.mu.Unlock()
			return nil
		}
		changed := q.mu.changed
		q.mu.Unlock()
		select {
		case <-changed:
			q.mu.Lock()
		case <-stop:
			q.mu.Lock()
			q.leaveHostLocked(host)
			q.mu.Unlock()
			return net.ErrClosed
		}
	}
}

func (q *quota) admitLocked(l *Listener) {
	q.mu.total++
	q.mu.byListener[l.Name]++
}

func (q *quota) leaveHostLocked(host string) {
	if q.mu.byHost[host]--; q.mu.byHost[host] <= 0 {
		delete(q.mu.byHost, host)
	}
}

// leave counts a connection out.
func (q *quota) leave(l *Listener, host string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.total--
	q.mu.byListener[l.Name]--
	q.leaveHostLocked(host)
	q.bumpLocked()
}
