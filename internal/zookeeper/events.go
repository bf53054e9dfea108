package zookeeper

import (
	"sync"

	"barnabas/internal/jute"
)

// Event is a watch that fired, or a change of the session's state.
type Event struct {
	// Type is jute.EventNone for a change of state.
	Type jute.EventType
	// State is StateSyncConnected for watches. For changes of state:
	// StateSyncConnected, StateDisconnected, StateExpired or StateAuthFailed.
	State jute.KeeperState
	// Path is the node's; "" for a change of state.
	Path string
}

// eventBuffer is how many events wait in the channel itself.
const eventBuffer = 1024

// eventQueue is an unbounded queue with a channel at its end. An event goes
// straight into the channel while that has room, so that it can be received
// before push returns; else a goroutine, which lives until the backlog is
// gone, moves it there.
type eventQueue struct {
	ch   chan Event
	quit chan struct{} // closed by close: a blocked mover gives up

	mu struct {
		sync.Mutex
		backlog []Event // not in ch yet; while there is any, a mover runs
		closed  bool
	}
	movers sync.WaitGroup
}

func newEventQueue() *eventQueue {
	return &eventQueue{ch: make(chan Event, eventBuffer), quit: make(chan struct{})}
}

func (q *eventQueue) push(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed {
		return
	}
	if len(q.mu.backlog) == 0 {
		select {
		case q.ch <- e:
			return
		default:
		}
		q.movers.Add(1)
		go q.move(e)
	}
	q.mu.backlog = append(q.mu.backlog, e)
}

// move sends the backlog, whose first event is e.
func (q *eventQueue) move(e Event) {
	defer q.movers.Done()
	for more := true; more; {
		select {
		case q.ch <- e:
		case <-q.quit:
			return
		}
		q.mu.Lock()
		// Only now, so that push does not overtake.
		q.mu.backlog = q.mu.backlog[1:]
		if more = len(q.mu.backlog) > 0; more {
			e = q.mu.backlog[0]
		} else {
			q.mu.backlog = nil
		}
		q.mu.Unlock()
	}
}

// close ends the queue; what is in the channel can still be received.
func (q *eventQueue) close() {
	q.mu.Lock()
	q.mu.closed = true
	q.mu.Unlock()
	close(q.quit)
	q.movers.Wait()
	close(q.ch)
}
