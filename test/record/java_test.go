package record

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/real"
)

const fixtures = "../../internal/record/testdata"

// TestKafkaReadsWhatWeWrite writes sets of each format, codec and level, and
// sets that were converted down, and compares what Kafka's classes read in them
// with what we do.
func TestKafkaReadsWhatWeWrite(t *testing.T) {
	jars := filepath.Dir(real.Jars(t, "3.9.1"))
	for _, version := range []string{"0.8.2.2", "2.8.2"} {
		real.Jars(t, version)
	}
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.Mkdir(old, 0o755); err != nil {
		t.Fatal(err)
	}
	sets := makeSets(t)
	for name, set := range sets {
		write(t, filepath.Join(dir, name+".set"), set)
		if strings.HasPrefix(name, "v0") {
			write(t, filepath.Join(old, name+".set"), set)
		}
	}
	cmd := exec.Command(filepath.Join(fixtures, "java/make.sh"), "read", dir)
	cmd.Env = append(os.Environ(), "JARS="+jars)
	real.Run(t, 2*time.Minute, cmd)
	for name, set := range sets {
		want, err := dump(set)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := read(t, filepath.Join(dir, name+".java.txt")); got != want {
			t.Errorf("%s: Kafka 3.9.1 reads\n%.2000s\nwe read\n%.2000s", name, got, want)
		}
		if !strings.HasPrefix(name, "v0") {
			continue
		}
		var records strings.Builder
		for line := range strings.Lines(want) {
			if strings.HasPrefix(line, "R ") {
				records.WriteString(line)
			}
		}
		if got := read(t, filepath.Join(old, name+".java.txt")); got != records.String() {
			t.Errorf("%s: Kafka 0.8.2.2 reads\n%.2000s\nwe read\n%.2000s", name, got, records.String())
		}
	}
}

func makeSets(t *testing.T) map[string][]byte {
	t.Helper()
	sets := map[string][]byte{}
	text := bytes.Repeat([]byte("a line of text, not so random; "), 5000)
	for codec := record.None; codec <= record.Zstd; codec++ {
		for _, level := range []int{record.DefaultLevel, 1, 5, 9} {
			b := record.NewBuilder(record.BatchOptions{BaseOffset: 1 << 40, LeaderEpoch: 3, Codec: codec, Level: level,
				Producer: &record.Producer{ID: 1 << 33, Epoch: 7, Sequence: math.MaxInt32 - 1}, Transactional: true})
			for i := range 5 {
				b.Append(1700000000000-int64(i), []byte(fmt.Sprint("key", i)), text[:i*i*9000],
					record.Header{Key: "a", Value: []byte("b")}, record.Header{Key: "null"},
					record.Header{Key: "", Value: []byte{}})
			}
			b.Append(record.NoTimestamp, nil, nil)
			batch, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			sets[fmt.Sprintf("v2-%s-%d", codec, level)] = batch
		}
		for magic := int8(0); magic < 2 && codec != record.Zstd; magic++ {
			var m []record.Message
			for i := range int64(5) {
				m = append(m, record.Message{Offset: 7 + i, Timestamp: 1700000000000 + i,
					Key: []byte("k"), Value: text[:i*i*9000]})
			}
			set, err := record.BuildMessageSet(magic, codec, m...)
			if err != nil {
				t.Fatal(err)
			}
			sets[fmt.Sprintf("v%d-%s", magic, codec)] = set
		}
	}
	names, err := filepath.Glob(filepath.Join(fixtures, "sets/v*.set"))
	if err != nil || len(names) == 0 {
		t.Fatal("no fixtures", err)
	}
	for _, name := range names {
		set := []byte(read(t, name))
		for magic := int8(0); magic < 2; magic++ {
			out, err := record.ConvertDown(set, record.ConvertOptions{Magic: magic})
			if err == nil {
				sets[fmt.Sprintf("v%d-of-%s", magic, strings.TrimSuffix(filepath.Base(name), ".set"))] = out
			}
		}
	}
	return sets
}

// dump writes a set as Dump.java does.
func dump(set []byte) (string, error) {
	var out strings.Builder
	s := record.Split(set)
	for s.Next() {
		b := s.Batch()
		if err := b.Check(); err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "E %d %s %d %s %d", b.Magic(), b.Codec(), b.LastOffset(), b.TimestampType(), b.MaxTimestamp())
		if b.Magic() == 2 {
			fmt.Fprintf(&out, " %d %d %d %d %d %d %t %t %d", b.BaseOffset(), b.LeaderEpoch(), b.ProducerID(),
				b.ProducerEpoch(), b.BaseSequence(), b.LastSequence(), b.Transactional(), b.Control(), b.Count())
		}
		out.WriteByte('\n')
		if err := b.Each(0, func(r *record.Record) error {
			fmt.Fprintf(&out, "R %d %d %d %s %s", r.Offset, r.Timestamp, r.Sequence, text(r.Key), text(r.Value))
			for _, h := range r.Headers.All() {
				fmt.Fprintf(&out, " %s=%s", h.Key, text(h.Value))
			}
			out.WriteByte('\n')
			return nil
		}); err != nil {
			return "", err
		}
	}
	return out.String(), s.Err()
}

func text(p []byte) string {
	switch {
	case p == nil:
		return "null"
	case len(p) > 40:
		return fmt.Sprintf("#%d:%x", len(p), crc32.ChecksumIEEE(p))
	}
	return "'" + hex.EncodeToString(p) + "'"
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, name string, p []byte) {
	t.Helper()
	if err := os.WriteFile(name, p, 0o644); err != nil {
		t.Fatal(err)
	}
}
