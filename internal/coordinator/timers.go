package coordinator

import (
	"container/heap"
	"time"
)

// timers are the deadlines of a shard. Setting one later than it is, which is
// what every heartbeat does, leaves the heap as it is: the entry moves when its
// old time has come.
type timers struct {
	entries map[Timer]*timerEntry
	heap    timerHeap
}

type timerEntry struct {
	Timer
	due   time.Time // when it runs out
	at    time.Time // its place in the heap, at most due
	index int
}

func (t *timers) set(name Timer, due time.Time) {
	e := t.entries[name]
	switch {
	case e == nil:
		if t.entries == nil {
			t.entries = make(map[Timer]*timerEntry)
		}
		e = &timerEntry{Timer: name, due: due, at: due}
		t.entries[name] = e
		heap.Push(&t.heap, e)
	case due.Before(e.at):
		e.due, e.at = due, due
		heap.Fix(&t.heap, e.index)
	default:
		e.due = due
	}
}

func (t *timers) stop(name Timer) {
	if e := t.entries[name]; e != nil {
		delete(t.entries, name)
		heap.Remove(&t.heap, e.index)
	}
}

// next takes out a timer that has run out.
func (t *timers) next(now time.Time) (Timer, bool) {
	for len(t.heap) > 0 && !t.heap[0].at.After(now) {
		e := t.heap[0]
		if e.due.After(now) {
			e.at = e.due
			heap.Fix(&t.heap, 0)
			continue
		}
		heap.Pop(&t.heap)
		delete(t.entries, e.Timer)
		return e.Timer, true
	}
	return Timer{}, false
}

// earliest returns when to look again, zero for never.
func (t *timers) earliest() time.Time {
	if len(t.heap) == 0 {
		return time.Time{}
	}
	return t.heap[0].at
}

type timerHeap []*timerEntry

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	e := x.(*timerEntry)
	e.index = len(*h)
	*h = append(*h, e)
}
func (h *timerHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
