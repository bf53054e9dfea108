package storage

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

const part = "/d/t-0"

// scene is a partition with five segments of twelve batches of five records,
// the last segment active, left by a killed process. The recovery point is at
// the start of the last segment.
type scene struct {
	fs     *vfs.Mem
	bases  []int64
	starts map[int64][]int64 // positions of the batches, by segment
	end    int64
}

func newScene(t *testing.T) *scene {
	t.Helper()
	mem, c := vfs.NewMem(), newClock()
	o := options(t, mem, c)
	m := open(t, o)
	size := len(plain(t, 5, 0, "value of a record"))
	l := create(t, m, topicConfig(t, "segment.bytes", fmt.Sprint(12*size), "index.interval.bytes", fmt.Sprint(size)))
	for i := range 60 {
		appendPlain(t, l, 5, int64(1000+10*i), "value of a record")
		if i == 47 {
			must(t, l.checkpoint())
			must(t, m.Checkpoint())
		}
	}
	l.SetHighWatermark(300)
	if !l.queued.Load() {
		t.Fatal("a roll asks for a sync")
	}
	s := &scene{fs: mem.CrashClone(vfs.KillProcess, nil), end: 300, starts: map[int64][]int64{}}
	must(t, m.Close())
	for name := range list(t, s.fs, part) {
		base, ok := parseOffsetName(name, logSuffix)
		if !ok {
			continue
		}
		s.bases = append(s.bases, base)
		for sp := record.Split(readFile(t, s.fs, filepath.Join(part, name))); sp.Next(); {
			s.starts[base] = append(s.starts[base], int64(sp.Position()))
		}
	}
	slices.Sort(s.bases)
	if len(s.bases) != 5 || len(s.starts[s.bases[4]]) != 12 {
		t.Fatal("the scene is not as described:", s.bases, s.starts)
	}
	return s
}

func (s *scene) name(i int, suffix string) string {
	return filepath.Join(part, offsetName(s.bases[i], suffix))
}

func remove(t *testing.T, fsys vfs.FS, names ...string) {
	t.Helper()
	for _, n := range names {
		must(t, fsys.Remove(n))
	}
}

func appendBytes(b []byte) func([]byte) []byte {
	return func(old []byte) []byte { return append(old, b...) }
}

func random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// damages are what can happen to a folder, each with the end of the log after a
// start; all records below it must be there.
var damages = []struct {
	name  string
	do    func(t *testing.T, s *scene)
	end   int64
	kept  bool // what was cut lies in a .cut file
	clean bool // the clean mark is there
}{
	{name: "nothing", do: func(*testing.T, *scene) {}, end: 300},
	{name: "torn last batch", end: 300, kept: true, do: func(t *testing.T, s *scene) {
		half := plain(t, 5, 9999, "half of this")
		record.AssignOffsets(half, 300, 0)
		patch(t, s.fs, s.name(4, logSuffix), appendBytes(half[:len(half)/2]))
	}},
	{name: "last batch cut", end: 295, kept: true, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(4, logSuffix), func(b []byte) []byte { return b[:len(b)-1] })
	}},
	{name: "40 random bytes at the end", end: 300, kept: true, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(4, logSuffix), appendBytes(random(40)))
	}},
	{name: "4096 zeros at the end", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(4, logSuffix), appendBytes(make([]byte, 4096)))
	}},
	{name: "clean mark and zeros at the end", end: 300, clean: true, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, "/d/"+recoveryPointFile, []byte("0\n1\nt 0 300\n"), 0o644))
		patch(t, s.fs, s.name(4, logSuffix), appendBytes(make([]byte, 4096)))
	}},
	{name: "flipped bit in the second batch of the active segment", end: 245, kept: true, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(4, logSuffix), func(b []byte) []byte { b[s.starts[240][1]+70] ^= 4; return b })
	}},
	{name: "flipped bit in a base offset, upwards", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(4, logSuffix), func(b []byte) []byte { b[s.starts[240][1]+6] ^= 1; return b })
	}},
	{name: "flipped bit in a base offset, downwards", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(4, logSuffix), func(b []byte) []byte { b[s.starts[240][1]+7] ^= 0x40; return b })
	}},
	{name: "flipped bit in the last base offset, upwards", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(4, logSuffix), func(b []byte) []byte { b[s.starts[240][11]+3] ^= 8; return b })
	}},
	{name: "flipped bit in the last base offset, downwards", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(4, logSuffix), func(b []byte) []byte { b[s.starts[240][11]+7] ^= 1; return b })
	}},
	{name: "several bytes of a base offset are zero", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(4, logSuffix), func(b []byte) []byte { clear(b[s.starts[240][5]:][:8]); return b })
	}},
	{name: "flipped bit in an old segment", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(1, logSuffix), func(b []byte) []byte { b[s.starts[60][1]+70] ^= 4; return b })
	}},
	{name: "sealed index random", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(1, indexSuffix), func(b []byte) []byte { return random(len(b)) })
	}},
	{name: "sealed index of wrong length", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(1, indexSuffix), appendBytes([]byte{1, 2, 3}))
	}},
	{name: "index past the log", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(1, indexSuffix), appendBytes([]byte{0, 0, 0, 100, 0, 100, 0, 0}))
	}},
	{name: "indexes with the zeros of preallocation", end: 300, do: func(t *testing.T, s *scene) {
		patch(t, s.fs, s.name(1, indexSuffix), appendBytes(make([]byte, 800)))
		patch(t, s.fs, s.name(1, timeIndexSuffix), appendBytes(make([]byte, 1200)))
	}},
	{name: "sealed indexes missing", end: 300, do: func(t *testing.T, s *scene) {
		remove(t, s.fs, s.name(1, indexSuffix), s.name(1, timeIndexSuffix), s.name(2, timeIndexSuffix))
	}},
	{name: "all indexes missing", end: 300, do: func(t *testing.T, s *scene) {
		for name := range list(t, s.fs, part) {
			if strings.HasSuffix(name, indexSuffix) || strings.HasSuffix(name, timeIndexSuffix) {
				remove(t, s.fs, filepath.Join(part, name))
			}
		}
	}},
	{name: "empty recovery-point-offset-checkpoint", end: 300, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, "/d/"+recoveryPointFile, nil, 0o644))
	}},
	{name: "garbage recovery-point-offset-checkpoint", end: 300, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, "/d/"+recoveryPointFile, random(100), 0o644))
	}},
	{name: "half-written replication-offset-checkpoint", end: 300, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, "/d/"+highWatermarkFile, []byte("0\n3\nt 0 3"), 0o644))
	}},
	{name: "garbage log-start-offset-checkpoint", end: 300, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, "/d/"+logStartFile, []byte("0\n1\nt zero 7\n"), 0o644))
	}},
	{name: "garbage leader-epoch-checkpoint", end: 300, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, filepath.Join(part, epochFile), random(60), 0o644))
	}},
	{name: "garbage partition.metadata", end: 300, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, filepath.Join(part, partitionFile), random(60), 0o644))
	}},
	{name: "garbage snapshot", end: 300, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, s.name(4, snapshotSuffix), random(60), 0o644))
	}},
	{name: "missing snapshots", end: 300, do: func(t *testing.T, s *scene) {
		for name := range list(t, s.fs, part) {
			if strings.HasSuffix(name, snapshotSuffix) {
				remove(t, s.fs, filepath.Join(part, name))
			}
		}
	}},
	{name: "garbage transaction index", end: 300, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, s.name(4, txnIndexSuffix), random(35), 0o644))
	}},
	{name: "left over .deleted, .cleaned and .tmp", end: 300, do: func(t *testing.T, s *scene) {
		for _, n := range []string{logSuffix + deletedSuffix, logSuffix + cleanedSuffix, indexSuffix + cleanedSuffix, logSuffix + tmpSuffix} {
			must(t, vfs.WriteFile(s.fs, s.name(2, n), random(100), 0o644))
		}
	}},
	{name: "complete .swap", end: 300, do: func(t *testing.T, s *scene) {
		b := readFile(t, s.fs, s.name(1, logSuffix))
		b = append(b, readFile(t, s.fs, s.name(2, logSuffix))...)
		must(t, vfs.WriteFile(s.fs, s.name(1, logSuffix+swapSuffix), b, 0o644))
		remove(t, s.fs, s.name(1, logSuffix)) // as far as the cleaner came
	}},
	{name: ".swap above a .cleaned", end: 300, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, s.name(2, logSuffix+swapSuffix), random(100), 0o644))
		must(t, vfs.WriteFile(s.fs, s.name(1, logSuffix+cleanedSuffix), random(100), 0o644))
	}},
	{name: "empty active segment", end: 240, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, s.name(4, logSuffix), nil, 0o644))
	}},
	{name: "a wrong base name above the recovery point", end: 300, kept: true, do: func(t *testing.T, s *scene) {
		must(t, s.fs.Rename(s.name(4, logSuffix), filepath.Join(part, offsetName(241, logSuffix))))
		b := readFile(t, s.fs, filepath.Join(part, offsetName(241, logSuffix)))
		must(t, vfs.WriteFile(s.fs, s.name(4, logSuffix), b, 0o644)) // 241 repeats 240
	}},
	{name: "a missing segment in the middle", end: 300, do: func(t *testing.T, s *scene) {
		remove(t, s.fs, s.name(2, logSuffix))
	}},
	{name: "unknown files and folders", end: 300, do: func(t *testing.T, s *scene) {
		must(t, vfs.WriteFile(s.fs, part+"/notes.txt", []byte("x"), 0o644))
		must(t, vfs.WriteFile(s.fs, part+"/123.log", []byte("x"), 0o644))
		must(t, s.fs.Mkdir("/d/lost+found", 0o755))
		must(t, s.fs.Mkdir("/d/__cluster_metadata-0", 0o755))
	}},
}

// lost are the records that a damage takes for good, below the end.
var lost = map[string][2]int64{
	"flipped bit in an old segment":   {65, 70},
	"a missing segment in the middle": {120, 180},
}

func TestDamagesAndWhatSurvives(t *testing.T) {
	for _, boot := range []string{"boot", "another boot"} {
		for _, d := range damages {
			t.Run(d.name+"/"+boot, func(t *testing.T) {
				s := newScene(t)
				d.do(t, s)
				if d.clean {
					must(t, vfs.WriteFile(s.fs, "/d/"+cleanFile, nil, 0o644))
				}
				o := options(t, s.fs, newClock())
				o.BootID = boot
				m := open(t, o)
				checkSurvivors(t, m, d.name, d.end)
				kept := false
				for name := range list(t, s.fs, part) {
					kept = kept || strings.HasSuffix(name, cutSuffix)
				}
				if kept != d.kept {
					t.Errorf("what was cut is kept: %v, expected %v", kept, d.kept)
				}
				l, _ := m.Log(tp0)
				appendPlain(t, l, 5, 9999, "goes on")
				must(t, m.Close())

				m = open(t, options(t, s.fs, newClock()))
				if l, _ = m.Log(tp0); l.StartOffset() != 0 || l.EndOffset() != d.end+5 {
					t.Errorf("after a clean stop it is [%d, %d): %v", l.StartOffset(), l.EndOffset(), l.Err())
				}
				must(t, m.Close())
			})
		}
	}
}

func checkSurvivors(t *testing.T, m *Manager, damage string, end int64) {
	t.Helper()
	l, ok := m.Log(tp0)
	if !ok {
		t.Fatal("the log has gone")
	}
	if l.StartOffset() != 0 || l.EndOffset() != end {
		t.Fatalf("the log is [%d, %d), expected [0, %d): %v", l.StartOffset(), l.EndOffset(), end, l.Err())
	}
	gone := lost[damage]
	for from := int64(0); from < end; from += 5 {
		if from >= gone[0] && from < gone[1] {
			continue
		}
		got := readAll(t, l, from, from+5, 1)
		if len(got) != 5 || got[0].offset != from || got[0].ts != 1000+2*from {
			t.Fatalf("at %d: %v", from, got)
		}
	}
	if at, found, err := l.OffsetForTimestamp(1000 + 2*200); err != nil || !found || at.Offset != 200 {
		t.Fatal("search by time:", at, found, err)
	}
	if got := l.EndOffsetForEpoch(0); got != (EpochEnd{0, end}) {
		t.Fatal("epochs:", got)
	}
	if hw := l.HighWatermark(); hw > end {
		t.Fatal("high watermark beyond the end:", hw)
	}
}

// A segment that has gone is told of, at start or when somebody comes to the gap,
// once.
func TestAMissingSegmentIsToldOf(t *testing.T) {
	for name, i := range map[string]int{"below the recovery point": 2, "above it": 3} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			remove(t, s.fs, s.name(i, logSuffix))
			if i == 3 {
				must(t, s.fs.Remove("/d/"+recoveryPointFile))
			}
			var lines bytes.Buffer
			o := options(t, s.fs, newClock())
			o.Logger = slog.New(slog.NewTextHandler(&lines, nil))
			m := open(t, o)
			l, _ := m.Log(tp0)
			for range 3 {
				if got := readAll(t, l, 0, 300, 1<<20); len(got) != 240 {
					t.Fatal(len(got))
				}
			}
			if n := strings.Count(lines.String(), "offsets have no records"); n != 1 {
				t.Fatalf("told %d times:\n%s", n, &lines)
			}
			must(t, m.Close())
		})
	}
}

// What recovery took off a log goes after a week.
func TestWhatWasCutGoesAfterAWeek(t *testing.T) {
	s, c := newScene(t), newClock()
	patch(t, s.fs, s.name(4, logSuffix), appendBytes(random(40)))
	kept := func() (name string) {
		for n := range list(t, s.fs, part) {
			if strings.HasSuffix(n, cutSuffix) {
				name = n
			}
		}
		return name
	}
	m := open(t, options(t, s.fs, c))
	if kept() == "" {
		t.Fatal("nothing is kept")
	}
	m.Tick(c.advance(6 * 24 * time.Hour))
	must(t, s.fs.SetModTime(part+"/"+kept(), c.Now().Add(-6*24*time.Hour)))
	must(t, m.Close())
	m = open(t, options(t, s.fs, c))
	l, _ := m.Log(tp0)
	must(t, l.ready())
	m.Tick(c.advance(12 * time.Hour))
	if kept() == "" {
		t.Fatal("it goes early")
	}
	m.Tick(c.advance(13 * time.Hour))
	if name := kept(); name != "" {
		t.Fatal(name, "is still there")
	}
	must(t, m.Close())
}
