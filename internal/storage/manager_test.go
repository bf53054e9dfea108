package storage

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

func TestASecondBrokerIsRefused(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"os": vfs.OS, "mem": vfs.NewMem()} {
		o := options(t, fsys, newClock())
		o.Dirs = []string{filepath.Join(t.TempDir(), "data")}
		m := open(t, o)
		if _, err := Open(o); !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), o.Dirs[0]) {
			t.Fatal(name, err)
		}
		must(t, m.Close())
		must(t, open(t, o).Close())
	}
}

func TestPartitionsAreSpreadOverDirectories(t *testing.T) {
	mem := vfs.NewMem()
	o := options(t, mem, newClock())
	o.Dirs = []string{"/a", "/b", "/c"}
	m := open(t, o)
	for i := range int32(9) {
		_, err := m.Create(wire.TopicPartition{Topic: "t", Partition: i}, wire.UUID{}, nil)
		must(t, err)
	}
	count := map[string]int{}
	for _, l := range m.Logs() {
		count[l.Dir()]++
	}
	if fmt.Sprint(count) != "map[/a:3 /b:3 /c:3]" {
		t.Fatal(count)
	}
	must(t, m.Close())
	must(t, mem.Mkdir("/a/t-8", 0o755)) // also in another one
	must(t, mem.MkdirAll("/b/t-8", 0o755))
	if _, err := Open(o); !errors.Is(err, ErrExists) {
		t.Fatal(err)
	}
}

func TestTopicIDsAreKept(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	id, other := wire.NewUUID(), wire.NewUUID()
	l, err := m.Create(tp0, id, nil)
	must(t, err)
	if got := string(readFile(t, mem, part+"/"+partitionFile)); got != "version: 0\ntopic_id: "+id.String() {
		t.Fatalf("%q", got)
	}
	if l.TopicID() != id {
		t.Fatal(l.TopicID())
	}
	if again, err := m.Create(tp0, id, nil); again != l || err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create(tp0, other, nil); !errors.Is(err, ErrInconsistentTopicID) {
		t.Fatal(err)
	}
	must(t, m.Close())
	m = open(t, options(t, mem, c))
	defer m.Close()
	l, _ = m.Log(tp0)
	if l.TopicID() != id || !errors.Is(l.SetTopicID(other), ErrInconsistentTopicID) {
		t.Fatal(l.TopicID())
	}
}

func TestDeletedPartitionsGoAfterTheDelay(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	l := create(t, m, nil)
	appendPlain(t, l, 1, 1000, "v")
	s, err := l.Read(0, 100, 1, true)
	must(t, err)
	must(t, m.Delete(tp0))
	if err := m.Delete(tp0); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := s.ReadAt(make([]byte, s.Len), 0); err != nil {
		t.Fatal("a slice in use stays readable:", err)
	}
	s.Release()
	if _, err := l.Append(AppendRequest{Records: plain(t, 1, 1, "v")}); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if _, err := l.Read(0, 100, 1, true); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	waits := func() bool {
		for name := range list(t, mem, "/d") {
			if isDeleteFolder(name) {
				return true
			}
		}
		return false
	}
	if m.Tick(c.advance(59 * time.Second)); !waits() {
		t.Fatal("removed too early")
	}
	l = create(t, m, nil) // of the same name, at once
	if l.EndOffset() != 0 {
		t.Fatal("the old records came back")
	}
	must(t, m.Close())
	m = open(t, options(t, mem, c))
	defer m.Close()
	if m.Tick(c.advance(61 * time.Second)); waits() {
		t.Fatal("what a stop left behind is removed later")
	}
}

func TestTheCleanMark(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	has := func() bool {
		ok, err := vfs.Exists(mem, "/d/"+cleanFile)
		must(t, err)
		return ok
	}
	m := open(t, options(t, mem, c))
	create(t, m, nil)
	if has() {
		t.Fatal("while running")
	}
	must(t, m.Close())
	if !has() {
		t.Fatal("after a clean stop")
	}
	var failing atomic.Bool
	o := options(t, vfs.NewFaulty(mem, func(op vfs.Op, name string, _ int) error {
		if failing.Load() && op == vfs.OpSync {
			return syscall.EIO
		}
		return nil
	}), c)
	m = open(t, o)
	if has() {
		t.Fatal("after a start")
	}
	l, _ := m.Log(tp0)
	appendPlain(t, l, 1, 1, "v")
	failing.Store(true)
	if err := m.Close(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if has() {
		t.Fatal("after a stop in which something failed")
	}
}

func TestAFailedSyncTakesTheDirectoryOffline(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	var failing atomic.Bool
	o := options(t, vfs.NewFaulty(mem, func(op vfs.Op, name string, _ int) error {
		if failing.Load() && op == vfs.OpSync && strings.HasPrefix(name, "/a/") {
			return syscall.EIO
		}
		return nil
	}), c)
	o.Dirs = []string{"/a", "/b"}
	var told []string
	o.OnDirFailure = func(dir string, err error) { told = append(told, fmt.Sprint(dir, " ", errors.Is(err, syscall.EIO))) }
	m := open(t, o)
	byDir := map[string]*Log{}
	for i := range int32(2) {
		l, err := m.Create(wire.TopicPartition{Topic: "t", Partition: i}, wire.UUID{}, nil)
		must(t, err)
		byDir[l.Dir()] = l
		appendPlain(t, l, 1, 1, "v")
	}
	failing.Store(true)
	if err := byDir["/a"].Flush(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	must(t, byDir["/b"].Flush())
	failing.Store(false)
	for name, err := range map[string]error{"flush": byDir["/a"].Flush(), "err": byDir["/a"].Err()} {
		if !errors.Is(err, ErrOffline) || Code(err) != wire.KafkaStorageError {
			t.Fatal(name, "is not tried again:", err)
		}
	}
	if _, err := byDir["/a"].Append(AppendRequest{Records: plain(t, 1, 1, "v")}); !errors.Is(err, ErrOffline) {
		t.Fatal(err)
	}
	if _, err := byDir["/a"].Read(0, 100, 1, true); !errors.Is(err, ErrOffline) {
		t.Fatal(err)
	}
	m.Tick(c.advance(time.Second))
	m.Tick(c.advance(time.Second))
	if fmt.Sprint(told) != "[/a true]" {
		t.Fatal(told)
	}
	if dirs := m.Dirs(); dirs[0].Err == nil || dirs[1].Err != nil {
		t.Fatal(dirs)
	}
	l, err := m.Create(wire.TopicPartition{Topic: "new"}, wire.UUID{}, nil)
	if err != nil || l.Dir() != "/b" {
		t.Fatal("new partitions go elsewhere:", err)
	}
	appendPlain(t, byDir["/b"], 1, 1, "v")
	must(t, m.Close()) // it was told of when it happened
	if ok, _ := vfs.Exists(mem, "/a/"+cleanFile); ok {
		t.Fatal("clean mark in the failed directory")
	}
	if ok, _ := vfs.Exists(mem, "/b/"+cleanFile); !ok {
		t.Fatal("no clean mark in the good one")
	}
}

func TestAFailedWriteIsCutBack(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	var written atomic.Int64
	written.Store(-1)
	var noCut atomic.Bool
	o := options(t, vfs.NewFaulty(mem, func(op vfs.Op, name string, n int) error {
		if w := written.Load(); w >= 0 && op == vfs.OpWrite && strings.HasSuffix(name, logSuffix) {
			return &vfs.ShortWrite{Written: int(w), Err: syscall.ENOSPC}
		}
		if noCut.Load() && op == vfs.OpTruncate {
			return syscall.EIO
		}
		return nil
	}), c)
	var logged bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	m := open(t, o)
	l := create(t, m, nil)
	appendPlain(t, l, 2, 1000, "first")
	for _, n := range []int64{0, 1, 61, 70} {
		written.Store(n)
		_, err := l.Append(AppendRequest{Records: plain(t, 2, 1000, "too much"), LogAppendTime: -1})
		if !errors.Is(err, syscall.ENOSPC) || Code(err) != wire.KafkaStorageError {
			t.Fatal(err)
		}
		if l.EndOffset() != 2 || l.Err() != nil {
			t.Fatal("the log goes on:", l.EndOffset(), l.Err())
		}
		if got := readAll(t, l, 0, 2, 1000); len(got) != 2 {
			t.Fatal("reads go on:", got)
		}
	}
	if n := strings.Count(logged.String(), "no space left"); n != 1 {
		t.Fatalf("the full disk was logged %d times, want once in a while: %s", n, logged.String())
	}
	written.Store(-1)
	if info := appendPlain(t, l, 2, 1000, "second"); info.FirstOffset != 2 {
		t.Fatal(info)
	}
	if got := readAll(t, l, 0, 4, 1000); len(got) != 4 {
		t.Fatal(got)
	}
	written.Store(5)
	noCut.Store(true)
	if _, err := l.Append(AppendRequest{Records: plain(t, 2, 1000, "x"), LogAppendTime: -1}); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if !errors.Is(l.Err(), ErrOffline) {
		t.Fatal("what can't be cut back takes the directory offline:", l.Err())
	}
	if m.Close() == nil {
		t.Fatal("closed as if nothing had happened")
	}
}

func TestADirectoryThatCannotBeUsedIsOfflineFromTheStart(t *testing.T) {
	mem := vfs.NewMem()
	fsys := vfs.NewFaulty(mem, func(op vfs.Op, name string, _ int) error {
		if strings.HasPrefix(name, "/bad") {
			return syscall.EROFS
		}
		return nil
	})
	o := options(t, fsys, newClock())
	o.Dirs = []string{"/bad", "/good"}
	m := open(t, o)
	if dirs := m.Dirs(); dirs[0].Err == nil || dirs[1].Err != nil {
		t.Fatal(dirs)
	}
	create(t, m, nil)
	if m.Close() == nil {
		t.Fatal("Close tells of the bad directory")
	}
	o.Dirs = []string{"/bad"}
	if _, err := Open(o); !errors.Is(err, ErrNoDir) || !errors.Is(err, syscall.EROFS) {
		t.Fatal(err)
	}
}

func TestCheckpointsAreWrittenInTime(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	l := create(t, m, nil)
	m.Tick(c.advance(time.Second))
	appendPlain(t, l, 10, 1000, "v")
	l.SetHighWatermark(7)
	m.Tick(c.advance(5 * time.Second))
	if got := string(readFile(t, mem, "/d/"+highWatermarkFile)); got != "0\n1\nt 0 7\n" {
		t.Fatalf("%q", got)
	}
	for range 70 {
		m.Tick(c.advance(time.Second))
	}
	if l.RecoveryPoint() != 10 {
		t.Fatal("after a minute all is synced:", l.RecoveryPoint())
	}
	for range 70 {
		m.Tick(c.advance(time.Second))
	}
	if got := string(readFile(t, mem, "/d/"+recoveryPointFile)); got != "0\n1\nt 0 10\n" {
		t.Fatalf("%q", got)
	}
	must(t, m.Close())
}

func TestBackgroundWorkRunsByItself(t *testing.T) {
	o := options(t, vfs.NewMem(), newClock())
	o.Manual = false
	m := open(t, o)
	l := create(t, m, topicConfig(t, "segment.bytes", "300"))
	for range 20 {
		appendPlain(t, l, 3, 1000, "v")
	}
	for deadline := time.Now().Add(20 * time.Second); l.RecoveryPoint() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("a roll was never synced")
		}
		runtime.Gosched()
	}
	must(t, m.Close())
}

func TestAnotherConfigurationTakesEffectAtOnce(t *testing.T) {
	o := options(t, vfs.NewMem(), newClock())
	o.Topic = func(topic string) *config.Topic { return topicConfig(t, "segment.bytes", "200") }
	m := open(t, o)
	defer m.Close()
	l := create(t, m, nil)
	if _, err := l.Append(AppendRequest{Records: plain(t, 20, 1, "too large")}); !errors.Is(err, ErrBatchTooLarge) {
		t.Fatal(err)
	}
	l.SetConfig(topicConfig(t, "segment.bytes", "20000"))
	appendPlain(t, l, 20, 1, "not too large")
}

func TestLogsThatWereNeverUsedKeepTheirOffsets(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	l := create(t, m, nil)
	for range 5 {
		appendPlain(t, l, 2, 1000, "v")
	}
	l.SetHighWatermark(9)
	if _, err := l.DeleteRecordsTo(3); err != nil {
		t.Fatal(err)
	}
	must(t, m.Close())
	for range 2 { // starts and stops without a look at the log
		m = open(t, options(t, mem, c))
		m.Tick(c.advance(10 * time.Second))
		must(t, m.Checkpoint())
		must(t, m.Close())
	}
	killed := open(t, options(t, mem.CrashClone(vfs.KillProcess, nil), c))
	must(t, killed.Close())
	m = open(t, options(t, mem, c))
	defer m.Close()
	l, _ = m.Log(tp0)
	if l.state.Load() != unloaded || l.EndOffset() != 10 || l.HighWatermark() != 9 || l.RecoveryPoint() != 10 {
		t.Fatal(l.state.Load(), l.EndOffset(), l.HighWatermark(), l.RecoveryPoint())
	}
	if l.StartOffset() != 3 || l.EndOffset() != 10 || l.Err() != nil {
		t.Fatal(l.StartOffset(), l.EndOffset(), l.Err())
	}
}
