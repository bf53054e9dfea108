package storage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

// keyed appends records whose keys and values are given; "-" is a tombstone.
func keyed(t testing.TB, l *Log, o record.BatchOptions, ts int64, kv ...string) {
	t.Helper()
	o.LeaderEpoch = -1
	b := record.NewBuilder(o)
	for i := 0; i < len(kv); i += 2 {
		var value []byte
		if kv[i+1] != "-" {
			value = []byte(kv[i+1])
		}
		b.Append(ts, []byte(kv[i]), value)
	}
	set, err := b.Build()
	must(t, err)
	_, err = l.Append(AppendRequest{Records: set, LogAppendTime: -1})
	must(t, err)
	l.SetHighWatermark(l.EndOffset())
}

// contents returns what is in the log as "offset:key=value", tombstones "-".
func contents(t testing.TB, l *Log) string {
	t.Helper()
	var out []string
	for from := l.StartOffset(); from < l.EndOffset(); {
		s, err := l.Read(from, 1<<20, l.EndOffset(), true)
		must(t, err)
		if s.Len == 0 {
			break
		}
		b := make([]byte, s.Len)
		_, err = s.ReadAt(b, 0)
		must(t, err)
		s.Release()
		for sp := record.Split(b); sp.Next(); {
			must(t, sp.Batch().Check())
			if sp.Batch().Control() {
				out = append(out, fmt.Sprintf("%d:marker", sp.Batch().BaseOffset()))
			} else {
				must(t, sp.Batch().Each(0, func(r *record.Record) error {
					value := "-"
					if r.Value != nil {
						value = string(r.Value)
					}
					out = append(out, fmt.Sprintf("%d:%s=%s", r.Offset, r.Key, value))
					return nil
				}))
			}
			from = sp.Batch().NextOffset()
		}
	}
	return strings.Join(out, " ")
}

// cleanAll cleans until nothing needs it.
func cleanAll(t testing.TB, m *Manager) {
	t.Helper()
	run := newCleanerRun(m.o.Config, m.stop)
	for i := 0; m.cleaner.once(run, m.o.Now()); i++ {
		if i > 1000 {
			t.Fatal("the cleaner finds no end")
		}
	}
	for l, err := range m.cleaner.mu.aside {
		t.Fatal(l.tp, err)
	}
}

func roll(t testing.TB, l *Log) {
	t.Helper()
	l.lockIdle()
	err := l.rollLocked(l.tail.end.Load(), l.dir().now().UnixMilli())
	l.mu.Unlock()
	must(t, err)
}

func compacted(t testing.TB, c *clock, fsys vfs.FS, kv ...string) (*Manager, *Log) {
	m := open(t, options(t, fsys, c))
	return m, create(t, m, topicConfig(t, append([]string{"cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0", "file.delete.delay.ms", "0"}, kv...)...))
}

func TestCompactionKeepsTheLastRecordOfEachKey(t *testing.T) {
	for codec := range record.Codec(5) {
		mem, c := vfs.NewMem(), newClock()
		m, l := compacted(t, c, mem)
		ts := c.Now().UnixMilli()
		keyed(t, l, record.BatchOptions{Codec: codec}, ts, "a", "1", "b", "1", "c", "1")
		keyed(t, l, record.BatchOptions{Codec: codec}, ts, "a", "2", "b", "-")
		roll(t, l)
		keyed(t, l, record.BatchOptions{Codec: codec}, ts, "a", "3")
		roll(t, l)
		keyed(t, l, record.BatchOptions{Codec: codec}, ts, "a", "4")
		cleanAll(t, m)
		want := "2:c=1 4:b=- 5:a=3 6:a=4"
		if got := contents(t, l); got != want {
			t.Fatal(got)
		}
		if n := len(*l.segments.Load()); n != 2 {
			t.Fatal("small segments are not put together:", n)
		}
		c.advance(25 * time.Hour)
		keyed(t, l, record.BatchOptions{Codec: codec}, ts, "d", "1")
		roll(t, l)
		cleanAll(t, m) // the tombstone's time has come
		want = "2:c=1 6:a=4 7:d=1"
		if got := contents(t, l); got != want {
			t.Fatal(got)
		}
		checkpoint := string(readFile(t, mem, "/d/"+cleanerFile))
		if checkpoint != "0\n1\nt 0 8\n" {
			t.Fatalf("%q", checkpoint)
		}
		must(t, m.Close())
		m = open(t, options(t, mem, c))
		l, _ = m.Log(tp0)
		if got := contents(t, l); got != want || l.cleaned.Load() != 8 || l.EndOffset() != 8 {
			t.Fatal(got, l.cleaned.Load())
		}
		must(t, m.Close())
	}
}

func TestCompactionStopsBeforeWhatIsTooYoungOrUndecided(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m, l := compacted(t, c, mem, "min.compaction.lag.ms", "60000")
	keyed(t, l, record.BatchOptions{}, c.Now().UnixMilli(), "a", "1")
	keyed(t, l, record.BatchOptions{}, c.Now().UnixMilli(), "a", "2")
	roll(t, l)
	cleanAll(t, m)
	if got := contents(t, l); got != "0:a=1 1:a=2" {
		t.Fatal("younger than min.compaction.lag.ms:", got)
	}
	c.advance(time.Minute + 1)
	l.SetHighWatermark(1)
	cleanAll(t, m)
	if got := contents(t, l); got != "0:a=1 1:a=2" {
		t.Fatal("beyond the high watermark:", got)
	}
	l.SetHighWatermark(2)
	open := record.BatchOptions{Transactional: true, Producer: &record.Producer{ID: 9}}
	keyed(t, l, open, c.Now().UnixMilli(), "a", "aborted")
	keyed(t, l, record.BatchOptions{}, c.Now().UnixMilli(), "b", "1")
	keyed(t, l, record.BatchOptions{}, c.Now().UnixMilli(), "b", "2")
	c.advance(time.Minute + 1)
	roll(t, l)
	cleanAll(t, m)
	if got := contents(t, l); got != "1:a=2 2:a=aborted 3:b=1 4:b=2" {
		t.Fatal("beyond the last stable offset:", got)
	}
	mark(t, l, 9, false)
	l.SetHighWatermark(l.EndOffset())
	c.advance(time.Minute + 1)
	roll(t, l)
	cleanAll(t, m)
	if got := contents(t, l); got != "1:a=2 4:b=2 5:marker" {
		t.Fatal("an aborted record does not supersede:", got)
	}
	aborted, err := l.AbortedTransactions(0, l.EndOffset())
	must(t, err)
	if len(aborted) != 1 {
		t.Fatal(aborted)
	}
	must(t, m.Close())
}

func TestCompactionLetsMarkersGoAfterTheirRecords(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m, l := compacted(t, c, mem)
	keyed(t, l, record.BatchOptions{Transactional: true, Producer: &record.Producer{ID: 9}}, c.Now().UnixMilli(), "a", "1")
	mark(t, l, 9, true)
	keyed(t, l, record.BatchOptions{}, c.Now().UnixMilli(), "a", "2")
	// While the producer is known, its last batch stays as an empty one, and the
	// marker with it; then the marker gets a time to go, and goes.
	for round := range 4 {
		roll(t, l)
		cleanAll(t, m)
		if got := contents(t, l); !strings.HasPrefix(got, "1:marker 2:a=2") {
			t.Fatal(round, got)
		}
		if round == 1 {
			l.mu.Lock()
			l.mu.producers.expire(1 << 62)
			l.mu.Unlock()
		}
		keyed(t, l, record.BatchOptions{}, c.Now().UnixMilli(), "x", fmt.Sprint(round))
		c.advance(25 * time.Hour)
	}
	roll(t, l)
	cleanAll(t, m)
	if got := contents(t, l); strings.Contains(got, "marker") {
		t.Fatal("the marker is still there:", got)
	}
	must(t, m.Close())
}

// When the table of keys is full the cleaner goes as far as it came.
func TestCompactionInSeveralPasses(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m, l := compacted(t, c, mem, "segment.bytes", "2000")
	want := map[string]string{}
	for i := range 400 {
		k, v := fmt.Sprint("k", i*7%97), fmt.Sprint(i)
		keyed(t, l, record.BatchOptions{}, c.Now().UnixMilli(), k, v)
		want[k] = v
	}
	roll(t, l)
	run := newCleanerRun(m.o.Config, m.stop)
	run.keys = newOffsetMap(30*mapEntrySize, 0.9)
	passes := 0
	for m.cleaner.once(run, c.Now()) {
		passes++
	}
	got := map[string]string{}
	for _, r := range strings.Fields(contents(t, l)) {
		_, kv, _ := strings.Cut(r, ":")
		k, v, _ := strings.Cut(kv, "=")
		got[k] = v
	}
	if !maps.Equal(got, want) || passes < 4 || len(m.cleaner.mu.aside) > 0 {
		t.Fatal(passes, len(got), len(want), m.cleaner.mu.aside)
	}
	must(t, m.Close())
}

// At each of the cleaner's calls of the file system the power goes, or the
// process is killed: no key is lost, and no superseded value comes back for good.
func TestCompactionSurvivesCrashesAtEachStep(t *testing.T) {
	for _, how := range []vfs.Crash{vfs.KillProcess, vfs.LoseUnsynced, vfs.LoseSome} {
		rng := seed(t)
		for stopAt := 1; ; stopAt++ {
			mem, c := vfs.NewMem(), newClock()
			m, l := compacted(t, c, mem, "segment.bytes", "600")
			for i := range 60 {
				keyed(t, l, record.BatchOptions{}, c.Now().UnixMilli(), fmt.Sprint("k", i%7), fmt.Sprint(i))
			}
			roll(t, l)
			must(t, l.Flush())
			must(t, m.Checkpoint())
			before := contents(t, l)
			steps := &stepping{FS: mem, stopAt: stopAt, crash: func() *vfs.Mem { return mem.CrashClone(how, rng) }}
			l.dir().fs = steps
			cleanAll(t, m)
			after := contents(t, l)
			clone := steps.clone
			must(t, m.Close())
			if clone == nil {
				break // it was through
			}
			o := options(t, clone, c)
			if how != vfs.KillProcess {
				o.BootID = "another"
			}
			m = open(t, o)
			l, _ = m.Log(tp0)
			got := contents(t, l)
			if _, err := l.ready(), error(nil); err != nil {
				t.Fatal(err)
			}
			if missing := lacks(got, after); missing != "" || lacks(before, got) != "" {
				t.Fatalf("%v at step %d: %s is missing\nbefore %s\ngot    %s\nafter  %s", how, stopAt, missing, before, got, after)
			}
			l.SetConfig(topicConfig(t, "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0", "segment.bytes", "600"))
			l.SetHighWatermark(l.EndOffset())
			l.cleaned.Store(-1)
			cleanAll(t, m)
			if got := contents(t, l); got != after {
				t.Fatalf("%v at step %d, cleaned again:\n%s\nexpected\n%s", how, stopAt, got, after)
			}
			must(t, m.Close())
		}
	}
}

// lacks returns a record of sub that all does not have.
func lacks(all, sub string) string {
	have := strings.Fields(all)
	for _, r := range strings.Fields(sub) {
		if !slices.Contains(have, r) {
			return r
		}
	}
	return ""
}

// stepping takes a clone as after a crash before the stopAt'th change.
type stepping struct {
	vfs.FS
	stopAt, n int
	crash     func() *vfs.Mem
	clone     *vfs.Mem
}

func (s *stepping) step() {
	if s.n++; s.n == s.stopAt {
		s.clone = s.crash()
	}
}

func (s *stepping) Rename(from, to string) error { s.step(); return s.FS.Rename(from, to) }
func (s *stepping) Remove(name string) error     { s.step(); return s.FS.Remove(name) }
func (s *stepping) SyncDir(name string) error    { s.step(); return s.FS.SyncDir(name) }
