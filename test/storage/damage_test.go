package storage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Apache Kafka was killed, then each partition was damaged in its own way. Both
// brokers start on a copy: they keep the same bytes, and end at the same offset.
func TestDamagesAreRepairedAsKafkaRepairsThem(t *testing.T) {
	random := make([]byte, 40)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	edit := func(change func(b []byte) []byte) func(dir string) error {
		return func(dir string) error {
			name := filepath.Join(dir, "00000000000000000000.log")
			b, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(name, change(b), 0o644)
			}
			return err
		}
	}
	remove := func(names ...string) func(dir string) error {
		return func(dir string) error {
			for _, n := range names {
				if err := os.Remove(filepath.Join(dir, n)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	damages := []struct {
		name string
		do   func(dir string) error
		end  int64 // -1: as Kafka says
	}{
		{"none", func(string) error { return nil }, 60},
		{"half a batch at the end", edit(func(b []byte) []byte { return append(b, b[:40]...) }), 60},
		{"random bytes at the end", edit(func(b []byte) []byte { return append(b, random...) }), 60},
		{"zeros at the end", edit(func(b []byte) []byte { return append(b, make([]byte, 4096)...) }), 60},
		{"a flipped bit in the last batch", edit(func(b []byte) []byte { b[len(b)-3] ^= 4; return b }), -1},
		{"a flipped bit in the middle", edit(func(b []byte) []byte { b[10*len(b)/20+70] ^= 4; return b }), -1},
		{"the last batch cut short", edit(func(b []byte) []byte { return b[:len(b)-5] }), -1},
		{"no indexes", remove("00000000000000000000.index", "00000000000000000000.timeindex"), 60},
		{"no epochs", remove("leader-epoch-checkpoint"), 60},
	}
	w := newWorld(t)
	w.start("3.9.1", "log.flush.interval.messages=9223372036854775807")
	for i := range damages {
		topic := fmt.Sprintf("damaged%d", i)
		w.create(topic)
		c := w.client(kgo.DefaultProduceTopic(topic))
		for j := range 20 {
			w.produce(c, &kgo.Record{Value: fmt.Appendf(nil, "%d", j)}, &kgo.Record{Value: []byte("b")}, &kgo.Record{Value: []byte("c")})
		}
	}
	w.process.Kill()
	original := w.dir
	ends := make([][2]int64, len(damages))
	logs := make([][2][]byte, len(damages))
	for who, kind := range []string{"3.9.1", "barnabas"} {
		w.dir = filepath.Join(t.TempDir(), "log")
		copyTree(t, original, w.dir)
		for i, d := range damages {
			if err := d.do(filepath.Join(w.dir, fmt.Sprintf("damaged%d-0", i))); err != nil {
				t.Fatal(err)
			}
		}
		w.start(kind)
		for i := range damages {
			_, ends[i][who] = w.ends(fmt.Sprintf("damaged%d", i))
		}
		w.stop()
		for i := range damages {
			b, err := os.ReadFile(filepath.Join(w.dir, fmt.Sprintf("damaged%d-0", i), "00000000000000000000.log"))
			if err != nil {
				t.Fatal(err)
			}
			logs[i][who] = b
		}
		w.dumpLogSegments("3.9.1")
	}
	for i, d := range damages {
		if ends[i][0] != ends[i][1] || d.end >= 0 && ends[i][1] != d.end || !bytes.Equal(logs[i][0], logs[i][1]) {
			t.Errorf("%s: Kafka ends at %d with %d bytes, we at %d with %d", d.name, ends[i][0], len(logs[i][0]), ends[i][1], len(logs[i][1]))
		}
	}
}
