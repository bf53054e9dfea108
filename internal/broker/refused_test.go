package broker

import (
	"bytes"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// admin is a ZooKeeper client of somebody who administers the cluster.
func (c *cluster) admin() *zookeeper.Client {
	c.t.Helper()
	zk, err := zookeeper.New(zookeeper.Options{Connect: c.keeper, SessionTimeout: 20 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := zk.Start(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(zk.Close)
	return zk
}

// permit sets what everybody may do at a node.
func permit(t *testing.T, zk *zookeeper.Client, path string, perms int32) {
	t.Helper()
	if _, err := zk.SetACL(t.Context(), path, []jute.ACL{{Perms: perms, ID: jute.ID{Scheme: "world", ID: "anyone"}}}, -1); err != nil {
		t.Fatal(err)
	}
}

// logged is what was logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// take returns what was logged since it was last called.
func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// What ZooKeeper refuses a broker, which no event ends, is done once it does not.
func TestWhatZooKeeperRefusesIsDoneOnceItDoesNot(t *testing.T) {
	c := startCluster(t, 1, map[string]string{"log.dirs": t.TempDir() + "," + t.TempDir()})
	zk := c.admin()
	c.makeTopic("t", 1)
	c.stop(0)
	var log logged
	c.log = &log
	c.start(0)
	b := c.brokers[0]

	t.Run("the registration", func(t *testing.T) {
		permit(t, zk, znode.BrokerIDs, jute.PermAll&^jute.PermCreate)
		if err := zk.Delete(t.Context(), znode.BrokerPath(1), -1); err != nil {
			t.Fatal(err)
		}
		until(t, "the registration is refused", func() bool { return log.has("registering again") && log.has("not authorised") })
		permit(t, zk, znode.BrokerIDs, jute.PermAll)
		until(t, "it is registered", func() bool {
			_, ok, err := zk.Exists(t.Context(), znode.BrokerPath(1))
			return ok && err == nil
		})
	})
	t.Run("a changed configuration", func(t *testing.T) {
		entity := znode.TopicConfig("t")
		if _, err := zk.Set(t.Context(), entity.Path(), znode.EncodeConfig(map[string]string{"retention.ms": "77"}), -1); err != nil {
			t.Fatal(err)
		}
		permit(t, zk, entity.Path(), jute.PermAll&^jute.PermRead)
		if _, _, err := zk.Create(t.Context(), znode.ConfigChanges+"/"+znode.ConfigChangePrefix, znode.EncodeConfigChange(entity), zookeeper.PersistentSequential); err != nil {
			t.Fatal(err)
		}
		until(t, "reading it is refused", func() bool { return log.has("reading changed configuration") })
		permit(t, zk, entity.Path(), jute.PermAll)
		until(t, "it is in force", func() bool { return b.configs.topic("t").RetentionMs == 77 })
	})
	t.Run("the note of a failed log dir", func(t *testing.T) {
		permit(t, zk, znode.LogDirEvents, jute.PermAll&^jute.PermCreate)
		tp := wire.TopicPartition{Topic: "t"}
		topicLog, ok := b.storage.Log(tp)
		if !ok {
			t.Fatal("no log")
		}
		b.dirFailed(topicLog.Dir(), syscall.EIO) // as package storage calls it
		until(t, "the note is refused", func() bool { return log.has("can't be told of a failed log dir") })
		permit(t, zk, znode.LogDirEvents, jute.PermAll)
		until(t, "the partition is offline", func() bool { return b.metadata.Partition("t", 0).Leader == -1 })
	})
}
