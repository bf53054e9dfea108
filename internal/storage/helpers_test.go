package storage

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"barnabas/internal/config"
	"barnabas/internal/record"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.UnixMilli(1_700_000_000_000)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func broker(t testing.TB) *config.Broker {
	t.Helper()
	b, err := config.NewBroker(map[string]string{"broker.id": "1"})
	must(t, err)
	return b
}

var tp0 = wire.TopicPartition{Topic: "t", Partition: 0}

// options are for tests in the folder /d of fsys.
func options(t testing.TB, fsys vfs.FS, c *clock) Options {
	return Options{
		Dirs: []string{"/d"}, FS: fsys, Config: broker(t), BrokerID: 1, ClusterID: "cluster",
		BootID: "boot", Manual: true, Now: c.Now, Logger: quiet(),
	}
}

func topicConfig(t testing.TB, kv ...string) *config.Topic {
	t.Helper()
	m := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	c, err := broker(t).Topic(m)
	must(t, err)
	return c
}

func open(t testing.TB, o Options) *Manager {
	t.Helper()
	m, err := Open(o)
	must(t, err)
	return m
}

func create(t testing.TB, m *Manager, c *config.Topic) *Log {
	t.Helper()
	l, err := m.Create(tp0, wire.UUID{}, c)
	must(t, err)
	return l
}

// batch builds a v2 batch of n records with timestamps from ts on.
func batch(t testing.TB, o record.BatchOptions, n int, ts int64, value string) []byte {
	t.Helper()
	b := record.NewBuilder(o)
	for i := range n {
		b.Append(ts+int64(i), []byte("k"), []byte(value))
	}
	out, err := b.Build()
	must(t, err)
	return out
}

func plain(t testing.TB, n int, ts int64, value string) []byte {
	return batch(t, record.BatchOptions{LeaderEpoch: -1}, n, ts, value)
}

func appendPlain(t testing.TB, l *Log, n int, ts int64, value string) AppendInfo {
	t.Helper()
	info, err := l.Append(AppendRequest{Records: plain(t, n, ts, value), LogAppendTime: -1})
	must(t, err)
	return info
}

type rec struct {
	offset, ts int64
	value, key string
}

// readAll reads the records from an offset on, maxBytes at a time.
func readAll(t testing.TB, l *Log, from, upTo int64, maxBytes int) []rec {
	t.Helper()
	var out []rec
	for from < upTo {
		s, err := l.Read(from, maxBytes, upTo, true)
		must(t, err)
		if s.Len == 0 {
			return out
		}
		b := make([]byte, s.Len)
		if n, err := s.ReadAt(b, 0); n != s.Len {
			t.Fatalf("read %d of %d bytes at offset %d: %v", n, s.Len, from, err)
		}
		s.Release()
		before := from
		sp := record.Split(b)
		for sp.Next() {
			must(t, sp.Batch().Check())
			must(t, sp.Batch().Each(0, func(r *record.Record) error {
				if r.Offset >= from {
					if r.Offset >= upTo {
						return fmt.Errorf("offset %d is not below %d", r.Offset, upTo)
					}
					out = append(out, rec{r.Offset, r.Timestamp, string(r.Value), string(r.Key)})
				}
				return nil
			}))
			from = max(from, sp.Batch().NextOffset())
		}
		if from == before {
			t.Fatalf("no progress at offset %d: %d bytes", from, s.Len)
		}
	}
	return out
}

// list returns the names in a folder.
func list(t testing.TB, fsys vfs.FS, dir string) map[string]bool {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	must(t, err)
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}

func readFile(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name, 1<<30)
	must(t, err)
	return b
}

// patch rewrites a file.
func patch(t testing.TB, fsys vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	must(t, vfs.WriteFile(fsys, name, change(readFile(t, fsys, name)), 0o644))
}

// copyTree copies a host folder into fsys.
func copyTree(t testing.TB, fsys vfs.FS, from, to string) {
	t.Helper()
	must(t, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return fsys.MkdirAll(target, 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return vfs.WriteFile(fsys, target, b, 0o644)
	}))
}

func seed(t testing.TB) *rand.Rand {
	n := rand.Uint64()
	t.Logf("seed %d", n)
	return rand.New(rand.NewPCG(n, 1))
}

// countOf counts the operations of a kind on the files that match.
func countOf(fsys vfs.FS, kind vfs.Op, match func(name string) bool) (counted vfs.FS, n *int) {
	n = new(int)
	return vfs.NewFaulty(fsys, func(op vfs.Op, name string, _ int) error {
		if op == kind && match(name) {
			*n++
		}
		return nil
	}), n
}
