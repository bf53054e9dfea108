package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

// model is the naive log: records in a slice.
type model struct {
	recs       []rec // also those below start
	start, end int64
	base       int64
}

func (m *model) visible(from, upTo int64) []rec {
	var out []rec
	for _, r := range m.recs {
		if r.offset >= max(from, m.start) && r.offset < upTo {
			out = append(out, r)
		}
	}
	return out
}

func (m *model) truncate(to int64) {
	m.recs = slices.DeleteFunc(m.recs, func(r rec) bool { return r.offset >= to })
}

// physical is the least end that the files alone may tell. Cutting a log in a
// gap leaves an end beyond the last record that only the running log knows, as
// in Kafka.
func (m *model) physical() int64 {
	if n := len(m.recs); n > 0 {
		return m.recs[n-1].offset + 1
	}
	return min(m.base, m.end)
}

// run drives a log and the model by random operations.
type run struct {
	t     *testing.T
	rng   *rand.Rand
	mem   *vfs.Mem
	clock *clock
	cfg   *config.Topic
	m     *Manager
	l     *Log
	model model
	// first offset of the batch that each offset belongs to
	batchOf map[int64]int64
	pid     int64
	seq     int32
	trace   []string
	crashed bool // a start that was raised may have gone back to what was cleaned
}

func (r *run) note(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf(format, args...))
}

func (r *run) fatal(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf(format, args...)
}

// Write takes the log's lines into the trace.
func (r *run) Write(line []byte) (int, error) {
	_, rest, _ := strings.Cut(string(line), "level=")
	r.note("    %s", strings.TrimSpace(rest))
	return len(line), nil
}

func (r *run) showTrace() {
	if r.t.Failed() {
		r.note("%s", r.l.dump())
		for _, dir := range r.m.o.Dirs {
			for name := range list(r.t, r.mem, dir) {
				r.note("%s/%s", dir, name)
				if strings.HasPrefix(name, "t-") {
					r.note("  %v", list(r.t, r.mem, dir+"/"+name))
				} else if strings.HasSuffix(name, "checkpoint") {
					r.note("  %q", readFile(r.t, r.mem, dir+"/"+name))
				}
			}
		}
		r.t.Log(strings.Join(r.trace[max(0, len(r.trace)-120):], "\n"))
	}
}

func (r *run) open(fsys *vfs.Mem, boot string) {
	r.t.Helper()
	r.mem = fsys
	o := options(r.t, fsys, r.clock)
	o.BootID = boot
	o.Topic = func(string) *config.Topic { return r.cfg }
	o.MaxOpenFiles = 3
	o.Dirs = []string{"/d", "/e"}
	o.Logger = slog.New(slog.NewTextHandler(r, nil))
	r.m = open(r.t, o)
	var ok bool
	if r.l, ok = r.m.Log(tp0); !ok {
		r.l = create(r.t, r.m, r.cfg)
	}
}

func (r *run) append() {
	n := 1 + r.rng.IntN(5)
	ts := r.clock.Now().UnixMilli() + int64(r.rng.IntN(100)) - 50
	value := fmt.Sprintf("%d-%0*d", r.model.end, r.rng.IntN(300), 0)
	o := record.BatchOptions{LeaderEpoch: -1, Codec: record.Codec(r.rng.IntN(5))}
	base := r.model.end
	follower := r.rng.IntN(4) == 0
	if r.rng.IntN(3) == 0 && !follower {
		o.Producer = &record.Producer{ID: r.pid, Epoch: 0, Sequence: r.seq}
	}
	if follower {
		base += int64(r.rng.IntN(3) * r.rng.IntN(10)) // a gap
		o.BaseOffset, o.LeaderEpoch = base, int32(base/50)
	}
	keys := make([]string, n)
	b := record.NewBuilder(o)
	for i := range keys {
		keys[i] = strconv.Itoa(r.rng.IntN(8))
		b.Append(ts+int64(i), []byte(keys[i]), []byte(value))
	}
	set, err := b.Build()
	must(r.t, err)
	if follower {
		_, err = r.l.AppendFollower(set)
	} else {
		var info AppendInfo
		again := slices.Clone(set)
		info, err = r.l.Append(AppendRequest{Records: set, LogAppendTime: -1, LeaderEpoch: int32(base / 50)})
		if err == nil && info.FirstOffset != base {
			r.fatal("appended at %d, expected %d", info.FirstOffset, base)
		}
		if err == nil && o.Producer != nil {
			r.seq += int32(n)
			dup, err := r.l.Append(AppendRequest{Records: again, LogAppendTime: -1, LeaderEpoch: int32(base / 50)})
			if err != nil || !dup.Duplicate || dup.FirstOffset != base {
				r.fatal("duplicate: %+v %v", dup, err)
			}
		}
	}
	if err != nil {
		r.fatal("append: %v", err)
	}
	r.note("append %d at %d follower %v producer %v", n, base, follower, o.Producer != nil)
	for i := range int64(n) {
		r.model.recs = append(r.model.recs, rec{base + i, ts + i, value, keys[i]})
		r.batchOf[base+i] = base
	}
	r.model.end = base + int64(n)
}

func (r *run) truncate() {
	if r.model.end == r.model.start {
		return
	}
	to := r.model.end - int64(r.rng.IntN(int(min(r.model.end-r.model.start, 40))+1))
	r.note("truncate to %d (start %d end %d)", to, r.model.start, r.model.end)
	if err := r.l.TruncateTo(to); err != nil {
		r.fatal("truncate to %d: %v", to, err)
	}
	if to >= r.model.end {
		return
	}
	cut := to
	if b, ok := r.batchOf[to]; ok {
		cut = b
	}
	r.model.truncate(cut)
	r.model.end = cut
	r.model.start = min(r.model.start, cut)
	for o := range r.batchOf {
		if o >= cut {
			delete(r.batchOf, o)
		}
	}
	r.resync() // which sequence comes next
}

// resync takes a new producer id, as a producer does whose batches went.
func (r *run) resync() { r.pid, r.seq = r.pid+1, 0 }

func (r *run) deleteRecords() {
	r.l.SetHighWatermark(r.model.end)
	to := r.model.start + int64(r.rng.IntN(int(r.model.end-r.model.start)+1))
	r.note("delete records to %d", to)
	got, err := r.l.DeleteRecordsTo(to)
	if err != nil || got != max(to, r.model.start) {
		r.fatal("delete records to %d: %d %v", to, got, err)
	}
	r.model.start = max(r.model.start, to)
}

func (r *run) retain() {
	r.l.SetHighWatermark(r.model.end)
	now := r.clock.advance(time.Duration(r.rng.IntN(20_000)) * time.Millisecond)
	r.m.Tick(now)
	if start := r.l.StartOffset(); start < r.model.start || start > r.model.end {
		r.fatal("retention moved the start from %d to %d", r.model.start, start)
	}
	r.note("tick, start %d -> %d", r.model.start, r.l.StartOffset())
	r.model.start = r.l.StartOffset()
}

// clean compacts the log and checks what is left against what was there.
func (r *run) clean() {
	r.l.SetHighWatermark(r.model.end)
	c := *r.cfg
	c.Compact, c.MinCleanableDirtyRatio = true, 0
	r.l.SetConfig(&c)
	run := newCleanerRun(r.m.o.Config, r.m.stop)
	if r.rng.IntN(2) == 0 {
		run.keys = newOffsetMap(int64(16+r.rng.IntN(8))*mapEntrySize, 0.9)
	}
	for r.m.cleaner.once(run, r.clock.Now()) {
	}
	r.l.SetConfig(r.cfg)
	for _, err := range r.m.cleaner.mu.aside {
		r.fatal("clean: %v", err)
	}
	to := r.l.cleaned.Load()
	r.note("clean, up to %d of [%d, %d)", to, r.model.start, r.model.end)
	got := readAll(r.t, r.l, r.model.start, r.model.end, 1<<20)
	latest := map[string]int64{}
	for _, x := range got {
		if !slices.Contains(r.model.recs, x) {
			r.fatal("compaction made %v up", x)
		}
		if before, ok := latest[x.key]; ok && x.offset < to && !r.crashed {
			r.fatal("%v left the older one at %d", x, before)
		}
		latest[x.key] = x.offset
	}
	for _, x := range r.model.visible(0, r.model.end) {
		if at, ok := latest[x.key]; !slices.Contains(got, x) && (!ok || at < x.offset || x.offset >= to) {
			r.fatal("compaction lost %v", x)
		}
	}
	pid, seq, base := r.pid, r.seq, r.model.base
	r.adopt(got, r.model.start, r.model.end)
	r.pid, r.seq, r.model.base = pid, seq, base
}

func (r *run) check() {
	if s, e := r.l.StartOffset(), r.l.EndOffset(); s != r.model.start || e != r.model.end {
		r.fatal("log is [%d, %d), expected [%d, %d): %v", s, e, r.model.start, r.model.end, r.l.Err())
	}
	from := r.model.start + int64(r.rng.IntN(int(r.model.end-r.model.start)+1))
	upTo := r.model.end
	got := readAll(r.t, r.l, from, upTo, 1+r.rng.IntN(2000))
	if want := r.model.visible(from, upTo); !slices.Equal(got, want) {
		r.fatal("from %d: got %d records, expected %d\n%v\n%v", from, len(got), len(want), got, want)
	}
	r.checkTime()
}

func (r *run) checkTime() {
	all := r.model.visible(0, r.model.end)
	if len(all) == 0 {
		return
	}
	ts := all[r.rng.IntN(len(all))].ts + int64(r.rng.IntN(3)) - 1
	at, found, err := r.l.OffsetForTimestamp(ts)
	i := slices.IndexFunc(all, func(x rec) bool { return x.ts >= ts })
	if err != nil || found != (i >= 0) || found && (at.Offset != all[i].offset || at.Timestamp != all[i].ts) {
		r.fatal("search for time %d: %+v %v %v, expected index %d of %v\n%s", ts, at, found, err, i, all, r.l.dump())
	}
	at, found, err = r.l.MaxTimestamp()
	most := slices.MaxFunc(all, func(a, b rec) int {
		if a.ts != b.ts {
			return int(a.ts - b.ts)
		}
		return int(b.offset - a.offset)
	})
	if err != nil || !found || at.Timestamp != most.ts || at.Offset != most.offset {
		r.fatal("max timestamp: %+v %v %v, expected %+v", at, found, err, most)
	}
}

// move begins to move the log, calls that off, or goes on with it; ticks finish it.
func (r *run) move() {
	to := []string{"/d", "/e"}[r.rng.IntN(2)]
	r.note("move from %s to %s", r.l.Dir(), to)
	must(r.t, r.m.Move(tp0, to))
	for range r.rng.IntN(20) {
		if mv := r.m.moveOf(tp0); mv != nil {
			if _, _, err := mv.step(); err != nil {
				r.fatal("move: %v", err)
			}
		}
	}
}

func (r *run) reopen() {
	r.note("clean reopen")
	must(r.t, r.m.Close())
	r.open(r.mem, "boot")
	start := r.l.StartOffset() // loads the log
	if e := r.l.EndOffset(); start == e || e >= r.model.physical() && e < r.model.end {
		if e < r.model.physical() && e != r.model.start {
			r.fatal("records have gone: the log ends at %d, not %d", e, r.model.end)
		}
		r.model.end = e
		r.model.start = min(r.model.start, e)
		r.resync()
	}
}

func (r *run) crash() {
	how := vfs.Crash(r.rng.IntN(3))
	r.crashed = true
	if r.rng.IntN(2) == 0 {
		must(r.t, r.m.Checkpoint())
	}
	if r.rng.IntN(2) == 0 {
		must(r.t, r.l.Flush())
	}
	promised := min(r.l.FlushedOffset(), r.model.physical())
	durableStart := int64(0)
	if how == vfs.KillProcess {
		promised, durableStart = r.model.physical(), r.model.start
	}
	r.note("crash %d, promised %d of %d", how, promised, r.model.end)
	clone := r.mem.CrashClone(how, r.rng)
	must(r.t, r.m.Close())
	boot := "boot"
	if how != vfs.KillProcess {
		boot = "boot" + strconv.Itoa(r.rng.Int())
	}
	r.open(clone, boot)
	start, end := r.l.StartOffset(), r.l.EndOffset()
	least := int64(0) // records may be followed by a gap up to what was promised
	for _, x := range r.model.recs {
		if x.offset < promised {
			least = x.offset + 1
		}
	}
	if end < least || start < durableStart {
		r.fatal("after the crash the log is [%d, %d), promised was [%d, %d): %v", start, end, durableStart, promised, r.l.Err())
	}
	got := readAll(r.t, r.l, start, end, 1<<20)
	below := func(all []rec) []rec {
		return slices.DeleteFunc(slices.Clone(all), func(x rec) bool { return x.offset >= promised || x.offset < max(start, r.model.start) })
	}
	if !slices.Equal(below(got), below(r.model.recs)) {
		r.fatal("after the crash records below %d differ:\n%v\n%v", promised, below(got), below(r.model.recs))
	}
	pid, seq := r.pid, r.seq
	r.adopt(got, start, end)
	if how == vfs.KillProcess {
		r.pid, r.seq = pid, seq // nothing was lost: the producer goes on
	}
}

// adopt takes over what the log has above what was promised.
func (r *run) adopt(got []rec, start, end int64) {
	r.model = model{recs: got, start: start, end: end, base: start}
	r.batchOf = map[int64]int64{}
	for from := start; from < end; {
		s, err := r.l.Read(from, 1<<20, end, true)
		must(r.t, err)
		if s.Len == 0 {
			break
		}
		b := make([]byte, s.Len)
		_, err = s.ReadAt(b, 0)
		must(r.t, err)
		s.Release()
		for sp := record.Split(b); sp.Next(); {
			for o := sp.Batch().BaseOffset(); o <= sp.Batch().LastOffset(); o++ {
				r.batchOf[o] = sp.Batch().BaseOffset()
			}
			from = sp.Batch().NextOffset()
		}
	}
	r.resync()
}

func (r *run) step() {
	switch n := r.rng.IntN(100); {
	case n < 60:
		r.append()
	case n < 66:
		r.truncate()
	case n < 70:
		r.deleteRecords()
	case n < 78:
		r.retain()
	case n < 82:
		must(r.t, r.l.Flush())
		r.note("flush")
	case n < 86:
		r.reopen()
	case n < 92:
		r.crash()
	case n < 96:
		r.clean()
	case n < 98:
		r.move()
	case n < 99:
		to := r.model.end + int64(r.rng.IntN(20))
		must(r.t, r.l.TruncateFullyAndStartAt(to))
		r.note("restart at %d", to)
		r.model = model{start: to, end: to, base: to}
		r.resync()
	}
	if os.Getenv("BARNABAS_DUMP") != "" {
		r.note("%s", r.l.dump())
	}
	r.check()
}

// TestRandomOperationsEqualANaiveLog repeats BARNABAS_RUNS runs (default 500, of
// which the race detector gets 60; 10,000 with BARNABAS_SOAK);
// BARNABAS_SEED repeats one of them.
func TestRandomOperationsEqualANaiveLog(t *testing.T) {
	runs := 500
	if raceDetector {
		runs = 60
	}
	if os.Getenv("BARNABAS_SOAK") != "" {
		runs = 10_000
	}
	if testing.Short() {
		runs = 10
	}
	if n, err := strconv.Atoi(os.Getenv("BARNABAS_RUNS")); err == nil {
		runs = n
	}
	first := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("BARNABAS_SEED"), 10, 64); err == nil {
		first, runs = n, 1
	}
	for i := range uint64(runs) {
		seed := first + i
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			pick := func(values ...string) string { return values[rng.IntN(len(values))] }
			r := &run{t: t, rng: rng, clock: newClock(), batchOf: map[int64]int64{}}
			r.cfg = topicConfig(t,
				"segment.bytes", pick("2000", "5000", "100000"),
				"index.interval.bytes", pick("0", "64", "500", "4096"),
				"segment.index.bytes", pick("64", "1000", "10485760"),
				"segment.ms", pick("3000", "604800000"),
				"segment.jitter.ms", pick("0", "1000"),
				"retention.ms", pick("-1", "10000", "60000"),
				"retention.bytes", pick("-1", "4000", "20000"),
				"flush.messages", pick("1", "9223372036854775807", "10"),
				"file.delete.delay.ms", pick("0", "60000"))
			r.open(vfs.NewMem(), "boot")
			defer r.showTrace()
			for range 150 {
				r.step()
			}
			if err := r.m.Close(); err != nil && !errors.Is(err, ErrClosed) {
				r.fatal("close: %v", err)
			}
		})
		if !ok {
			t.Fatalf("repeat with BARNABAS_SEED=%d", seed)
		}
	}
}
