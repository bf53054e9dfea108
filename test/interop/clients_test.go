package interop

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

const recordsPerCodec = 200

// words returns the values that each client sends with each codec: long and
// alike enough that compression gains, all different.
func words(codec string) []string {
	out := make([]string, recordsPerCodec)
	for i := range out {
		out[i] = fmt.Sprintf("%s record %04d: the quick brown fox jumps over the lazy dog", codec, i)
	}
	return out
}

// wanted returns all "codec\tvalue" lines that a client's topic holds in the end.
func wanted(codecs []string) []string {
	var out []string
	for _, c := range codecs {
		for _, w := range words(c) {
			out = append(out, c+"\t"+w)
		}
	}
	return out
}

func createTopic(t *testing.T, addr, topic string, partitions int32) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), partitions, 1, nil, topic); err != nil {
		t.Fatalf("create %s: %v", topic, err)
	}
}

// readAll reads partition 0 of a topic to its end with franz-go and returns a
// line "key\tvalue" for each record.
func readAll(t *testing.T, addr, topic string, opts ...kgo.Opt) []string {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {0: kgo.NewOffset().AtStart()}})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	end, ok := ends.Lookup(topic, 0)
	if !ok || end.Err != nil {
		t.Fatalf("end of %s: %v", topic, end.Err)
	}
	var out []string
	for next := int64(0); next < end.Offset; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read %s after %d of %d records: %v", topic, next, end.Offset, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			out = append(out, string(r.Key)+"\t"+string(r.Value))
			next = r.Offset + 1
		})
	}
	return out
}

func equalLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d records, want %d", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: record %d is %q, want %q", what, i, got[i], want[i])
			return
		}
	}
}

func lines(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }

// keyed puts "key\t" before each value, as the console producers' parse.key
// and kcat's -K want it.
func keyed(codec string) string {
	var b strings.Builder
	for _, w := range words(codec) {
		b.WriteString(codec + "\t" + w + "\n")
	}
	return b.String()
}

// TestEachClientProducesAndConsumesWithEachCodec sends the same records with
// every codec that a client has, reads them back with that client, and again
// with franz-go.
func TestEachClientProducesAndConsumesWithEachCodec(t *testing.T) {
	broker := real.Barnabas(t, 1)
	t.Run("kcat", func(t *testing.T) { kcatRoundTrip(t, broker.Addr) })
	t.Run("kafka-python", func(t *testing.T) { kafkaPythonRoundTrip(t, broker.Addr) })
	t.Run("franz-go", func(t *testing.T) { franzRoundTrip(t, broker.Addr) })
	t.Run("sarama", func(t *testing.T) { saramaRoundTrip(t, broker.Addr) })
	for _, version := range []string{"2.8.2", "3.9.1", "4.1.0"} {
		t.Run("java-"+version, func(t *testing.T) { javaRoundTrip(t, broker.Addr, version) })
	}
}

func kcatRoundTrip(t *testing.T, addr string) {
	createTopic(t, addr, "kcat", 1)
	for _, codec := range codecs {
		cmd := real.Kcat(t, "-P", "-b", addr, "-t", "kcat", "-p", "0", "-K", "\t", "-z", codec)
		cmd.Stdin = strings.NewReader(keyed(codec))
		real.Run(t, time.Minute, cmd)
	}
	got := real.Run(t, time.Minute, real.Kcat(t, "-C", "-b", addr, "-t", "kcat", "-p", "0", "-o", "beginning", "-e", "-q", "-K", "\t"))
	equalLines(t, "kcat", lines(got), wanted(codecs))
	equalLines(t, "franz-go on kcat's topic", readAll(t, addr, "kcat"), wanted(codecs))
}

func kafkaPythonRoundTrip(t *testing.T, addr string) {
	createTopic(t, addr, "python", 1)
	cmd := real.Python(t, "testdata/kafka_python.py", "produce", addr, "python")
	cmd.Stdin = strings.NewReader(strings.Join(words("any"), "\n") + "\n")
	real.Run(t, 2*time.Minute, cmd)
	var want []string
	for _, c := range codecs {
		for _, w := range words("any") {
			want = append(want, c+"\t"+w)
		}
	}
	got := real.Run(t, time.Minute, real.Python(t, "testdata/kafka_python.py", "consume", addr, "python"))
	equalLines(t, "kafka-python", lines(got), want)
	equalLines(t, "franz-go on kafka-python's topic", readAll(t, addr, "python"), want)
}

func franzRoundTrip(t *testing.T, addr string) {
	createTopic(t, addr, "franz", 1)
	for _, codec := range codecs {
		compression := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
			"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}[codec]
		client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ProducerBatchCompression(compression), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		var records []*kgo.Record
		for _, w := range words(codec) {
			records = append(records, &kgo.Record{Topic: "franz", Key: []byte(codec), Value: []byte(w)})
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Errorf("%s: %v", codec, err)
		}
		client.Close()
	}
	equalLines(t, "franz-go", readAll(t, addr, "franz"), wanted(codecs))
}

func saramaRoundTrip(t *testing.T, addr string) {
	createTopic(t, addr, "sarama", 1)
	for _, codec := range codecs {
		config := sarama.NewConfig()
		config.Version = sarama.V2_8_0_0
		config.Producer.Return.Successes = true
		config.Producer.RequiredAcks = sarama.WaitForAll
		config.Producer.Partitioner = sarama.NewManualPartitioner
		if err := config.Producer.Compression.UnmarshalText([]byte(codec)); err != nil {
			t.Fatal(err)
		}
		producer, err := sarama.NewSyncProducer([]string{addr}, config)
		if err != nil {
			t.Fatal(err)
		}
		var messages []*sarama.ProducerMessage
		for _, w := range words(codec) {
			messages = append(messages, &sarama.ProducerMessage{Topic: "sarama", Key: sarama.StringEncoder(codec), Value: sarama.StringEncoder(w)})
		}
		if err := producer.SendMessages(messages); err != nil {
			t.Errorf("%s: %v", codec, err)
		}
		if err := producer.Close(); err != nil {
			t.Errorf("%s: %v", codec, err)
		}
	}
	consumer, err := sarama.NewConsumer([]string{addr}, sarama.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition("sarama", 0, sarama.OffsetOldest)
	if err != nil {
		t.Fatal(err)
	}
	defer partition.Close()
	var got []string
	limit := time.After(30 * time.Second)
	for range wanted(codecs) {
		select {
		case m := <-partition.Messages():
			got = append(got, string(m.Key)+"\t"+string(m.Value))
		case <-limit:
			t.Fatalf("sarama read %d records in 30 s", len(got))
		}
	}
	equalLines(t, "sarama", got, wanted(codecs))
	equalLines(t, "franz-go on sarama's topic", readAll(t, addr, "sarama"), wanted(codecs))
}

func consoleProducer(t *testing.T, version string, args ...string) *exec.Cmd {
	class := "kafka.tools.ConsoleProducer"
	if version >= "4" {
		class = "org.apache.kafka.tools.ConsoleProducer"
	}
	return real.Java(t, version, class, args...)
}

func consoleConsumer(t *testing.T, version string, args ...string) *exec.Cmd {
	class := "org.apache.kafka.tools.consumer.ConsoleConsumer"
	if version < "3" {
		class = "kafka.tools.ConsoleConsumer"
	}
	return real.Java(t, version, class, args...)
}

func javaRoundTrip(t *testing.T, addr, version string) {
	topic := "java-" + version
	createTopic(t, addr, topic, 1)
	for _, codec := range codecs {
		// The producer of 4.1.0 is idempotent unless told otherwise (since 3.0).
		cmd := consoleProducer(t, version, "--bootstrap-server", addr, "--topic", topic, "--compression-codec", codec,
			"--property", "parse.key=true", "--property", "key.separator=\t", "--request-required-acks", "all")
		cmd.Stdin = strings.NewReader(keyed(codec))
		real.Run(t, time.Minute, cmd)
	}
	want := wanted(codecs)
	got := real.Run(t, time.Minute, consoleConsumer(t, version, "--bootstrap-server", addr, "--topic", topic, "--partition", "0", "--offset", "earliest",
		"--property", "print.key=true", "--property", "key.separator=\t", "--max-messages", fmt.Sprint(len(want)), "--timeout-ms", "30000"))
	equalLines(t, "Java "+version, lines(got), want)
	equalLines(t, "franz-go on the topic of Java "+version, readAll(t, addr, topic), want)
}
