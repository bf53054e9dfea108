package storage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/test/real"
)

// A replica moves to another log dir by kafka-reassign-partitions of Kafka. The
// move is begun by Barnabas, goes on after a kill, under Apache Kafka after
// another, and is ended by Barnabas. Reads and writes go on throughout.
func TestAReplicaMovesBetweenLogDirsAcrossKillsAndBrokers(t *testing.T) {
	w := newWorld(t)
	dirs := []string{filepath.Join(w.dir, "a"), filepath.Join(w.dir, "b")}
	properties := []string{"log.dirs=" + strings.Join(dirs, ","), "log.segment.bytes=2000000"}
	w.start("barnabas", properties...)
	w.create("moved")
	from, future := w.whereIs(t, "moved")
	to := dirs[0]
	if from == to {
		to = dirs[1]
	}
	if from == "" || future != "" {
		t.Fatal(from, future)
	}
	c := w.client(kgo.DefaultProduceTopic("moved"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	n := 0
	produce := func() {
		t.Helper()
		c := w.client(kgo.DefaultProduceTopic("moved"), kgo.ProducerBatchCompression(kgo.NoCompression()))
		w.produce(c, &kgo.Record{Value: fmt.Append(nil, n)})
		n++
	}
	for ; n < 12000; n += 100 {
		var batch []*kgo.Record
		for i := range 100 {
			batch = append(batch, &kgo.Record{Value: append(fmt.Append(nil, n+i, " "), bytes.Repeat([]byte("x"), 1000)...)})
		}
		w.produce(c, batch...)
	}
	reassign := func(args ...string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "reassign.json")
		text := fmt.Sprintf(`{"version":1,"partitions":[{"topic":"moved","partition":0,"replicas":[1],"log_dirs":[%q]}]}`, to)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return real.Run(t, time.Minute, real.Java(t, "3.9.1", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
			append([]string{"--bootstrap-server", w.addr, "--reassignment-json-file", file}, args...)...))
	}
	if out := reassign("--execute", "--replica-alter-log-dirs-throttle", "400000"); !strings.Contains(out, "Successfully started moving log directory to "+to) {
		t.Fatal(out)
	}
	underWay := func() {
		t.Helper()
		real.Until(t, 30*time.Second, "the move is under way", func() bool {
			now, future := w.whereIs(t, "moved")
			return now == from && future == to
		})
		produce()
		if got := len(w.kcat("moved")); got != n {
			t.Fatalf("%d records, expected %d", got, n)
		}
	}
	underWay()
	if out := reassign("--verify", "--preserve-throttles"); !strings.Contains(out, "is still in progress") {
		t.Fatal(out)
	}
	futures, _ := filepath.Glob(filepath.Join(to, "moved-0.*-future"))
	if len(futures) != 1 {
		t.Fatal(futures)
	}
	for _, kind := range []string{"3.9.1", "barnabas"} {
		w.process.Kill()
		w.start(kind, properties...)
		w.ends("moved")
		underWay()
		if again, _ := filepath.Glob(filepath.Join(to, "moved-0.*-future")); !slices.Equal(again, futures) {
			t.Fatalf("%s does not go on with %v, there is %v", kind, futures, again)
		}
	}
	w.setThrottle(t, "1000000000")
	real.Until(t, 30*time.Second, "the move is done", func() bool {
		now, future := w.whereIs(t, "moved")
		return now == to && future == ""
	})
	produce()
	if out := reassign("--verify"); !strings.Contains(out, "moved-0-1 is currently on the expected log directory") && !strings.Contains(out, "completed successfully") {
		t.Fatal(out)
	}
	lines := w.kcat("moved")
	if len(lines) != n || !strings.HasPrefix(lines[0], "0 ") {
		t.Fatalf("%d records, expected %d", len(lines), n)
	}
	w.stop()
	w.start("3.9.1", properties...)
	if got := w.kcat("moved"); !slices.Equal(got, lines) {
		t.Fatalf("Apache Kafka serves %d records, expected %d", len(got), n)
	}
	if now, _ := w.whereIs(t, "moved"); now != to {
		t.Fatal(now)
	}
}

// whereIs returns the log dir of partition 0, and the one that it moves to.
func (w *world) whereIs(t *testing.T, topic string) (now, future string) {
	t.Helper()
	all, err := kadm.NewClient(w.client()).DescribeAllLogDirs(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all.Each(func(d kadm.DescribedLogDir) {
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if p.Topic == topic && p.IsFuture {
				future = d.Dir
			} else if p.Topic == topic {
				now = d.Dir
			}
		})
	})
	return now, future
}

func (w *world) setThrottle(t *testing.T, bytes string) {
	t.Helper()
	r, err := kadm.NewClient(w.client()).AlterBrokerConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "replica.alter.log.dirs.io.max.bytes.per.second", Value: &bytes}}, 1)
	if err != nil || r[0].Err != nil {
		t.Fatal(err, r)
	}
}
