package storage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/test/load"
	"barnabas/test/real"
)

const sessionFile = ".barnabas_session"

// disk is an ext4 file system in a file, mounted by a loop device.
type disk struct {
	t            *testing.T
	image, mount string
}

func newDisk(t *testing.T, megabytes int) *disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a loop device takes root")
	}
	for _, tool := range []string{"mkfs.ext4", "mount", "umount"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool, " is not installed, and makes the file system that loses power")
		}
	}
	d := &disk{t: t, image: filepath.Join(t.TempDir(), "image"), mount: t.TempDir()}
	f, err := os.Create(d.image)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(int64(megabytes) << 20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	real.Run(t, time.Minute, exec.Command("mkfs.ext4", "-q", "-F", d.image))
	if _, errOut, err := real.Try(t, time.Minute, d.mounting()); err != nil {
		t.Skip("no loop device can be mounted here: ", errOut)
	}
	t.Cleanup(func() { _ = exec.Command("umount", d.mount).Run() })
	return d
}

func (d *disk) mounting() *exec.Cmd { return exec.Command("mount", "-o", "loop", d.image, d.mount) }

// losePower replaces the disk by what has reached it; nobody may use it.
func (d *disk) losePower(image string) {
	d.t.Helper()
	real.Run(d.t, time.Minute, exec.Command("umount", d.mount))
	d.image = image
	real.Run(d.t, time.Minute, d.mounting())
}

// The power is cut while producers write to a topic with flush.messages=1: every
// record that was acknowledged is there afterwards, each time. A copy of the
// disk's image holds what had reached the disk, and not the page cache.
func TestAcknowledgedRecordsSurviveLostPower(t *testing.T) {
	t.Run("many segments", func(t *testing.T) { losePowerAgainAndAgain(t, "200000", 200) })
	t.Run("a segment with room ahead", func(t *testing.T) { losePowerAgainAndAgain(t, "1073741824", 20_000) })
}

func losePowerAgainAndAgain(t *testing.T, segmentBytes string, recordSize int) {
	d := newDisk(t, 512)
	logs := filepath.Join(d.mount, "log")
	b := real.Barnabas(t, 1, "log.dirs="+logs, "log.flush.offset.checkpoint.interval.ms=300")
	admin, err := kgo.NewClient(kgo.SeedBrokers(b.Addr))
	if err != nil {
		t.Fatal(err)
	}
	one := "1"
	if _, err := kadm.NewClient(admin).CreateTopic(t.Context(), 1, 1, map[string]*string{"flush.messages": &one, "segment.bytes": &segmentBytes}, "durable"); err != nil {
		t.Fatal(err)
	}
	admin.Close()
	var acked []string
	rounds := 5
	if load.Soak() {
		rounds = 20
	}
	for round := range rounds {
		more := produceUntil(t, b, round, recordSize, func() {
			b.Signal(syscall.SIGSTOP)
		})
		image := filepath.Join(t.TempDir(), "copy")
		real.Run(t, time.Minute, exec.Command("cp", "--sparse=always", d.image, image))
		b.Kill()
		acked = append(acked, more()...)
		// The session's password is spared, else each start waits for the old
		// session's end.
		session, err := os.ReadFile(filepath.Join(logs, sessionFile))
		if err != nil {
			t.Fatal(err)
		}
		d.losePower(image)
		if err := os.WriteFile(filepath.Join(logs, sessionFile), session, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(logs, ".barnabas_boot_id")); err != nil { // the machine starts anew
			t.Fatal(err)
		}
		b.Restart(t)
		got := consumeAll(t, b.Addr, "durable")
		for _, value := range acked {
			if !got[value] {
				t.Fatalf("round %d: %s of %d acknowledged records has gone; %d are there", round, value, len(acked), len(got))
			}
		}
	}
	t.Logf("%d acknowledged records survived", len(acked))
	b.Stop()
}

// produceUntil writes for a moment, calls stop, and returns what was
// acknowledged before it.
func produceUntil(t *testing.T, b *real.BarnabasBroker, round, recordSize int, stop func()) func() []string {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.DefaultProduceTopic("durable"), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(64), kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var acked []string
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			value := strconv.Itoa(round) + "." + strconv.Itoa(i)
			c.Produce(ctx, &kgo.Record{Value: fmt.Appendf(nil, "%s %0*d", value, recordSize, 0)}, func(r *kgo.Record, err error) {
				if err == nil {
					mu.Lock()
					acked = append(acked, value)
					mu.Unlock()
				}
			})
		}
	})
	real.Until(t, 30*time.Second, "records are acknowledged", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(acked) > 300+97*round%500
	})
	mu.Lock()
	stop()
	before := slices.Clone(acked)
	mu.Unlock()
	return func() []string {
		cancel()
		c.Close()
		writing.Wait()
		return before
	}
}

func consumeAll(t *testing.T, addr, topic string) map[string]bool {
	t.Helper()
	admin, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	var end int64
	real.Until(t, 30*time.Second, "the topic is led", func() bool {
		offsets, err := kadm.NewClient(admin).ListEndOffsets(context.Background(), topic)
		if err != nil || offsets.Error() != nil {
			return false
		}
		end = offsets[topic][0].Offset
		return true
	})
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := map[string]bool{}
	for next := int64(0); next < end; {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var value string
			_, _ = fmt.Sscan(string(r.Value), &value)
			got[value], next = true, r.Offset+1
		})
	}
	return got
}
