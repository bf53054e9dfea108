package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A small heap, mostly pooled buffers, may grow to four times itself between
// two collections: with two cores each of them is felt in the tail. One that
// holds a large tree of the embedded ZooKeeper may grow by a third: it is the
// memory that the machine has to have.
const (
	smallPercent = 300
	largePercent = 30
	growth       = 128 << 20 // bytes, in between
)

// tuneRuntime sets how far the heap may grow, now and after each collection.
// GOGC in the environment wins.
func tuneRuntime() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(smallPercent) // begins a collection if the heap is over that
		afterCollection(smallPercent)
	}
}

// mark is unreachable at once: its cleanup runs after the next collection.
type mark struct{ self *mark }

func afterCollection(percent int) {
	m := &mark{}
	m.self = m
	runtime.AddCleanup(m, func(percent int) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		next := int(max(largePercent, min(smallPercent, 100*growth/max(1, live[0].Value.Uint64()))))
		if next != percent {
			debug.SetGCPercent(next)
		}
		afterCollection(next)
	}, percent)
}
