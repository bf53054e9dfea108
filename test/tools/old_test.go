package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

// The scripts of 0.8 beside ours, against one cluster.
func TestCommandsWithZooKeeperAnswerAsThoseOf08(t *testing.T) {
	b := real.Barnabas(t, 1)
	ours := func(args ...string) *exec.Cmd { return exec.Command(real.Binary(t), args...) }
	real.Run(t, time.Minute, ours("topics", "--bootstrap-server", b.Addr, "--create", "--topic", "old", "--partitions", "2"))
	send := ours("console-producer", "--bootstrap-server", b.Addr, "--topic", "old", "--property", "parse.key=true", "--property", "key.separator=:")
	send.Stdin = strings.NewReader("a:one\nb:two\nc:three\nd:four\n")
	real.Run(t, time.Minute, send)

	file := filepath.Join(t.TempDir(), "consumer.properties")
	consume := func(cmd *exec.Cmd) []string {
		got := strings.Split(strings.TrimSpace(real.Run(t, time.Minute, cmd)), "\n")
		slices.Sort(got)
		return got
	}
	write := func(group string) {
		if err := os.WriteFile(file, []byte("group.id="+group+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--zookeeper", b.Keeper, "--topic", "old", "--from-beginning", "--max-messages", "4", "--consumer.config", file}
	write("ours")
	mine := consume(ours(append([]string{"console-consumer"}, args...)...))
	write("theirs")
	their := consume(real.Java(t, "0.8.2.2", "kafka.tools.ConsoleConsumer", args...))
	if !slices.Equal(mine, their) || len(mine) != 4 {
		t.Errorf("ours wrote %q, that of 0.8.2.2 %q", mine, their)
	}

	send = ours("console-producer", "--bootstrap-server", b.Addr, "--topic", "old")
	send.Stdin = strings.NewReader("five\nsix\n")
	real.Run(t, time.Minute, send)
	totals := real.Run(t, time.Minute, ours("consumer-offset-checker", "--zookeeper", b.Keeper, "--group", "ours", "--totals"))
	if fields := strings.Fields(totals); !strings.HasSuffix(strings.Join(fields, " "), "GROUP TOPIC TOTAL-LAG ours old 2 ours (all) 2") {
		t.Errorf("the lag in total: %s", totals)
	}

	for _, group := range []string{"ours", "theirs", "nope"} {
		check := []string{"--zookeeper", b.Keeper, "--group", group}
		mine := real.Run(t, time.Minute, ours(append([]string{"consumer-offset-checker"}, check...)...))
		their := real.Run(t, time.Minute, real.Java(t, "0.8.2.2", "kafka.tools.ConsumerOffsetChecker", check...))
		if mine != their {
			t.Errorf("group %s: ours writes\n%sthat of 0.8.2.2\n%s", group, mine, their)
		}
	}
}

func TestLinksBehaveAsTheScriptsWhoseNamesTheyHave(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"install-links", dir}, {"install-links", "--sh", dir}, {"install-links", dir}} {
		real.Run(t, time.Minute, exec.Command(real.Binary(t), args...))
	}
	for _, name := range []string{"kafka-topics", "kafka-topics.sh", "kafka-console-consumer.sh", "zookeeper-shell"} {
		out, _, err := real.Try(t, time.Minute, exec.Command(filepath.Join(dir, name), "--version"))
		if err != nil || strings.TrimSpace(out) != "3.9.1" {
			t.Errorf("%s --version: %q, %v", name, out, err)
		}
	}
	_, said, err := real.Try(t, time.Minute, exec.Command(filepath.Join(dir, "kafka-topics.sh"), "--list"))
	if err == nil || !strings.HasPrefix(said, "--bootstrap-server must be specified") {
		t.Errorf("kafka-topics.sh --list: %v, %q", err, said)
	}
}

func TestAnErrorSaysWhatToDoNext(t *testing.T) {
	b, port := real.Barnabas(t, 1), real.FreePort(t)
	for line, next := range map[string]string{
		"topics --list --bootstrap-server 127.0.0.1:" + port:                   "barnabas start",
		"topics --list --bootstrap-server " + b.Keeper:                         "not ZooKeeper's",
		"topics --describe --topic nope --bootstrap-server " + b.Addr:          "barnabas topics --list",
		"topics --create --bootstrap-server " + b.Addr:                         "barnabas topics --help",
		"topics --lst --bootstrap-server " + b.Addr:                            "Did you mean --list?",
		"consumer-groups --describe --group nope --bootstrap-server " + b.Addr: "barnabas consumer-groups --list",
		"why / --bootstrap-server " + b.Addr:                                   "can't be a topic's name",
		"topic --list":                                                         "did you mean topics",
		"install-links":                                                        "name one folder",
	} {
		if _, said, _ := real.Try(t, time.Minute, exec.Command(real.Binary(t), strings.Fields(line)...)); !strings.Contains(said, next) {
			t.Errorf("%s: %q", line, said)
		}
	}
}

func TestATopicIsEmptiedByOneCommand(t *testing.T) {
	zk := real.ZooKeeper(t)
	broker := real.Kafka(t, "3.9.1", 1, zk).Addr
	run := func(input string, args ...string) string {
		cmd := exec.Command(real.Binary(t), append(args, "--bootstrap-server", broker)...)
		cmd.Stdin = strings.NewReader(input)
		return real.Run(t, time.Minute, cmd)
	}
	run("one\ntwo\n", "console-producer", "--topic", "full")
	if out := run("", "topics", "--empty", "--topic", "full"); out != "Emptied topic full.\n" {
		t.Errorf("%q", out)
	}
	if out := run("", "get-offsets", "--topic", "full", "--time", "earliest"); out != "full:0:2\n" {
		t.Errorf("%q", out)
	}
	if out := run("", "topics", "--list", "--output", "json"); out != "{\"topics\":[\"full\"]}\n" {
		t.Errorf("%q", out)
	}
}
