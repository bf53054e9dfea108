package cases

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// onBothWithDirs is onBoth with two log directories.
func onBothWithDirs(t *testing.T, f func(t *testing.T, to target, dirs []string), properties ...string) {
	two := func(t *testing.T) []string {
		return []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	}
	t.Run("barnabas", func(t *testing.T) {
		dirs := two(t)
		b := real.Barnabas(t, 1, append([]string{"log.dirs=" + strings.Join(dirs, ",")}, properties...)...)
		f(t, target{addr: b.Addr, zk: b.Keeper}, dirs)
	})
	t.Run("kafka-3.9.1", func(t *testing.T) {
		dirs, zk := two(t), real.ZooKeeper(t)
		k := real.Kafka(t, "3.9.1", 1, zk, append([]string{"inter.broker.protocol.version=3.9", "log.dirs=" + strings.Join(dirs, ",")}, properties...)...)
		f(t, target{addr: k.Addr, zk: zk, apache: true}, dirs)
	})
}

// where returns the log dirs in which partition 0 of a topic lies, and of its
// future copies.
func where(t *testing.T, c *raw.Conn, topic string) (now, future []string) {
	t.Helper()
	for _, d := range raw.Do[*kmsg.DescribeLogDirsResponse](c, describeLogDirs(4, topic)).Dirs {
		for _, of := range d.Topics {
			for _, p := range of.Partitions {
				if p.IsFuture {
					future = append(future, d.Dir)
				} else {
					now = append(now, d.Dir)
				}
			}
		}
	}
	return now, future
}

func describeLogDirs(version int16, topic string) *kmsg.DescribeLogDirsRequest {
	r := kmsg.NewPtrDescribeLogDirsRequest()
	r.Version = version
	r.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	return r
}

func alterLogDirs(version int16, dir string, topics ...string) *kmsg.AlterReplicaLogDirsRequest {
	r := kmsg.NewPtrAlterReplicaLogDirsRequest()
	r.Version = version
	d := kmsg.AlterReplicaLogDirsRequestDir{Dir: dir}
	for _, topic := range topics {
		d.Topics = append(d.Topics, kmsg.AlterReplicaLogDirsRequestDirTopic{Topic: topic, Partitions: []int32{0}})
	}
	r.Dirs = append(r.Dirs, d)
	return r
}

func TestReplicasMoveBetweenLogDirs(t *testing.T) {
	onBothWithDirs(t, func(t *testing.T, to target, dirs []string) {
		topic, id := newTopic(t, to, "segment.bytes", "2000")
		c := raw.Dial(t, to.addr)
		for range 40 {
			if code := produce(t, c, 9, topic, batch(t, 10, record.BatchOptions{})).ErrorCode; code != 0 {
				t.Fatal("produce:", code)
			}
		}
		long, _ := newTopicNamed(t, to, strings.Repeat("l", 240))
		for v := int16(0); v <= 2; v++ {
			code := func(dir, topic string) int16 {
				return raw.Do[*kmsg.AlterReplicaLogDirsResponse](c, alterLogDirs(v, dir, topic)).Topics[0].Partitions[0].ErrorCode
			}
			for _, x := range []struct {
				dir, topic string
				code       int16
			}{{"/nowhere", topic, 57}, {dirs[0], "nobody", 3}, {"/nowhere", "nobody", 57}, {dirs[0], long, 17}} {
				if got := code(x.dir, x.topic); got != x.code {
					t.Errorf("v%d: %.40s to %s: error %d, not %d", v, x.topic, x.dir, got, x.code)
				}
			}
			now, _ := where(t, c, topic)
			if got := code(now[0], topic); got != 0 {
				t.Errorf("v%d: to where it is: error %d", v, got)
			}
			other := dirs[0]
			if now[0] == other {
				other = dirs[1]
			}
			if got := code(other, topic); got != 0 {
				t.Errorf("v%d: to the other: error %d", v, got)
			}
			real.Until(t, 30*time.Second, "it has moved", func() bool {
				now, future := where(t, c, topic)
				return len(now) == 1 && now[0] == other && len(future) == 0
			})
			f := fetch(t, c, fetchRequest(12, topic, id, 0, 0))
			if f.ErrorCode != 0 || f.HighWatermark != 400+int64(v) {
				t.Errorf("v%d: after it: error %d, high watermark %d", v, f.ErrorCode, f.HighWatermark)
			}
			if code := produce(t, c, 9, topic, batch(t, 1, record.BatchOptions{})).ErrorCode; code != 0 {
				t.Fatal("produce:", code)
			}
		}
		// Named beforehand: a new topic is made there.
		for i, dir := range dirs {
			name := []string{"first", "second"}[i]
			if code := raw.Do[*kmsg.AlterReplicaLogDirsResponse](c, alterLogDirs(2, dir, name)).Topics[0].Partitions[0].ErrorCode; code != 3 {
				t.Errorf("error %d", code)
			}
			newTopicNamed(t, to, name)
			if now, _ := where(t, c, name); len(now) != 1 || now[0] != dir {
				t.Errorf("%s is made in %v, not in %s", name, now, dir)
			}
		}
	})
}
