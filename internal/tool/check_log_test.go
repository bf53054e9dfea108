package tool

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"barnabas/internal/config"
	"barnabas/internal/record"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

// Folders that Apache Kafka wrote are found good, and each damage is named.
func TestCheckLogNamesDamages(t *testing.T) {
	check := func(dir string) (string, error) {
		var out bytes.Buffer
		err := checkLogCommand().Execute(&Call{Context: t.Context(), Out: &out, Err: &out}, []string{"--log-dirs", dir})
		return out.String(), err
	}
	for _, folder := range []string{"kafka-2.8.2", "kafka-3.9.1"} {
		if out, err := check("../storage/testdata/" + folder); err != nil || !strings.Contains(out, ": 0 problems") {
			t.Fatal(folder, out, err)
		}
	}
	for name, do := range map[string]func(b []byte) []byte{
		"00000000000000000000.log":      func(b []byte) []byte { b[200] ^= 1; return b },
		"00000000000000000040.log":      func(b []byte) []byte { return b[:len(b)-4] },
		"00000000000000000000.index":    func(b []byte) []byte { b[7] ^= 1; return b },
		"00000000000000000096.snapshot": func(b []byte) []byte { b[3] ^= 1; return b },
	} {
		dir := filepath.Join(t.TempDir(), "mixed-0")
		if err := os.CopyFS(dir, os.DirFS("../storage/testdata/kafka-3.9.1/mixed-0")); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), do(b), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := check(filepath.Dir(dir)); err != ErrReported || !strings.Contains(out, name+": ") {
			t.Fatal(name, out, err)
		}
	}
}

// A copy is repaired: the original stays as it is, and the copy has every batch but
// the damaged one. A broker's start on it takes it as it is.
func TestCheckLogRepairsACopy(t *testing.T) {
	from := filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(from, os.DirFS("../storage/testdata/kafka-3.9.1")); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := checkLogCommand().Execute(&Call{Context: t.Context(), Out: &out, Err: &out}, args)
		return out.String(), err
	}
	count := func(dir string) map[int64]string {
		t.Helper()
		c, err := config.NewBroker(map[string]string{"broker.id": "1"})
		if err != nil {
			t.Fatal(err)
		}
		m, err := storage.Open(storage.Options{Dirs: []string{dir}, Config: c, BrokerID: 1, Manual: true, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		l, _ := m.Log(wire.TopicPartition{Topic: "mixed"})
		got := map[int64]string{}
		for at := l.StartOffset(); at < l.EndOffset(); {
			s, err := l.Read(at, 1<<20, l.EndOffset(), true)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, s.Len)
			_, _ = s.ReadAt(b, 0)
			s.Release()
			before := at
			for sp := record.Split(b); sp.Next(); {
				if err := sp.Batch().Each(0, func(r *record.Record) error { got[r.Offset] = string(r.Value); return nil }); err != nil {
					t.Fatal(err)
				}
				at = max(at, sp.Batch().NextOffset())
			}
			if at == before {
				t.Fatal("no progress at", at)
			}
		}
		return got
	}
	whole := filepath.Join(t.TempDir(), "whole")
	if out, err := run("--log-dirs", from, "--repair-to", whole); err != nil || !strings.Contains(out, "; 0 bytes that are in none") {
		t.Fatal(out, err)
	}
	all := count(whole)
	name := filepath.Join(from, "mixed-0", "00000000000000000000.log")
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var second, third int // positions of batches
	sp := record.Split(good)
	for i := 0; sp.Next(); i++ {
		switch i {
		case 1:
			second = sp.Position()
		case 2:
			third = sp.Position()
		}
	}
	lost := map[int64]bool{}
	for o := record.Batch(good[second:]).BaseOffset(); o <= record.Batch(good[second:]).LastOffset(); o++ {
		lost[o] = true
	}
	for what, do := range map[string]func(b []byte) []byte{
		"a flipped bit in the second batch":               func(b []byte) []byte { b[second+70] ^= 4; return b },
		"a flipped bit in its length":                     func(b []byte) []byte { b[second+9] ^= 4; return b },
		"a flipped bit in its base offset":                func(b []byte) []byte { b[second+3] ^= 4; return b },
		"zeros in its place":                              func(b []byte) []byte { clear(b[second:third]); return b },
		"bytes in front of it, which has a flipped bit":   func(b []byte) []byte { b[second+70] ^= 4; return slices.Insert(b, second, []byte("some bytes")...) },
		"a flipped bit in it and half a batch at the end": func(b []byte) []byte { b[second+70] ^= 4; return append(b, b[:50]...) },
	} {
		damaged := do(slices.Clone(good))
		if err := os.WriteFile(name, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "to")
		out, err := run("--log-dirs", from, "--repair-to", to)
		if err != ErrReported || !strings.Contains(out, name+": ") {
			t.Fatal(what, out, err)
		}
		if b, _ := os.ReadFile(name); !bytes.Equal(b, damaged) {
			t.Fatal(what, ": the original was changed")
		}
		if out, err := run("--log-dirs", to); err != nil {
			t.Fatal(what, ": the copy: ", out, err)
		}
		got := count(to)
		for o, value := range all {
			if v, ok := got[o]; ok == lost[o] || ok && v != value {
				t.Errorf("%s: offset %d: %q, %v", what, o, v, ok)
			}
		}
	}
	if _, err := run("--log-dirs", from, "--repair-to", filepath.Join(from, "in")); err == nil {
		t.Fatal("the copy may lie in the original")
	}
	if _, err := run("--log-dirs", from, "--repair-to", whole); err == nil {
		t.Fatal("a folder that is not empty is taken")
	}
}
