package storage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/test/real"
)

// Damages to the files beside the segments, after a kill. Of some Apache Kafka
// dies at start, of which we repair what the log itself tells; where both serve,
// all records are there.
func TestDamagesThatEndKafkaAreRepairedOrNamed(t *testing.T) {
	const topic, records = "t", 60
	write := func(name, text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
	}
	edit := func(name string, change func(b []byte) []byte) func(dir string) error {
		return func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name), change(b), 0o644)
		}
	}
	line := func(key, value string) func(b []byte) []byte {
		return func(b []byte) []byte {
			lines := strings.Split(string(b), "\n")
			for i := range lines {
				if strings.HasPrefix(lines[i], key+"=") {
					lines[i] = key + "=" + value
				}
			}
			return []byte(strings.Join(lines, "\n"))
		}
	}
	active := ""
	damages := []struct {
		name             string
		do               func(dir string) error
		kafkaDies, wedie bool
	}{
		{name: "a sealed index of random bytes", do: edit("t-0/00000000000000000000.index", func(b []byte) []byte { return bytes.Repeat([]byte{0x5a}, 80) })},
		{name: "an empty recovery-point-offset-checkpoint", do: write("recovery-point-offset-checkpoint", "")},
		{name: "the clean mark and zeros at the end", kafkaDies: true, do: func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, "t-0", active), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := f.Write(make([]byte, 4096)); err != nil {
				return err
			}
			return write(".kafka_cleanshutdown", `{"version":0,"brokerEpoch":-1}`)(dir)
		}},
		{name: "a garbage leader-epoch-checkpoint", kafkaDies: true, do: write("t-0/leader-epoch-checkpoint", "garbage\n")},
		{name: "another broker.id", kafkaDies: true, wedie: true, do: edit("meta.properties", line("broker.id", "7"))},
		{name: "another cluster.id", kafkaDies: true, wedie: true, do: edit("meta.properties", line("cluster.id", "AAAAAAAAAAAAAAAAAAAAAA"))},
	}
	w := newWorld(t)
	k := real.Kafka(t, "3.9.1", 1, w.zk.Addr, "log.dirs="+w.dir, "zookeeper.session.timeout.ms=3000")
	w.process, w.addr = k.Process, k.Addr
	w.create(topic, "segment.bytes", "1500", "index.interval.bytes", "100")
	c := w.client(kgo.DefaultProduceTopic(topic))
	for i := range records {
		w.produce(c, &kgo.Record{Value: fmt.Appendf(nil, "%d", i)})
	}
	c.Close()
	k.Kill()
	saved := filepath.Join(t.TempDir(), "log")
	copyTree(t, w.dir, saved)
	segments, err := filepath.Glob(filepath.Join(saved, "t-0", "*.log"))
	if err != nil || len(segments) < 3 {
		t.Fatal(segments, err)
	}
	active = filepath.Base(segments[len(segments)-1])
	damage := func(do func(string) error) {
		t.Helper()
		if err := os.RemoveAll(w.dir); err != nil {
			t.Fatal(err)
		}
		copyTree(t, saved, w.dir)
		if err := do(w.dir); err != nil {
			t.Fatal(err)
		}
	}
	check := func(who string) {
		t.Helper()
		if got := w.kcat(topic); len(got) != records {
			t.Errorf("%s serves %d records, expected %d", who, len(got), records)
		}
	}
	var b *real.BarnabasBroker
	for _, d := range damages {
		t.Log(d.name)
		damage(d.do)
		w.untilUnregistered()
		if d.kafkaDies {
			k.Launch(t)
			if code := k.Wait(time.Minute); code == 0 {
				t.Errorf("%s: Apache Kafka exits with 0", d.name)
			}
		} else {
			k.Restart(t)
			w.addr = k.Addr
			check("Apache Kafka, " + d.name)
			k.Kill()
		}
		damage(d.do)
		w.untilUnregistered()
		if b == nil {
			b = real.Barnabas(t, 1, "log.dirs="+w.dir, "zookeeper.connect="+w.zk.Addr, "zookeeper.session.timeout.ms=3000", "inter.broker.protocol.version=2.8")
		} else {
			b.Launch(t)
		}
		if d.wedie {
			if code := b.Wait(time.Minute); code == 0 || !strings.Contains(b.Output(), "meta.properties") {
				t.Errorf("%s: exit code %d:\n%s", d.name, code, b.Output())
			}
			continue
		}
		b.UntilRunning(30*time.Second, "answers", func() bool { return real.Ready(b.Addr) })
		w.addr = b.Addr
		check(d.name)
		b.Kill()
	}
}
