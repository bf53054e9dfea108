package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"barnabas/internal/controller"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/zookeeper"
)

// The embedded server refuses all writes while its disk is full. A controller
// that wanted to write meanwhile is one again when there is room, without a new
// session or a change of /controller.
func TestAControllerOnAFullDiskGoesOnWhenThereIsRoom(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("no tmpfs: %v", err)
		}
		t.Fatalf("no tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	s := embedded(t, filepath.Join(disk, "keeper"))
	w := newWorld(t, "embedded", func(ctx context.Context, _ string) (net.Conn, error) { return s.Dial(ctx) })
	waits := make(said, 1)
	b := w.broker(1, func(o *controller.Options) {
		o.Logger = slog.New(heard{o.Logger.Handler(), "the election waits", waits})
	})
	w.active(1)
	w.create("/brokers/topics/t", `{"version":1,"partitions":{"0":[1]}}`)
	w.knows("t", 1, b)

	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	ctx := w.ctx()
	for i := 0; ; i++ { // what is left of the log's last page
		_, _, err := w.zk.Create(ctx, fmt.Sprint("/n", i), nil, zookeeper.Persistent)
		if errors.Is(err, jute.ErrSystemError) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 249) // more than what was refused just now
	if err := b.ctl.CreateTopics(ctx, []controller.NewTopic{{Name: long, Assignment: [][]int32{{1}}}})[0]; !errors.Is(err, wire.NotController) {
		t.Errorf("a topic on a full disk: %v", err)
	}
	waits.wait(w)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	w.active(2)
	if err := b.ctl.DeleteTopics(ctx, []string{"t"})[0]; err != nil {
		t.Error(err)
	}
	w.until("t is deleted", func() bool { return !w.exists("/brokers/topics/t") })
}
