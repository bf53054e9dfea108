package main

import (
	"os"
	"runtime/debug"
)

// tuneRuntime lets the heap grow further between collections than Go's default:
// it is small, mostly pooled buffers, and with two cores each collection is
// felt in the tail. GOGC in the environment wins.
func tuneRuntime() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300)
	}
}
