package storage

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/test/real"
)

// alter sets one property of a topic.
func (w *world) alter(topic, name, value string) {
	w.t.Helper()
	w.ends(topic) // the broker may have just started
	r, err := kadm.NewClient(w.client()).AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Name: name, Value: &value}}, topic)
	if err != nil || r[0].Err != nil {
		w.t.Fatal(err, r)
	}
}

// fillToClean writes what the cleaner decides about: keys over and over in all
// codecs, tombstones, transactions that commit and abort, idempotent producers.
func (w *world) fillToClean(topic string) {
	w.t.Helper()
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	for i := range 40 {
		c := w.client(kgo.ProducerBatchCompression(codecs[i%5]), kgo.DefaultProduceTopic(topic))
		var batch []*kgo.Record
		for j := range 6 {
			r := &kgo.Record{Key: fmt.Appendf(nil, "k%d", (i*5+j*j)%23), Value: bytes.Repeat(fmt.Appendf(nil, "%d.%d ", i, j), 4)}
			if (i+j)%11 == 0 {
				r.Value = nil
			}
			batch = append(batch, r)
		}
		w.produce(c, batch...)
		c.Close()
	}
	txn := w.client(kgo.TransactionalID("cleaned"), kgo.DefaultProduceTopic(topic))
	for i := range 8 {
		if err := txn.BeginTransaction(); err != nil {
			w.t.Fatal(err)
		}
		for j := range 3 {
			w.produce(txn, &kgo.Record{Key: fmt.Appendf(nil, "k%d", i*3+j), Value: fmt.Appendf(nil, "txn %d.%d", i, j)})
		}
		if err := txn.EndTransaction(context.Background(), kgo.TransactionEndTry(i%3 != 0)); err != nil {
			w.t.Fatal(err)
		}
	}
	c := w.client(kgo.DefaultProduceTopic(topic))
	for i := range 20 { // the active segment, which stays as it is
		w.produce(c, &kgo.Record{Key: fmt.Appendf(nil, "k%d", i%3), Value: bytes.Repeat([]byte("active "), 20)})
	}
}

// cleanedUpTo reads cleaner-offset-checkpoint.
func (w *world) cleanedUpTo(topic string) string {
	b, _ := os.ReadFile(filepath.Join(w.dir, "cleaner-offset-checkpoint"))
	for _, line := range strings.Split(string(b), "\n") {
		if at, ok := strings.CutPrefix(line, topic+" 0 "); ok {
			return at
		}
	}
	return ""
}

// batches lists every batch and record of the partition but what says where it
// lies and when: DumpLogSegments' view of it.
func (w *world) batches(topic string) []string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, topic+"-0", "*.log"))
	if err != nil || len(files) == 0 {
		w.t.Fatal(files, err)
	}
	slices.Sort(files)
	out := real.Run(w.t, time.Minute, real.Java(w.t, "3.9.1", "kafka.tools.DumpLogSegments", "--print-data-log", "--files", strings.Join(files, ",")))
	var lines []string
	for _, line := range strings.Split(out, "\n") {
		if !strings.HasPrefix(line, "| offset:") && !strings.HasPrefix(line, "baseOffset:") {
			continue
		}
		// Sizes and checksums follow from the encoder, positions from the sizes.
		var kept []string
		fields := strings.Fields(line)
		for i := 0; i < len(fields); i++ {
			switch fields[i] {
			case "position:", "size:", "crc:", "CreateTime:", "deleteHorizonMs:":
				if fields[i] == "deleteHorizonMs:" {
					kept = append(kept, "deleteHorizonMs set:", fmt.Sprint(fields[i+1] != "OptionalLong.empty"))
				}
				i++
			default:
				kept = append(kept, fields[i])
			}
		}
		lines = append(lines, strings.Join(kept, " "))
	}
	return lines
}

// Both cleaners get a copy of the same folder, and keep the same records in the
// same batches. Kafka 2.8 writes no delete horizon into them.
func TestTheCleanersKeepTheSameRecords(t *testing.T) {
	for _, kafka := range []string{"3.9.1", "2.8.2"} {
		t.Run(kafka, func(t *testing.T) { compareCleaners(t, kafka) })
	}
}

func compareCleaners(t *testing.T, kafka string) {
	w := newWorld(t)
	w.start(kafka, "log.cleaner.enable=true")
	w.create("cleaned", "cleanup.policy", "compact", "segment.bytes", "3000", "min.cleanable.dirty.ratio", "0.99999", "delete.retention.ms", "1000000")
	w.fillToClean("cleaned")
	w.alter("cleaned", "min.compaction.lag.ms", "100000000") // not yet
	w.alter("cleaned", "min.cleanable.dirty.ratio", "0.0")
	w.stop()
	original := w.dir
	var kept [2][]string
	var upTo [2]string
	for i, who := range []string{kafka, "barnabas"} {
		w.dir = filepath.Join(t.TempDir(), "log")
		copyTree(t, original, w.dir)
		w.start(who)
		w.alter("cleaned", "min.compaction.lag.ms", "0")
		before := w.cleanedUpTo("cleaned")
		real.Until(t, 30*time.Second, who+" cleans", func() bool { return w.cleanedUpTo("cleaned") != before })
		w.alter("cleaned", "min.compaction.lag.ms", "100000000")
		w.stop()
		kept[i], upTo[i] = w.batches("cleaned"), w.cleanedUpTo("cleaned")
		w.dumpLogSegments("3.9.1")
	}
	if upTo[0] != upTo[1] {
		t.Errorf("Kafka cleaned up to %s, we up to %s", upTo[0], upTo[1])
	}
	for i := range max(len(kept[0]), len(kept[1])) {
		var a, b string
		if i < len(kept[0]) {
			a = kept[0][i]
		}
		if i < len(kept[1]) {
			b = kept[1][i]
		}
		if kafka == "2.8.2" {
			a, b = withoutHorizon(a), withoutHorizon(b)
		}
		if a != b {
			t.Fatalf("line %d of %d and %d:\nKafka    %s\nBarnabas %s", i, len(kept[0]), len(kept[1]), a, b)
		}
	}
	t.Logf("%d batches and records", len(kept[0]))
}

func withoutHorizon(line string) string {
	return strings.Replace(line, "deleteHorizonMs set: true", "deleteHorizonMs set: false", 1)
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, rel), b, 0o644); err != nil {
			return err
		}
		return os.Chtimes(filepath.Join(to, rel), info.ModTime(), info.ModTime())
	}); err != nil {
		t.Fatal(err)
	}
}
