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

func TestMain(m *testing.M) { real.Main(m) }

// world is one data folder and one ZooKeeper on which brokers take turns.
type world struct {
	t   *testing.T
	zk  *real.ZooKeeperServer
	dir string
	// of the broker that runs
	process *real.Process
	addr    string
	topics  []string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, zk: real.StartZooKeeper(t, "tickTime=500"), dir: filepath.Join(t.TempDir(), "log")}
}

// start runs a broker on the folder: "barnabas", "2.8.2" or "3.9.1".
func (w *world) start(kind string, properties ...string) {
	w.t.Helper()
	// A log.segment.delete.delay.ms of 0 hangs the stop of Kafka 2.8 (LogManager.deleteLogs).
	properties = append([]string{"log.dirs=" + w.dir, "zookeeper.session.timeout.ms=6000", "offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1",
		"log.cleaner.backoff.ms=300", "log.cleaner.dedupe.buffer.size=2097152", "log.flush.offset.checkpoint.interval.ms=500", "log.segment.delete.delay.ms=100",
		"log.retention.check.interval.ms=500"}, properties...)
	if kind == "barnabas" {
		b := real.Barnabas(w.t, 1, append([]string{"zookeeper.connect=" + w.zk.Addr, "inter.broker.protocol.version=2.8",
			"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1"}, properties...)...)
		w.process, w.addr = b.Process, b.Addr
		return
	}
	// Until its session has ended, Apache Kafka takes its own old node for another broker.
	w.untilUnregistered()
	k := real.Kafka(w.t, kind, 1, w.zk.Addr, properties...)
	w.process, w.addr = k.Process, k.Addr
}

func (w *world) untilUnregistered() {
	real.Until(w.t, 30*time.Second, "the old registration goes", func() bool {
		return !strings.Contains(real.FourLetterWord(w.zk.Addr, "dump"), "/brokers/ids/1")
	})
}

func (w *world) stop() {
	w.t.Helper()
	w.process.Stop()
}

func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(w.addr), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) create(topic string, config ...string) {
	w.t.Helper()
	m := map[string]*string{}
	for i := 0; i < len(config); i += 2 {
		m[config[i]] = &config[i+1]
	}
	r, err := kadm.NewClient(w.client()).CreateTopic(context.Background(), 1, 1, m, topic)
	if err != nil || r.Err != nil {
		w.t.Fatal(err, r.Err)
	}
	w.ends(topic)
}

func (w *world) produce(c *kgo.Client, records ...*kgo.Record) {
	w.t.Helper()
	if err := c.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ends(topic string) (start, end int64) {
	w.t.Helper()
	a := kadm.NewClient(w.client())
	real.Until(w.t, 30*time.Second, topic+" is led", func() bool {
		s, err := a.ListStartOffsets(context.Background(), topic)
		e, err2 := a.ListEndOffsets(context.Background(), topic)
		if err != nil || err2 != nil || s.Error() != nil || e.Error() != nil {
			return false
		}
		start, end = s[topic][0].Offset, e[topic][0].Offset
		return true
	})
	return start, end
}

// kcat reads a topic from its start to its end: offset, key, value, headers.
func (w *world) kcat(topic string, more ...string) []string {
	w.t.Helper()
	if start, end := w.ends(topic); start == end {
		return nil
	}
	args := append([]string{"-b", w.addr, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", `%o %k %S %s %h\n`,
		"-X", "check.crcs=true"}, more...)
	return strings.Split(strings.TrimSpace(real.Run(w.t, time.Minute, real.Kcat(w.t, args...))), "\n")
}

// dumpLogSegments runs Kafka's own check over every segment of the folder.
func (w *world) dumpLogSegments(version string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "*-0", "*.log"))
	if err != nil || len(files) == 0 {
		w.t.Fatal("no segments", err)
	}
	var all []string
	for _, f := range files {
		for _, name := range []string{f, strings.TrimSuffix(f, ".log") + ".index", strings.TrimSuffix(f, ".log") + ".timeindex"} {
			if info, err := os.Stat(name); err == nil && (info.Size() > 0 || name == f) {
				all = append(all, name)
			}
		}
	}
	out := real.Run(w.t, 2*time.Minute, real.Java(w.t, version, "kafka.tools.DumpLogSegments", "--deep-iteration", "--files", strings.Join(all, ",")))
	for _, line := range strings.Split(out, "\n") {
		low := strings.ToLower(line)
		if strings.Contains(low, "mismatch") || strings.Contains(low, "isvalid: false") || strings.Contains(low, "non-consecutive") ||
			strings.Contains(low, "found timestamp mismatch") || strings.Contains(low, "out of order") || strings.Contains(low, "corrupt") {
			w.t.Fatalf("DumpLogSegments of %s: %s", version, line)
		}
	}
}

// fill writes every kind of record and returns nothing: what is there is read.
func (w *world) fill(round int) {
	w.t.Helper()
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	for i, codec := range codecs {
		c := w.client(kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic("codecs"))
		for j := range 3 {
			var batch []*kgo.Record
			for k := range 5 {
				batch = append(batch, &kgo.Record{Key: fmt.Appendf(nil, "key%d", k), Value: bytes.Repeat(fmt.Appendf(nil, "%d-%d-%d-%d ", round, i, j, k), 9),
					Headers: []kgo.RecordHeader{{Key: "h", Value: fmt.Appendf(nil, "v%d", i)}, {Key: "empty", Value: []byte{}}}})
			}
			batch = append(batch, &kgo.Record{Key: []byte("tombstone"), Value: nil}, &kgo.Record{Value: []byte("no key")})
			w.produce(c, batch...)
		}
	}
	for _, topic := range w.topics {
		for i, codec := range codecs {
			if !strings.HasPrefix(topic, "old") || i == 4 { // old formats have no zstd
				continue
			}
			c := w.client(kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic(topic), kgo.DisableIdempotentWrite())
			for j := range 3 {
				var batch []*kgo.Record
				for k := range 4 {
					batch = append(batch, &kgo.Record{Key: fmt.Appendf(nil, "key%d", k), Value: fmt.Appendf(nil, "%d-%d-%d-%d", round, i, j, k)})
				}
				w.produce(c, batch...)
			}
		}
	}
	txn := w.client(kgo.TransactionalID("txn"), kgo.DefaultProduceTopic("transactions"))
	for j := range 4 {
		if err := txn.BeginTransaction(); err != nil {
			w.t.Fatal(err)
		}
		w.produce(txn, &kgo.Record{Key: []byte("k"), Value: fmt.Appendf(nil, "txn %d-%d", round, j)})
		if err := txn.EndTransaction(context.Background(), kgo.TransactionEndTry(j%2 == 0)); err != nil {
			w.t.Fatal(err)
		}
	}
	c := w.client(kgo.DefaultProduceTopic("deleted"))
	for j := range 10 {
		w.produce(c, &kgo.Record{Value: fmt.Appendf(nil, "%d-%d", round, j)})
	}
	_, end := w.ends("deleted")
	w.deleteRecords("deleted", end-3)
	c = w.client(kgo.DefaultProduceTopic("compacted"))
	for j := range 30 {
		w.produce(c, &kgo.Record{Key: fmt.Appendf(nil, "k%d", j%7), Value: bytes.Repeat(fmt.Appendf(nil, "%d-%d ", round, j), 8)})
	}
}

func (w *world) deleteRecords(topic string, to int64) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, to, -1)
	r, err := kadm.NewClient(w.client()).DeleteRecords(context.Background(), offsets)
	if err != nil || r.Error() != nil {
		w.t.Fatal(err, r.Error())
	}
	if low := r[topic][0].LowWatermark; low != to {
		w.t.Fatal("low watermark", low, "expected", to)
	}
}

// createAll makes the topics; Kafka 2.8 can also keep old message formats.
func (w *world) createAll(kind string) {
	w.topics = []string{"codecs", "transactions", "deleted", "compacted"}
	if kind == "2.8.2" {
		w.create("old0", "message.format.version", "0.9.0", "segment.bytes", "1000", "index.interval.bytes", "200")
		w.create("old1", "message.format.version", "0.10.2", "segment.bytes", "1000", "index.interval.bytes", "200")
		w.topics = append(w.topics, "old0", "old1")
	}
	w.create("codecs", "segment.bytes", "4000", "index.interval.bytes", "300")
	w.create("transactions", "segment.bytes", "1000")
	w.create("deleted", "segment.bytes", "300")
	w.create("compacted", "cleanup.policy", "compact", "segment.bytes", "1000", "min.cleanable.dirty.ratio", "0.9")
}

// everything is what each topic serves, also read_uncommitted.
func (w *world) everything() map[string][]string {
	all := map[string][]string{}
	for _, topic := range w.topics {
		all[topic] = w.kcat(topic, "-X", "isolation.level=read_committed")
		all[topic+" uncommitted"] = w.kcat(topic, "-X", "isolation.level=read_uncommitted")
	}
	return all
}

// continues checks that what was served is served again; a compacted topic may
// have lost records that later ones supersede.
func continues(t *testing.T, who string, before, now map[string][]string) {
	t.Helper()
	for topic, lines := range before {
		got := now[topic]
		if strings.HasPrefix(topic, "compacted") {
			last := map[string]string{}
			for _, line := range lines {
				last[strings.Fields(line)[1]] = line
			}
			for _, line := range last {
				if !slices.Contains(got, line) {
					t.Fatalf("%s does not serve %s of %s", who, line, topic)
				}
			}
			continue
		}
		// Kafka writes what DeleteRecords did within a minute: after a kill the
		// records may be back.
		if strings.HasPrefix(topic, "deleted") && len(lines) > 0 {
			got = got[max(slices.Index(got, lines[0]), 0):]
		}
		if len(got) < len(lines) || !slices.Equal(got[:len(lines)], lines) {
			t.Fatalf("%s serves %d records of %s where there were %d:\n%q\n%q", who, len(got), topic, len(lines), got, lines)
		}
	}
}
