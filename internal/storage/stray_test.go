package storage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/wire"
)

func TestTheLogOfAnOlderTopicIsSetAside(t *testing.T) {
	dir := t.TempDir()
	c, err := config.NewBroker(map[string]string{"broker.id": "1", "log.dirs": dir, "zookeeper.connect": "unused:1"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(Options{Dirs: []string{dir}, Config: c, BrokerID: 1, ClusterID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	tp, old, now := wire.TopicPartition{Topic: "t"}, wire.NewUUID(), wire.NewUUID()
	if _, err := m.Create(tp, old, nil); err != nil {
		t.Fatal(err)
	}
	long := time.Hour
	for what, at := range map[string]struct {
		id      wire.UUID
		created time.Time
	}{
		"its own id":                    {old, time.Now().Add(long)},
		"a topic without an id":         {wire.UUID{}, time.Now().Add(long)},
		"a topic that is older than it": {now, time.Now().Add(-long)},
	} {
		if folder, err := m.SetAside(tp, at.id, at.created); folder != "" || err != nil {
			t.Errorf("%s: moved to %q, %v", what, folder, err)
		}
	}
	folder, err := m.SetAside(tp, now, time.Now().Add(long))
	if err != nil || !strings.HasPrefix(filepath.Base(folder), "t-0.") || !strings.HasSuffix(folder, "-stray") {
		t.Fatalf("moved to %q, %v", folder, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "partition.metadata")); err != nil {
		t.Error(err)
	}
	l, err := m.Create(tp, now, nil)
	if err != nil || l.EndOffset() != 0 || l.TopicID() != now {
		t.Errorf("the new log: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err = Open(Options{Dirs: []string{dir}, Config: c, BrokerID: 1, ClusterID: "c"}); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Logs()) != 1 {
		t.Errorf("%d logs after a restart", len(m.Logs()))
	}
}
