package tools

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMain(m *testing.M) { real.Main(m) }

// step is one command line of a session and what is known of its answer.
type step struct {
	comments []string // and files, as they stand
	line     string
	mark     string // "~" any order of lines, "=" blanks and ends of lines do not count, "+" with standard error
	input    []string
	out      []string
	err      string
	exit     int
}

func (s step) args(broker, zookeeper, dir string) []string {
	var args []string
	for _, a := range splitLine(s.line) {
		args = append(args, place{broker: broker, zookeeper: zookeeper, dir: dir}.fill(a))
	}
	return args
}

// splitLine splits at blanks, except between single quotes.
func splitLine(line string) (args []string) {
	var arg []byte
	quoted, begun := false, false
	for i := range len(line) {
		switch c := line[i]; {
		case c == '\'':
			quoted, begun = !quoted, true
		case c == ' ' && !quoted:
			if begun {
				args = append(args, string(arg))
			}
			arg, begun = nil, false
		default:
			arg, begun = append(arg, c), true
		}
	}
	if begun {
		args = append(args, string(arg))
	}
	return args
}

func readSession(t *testing.T, file string) (steps []step) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var comments []string
	for n, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		kind, rest := line, ""
		if line != "" {
			kind, rest = line[:1], strings.TrimPrefix(line[1:], " ")
		}
		if strings.Contains("<|!?", kind) && kind != "" && len(steps) == 0 {
			t.Fatalf("%s:%d: no command line before this", file, n+1)
		}
		switch kind {
		case "", "#", "@", "+", "%":
			comments = append(comments, line)
		case "$":
			s := step{comments: comments, line: rest}
			if len(rest) > 1 && strings.Contains("~=+", rest[:1]) && rest[1] == ' ' {
				s.mark, s.line = rest[:1], rest[2:]
			}
			steps, comments = append(steps, s), nil
		case "<":
			s := &steps[len(steps)-1]
			s.input = append(s.input, rest)
		case "|":
			s := &steps[len(steps)-1]
			s.out = append(s.out, rest)
		case "!":
			steps[len(steps)-1].err = rest
		case "?":
			fmt.Sscan(rest, &steps[len(steps)-1].exit)
		default:
			t.Fatalf("%s:%d: %q", file, n+1, line)
		}
	}
	return steps
}

// makeFiles makes the files that stand before a command line.
func makeFiles(t *testing.T, dir string, comments []string) {
	t.Helper()
	name, text := "", ""
	flush := func() {
		if name != "" {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		name, text = "", ""
	}
	for _, c := range comments {
		switch {
		case strings.HasPrefix(c, "@ "):
			flush()
			var first string
			name, first, _ = strings.Cut(c[2:], " ")
			text = first + "\n"
		case strings.HasPrefix(c, "+"):
			text += strings.TrimPrefix(c[1:], " ") + "\n"
		}
	}
	flush()
}

var (
	zkWhen   = regexp.MustCompile(`^([cm]time) = .*`)
	zkZxid   = regexp.MustCompile(`^([cmp]Zxid) = .*`)
	topicID  = regexp.MustCompile(`TopicId: [\w-]{22}`)
	javaLog  = regexp.MustCompile(`^\[\d{4}-[^\]]*\] (ERROR|WARN|INFO) `)
	javaName = regexp.MustCompile(`\b(Exception in thread "\w+" )?((java|org|kafka|joptsimple)\.[\w.$]*(Exception|Error)\b:? ?)+`)
	logger   = regexp.MustCompile(` \((org|kafka)\.[\w.$]+\)$`)
	// what a controller says of an election without a winner
	reason = regexp.MustCompile(`(Failed to elect leader for partition |No leader could be elected: ).*`)
	// what Java's clients log of a broker that is gone
	clientLog = regexp.MustCompile(`^\[(AdminClient|Producer|Consumer) `)
	uptime    = regexp.MustCompile(`CreateTime:\d+`)
)

type place struct {
	broker, zookeeper, dir string
	brokers                []member // of cluster-*: broker N is brokers[N-1]
}

// member is a broker that can be stopped and started again.
type member interface {
	Stop() int
	Restart(t testing.TB)
}

// fill puts what @B, @Z and @D stand for.
func (p place) fill(s string) string {
	return strings.NewReplacer("@B", p.broker, "@Z", p.zookeeper, "@D", p.dir).Replace(s)
}

func (p place) clean(s string) string {
	s = strings.NewReplacer(p.broker, "@B", p.zookeeper, "@Z", p.dir, "@D").Replace(s)
	s = zkWhen.ReplaceAllString(zkZxid.ReplaceAllString(s, "$1 = @N"), "$1 = @MS")
	s = reason.ReplaceAllString(topicID.ReplaceAllString(s, "TopicId: @ID"), "@WHY")
	return uptime.ReplaceAllString(s, "CreateTime:@MS")
}

// sentence is what the first line on standard error says, without Java's names.
func (p place) sentence(errOut string) string {
	for line := range strings.SplitSeq(errOut, "\n") {
		line = javaLog.ReplaceAllString(line, "")
		line = logger.ReplaceAllString(line, "")
		line = strings.TrimSpace(javaName.ReplaceAllString(line, ""))
		if line != "" && !strings.HasPrefix(line, "at ") && !clientLog.MatchString(line) && line != "Unknown error when running consumer:" {
			return p.clean(line)
		}
	}
	return ""
}

// isWatch tells whether a line is one that zookeeper-shell prints when it likes.
func isWatch(s step, line string) bool {
	return strings.HasPrefix(s.line, "zookeeper-shell") && (line == "" || line == "WATCHER::" || strings.HasPrefix(line, "WatchedEvent "))
}

var javaTrace = regexp.MustCompile(`^(\tat |\t\.\.\. |Caused by: |(java|org|kafka)\.[\w.$]*(Exception|Error): )`)

// isTrace tells whether a line is of a Java stack trace, which some scripts
// print to standard output.
func isTrace(line string) bool { return javaTrace.MatchString(line) }

func (p place) run(t *testing.T, s step, cmd *exec.Cmd) step {
	t.Helper()
	var out, errOut bytes.Buffer
	if len(s.input) > 0 {
		cmd.Stdin = strings.NewReader(p.fill(strings.Join(s.input, "\n")) + "\n")
	}
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if s.mark == "+" {
		cmd.Stderr = &out
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // the exit status is part of the answer
	timer.Stop()
	s.out = nil
	var events []string
	if out.Len() > 0 {
		for line := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\n"), "\n") {
			line = strings.TrimRight(p.clean(line), " ")
			if s.mark == "+" {
				line = javaName.ReplaceAllString(line, "")
			}
			switch {
			case isWatch(s, line):
				if s.mark == "+" && strings.HasPrefix(line, "WatchedEvent ") {
					events = append(events, line) // they come when they like
				}
			case s.mark == "+" && javaLog.MatchString(line):
			case !isTrace(line):
				s.out = append(s.out, line)
			}
		}
	}
	s.out = append(s.out, events...)
	s.err, s.exit = p.sentence(errOut.String()), cmd.ProcessState.ExitCode()
	return s
}

func sessions(t *testing.T) []string {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no sessions")
	}
	return files
}

func kafkaPlace(t *testing.T, file string) place {
	zk, brokers := real.ZooKeeper(t), brokersOf(file)
	if brokers == 1 {
		return place{broker: real.Kafka(t, releaseOf(file), 1, zk).Addr, zookeeper: zk}
	}
	p := place{zookeeper: zk}
	var addrs []string
	for id := 1; id <= brokers; id++ {
		k := real.Kafka(t, "3.9.1", id, zk, clusterProperties...)
		p.brokers, addrs = append(p.brokers, k), append(addrs, k.Addr)
	}
	p.broker = strings.Join(addrs, ",")
	return p
}

func barnabasPlace(t *testing.T, file string) place {
	brokers := brokersOf(file)
	if brokers == 1 {
		b := real.Barnabas(t, 1)
		return place{broker: b.Addr, zookeeper: b.Keeper}
	}
	p := place{zookeeper: real.ZooKeeper(t)}
	var addrs []string
	for id := 1; id <= brokers; id++ {
		b := real.Barnabas(t, id, append([]string{"zookeeper.connect=" + p.zookeeper}, clusterProperties...)...)
		p.brokers, addrs = append(p.brokers, b), append(addrs, b.Addr)
	}
	p.broker = strings.Join(addrs, ",")
	return p
}

// clusterProperties let a broker stop that has the last replica in sync.
var clusterProperties = []string{"controlled.shutdown.max.retries=1", "controlled.shutdown.retry.backoff.ms=100", "auto.leader.rebalance.enable=false"}

func releaseOf(file string) string {
	if strings.HasPrefix(filepath.Base(file), "2.8.2-") {
		return "2.8.2"
	}
	return "3.9.1"
}

func brokersOf(file string) int {
	if strings.HasPrefix(filepath.Base(file), "cluster-") {
		return 3
	}
	return 1
}

// act does what a session says with "%".
func (p place) act(t *testing.T, comments []string) {
	t.Helper()
	k, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(p.broker, ",")...), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	admin := kadm.NewClient(k)
	for _, c := range comments {
		var n int
		if _, err := fmt.Sscanf(c, "%% stop %d", &n); err == nil {
			p.brokers[n-1].Stop()
			real.Until(t, time.Minute, "broker to be gone", func() bool {
				m, err := admin.Metadata(t.Context())
				return err == nil && !slices.Contains(m.Brokers.NodeIDs(), int32(n)) && !led(m, int32(n))
			})
		} else if _, err := fmt.Sscanf(c, "%% start %d", &n); err == nil {
			p.brokers[n-1].Restart(t)
			real.Until(t, time.Minute, "broker to be in sync", func() bool {
				m, err := admin.Metadata(t.Context())
				return err == nil && slices.Contains(m.Brokers.NodeIDs(), int32(n)) && inSync(m, int32(n))
			})
		} else if topic, ok := strings.CutPrefix(c, "% fill "); ok {
			for range 5 {
				if err := k.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: make([]byte, 900000)}).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
		} else if c == "% settle" {
			real.Until(t, time.Minute, "every broker to know leaders of all partitions", func() bool { return settled(t, k) })
		} else if c == "% moved" {
			real.Until(t, time.Minute, "all to be moved", func() bool {
				resp, err := kmsg.NewPtrListPartitionReassignmentsRequest().RequestWith(t.Context(), k)
				return err == nil && resp.ErrorCode == 0 && len(resp.Topics) == 0 && p.everybodyKnowsTheReplicas(t, k)
			})
		} else if strings.HasPrefix(c, "%") {
			t.Fatalf("what does %q mean?", c)
		}
	}
}

// settled tells whether each broker knows a leader of every partition.
func settled(t *testing.T, k *kgo.Client) bool {
	brokers, err := kadm.NewClient(k).ListBrokers(t.Context())
	if err != nil {
		return false
	}
	for _, id := range brokers.NodeIDs() {
		resp, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), k.Broker(int(id)))
		if err != nil {
			return false
		}
		for _, topic := range resp.Topics {
			if topic.ErrorCode != 0 || slices.ContainsFunc(topic.Partitions, func(p kmsg.MetadataResponseTopicPartition) bool { return p.Leader < 0 }) {
				return false
			}
		}
	}
	return true
}

// everybodyKnowsTheReplicas tells whether each broker says of each partition the
// replicas that its topic's node has: the controller tells the brokers after it
// has ended a move.
func (p place) everybodyKnowsTheReplicas(t *testing.T, k *kgo.Client) bool {
	zk, err := zookeeper.New(zookeeper.Options{Connect: p.zookeeper})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	brokers, err := kadm.NewClient(k).ListBrokers(ctx)
	if err != nil || zk.Start(ctx) != nil {
		return false
	}
	for _, id := range brokers.NodeIDs() {
		resp, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, k.Broker(int(id)))
		if err != nil {
			return false
		}
		for _, topic := range resp.Topics {
			data, _, err := zk.Get(ctx, znode.TopicPath(*topic.Topic))
			node, bad := znode.DecodeTopic(data)
			if err != nil || bad != nil || len(node.Partitions) != len(topic.Partitions) {
				return false
			}
			for _, partition := range topic.Partitions {
				if !slices.Equal(partition.Replicas, node.Partitions[partition.Partition].Replicas) {
					return false
				}
			}
		}
	}
	return true
}

func led(m kadm.Metadata, id int32) (found bool) {
	m.Topics.EachPartition(func(p kadm.PartitionDetail) { found = found || p.Leader == id })
	return found
}

// inSync tells whether a broker is in sync wherever there is a leader to say so.
func inSync(m kadm.Metadata, id int32) bool {
	all := true
	m.Topics.EachPartition(func(p kadm.PartitionDetail) {
		all = all && (p.Leader < 0 || !slices.Contains(p.Replicas, id) || slices.Contains(p.ISR, id))
	})
	return all
}

func TestCommandsAnswerAsKafkasScripts(t *testing.T) {
	for _, cluster := range []struct {
		name  string
		start func(t *testing.T, file string) place
	}{{"kafka", kafkaPlace}, {"barnabas", barnabasPlace}} {
		t.Run(cluster.name, func(t *testing.T) {
			for _, file := range sessions(t) {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".golden"), func(t *testing.T) {
					p := cluster.start(t, file)
					p.dir = t.TempDir()
					for _, want := range readSession(t, file) {
						start := time.Now()
						makeFiles(t, p.dir, want.comments)
						p.act(t, want.comments)
						got := p.run(t, want, exec.Command(real.Binary(t), want.args(p.broker, p.zookeeper, p.dir)...))
						if took := time.Since(start); took > 2*time.Second {
							t.Logf("%.1f s: %s", took.Seconds(), want.line)
						}
						compare(t, want, got)
					}
				})
			}
		})
	}
}

func compare(t *testing.T, want, got step) {
	t.Helper()
	switch want.mark {
	case "~":
		slices.Sort(want.out)
		slices.Sort(got.out)
	case "=":
		want.out, got.out = strings.Fields(strings.Join(want.out, " ")), strings.Fields(strings.Join(got.out, " "))
	}
	if !slices.Equal(want.out, got.out) {
		t.Errorf("%s\nKafka's script wrote:\n  %s\nours:\n  %s", want.line, strings.Join(want.out, "\n  "), strings.Join(got.out, "\n  "))
	}
	if want.exit != got.exit {
		t.Errorf("%s\nKafka's script exits with %d, ours with %d: %s", want.line, want.exit, got.exit, got.err)
	}
	if want.err != "" && !strings.Contains(got.err, want.err) {
		t.Errorf("%s\nKafka's script says: %s\nours says:           %s", want.line, want.err, got.err)
	}
}
