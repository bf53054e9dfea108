package bench

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// warmMemory has memory ready for so many bytes of page cache, and gives back so
// many a second, which should be about twice what the load writes, until stop is
// called. stop returns the processor time that giving it back took. A virtual machine returns free memory to
// its host, which makes each page anew at its next use, in the time of whoever
// writes to it: more than all that a broker does with a small record, and not the
// broker's doing. Memory that was given back a moment ago is still there.
func warmMemory(t testing.TB, bytes, perSecond int64) (stop func() time.Duration) {
	t.Helper()
	pool, err := os.CreateTemp(t.TempDir(), "pool")
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < bytes; at += int64(len(zeros)) {
		if _, err := pool.WriteAt(zeros, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := pool.Sync(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var giving sync.WaitGroup
	var took time.Duration
	giving.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		before := usedBy(t, unix.RUSAGE_THREAD)
		defer func() { took = usedBy(t, unix.RUSAGE_THREAD) - before }()
		const piece = 8 << 20
		tick := time.NewTicker(time.Duration(piece) * time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for left := bytes; left > 0; {
			left = max(0, left-piece)
			if err := pool.Truncate(left); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	return func() time.Duration {
		close(done)
		giving.Wait()
		pool.Close()
		os.Remove(pool.Name())
		return took
	}
}

// usedBy returns the user and system time of this process or thread.
func usedBy(t testing.TB, who int) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
