package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
	"barnabas/internal/vfs"
)

// onMemory returns options for a server whose files are in memory.
func onMemory(m vfs.FS) Options {
	o := quiet()
	o.fs, o.Dir = m, "/keeper"
	return o
}

// fill makes a store with n nodes of 100 bytes, and closes it.
func fill(t *testing.T, o Options, n int) {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, s)
	for i := range n {
		call(t, c, jute.OpCreate, create(fmt.Sprint("/n", i), strings.Repeat("x", 100), jute.Persistent), jute.OK)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// withSnapshot makes sure that a store has a snapshot and a log after it.
func withSnapshot(t *testing.T, o Options, n int) {
	t.Helper()
	fill(t, o, n)
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, s)
	s.startSnapshot()
	for s.taking.Load() {
		call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/"}, jute.OK)
	}
	call(t, c, jute.OpCreate, create("/after", "", jute.Persistent), jute.OK)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, o Options) (nodes int, err error) {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	checkTree(t, s.mu.core.tree)
	return len(s.mu.core.tree.nodes) - 4, nil
}

// The table of recovery: a damage, and what must be left of 50 nodes, or the error.
func TestWhatIsLeftOfADamagedStore(t *testing.T) {
	logOf := func(b []byte) int { return bytes.LastIndexByte(bytes.TrimRight(b, "\x00"), 'B') + 1 }
	for _, c := range []struct {
		name   string
		make   func(*testing.T, Options, int)
		file   string // a prefix
		damage func([]byte) []byte
		want   []int // number of nodes that may be left; nil: ErrCorrupt
	}{
		{"nothing", fill, "log.", func(b []byte) []byte { return b }, []int{50}},
		{"zeros at the log's end", fill, "log.", func(b []byte) []byte { return append(b, make([]byte, 5000)...) }, []int{50}},
		{"the last entry is cut", fill, "log.", func(b []byte) []byte { return b[:logOf(b)-20] }, []int{49}},
		{"only the last entry's length is there", fill, "log.", func(b []byte) []byte { return append(b[:logOf(b):logOf(b)], 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 90) }, []int{50}},
		{"noise at the log's end", fill, "log.", func(b []byte) []byte { return append(b, bytes.Repeat([]byte("noise"), 100)...) }, []int{50}},
		{"a bit of the last entry", fill, "log.", func(b []byte) []byte { b[logOf(b)-30] ^= 1; return b }, []int{49}},
		{"the log's header is zeros", fill, "log.", func(b []byte) []byte { return make([]byte, len(b)) }, []int{0}},
		{"the log is empty", fill, "log.", func([]byte) []byte { return nil }, []int{0}},
		{"the log is noise", fill, "log.", func([]byte) []byte { return bytes.Repeat([]byte("noise"), 1000) }, nil},
		{"a snapshot", withSnapshot, "snapshot.", func(b []byte) []byte { return b }, []int{51}},
		{"the only snapshot is cut", withSnapshot, "snapshot.", func(b []byte) []byte { return b[:len(b)-40] }, nil},
		{"a bit of the only snapshot", withSnapshot, "snapshot.", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, nil},
		{"the only snapshot is empty", withSnapshot, "snapshot.", func([]byte) []byte { return nil }, nil},
		{"the secret is cut", fill, "../secret", func(b []byte) []byte { return b[:5] }, []int{50}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := quiet()
			o.Dir = t.TempDir()
			c.make(t, o, 50)
			files, err := filepath.Glob(filepath.Join(o.Dir, dataFolder, c.file+"*"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			b, err := os.ReadFile(files[0])
			if err == nil {
				err = os.WriteFile(files[0], c.damage(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			n, err := count(t, o)
			if c.want == nil {
				if !errors.Is(err, ErrCorrupt) {
					t.Fatalf("%d nodes, %v", n, err)
				}
				return
			}
			if err != nil || !slices.Contains(c.want, n) {
				t.Fatalf("%d nodes, %v; expected %v", n, err, c.want)
			}
			if again, err := count(t, o); err != nil || again != n {
				t.Fatalf("the second time %d nodes, %v", again, err)
			}
		})
	}
}

// Power is lost while a log is rolled, again and again: the new log has its name
// and its size, and its header did not reach the disk. Nothing of the logs before
// it goes, and what is written then is read in its order, whether the first log
// is still there or has gone with a snapshot.
func TestAPowerLossWhileALogIsRolledLosesNothing(t *testing.T) {
	for _, purged := range []bool{false, true} {
		t.Run(fmt.Sprint("purged ", purged), func(t *testing.T) {
			o := quiet()
			o.Dir = t.TempDir()
			fill(t, o, 50)
			s := open(t, o)
			c := connect(t, s)
			s.startSnapshot()
			for s.taking.Load() {
				call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/"}, jute.OK)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			first := filepath.Join(o.Dir, dataFolder, logName(1))
			if purged {
				if err := os.Remove(first); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 3 {
				newest := filepath.Join(o.Dir, dataFolder, logName(int64(i+2)<<32+1)) // as the next write's
				if err := os.WriteFile(newest, make([]byte, 5000), 0o600); err != nil {
					t.Fatal(err)
				}
				s := open(t, o)
				c := connect(t, s)
				call(t, c, jute.OpCreate, create(fmt.Sprint("/later", i), "", jute.Persistent), jute.OK)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if n, err := count(t, o); err != nil || n != 51+i {
					t.Fatalf("%d nodes, %v; expected %d", n, err, 51+i)
				}
			}
			if there, err := vfs.Exists(vfs.OS, first); err != nil || there == purged {
				t.Errorf("%s: %v, %v", first, there, err)
			}
		})
	}
}

func TestADamagedSnapshotIsPassedOverForTheOneBefore(t *testing.T) {
	o := quiet()
	o.Dir = t.TempDir()
	withSnapshot(t, o, 20)
	withSnapshot2 := func() {
		s := open(t, o)
		c := connect(t, s)
		call(t, c, jute.OpCreate, create("/more", "", jute.Persistent), jute.OK)
		s.startSnapshot()
		for s.taking.Load() {
			call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/"}, jute.OK)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	withSnapshot2()
	files, _ := filepath.Glob(filepath.Join(o.Dir, dataFolder, "snapshot.*"))
	slices.SortFunc(files, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	if len(files) != 2 {
		t.Fatal(files)
	}
	if err := os.Truncate(files[1], 100); err != nil {
		t.Fatal(err)
	}
	if n, err := count(t, o); err != nil || n != 22 {
		t.Fatal(n, err)
	}
}

// Writes, snapshots and crashes by chance: what was answered is there, and what
// is there was asked for.
func TestACrashAnywhereLosesNothingThatWasAnswered(t *testing.T) {
	g := rand.New(rand.NewPCG(testSeed(t), 3))
	for range 6 {
		disk := vfs.NewMem()
		answered := map[string]bool{}
		for life := range 3 {
			s, err := Open(onMemory(disk))
			if err != nil {
				t.Fatal(err)
			}
			c := connect(t, s)
			for i := range g.IntN(60) {
				path := fmt.Sprintf("/n%d-%d", life, i)
				call(t, c, jute.OpCreate, create(path, strings.Repeat("x", g.IntN(3000)), jute.Persistent), jute.OK)
				if answered[path] = true; g.IntN(3) == 0 {
					path = slices.Sorted(maps.Keys(answered))[g.IntN(len(answered))]
					call(t, c, jute.OpDelete, &jute.PathVersionRequest{Path: path, Version: -1}, jute.OK)
					delete(answered, path)
				}
				if g.IntN(20) == 0 {
					s.startSnapshot()
				}
			}
			next := disk.CrashClone([]vfs.Crash{vfs.LoseUnsynced, vfs.LoseSome}[g.IntN(2)], g)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			disk = next
		}
		s := open(t, onMemory(disk))
		c := connect(t, s)
		names := call(t, c, jute.OpGetChildren, &jute.PathWatchRequest{Path: "/"}, jute.OK).Body.(*jute.GetChildrenResponse).Children
		for _, name := range names {
			if name != "zookeeper" && !answered["/"+name] {
				t.Errorf("%s is there", name)
			}
			delete(answered, "/"+name)
		}
		if len(answered) > 0 {
			t.Fatalf("lost: %v", slices.Sorted(maps.Keys(answered)))
		}
	}
}

// A disk that is full refuses writes, and takes them again when there is room.
func TestAFullDiskRefusesWritesUntilThereIsRoom(t *testing.T) {
	var full bool
	fsys := vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op, name string, n int) error {
		if full && op == vfs.OpWrite {
			return &vfs.ShortWrite{Written: n / 2, Err: syscall.ENOSPC}
		}
		return nil
	})
	s := open(t, onMemory(fsys))
	c := connect(t, s)
	call(t, c, jute.OpCreate, create("/a", "", jute.Persistent), jute.OK)
	call(t, c, jute.OpCreate, create("/e", "", jute.Ephemeral), jute.OK)
	full = true
	call(t, c, jute.OpCreate, create("/b", "", jute.Persistent), jute.ErrSystemError)
	call(t, c, jute.OpMulti, &jute.MultiRequest{Ops: []jute.MultiOp{{Op: jute.OpDelete, Request: &jute.PathVersionRequest{Path: "/a", Version: -1}}}}, jute.ErrSystemError)
	call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/b"}, jute.ErrNoNode)
	call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/a"}, jute.OK)
	call(t, c, jute.OpSync, &jute.PathRequest{Path: "/"}, jute.OK)
	full = false
	call(t, c, jute.OpCreate, create("/b", "", jute.Persistent), jute.OK)
	call(t, c, jute.OpCloseSession, nil, jute.OK)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := count(t, onMemory(fsys)); err != nil || n != 2 {
		t.Fatal(n, err)
	}
}

// The name of a log that a refused commit made is not forgotten by the next.
func TestALogOfARefusedCommitIsThereAfterAPowerLoss(t *testing.T) {
	disk := vfs.NewMem()
	var full bool
	fsys := &closeCounter{FS: vfs.NewFaulty(disk, func(op vfs.Op, name string, n int) error {
		if full && op == vfs.OpWrite && n > headerSize && strings.HasPrefix(filepath.Base(name), "log.") {
			return syscall.ENOSPC
		}
		return nil
	})}
	s := open(t, onMemory(fsys))
	full = true
	if _, err := keepertest.Connect(dial(t, s), jute.ConnectRequest{Timeout: 40000}); err == nil {
		t.Fatal("a session on a full disk")
	}
	full = false
	c := connect(t, s)
	call(t, c, jute.OpCreate, create("/a", "", jute.Persistent), jute.OK)
	if n, err := count(t, onMemory(disk.CrashClone(vfs.LoseUnsynced, nil))); err != nil || n != 1 {
		t.Errorf("%d nodes, %v", n, err)
	}
	if n := fsys.opened.Load(); n != 0 {
		t.Errorf("the secret's file is open %d times", n)
	}
}

// closeCounter counts how often the secret's file is open for writing.
type closeCounter struct {
	vfs.FS
	opened atomic.Int32
}

func (c *closeCounter) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil || filepath.Base(name) != secretFile || flag&os.O_CREATE == 0 {
		return f, err
	}
	c.opened.Add(1)
	return &countedFile{f, c}, nil
}

type countedFile struct {
	vfs.File
	c *closeCounter
}

func (f *countedFile) Close() error {
	f.c.opened.Add(-1)
	return f.File.Close()
}

// A process is killed after it wrote to a new log, before the log and its name
// were synced. What the next process finds, and shows, is there after a power
// loss too, and so is what it adds.
func TestALogThatAKillLeftUnsyncedIsSyncedAtTheStart(t *testing.T) {
	for more := range 2 {
		disk := vfs.NewMem()
		o := onMemory(disk)
		fill(t, o, 10)
		data := filepath.Join(o.Dir, dataFolder)
		name := filepath.Join(data, logName(1))
		b, err := vfs.ReadFile(disk, name, 1<<20)
		if err == nil {
			err = errors.Join(disk.Remove(name), disk.SyncDir(data))
		}
		if err == nil {
			err = vfs.WriteFile(disk, name, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, o)
		if more > 0 {
			call(t, connect(t, s), jute.OpCreate, create("/more", "", jute.Persistent), jute.OK)
		}
		if n, err := count(t, onMemory(disk.CrashClone(vfs.LoseUnsynced, nil))); err != nil || n != 10+more {
			t.Errorf("%d nodes, %v; expected %d", n, err, 10+more)
		}
	}
}

// While a snapshot is taken, writes change what it still has to take.
func TestASnapshotIsOfOneMoment(t *testing.T) {
	g := rand.New(rand.NewPCG(testSeed(t), 4))
	for range 50 {
		tr := firstTree()
		for i := range 200 {
			tr.put(&record{path: fmt.Sprint("/n", i), data: []byte("old")})
		}
		for i := range g.IntN(100) {
			tr.remove(fmt.Sprint("/n", i))
		}
		want := dump(tr)
		tr.begin(1, nil)
		var got []*record
		for i := 0; ; i++ {
			before := len(got)
			if got = tr.take(g.IntN(10)+1, got); len(got) == before {
				break
			}
			path := fmt.Sprint("/n", g.IntN(200))
			switch n := tr.nodes[path]; {
			case n == nil:
				tr.put(&record{path: path, data: []byte("new")})
			case g.IntN(2) == 0:
				tr.remove(path)
			default:
				tr.put(&record{path: path, data: []byte("newer")})
			}
			tr.put(&record{path: fmt.Sprint("/m", i), data: []byte("new")})
		}
		tr.endSnapshot()
		checkTree(t, tr)
		taken := newTree(0)
		for _, r := range got {
			taken.put(r)
		}
		if again := dump(taken); again != want {
			t.Fatalf("got\n%s\nwant\n%s", again, want)
		}
		if len(tr.slots) != len(tr.nodes) && !slices.Contains(tr.slots, nil) {
			t.Fatal("slots")
		}
	}
}

// A snapshot that waits for the disk holds no write up, and none is lost that
// was answered meanwhile.
func TestWritesGoOnWhileASnapshotIsWritten(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fsys := vfs.NewFaulty(vfs.OS, func(op vfs.Op, name string, _ int) error {
		if op == vfs.OpWrite && filepath.Base(name) == newSnapshot {
			once.Do(func() { close(began) })
			<-goOn
		}
		return nil
	})
	o := quiet()
	o.fs, o.Dir = fsys, t.TempDir()
	s := open(t, o)
	c := connect(t, s)
	const big = 1 << 20
	written := 0
	write := func(size int) {
		call(t, c, jute.OpCreate, &jute.CreateRequest{Path: fmt.Sprint("/n", written), Data: make([]byte, size), ACL: jute.WorldACL()}, jute.OK)
		written++
	}
	for range minLogged/big + 1 {
		write(big)
	}
	<-began
	for range 50 {
		write(1)
	}
	if !s.taking.Load() {
		t.Error("the snapshot is over")
	}
	close(goOn)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := count(t, o); err != nil || n != written {
		t.Fatal(n, err)
	}
}

// A snapshot that can't be begun leaves the server as it was, and the next one
// is tried when there is more log, not after each commit.
func TestASnapshotWhoseFileCantBeOpenedIsLeftOut(t *testing.T) {
	var tries atomic.Int32
	fsys := vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op, name string, _ int) error {
		if op == vfs.OpOpen && filepath.Base(name) == newSnapshot {
			tries.Add(1)
			return syscall.EMFILE
		}
		return nil
	})
	s := open(t, onMemory(fsys))
	c := connect(t, s)
	const big = 1 << 20
	written := 0
	for ; written < minLogged/big+10; written++ {
		call(t, c, jute.OpCreate, &jute.CreateRequest{Path: fmt.Sprint("/n", written), Data: make([]byte, big), ACL: jute.WorldACL()}, jute.OK)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := tries.Load(); n < 1 || n > 2 { // a commit may have asked while the first was given up
		t.Errorf("tried %d times", n)
	}
	if n, err := count(t, onMemory(fsys)); err != nil || n != written {
		t.Fatal(n, err)
	}
}

func TestOldLogsAndSnapshotsGo(t *testing.T) {
	o := quiet()
	o.Dir = t.TempDir()
	s := open(t, o)
	c := connect(t, s)
	big := make([]byte, 1<<20)
	for i := range 80 { // several logs and snapshots
		call(t, c, jute.OpCreate, &jute.CreateRequest{Path: fmt.Sprint("/n", i%3, "-", i), Data: big, ACL: jute.WorldACL()}, jute.OK)
		call(t, c, jute.OpDelete, &jute.PathVersionRequest{Path: fmt.Sprint("/n", i%3, "-", i), Version: -1}, jute.OK)
		for j := 0; j < 3 && i < 60; j++ {
			call(t, c, jute.OpSetData, &jute.SetDataRequest{Path: "/", Version: -1}, jute.OK)
		}
	}
	for s.taking.Load() {
		call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/"}, jute.OK)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var sum int64
	files, _ := filepath.Glob(filepath.Join(o.Dir, dataFolder, "*"))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	if sum > 70<<20 || len(files) > 7 {
		t.Errorf("%d bytes in %v", sum, files)
	}
	if n, err := count(t, o); err != nil || n != 0 {
		t.Fatal(n, err)
	}
}
