package streams

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMain(m *testing.M) { real.Main(m) }

// patience is for a busy machine, on which a JVM alone may take minutes to start.
const patience = 10 * time.Minute

var between = regexp.MustCompile(`[^A-Za-z]+`)

// text is the lines of this repository's licence and documents, and how often
// each of their words occurs.
func text(t *testing.T) (lines []string, counts map[string]int) {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	counts = map[string]int{}
	for _, f := range append(files, "../../LICENSE") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			lines = append(lines, line)
			for _, w := range between.Split(line, -1) {
				if w != "" {
					counts[strings.ToLower(w)]++
				}
			}
		}
	}
	return lines, counts
}

// cluster is three brokers on one ZooKeeper.
type cluster struct {
	brokers   []*real.BarnabasBroker
	bootstrap string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	zk := "127.0.0.1:" + real.FreePort(t)
	real.Start(t, "zookeeper", exec.Command(real.Binary(t), "zookeeper", "--listen", zk, "--dir", t.TempDir()))
	c := &cluster{}
	var addrs []string
	for id := range 3 {
		b := real.Barnabas(t, id+1, "zookeeper.connect="+zk, "zookeeper.session.timeout.ms=6000", "min.insync.replicas=2", "default.replication.factor=3",
			"offsets.topic.replication.factor=3", "offsets.topic.num.partitions=10", "transaction.state.log.replication.factor=3",
			"transaction.state.log.num.partitions=10", "transaction.state.log.min.isr=2", "group.initial.rebalance.delay.ms=100")
		c.brokers, addrs = append(c.brokers, b), append(addrs, b.Addr)
	}
	c.bootstrap = strings.Join(addrs, ",")
	return c
}

func (c *cluster) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	k, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(c.bootstrap, ",")...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// counted follows a topic of counts: the last of each word.
type counted struct {
	client *kgo.Client
	counts map[string]int
	wrong  []string
}

// more takes in what has come, and waits a little for it.
func (c *counted) more(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
		n, err := strconv.Atoi(string(r.Value))
		if word := string(r.Key); err != nil || n <= c.counts[word] {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: %s after %d", r.Key, r.Value, c.counts[word]))
		} else {
			c.counts[word] = n
		}
	})
}

func (c *counted) total() (n int) {
	for _, of := range c.counts {
		n += of
	}
	return n
}

// TestStreamsCountWordsExactly has two instances of an application of Kafka
// Streams count the words of a text with exactly_once_v2 while brokers and
// instances are killed at random: the counts are those of plain Go, and no count
// is committed twice.
func TestStreamsCountWordsExactly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	kills := 2
	if os.Getenv("BARNABAS_SOAK") != "" {
		kills = 30
	}
	classPath := real.Streams(t)
	c := startCluster(t)
	k := c.client(t, kgo.DefaultProduceTopic("lines"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	ctx := t.Context()
	for _, topic := range []string{"lines", "counts"} {
		real.Until(t, patience, "topic "+topic, func() bool {
			_, err := kadm.NewClient(k).CreateTopic(ctx, 4, 3, nil, topic)
			return err == nil
		})
	}
	instances := make([]*real.Process, 2)
	launch := func(i int) {
		instances[i] = real.Start(t, fmt.Sprint("streams-", i), exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", real.Log4j(t),
			"-cp", classPath, "testdata/WordCount.java", c.bootstrap, "lines", "counts", filepath.Join(t.TempDir(), "state"), "3"))
	}
	for i := range instances {
		launch(i)
	}
	counts := &counted{counts: map[string]int{}, client: c.client(t, kgo.ConsumeTopics("counts"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))}
	lines, want := text(t)
	words := 0
	for _, n := range want {
		words += n
	}
	send := func(round int) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for i := round; i < len(lines); i += kills + 1 {
			k.Produce(ctx, kgo.StringRecord(lines[i]), func(_ *kgo.Record, err error) {
				if err != nil {
					t.Errorf("produce: %v", err)
				}
			})
		}
		if err := k.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for round := range kills {
		send(round)
		// Killed while it works, not before and not after.
		goal := words * (2*round + 1) / (2 * (kills + 1))
		real.Until(t, patience, "words to be counted", func() bool { counts.more(t); return counts.total() > goal })
		if round%2 == 0 {
			b := c.brokers[random.IntN(len(c.brokers))]
			t.Logf("%d of %d words are counted: broker %s is killed", counts.total(), words, b.Addr)
			b.Kill()
			b.Restart(t)
		} else {
			i := random.IntN(len(instances))
			t.Logf("%d of %d words are counted: instance %d is killed", counts.total(), words, i)
			instances[i].Kill()
			launch(i)
		}
	}
	send(kills)
	real.Until(t, patience, "all words to be counted", func() bool { counts.more(t); return counts.total() >= words })
	counts.more(t)
	for _, w := range counts.wrong {
		t.Errorf("a count was committed twice: %s", w)
	}
	for w, n := range want {
		if counts.counts[w] != n {
			t.Errorf("%s: counted %d, there are %d", w, counts.counts[w], n)
		}
	}
	if len(counts.counts) != len(want) {
		t.Errorf("%d words were counted, there are %d", len(counts.counts), len(want))
	}
}
