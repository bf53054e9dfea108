package groups

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"
)

// busy is what a tool of Kafka's gets for a request instead of 5 s: its JVM may
// need longer for the first one.
var busy = []string{"--timeout", "120000"}

// consumerGroups is kafka-consumer-groups of a release.
func consumerGroups(t *testing.T, version, addr string, args ...string) *exec.Cmd {
	return real.Java(t, version, groupCommand(version), slices.Concat([]string{"--bootstrap-server", addr}, args, busy)...)
}

func groupCommand(version string) string {
	if version < "3" {
		return "kafka.admin.ConsumerGroupCommand"
	}
	return "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
}

// commands is a JVM in which kafka-consumer-groups of a release runs again and
// again: a JVM for each run takes longer to start than the tool to work.
type commands struct {
	in  *os.File
	out *os.File
	all *bufio.Reader // of out
}

func startCommands(t *testing.T, version string) *commands {
	t.Helper()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	stdin, in := pipe()
	out, stdout := pipe()
	cmd := real.Java(t, version, "testdata/Commands.java", groupCommand(version))
	cmd.Stdin, cmd.Stdout = stdin, stdout
	p := real.Start(t, "commands-"+version, cmd)
	go func() { <-p.Done(); stdout.Close() }() // who waits for output hears of the end
	return &commands{in: in, out: out, all: bufio.NewReader(out)}
}

// run returns what the tool writes to its standard output.
func (c *commands) run(t *testing.T, addr string, args ...string) string {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, strings.Join(slices.Concat([]string{"--bootstrap-server", addr}, args, busy), "\t")); err != nil {
		t.Fatal(err)
	}
	_ = c.out.SetReadDeadline(time.Now().Add(patience)) // pipes have deadlines
	out, err := c.all.ReadString(4)
	if err != nil {
		t.Fatalf("%v: %v after %q", args, err, out)
	}
	return strings.TrimSuffix(out, "\x04")
}

var (
	uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// hexUUID is one in hexadecimal.
	hexUUID = regexp.MustCompile(`(3[0-9]|6[1-6]){8}2d((3[0-9]|6[1-6]){4}2d){3}(3[0-9]|6[1-6]){12}`)
	port    = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
)

// plain makes the output of a tool comparable: ids, ports and columns.
func plain(s string) string {
	var lines []string
	for _, line := range strings.Split(s, "\n") {
		line = strings.Join(strings.Fields(port.ReplaceAllString(uuid.ReplaceAllString(line, "UUID"), "ADDR")), " ")
		if line != "" && !strings.Contains(line, "SLF4J") {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines) // the order of partitions is not fixed
	return strings.Join(lines, "\n")
}

// TestConsumerGroupCommand runs Kafka's tool through the same steps on both
// brokers; its output is the same.
func TestConsumerGroupCommand(t *testing.T) {
	t.Parallel()
	outputs := map[string][]string{}
	var steps []string
	tools := map[string]*commands{}
	for _, version := range []string{"2.8.2", "4.1.0"} {
		tools[version] = startCommands(t, version)
	}
	raw.OnBoth(t, func(t *testing.T, addr string) {
		broker := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		for _, version := range []string{"2.8.2", "4.1.0"} {
			topic, other := "words-"+version, "other-"+version
			raw.CreateTopic(t, addr, topic, 3)
			raw.CreateTopic(t, addr, other, 1)
			produce(t, addr, topic, 0, 30)
			group := "g-" + version
			raw.Coordinated(t, addr, group)
			m := kcat(t, addr, group, topic)
			settled(t, addr, group, topic, 1, 3)
			real.Until(t, patience, "all to be read", func() bool { return missing([]func() string{m.output}, 30) == 0 })
			c := raw.Dial(t, addr)
			run := func(args ...string) {
				outputs[broker] = append(outputs[broker], plain(tools[version].run(t, addr, args...))) // some steps are refused
				steps = append(steps, version+" "+strings.Join(args, " "))
			}
			real.Until(t, patience, "all to be committed", func() bool {
				sum := int64(0)
				for _, o := range fetchOffsets(t, addr, group, topic, 0, 1, 2) {
					sum += o
				}
				return sum == 30
			})
			run("--list")
			if version > "4" {
				run("--list", "--type", "classic")
			}
			run("--describe", "--group", group)
			run("--describe", "--group", group, "--state")
			run("--describe", "--group", group, "--members", "--verbose")
			run("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
			run("--delete", "--group", group)
			run("--delete-offsets", "--group", group, "--topic", topic)
			m.leave()
			real.Until(t, patience, "the group to be empty", func() bool { return describe(t, addr, group).State == "Empty" })
			for p := range int32(3) {
				if code := commit(c, commitRequest(6, group, topic, p, 5, "")); code != 0 {
					t.Fatalf("commit: %d", code)
				}
			}
			if code := commit(c, commitRequest(6, group, other, 0, 0, "")); code != 0 {
				t.Fatalf("commit: %d", code)
			}
			run("--describe", "--group", group)
			run("--describe", "--group", group, "--state")
			run("--describe", "--group", group, "--offsets")
			run("--list", "--state")
			run("--describe", "--all-groups", "--members")
			for _, how := range [][]string{{"--to-earliest"}, {"--to-latest"}, {"--to-offset", "4"}, {"--shift-by", "-2"}, {"--by-duration", "PT10M"},
				{"--to-datetime", "2020-01-01T00:00:00.000"}, {"--to-current"}} {
				run(append([]string{"--reset-offsets", "--group", group, "--topic", topic, "--execute"}, how...)...)
			}
			run("--reset-offsets", "--group", group, "--all-topics", "--to-earliest", "--dry-run")
			file := filepath.Join(t.TempDir(), "offsets.csv")
			if err := os.WriteFile(file, fmt.Appendf(nil, "%s,0,2\n%s,2,3\n", topic, topic), 0o644); err != nil {
				t.Fatal(err)
			}
			run("--reset-offsets", "--group", group, "--from-file", file, "--execute")
			run("--reset-offsets", "--group", group, "--topic", topic+":0,1", "--to-offset", "3", "--export", "--execute")
			run("--delete-offsets", "--group", group, "--topic", other)
			run("--describe", "--group", group)
			run("--delete", "--group", group)
			run("--describe", "--group", group)
			run("--list")
		}
	})
	ours, theirs := outputs["barnabas"], outputs["kafka-3.9.1"]
	for i := range min(len(ours), len(theirs)) {
		if ours[i] != theirs[i] {
			t.Errorf("%s\nBarnabas:\n%s\nKafka:\n%s", steps[i], ours[i], theirs[i])
		}
	}
	if len(ours) != len(theirs) || len(ours) == 0 {
		t.Errorf("%d steps, and %d of Kafka", len(ours), len(theirs))
	}
}
