package keeper

import (
	"fmt"
	"runtime"
	"testing"

	"barnabas/internal/jute"
)

func BenchmarkOpenOnAnEmptyFolder(b *testing.B) {
	for b.Loop() {
		o := quiet()
		o.Dir = b.TempDir()
		s, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		c := connect(b, s)
		c.Close()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreateOneByOne(b *testing.B) {
	o := quiet()
	o.Dir = b.TempDir()
	c := connect(b, open(b, o))
	for i := 0; b.Loop(); i++ {
		call(b, c, jute.OpCreate, create(fmt.Sprint("/n", i), "data", jute.Persistent), jute.OK)
	}
}

func BenchmarkGetData(b *testing.B) {
	c := connect(b, open(b, quiet()))
	for b.Loop() {
		call(b, c, jute.OpGetData, &jute.PathWatchRequest{Path: "/"}, jute.OK)
	}
}

// BenchmarkCreatePipelined sends 1,000 creates in one go.
func BenchmarkCreatePipelined(b *testing.B) {
	o := quiet()
	o.Dir = b.TempDir()
	s := open(b, o)
	commits := 0
	s.store = countingStore{s.store, &commits}
	c := connect(b, s)
	n := 0
	for b.Loop() {
		go func(n int) {
			for i := range 1000 {
				if _, err := c.Send(jute.OpCreate, create(fmt.Sprint("/n", n+i), "data", jute.Persistent)); err != nil {
					b.Error(err)
				}
			}
		}(n)
		n += 1000
		for range 1000 {
			if _, err := c.ReadFrame(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(commits)*1000/float64(n), "commits/1000")
}

type countingStore struct {
	store
	commits *int
}

func (s countingStore) commit(b *batch) error {
	*s.commits++
	return s.store.commit(b)
}

// BenchmarkOpenWithAMillionNodes opens a store with a snapshot of 1,000,000
// nodes of 100 bytes.
func BenchmarkOpenWithAMillionNodes(b *testing.B) {
	o := quiet()
	o.Dir = b.TempDir()
	tr := firstTree()
	for i := range 1000 {
		tr.put(&record{path: fmt.Sprintf("/p%03d", i), data: []byte{}})
		for j := range 1000 {
			tr.put(&record{path: fmt.Sprintf("/p%03d/n%06d", i, j), data: make([]byte, 100)})
		}
	}
	if _, err := writeStore(o.Dir, &image{tree: tr, zxid: 1, sessions: map[int64]int32{}}); err != nil {
		b.Fatal(err)
	}
	tr = nil
	runtime.GC()
	for b.Loop() {
		s, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		var m runtime.MemStats
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-live")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
