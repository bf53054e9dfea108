package storage

import (
	"errors"
	"fmt"
	"testing"

	"barnabas/internal/vfs"
)

func TestRecordsAreReadBackAcrossSegmentsAndRestarts(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	cfg := topicConfig(t, "segment.bytes", "1000", "index.interval.bytes", "100")
	m := open(t, options(t, mem, c))
	l := create(t, m, cfg)
	for i := range 100 {
		info := appendPlain(t, l, 3, int64(1000+i), fmt.Sprint("v", i))
		if info.FirstOffset != int64(3*i) || info.LastOffset != int64(3*i+2) {
			t.Fatalf("append %d went to %d-%d", i, info.FirstOffset, info.LastOffset)
		}
	}
	check := func(l *Log) {
		t.Helper()
		for _, maxBytes := range []int{1, 100, 250, 1 << 20} {
			for from := int64(0); from < 300; from += 7 {
				got := readAll(t, l, from, 300, maxBytes)
				if int64(len(got)) != 300-from || got[0].offset != from {
					t.Fatalf("from %d with %d bytes: %d records, the first at %d", from, maxBytes, len(got), got[0].offset)
				}
			}
		}
		for _, upTo := range []int64{1, 30, 150, 297, 299} {
			if got := readAll(t, l, 0, upTo, 1<<20); int64(len(got)) < upTo-2 || int64(len(got)) > upTo {
				t.Fatalf("up to %d: %d records", upTo, len(got))
			}
		}
	}
	check(l)
	if n := len(*l.segments.Load()); n < 10 {
		t.Fatal("only", n, "segments")
	}
	l.SetHighWatermark(300)
	for _, how := range []string{"clean", "killed", "lost power"} {
		o := options(t, mem, c)
		switch how {
		case "clean":
			must(t, m.Close())
		case "killed":
			o.FS = mem.CrashClone(vfs.KillProcess, nil)
		case "lost power":
			must(t, l.Flush())
			o.FS = mem.CrashClone(vfs.LoseUnsynced, nil)
			o.BootID = "other"
		}
		m = open(t, o)
		mem = o.FS.(*vfs.Mem)
		var ok bool
		if l, ok = m.Log(tp0); !ok {
			t.Fatal(how, ": the log has gone")
		}
		l.SetConfig(cfg)
		if l.EndOffset() != 300 {
			t.Fatal(how, ": ends at", l.EndOffset(), l.Err())
		}
		check(l)
		if how == "clean" && l.HighWatermark() != 300 {
			t.Fatal("high watermark", l.HighWatermark())
		}
	}
	must(t, m.Close())
}

func TestReadsOutsideOfTheLog(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	defer m.Close()
	l := create(t, m, nil)
	set := plain(t, 1, 1000, "twenty bytes of value")
	size := len(set)
	appendPlain(t, l, 1, 1000, "twenty bytes of value")
	for _, offset := range []int64{-1, 2} {
		if _, err := l.Read(offset, 100, 1, true); !errors.Is(err, ErrOffsetOutOfRange) {
			t.Fatal(offset, err)
		}
	}
	s, err := l.Read(1, 100, 1, true)
	if err != nil || s.Len != 0 {
		t.Fatal("at the end:", s, err)
	}
	s, err = l.Read(0, 1, 1, true)
	if err != nil || s.Len != size || s.FirstIncomplete {
		t.Fatal("a first batch beyond the limit is whole with minOne:", s, err)
	}
	s.Release()
	s, err = l.Read(0, 1, 1, false)
	if err != nil || s.Len != 1 || !s.FirstIncomplete {
		t.Fatal("and cut without:", s, err)
	}
	s.Release()
}
