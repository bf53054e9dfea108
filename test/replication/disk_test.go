package replication

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"
)

// tmpfs mounts a file system of some size, which goes with the test.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("no tmpfs: %v", err)
		}
		t.Fatalf("no tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes a disk's room but for some bytes.
func fill(t *testing.T, file string, leave int64) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(file, &fs); err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for left := int64(fs.Bavail)*fs.Bsize - leave; left > 0; left -= int64(len(block)) {
		if _, err := f.Write(block); err != nil { // others took the rest
			return
		}
	}
}

// TestFullDiskLosesNothing fills the disk of one broker, by turns almost and to
// the last byte. The broker takes no records: it falls out of the ISRs of the
// partitions that others lead, and comes back when there is room. Without room
// for a checkpoint its log directory goes offline and it ends, as Kafka does; it
// is started again.
func TestFullDiskLosesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		server := zk.start(t)
		var full *real.BarnabasBroker
		var seeds, dirs []string
		for id := 1; id <= 3; id++ {
			properties := []string{"zookeeper.connect=" + server.Addr, "zookeeper.session.timeout.ms=6000", "replica.lag.time.max.ms=4000"}
			disk := ""
			if id == 2 {
				disk = tmpfs(t, "64m")
				properties = append(properties, "log.dirs="+disk)
			}
			b := real.Barnabas(t, id, properties...)
			if disk != "" {
				b.Dir, full = disk, b
			}
			seeds, dirs = append(seeds, b.Addr), append(dirs, b.Dir)
		}
		a := load.NewAdmin(t, seeds)
		const partitions = 6
		load.CreateTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
		load.UntilInSync(t, a, "t", partitions, 3)
		l := load.Start(t, "t", partitions, seeds)
		l.More(1000)
		ballast := filepath.Join(full.Dir, "ballast")
		for round := range rounds() {
			l.LongestGap()
			seen := strings.Count(full.Output(), "the disk is almost full")
			fill(t, ballast, []int64{8 << 20, 0}[round%2])
			ended := false
			real.Until(t, time.Minute, "the broker says that its disk is full", func() bool {
				select {
				case <-full.Done():
					ended = true
				default:
				}
				return ended || strings.Count(full.Output(), "the disk is almost full") > seen
			})
			load.UntilEach(t, a, 0, "t", partitions, "the full broker is in no ISR of a partition that another leads", func(p state) bool {
				return p.Leader == 2 || !slices.Contains(p.ISR, 2)
			})
			gap := l.LongestGap()
			back := strings.Count(full.Output(), "there is room again")
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			// It may be on its way to its end still.
			real.Until(t, time.Minute, "the broker sees that there is room, or has ended", func() bool {
				select {
				case <-full.Done():
					ended = true
				default:
				}
				return ended || strings.Count(full.Output(), "there is room again") > back
			})
			if ended {
				full.Restart(t)
			}
			load.UntilInSync(t, a, "t", partitions, 3)
			l.More(500)
			t.Logf("round %d, disk filled %s (the broker ended: %v): longest gap %v, then %v", round+1, []string{"almost", "to the last byte"}[round%2], ended,
				gap.Round(time.Millisecond), l.LongestGap().Round(time.Millisecond))
		}
		l.Finish()
		load.UntilEqual(t, dirs, "t", partitions)
	})
}
