package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// both runs a test on the host's file system and on the one in memory.
func both(t *testing.T, test func(t *testing.T, fsys FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, OS, t.TempDir()) })
	t.Run("mem", func(t *testing.T) {
		m := NewMem()
		if err := m.MkdirAll("/data", 0o755); err != nil {
			t.Fatal(err)
		}
		test(t, m, "/data")
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesReadBackWhatWasWritten(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		name := filepath.Join(dir, "a")
		f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
		must(t, err)
		defer f.Close()
		_, err = f.WriteAt([]byte("hello"), 3)
		must(t, err)
		b := make([]byte, 10)
		n, err := f.ReadAt(b, 0)
		if n != 8 || err != io.EOF || !bytes.Equal(b[:n], []byte("\x00\x00\x00hello")) {
			t.Fatalf("read %d %q %v", n, b[:n], err)
		}
		must(t, f.Truncate(4))
		must(t, f.Sync())
		if size, err := f.Size(); size != 4 || err != nil {
			t.Fatal(size, err)
		}
		must(t, f.Reserve(2, 100))
		if size, _ := f.Size(); size != 4 {
			t.Fatal("reserve changed the length:", size)
		}
		must(t, fsys.Rename(name, filepath.Join(dir, "b")))
		must(t, fsys.SyncDir(dir))
		must(t, fsys.Remove(filepath.Join(dir, "b")))
		if _, err := f.ReadAt(b[:1], 3); err != nil || b[0] != 'h' {
			t.Fatal("a removed file must stay readable while open:", err)
		}
		if _, err := fsys.OpenFile(name, os.O_RDONLY, 0); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	})
}

func TestLockExcludesASecondHolder(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		name := filepath.Join(dir, ".lock")
		l, err := fsys.Lock(name)
		must(t, err)
		if _, err := fsys.Lock(name); !errors.Is(err, ErrLocked) {
			t.Fatal("second lock:", err)
		}
		must(t, l.Close())
		l, err = fsys.Lock(name)
		must(t, err)
		must(t, l.Close())
	})
}

func TestWriteFileAtomicReplaces(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		name := filepath.Join(dir, "x")
		must(t, WriteFileAtomic(fsys, name, []byte("one"), 0o644, true))
		must(t, WriteFileAtomic(fsys, name, []byte("two!"), 0o644, false))
		b, err := ReadFile(fsys, name, 100)
		if err != nil || string(b) != "two!" {
			t.Fatal(b, err)
		}
		if _, err := ReadFile(fsys, name, 3); err == nil {
			t.Fatal("the limit was not kept")
		}
		if ok, err := Exists(fsys, name+".tmp"); ok || err != nil {
			t.Fatal("left over:", ok, err)
		}
	})
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	m := NewMem()
	must(t, m.MkdirAll("/d", 0o755))
	must(t, m.SyncDir("/"))
	must(t, WriteFileAtomic(m, "/d/kept", []byte("kept"), 0o644, true))
	must(t, WriteFile(m, "/d/lost", []byte("lost"), 0o644))
	f, err := m.OpenFile("/d/kept", os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("more"), 4)
	must(t, err)

	read := func(c *Mem, name string) string {
		b, err := ReadFile(c, name, 100)
		if err != nil {
			return "-"
		}
		return string(b)
	}
	c := m.CrashClone(LoseUnsynced, nil)
	if read(c, "/d/kept") != "kept" || read(c, "/d/lost") != "-" {
		t.Fatal(read(c, "/d/kept"), read(c, "/d/lost"))
	}
	c = m.CrashClone(KillProcess, nil)
	if read(c, "/d/kept") != "keptmore" || read(c, "/d/lost") != "lost" {
		t.Fatal(read(c, "/d/kept"), read(c, "/d/lost"))
	}
	for seed := range uint64(100) {
		c = m.CrashClone(LoseSome, rand.New(rand.NewPCG(seed, 0)))
		if got := read(c, "/d/kept"); len(got) < 4 || got[:4] != "kept" {
			t.Fatalf("seed %d: synced bytes are gone: %q", seed, got)
		}
	}
}

func TestFaultyFailsAndWritesShort(t *testing.T) {
	m := NewMem()
	var next error
	f := NewFaulty(m, func(op Op, name string, n int) error {
		if op == OpWrite {
			return next
		}
		return nil
	})
	file, err := f.OpenFile("/a", os.O_RDWR|os.O_CREATE, 0o644)
	must(t, err)
	next = &ShortWrite{2, syscall.ENOSPC}
	n, err := file.WriteAt([]byte("abc"), 0)
	if n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(n, err)
	}
	next = nil
	if _, err := file.WriteAt([]byte("abc"), 0); err != nil {
		t.Fatal(err)
	}
}
