package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// retained fills a log with segments of ten batches, a second apart, and lets
// retention run.
func retained(t *testing.T, hw int64, later time.Duration, kv ...string) (*Log, *vfs.Mem, *clock, *Manager) {
	t.Helper()
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	size := len(plain(t, 1, 0, "v"))
	l := create(t, m, topicConfig(t, append(kv, "segment.bytes", fmt.Sprint(10*size))...))
	for range 45 {
		appendPlain(t, l, 1, c.Now().UnixMilli(), "v")
		c.advance(time.Second)
	}
	l.SetHighWatermark(hw)
	m.Tick(c.advance(later))
	m.due.retention = c.Now()
	m.Tick(c.Now())
	return l, mem, c, m
}

func TestRetentionByTime(t *testing.T) {
	for _, x := range []struct {
		hw    int64
		later time.Duration
		ms    string
		start int64
	}{
		{45, 0, "1000000", 0},
		{45, 0, "30000", 10}, // the newest of the first segment is 36 s old
		{45, 0, "20000", 20},
		{15, 0, "20000", 10},            // not above the high watermark
		{45, time.Hour, "20000", 45},    // all: the active segment is rolled
		{44, time.Hour, "20000", 40},    // all but what is not replicated
		{45, 8760 * time.Hour, "-1", 0}, // no limit
	} {
		l, _, _, m := retained(t, x.hw, x.later, "retention.ms", x.ms)
		if l.StartOffset() != x.start || l.EndOffset() != 45 {
			t.Errorf("%+v: the log is [%d, %d)", x, l.StartOffset(), l.EndOffset())
		}
		if _, err := l.Read(x.start-1, 100, 45, true); !errors.Is(err, ErrOffsetOutOfRange) {
			t.Error(x, err)
		}
		if got := readAll(t, l, x.start, 45, 1000); int64(len(got)) != 45-x.start {
			t.Error(x, len(got))
		}
		if info := appendPlain(t, l, 1, 0, "v"); info.FirstOffset != 45 || info.LogStartOffset != x.start {
			t.Error(x, info)
		}
		must(t, m.Close())
	}
}

func TestRetentionBySize(t *testing.T) {
	size := len(plain(t, 1, 0, "v"))
	for _, x := range []struct {
		batches int
		start   int64
	}{{45, 0}, {44, 0}, {35, 10}, {34, 10}, {5, 40}, {0, 45}} {
		l, _, _, m := retained(t, 45, 0, "retention.ms", "-1", "retention.bytes", fmt.Sprint(x.batches*size))
		if l.StartOffset() != x.start || l.EndOffset() != 45 {
			t.Errorf("%+v: the log is [%d, %d)", x, l.StartOffset(), l.EndOffset())
		}
		must(t, m.Close())
	}
}

func TestACompactedTopicKeepsItsRecords(t *testing.T) {
	l, _, _, m := retained(t, 45, time.Hour, "retention.ms", "1000", "retention.bytes", "0", "cleanup.policy", "compact")
	if l.StartOffset() != 0 {
		t.Fatal(l.StartOffset())
	}
	if _, err := l.DeleteRecordsTo(3); !errors.Is(err, ErrPolicy) || Code(err) != wire.PolicyViolation {
		t.Fatal(err)
	}
	must(t, m.Close())
}

func TestFilesOfDeletedSegmentsGoAfterTheDelay(t *testing.T) {
	l, mem, c, m := retained(t, 45, 0, "retention.ms", "30000")
	deleted := func() (n int) {
		for name := range list(t, mem, part) {
			if strings.HasSuffix(name, deletedSuffix) {
				n++
			}
		}
		return n
	}
	if n := deleted(); n == 0 || list(t, mem, part)[offsetName(0, logSuffix)] {
		t.Fatal(list(t, mem, part))
	}
	m.Tick(c.advance(59 * time.Second))
	if deleted() == 0 {
		t.Fatal("gone too early")
	}
	l.SetConfig(topicConfig(t))
	m.Tick(c.advance(2 * time.Second))
	if n := deleted(); n != 0 {
		t.Fatal(n, "files are left")
	}
	must(t, m.Close())
}

// Public bug reports, measured on Apache Kafka 2.8.2 and 3.9.1.
func TestDeleteRecordsAsKafkaDoes(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	l := create(t, m, nil)
	for range 5 {
		appendPlain(t, l, 1, 1000, "v")
	}
	l.SetHighWatermark(5)
	for _, x := range []struct {
		to, low int64
		code    wire.Code
	}{{2, 2, wire.None}, {1, 2, wire.None}, {99, -1, wire.OffsetOutOfRange}, {-2, -1, wire.OffsetOutOfRange}} {
		if low, err := l.DeleteRecordsTo(x.to); low != x.low || Code(err) != x.code {
			t.Errorf("to %d: %d %v", x.to, low, err)
		}
	}
	if _, err := l.Read(0, 100, 5, true); Code(err) != wire.OffsetOutOfRange {
		t.Error(err)
	}
	if l.StartOffset() != 2 {
		t.Error(l.StartOffset())
	}
	if at, found, err := l.OffsetForTimestamp(0); err != nil || !found || at.Offset != 2 {
		t.Error(at, found, err)
	}
	// The answer survives kill -9.
	m2 := open(t, options(t, mem.CrashClone(vfs.KillProcess, nil), c))
	if l, _ := m2.Log(tp0); l.StartOffset() != 2 || l.EndOffset() != 5 {
		t.Error(l.StartOffset(), l.EndOffset())
	}
	must(t, m2.Close())
	if low, err := l.DeleteRecordsTo(-1); low != 5 || err != nil {
		t.Error(low, err)
	}
	if l.StartOffset() != 5 || l.EndOffset() != 5 {
		t.Error(l.StartOffset(), l.EndOffset())
	}
	must(t, m.Close())
	m = open(t, options(t, mem, c))
	if l, _ = m.Log(tp0); l.StartOffset() != 5 || l.EndOffset() != 5 || l.LastStableOffset() != 5 {
		t.Error(l.StartOffset(), l.EndOffset())
	}
	must(t, m.Close())
}

func TestSegmentsRoll(t *testing.T) {
	size := len(plain(t, 1, 0, "v"))
	count := func(kv []string, step time.Duration) int {
		c := newClock()
		m := open(t, options(t, vfs.NewMem(), c))
		defer m.Close()
		l := create(t, m, topicConfig(t, kv...))
		for range 20 {
			appendPlain(t, l, 1, c.Now().UnixMilli(), "v")
			c.advance(step)
		}
		return len(*l.segments.Load())
	}
	for _, x := range []struct {
		kv   []string
		step time.Duration
		want int
	}{
		{nil, time.Second, 1},
		{[]string{"segment.bytes", fmt.Sprint(5 * size)}, time.Second, 4},
		{[]string{"segment.bytes", fmt.Sprint(5*size - 1)}, time.Second, 5},
		{[]string{"segment.ms", "4000"}, time.Second, 4},
		{[]string{"segment.index.bytes", "40", "index.interval.bytes", "0"}, time.Second, 7}, // room for two time entries: three batches
	} {
		if got := count(x.kv, x.step); got != x.want {
			t.Errorf("%v: %d segments, expected %d", x.kv, got, x.want)
		}
	}
}

func TestAFollowersGapBeyondTheIndexBeginsASegment(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	l := create(t, m, nil)
	appendPlain(t, l, 1, 1000, "v")
	far := plain(t, 1, 1000, "far")
	copy(far, []byte{0, 0, 0, 1, 0, 0, 0, 0}) // offset 2^32
	_, err := l.AppendFollower(far)
	must(t, err)
	if ok, _ := vfs.Exists(mem, filepath.Join(part, offsetName(1<<32, logSuffix))); !ok {
		t.Fatal(list(t, mem, part))
	}
	if got := readAll(t, l, 0, 1<<32+1, 1000); len(got) != 2 || got[1].offset != 1<<32 {
		t.Fatal(got)
	}
	if _, err := l.AppendFollower(far); !errors.Is(err, ErrUnexpectedOffset) {
		t.Fatal(err)
	}
	far[70] ^= 1
	copy(far, []byte{0, 0, 0, 2, 0, 0, 0, 0})
	if _, err := l.AppendFollower(far); !errors.Is(err, ErrInvalidBatch) {
		t.Fatal("a follower checks checksums:", err)
	}
	must(t, m.Close())
}

// After a clean stop, logs that nobody uses are not loaded for retention or
// compaction as long as their files show that there is nothing to do.
func TestIdleLogsAreNotLoadedInTheBackground(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	o := options(t, mem, c)
	topic := topicConfig(t, "segment.bytes", "300", "retention.ms", "3600000", "cleanup.policy", "delete,compact", "min.cleanable.dirty.ratio", "0")
	o.Topic = func(string) *config.Topic { return topic }
	m := open(t, o)
	l := create(t, m, topic)
	for i := range 10 {
		appendPlain(t, l, 1, c.Now().UnixMilli(), fmt.Sprint("a value that takes some room ", i))
	}
	l.SetHighWatermark(l.EndOffset())
	cleanAll(t, m)
	must(t, m.Close())
	touch := func() {
		for name := range list(t, mem, part) {
			must(t, mem.SetModTime(part+"/"+name, c.Now()))
		}
	}
	touch()
	m = open(t, o)
	l, _ = m.Log(tp0)
	m.Tick(c.advance(10 * time.Minute))
	cleanAll(t, m)
	if l.state.Load() != unloaded {
		t.Fatal("the log was loaded")
	}
	m.Tick(c.advance(time.Hour))
	if l.state.Load() != loaded || l.StartOffset() != 10 {
		t.Fatal("old segments were not deleted:", l.StartOffset())
	}
	must(t, m.Close())
}
