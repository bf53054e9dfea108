package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// The heap may grow to four times itself while it is small, and by less the
// more of it is in use.
func TestALargeHeapMayGrowByLess(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	tuneRuntime()
	become := func(ok func(percent uint64) bool) {
		t.Helper()
		for range 100 {
			runtime.GC()
			m := []metrics.Sample{{Name: "/gc/gogc:percent"}}
			if metrics.Read(m); ok(m[0].Value.Uint64()) {
				return
			}
		}
		t.Error("the percentage does not follow the heap")
	}
	become(func(p uint64) bool { return p == smallPercent })
	large := make([]byte, 2*growth)
	become(func(p uint64) bool { return p <= 50 && p >= largePercent })
	runtime.KeepAlive(large)
	become(func(p uint64) bool { return p == smallPercent })
}
