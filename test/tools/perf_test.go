package tools

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var number = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?(E-?[0-9]+)?|NaN|Infinity`)

// shape is a text without its numbers.
func shape(s string) string { return number.ReplaceAllString(strings.TrimSpace(s), "N") }

// The performance commands write what Kafka's write but for the numbers, and
// send and take what they are told to.
func TestPerformanceCommandsWriteAsKafkas(t *testing.T) {
	c := newCommands(t)
	c.file("lines", "one\ntwo\nthree\n")
	c.file("cut", "a;b;c;")
	theirs := func(class, line string) string {
		out, said, err := real.Try(t, 2*time.Minute, real.Java(t, "3.9.1", "org.apache.kafka.tools."+class, c.args(line)...))
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", line, err, out, said)
		}
		return out
	}
	for i, s := range []struct {
		what         string
		values       []string // in some order; nil: not looked at
		transactions bool     // whose markers have offsets too
	}{
		{"--num-records 200 --record-size 100 --throughput -1", nil, false},
		{"--num-records 5 --payload-monotonic --throughput -1", []string{"0", "1", "2", "3", "4"}, false},
		{"--num-records 60 --payload-file @D/lines --throughput 1000", []string{"one", "three", "two"}, false},
		{"--num-records 60 --payload-file @D/cut --payload-delimiter ; --throughput 1000", []string{"a", "b", "c"}, false},
		{"--num-records 100 --record-size 10 --throughput 200 --transaction-duration-ms 100 --transactional-id t@N", nil, true},
	} {
		topics := []string{fmt.Sprint("ours", i), fmt.Sprint("theirs", i)}
		props := " --producer-props bootstrap.servers=@B acks=1"
		if s.transactions {
			props = " --producer-props bootstrap.servers=@B"
		}
		line := func(topic string) string {
			return "--topic " + topic + " " + strings.Replace(s.what, "@N", topic, 1) + props
		}
		compareShapes(t, s.what, c.run("producer-perf-test "+line(topics[0]), ""), theirs("ProducerPerformance", line(topics[1])))
		ours, end := records(t, c.broker, topics[0])
		their, _ := records(t, c.broker, topics[1])
		if len(ours) != len(their) {
			t.Errorf("%s: ours sent %d records, Kafka's %d", s.what, len(ours), len(their))
		}
		if s.values != nil {
			if got := slices.Compact(slices.Sorted(slices.Values(ours))); !slices.Equal(got, s.values) {
				t.Errorf("%s: ours sent %q", s.what, got)
			}
		}
		if s.transactions != (end > int64(len(ours))) {
			t.Errorf("%s: %d records, the log ends at %d", s.what, len(ours), end)
		}
	}
	for _, what := range []string{"", " --hide-header", " --show-detailed-stats --reporting-interval 1", " --from-latest --timeout 500", " --group "} {
		line := "--bootstrap-server @B --topic ours0 --messages 200" + what
		mine, its := line, line
		if what == " --group " { // whose offsets are committed
			mine, its = line+"ours", line+"theirs"
		}
		compareShapes(t, line, c.run("consumer-perf-test "+mine, ""), theirs("ConsumerPerformance", its))
	}
	k, err := kgo.NewClient(kgo.SeedBrokers(c.broker))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for _, group := range []string{"ours", "theirs"} {
		if at := offsets(t, k, group, "ours0"); at[0] != 200 {
			t.Errorf("group %s of consumer-perf-test committed %v, not 200", group, at)
		}
	}
	for line, want := range map[string]string{
		"--num-records 1 --record-size 1 --throughput -1":                                                      "argument --topic is required",
		"--topic p --num-records x --record-size 1 --throughput -1":                                            "argument --num-records: could not convert 'x' to Long",
		"--topic p --num-records 1 --throughput -1 --producer-props bootstrap.servers=@B":                      "--record-size --payload-file --payload-monotonic is required",
		"--topic p --num-records 1 --record-size 0 --throughput -1 --producer-props bootstrap.servers=@B":      "--record-size should be greater than zero.",
		"--topic p --num-records 1 --record-size 1 --throughput -1":                                            "Either --producer-props or --producer.config must be specified.",
		"--topic p --num-records 1 --record-size 1 --throughput -1 --producer-props bootstrap.servers=@B nope": "Invalid property: nope",
	} {
		_, said, err := real.Try(t, time.Minute, exec.Command(real.Binary(t), c.args("producer-perf-test "+line)...))
		if err == nil || !strings.Contains(said, want) {
			t.Errorf("%s: %v, %q; want %s", line, err, said, want)
		}
	}
}

// compareShapes compares the lines of two texts, of which one may come several
// times.
func compareShapes(t *testing.T, what, ours, theirs string) {
	t.Helper()
	lines := func(s string) []string { return slices.Compact(strings.Split(shape(s), "\n")) }
	if a, b := lines(ours), lines(theirs); !slices.Equal(a, b) {
		t.Errorf("%s: ours wrote\n%s\nKafka's\n%s", what, ours, theirs)
	}
}

// records returns the committed values of a topic, and where its log ends.
func records(t *testing.T, broker, topic string) (values []string, end int64) {
	t.Helper()
	k, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	ends, err := kadm.NewClient(k).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) { end += o.Offset })
	for seen := int64(0); seen < end; {
		k.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			seen++
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
		})
	}
	return values, end
}
