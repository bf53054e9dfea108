package tools

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

// commands runs commands of ours against one broker.
type commands struct {
	t                 *testing.T
	broker, zookeeper string
	dir               string
}

func newCommands(t *testing.T) commands {
	b := real.Barnabas(t, 1)
	return commands{t, b.Addr, b.Keeper, t.TempDir()}
}

// args splits a line as those of sessions are split.
func (c commands) args(line string) []string {
	return step{line: line}.args(c.broker, c.zookeeper, c.dir)
}

func (c commands) file(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func (c commands) run(line, input string) string {
	c.t.Helper()
	cmd := exec.Command(real.Binary(c.t), c.args(line)...)
	cmd.Stdin = strings.NewReader(input)
	return real.Run(c.t, time.Minute, cmd)
}

// Every command that writes something writes it in JSON too: one document, or
// one in each line for those that go on; errors too.
func TestEveryCommandWritesJSON(t *testing.T) {
	b := real.Barnabas(t, 1)
	c := commands{t, b.Addr, b.Keeper, t.TempDir()}
	segment := filepath.Join(b.Dir, "a-0", "00000000000000000000")
	files := strings.NewReplacer("@L", segment+".log", "@I", segment+".index", "@F", b.Dir)
	c.file("one.json", `{"version":1,"partitions":[{"topic":"a","partition":0,"offset":1}]}`)
	c.file("topics.json", `{"version":1,"topics":[{"topic":"a"}]}`)
	c.file("move.json", `{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1]}]}`)
	for _, line := range []string{
		"topics --bootstrap-server @B --create --topic a --partitions 2",
		"topics --zookeeper @Z --create --topic z --partitions 1 --replication-factor 1",
		"topics --bootstrap-server @B --create --topic a",
		"topics --bootstrap-server @B --create",
		"topics --bootstrap-server @B --list", "topics --zookeeper @Z --list",
		"topics --bootstrap-server @B --describe", "topics --zookeeper @Z --describe",
		"topics --bootstrap-server @B --describe --topic nope",
		"topics --bootstrap-server @B --alter --topic a --partitions 3", "topics --zookeeper @Z --alter --topic a --partitions 4",
		"producer-perf-test --topic a --num-records 10 --record-size 10 --throughput -1 --producer-props bootstrap.servers=@B",
		"console-consumer --bootstrap-server @B --topic a --from-beginning --max-messages 10 --group g",
		"console-consumer --zookeeper @Z --topic a --from-beginning --max-messages 10 --group old",
		"consumer-perf-test --bootstrap-server @B --topic a --messages 10",
		"configs --bootstrap-server @B --alter --topic a --add-config retention.ms=1000", "configs --zookeeper @Z --alter --entity-type topics --entity-name a --add-config retention.ms=2000",
		"configs --bootstrap-server @B --describe --topic a", "configs --zookeeper @Z --describe --entity-type topics --entity-name a",
		"configs --bootstrap-server @B --describe --broker 1 --all", "configs --bootstrap-server @B --describe --entity-type users",
		"configs --bootstrap-server @B --alter --user u --add-config producer_byte_rate=10",
		"configs --bootstrap-server @B --describe --topic nope",
		"consumer-groups --bootstrap-server @B --list", "consumer-groups --bootstrap-server @B --describe --group g",
		"consumer-groups --bootstrap-server @B --describe --group nope",
		"consumer-groups --bootstrap-server @B --reset-offsets --group g --topic a --to-earliest --execute",
		"consumer-groups --bootstrap-server @B --delete-offsets --group g --topic a:0",
		"consumer-groups --bootstrap-server @B --delete --group g", "consumer-groups --bootstrap-server @B --delete --group nope",
		"consumer-offset-checker --zookeeper @Z --group nope",
		"get-offsets --bootstrap-server @B --topic a", "get-offsets --bootstrap-server @B --topic nope",
		"delete-records --bootstrap-server @B --offset-json-file @D/one.json",
		"leader-election --bootstrap-server @B --election-type preferred --topic a --partition 0",
		"reassign-partitions --bootstrap-server @B --generate --topics-to-move-json-file @D/topics.json --broker-list 1",
		"reassign-partitions --bootstrap-server @B --execute --reassignment-json-file @D/move.json --wait",
		"reassign-partitions --bootstrap-server @B --verify --reassignment-json-file @D/move.json",
		"reassign-partitions --bootstrap-server @B --cancel --reassignment-json-file @D/move.json",
		"reassign-partitions --bootstrap-server @B --execute --reassignment-json-file /nonexistent",
		"reassign-partitions --bootstrap-server @B --list",
		"zookeeper-shell @Z ls /brokers", "zookeeper-shell @Z get /controller", "zookeeper-shell @Z stat /controller", "zookeeper-shell @Z getAcl /controller",
		"zookeeper-shell @Z whoami", "zookeeper-shell @Z getEphemerals", "zookeeper-shell @Z getAllChildrenNumber /", "zookeeper-shell @Z listquota /a", "zookeeper-shell @Z config",
		"zookeeper-shell @Z get /nope", "zookeeper-shell 127.0.0.1:1 get /nope",
		"why --bootstrap-server @B --topic a", "why --bootstrap-server @B --topic nope/",
		"transactions --bootstrap-server @B list", "transactions --bootstrap-server @B describe --transactional-id nope",
		"transactions --bootstrap-server @B describe-producers --topic a --partition 0", "transactions --bootstrap-server @B describe-producers --topic nope --partition 0",
		"transactions --bootstrap-server @B find-hanging --broker-id 1", "transactions --bootstrap-server @B abort --topic a --partition 0 --start-offset 5",
		"dump-log --print-data-log --files @L", "dump-log --files @I", "dump-log --files /nope/00000000000000000000.log",
		"check-log --log-dirs @F", "check-log --log-dirs /nope",
		"topics --bootstrap-server @B --empty --topic a", "topics --bootstrap-server @B --delete --topic a", "topics --zookeeper @Z --delete --topic z",
	} {
		line = files.Replace(line)
		args := c.args(line)
		json1 := append(args, "--output", "json")
		if args[0] == "zookeeper-shell" {
			json1 = append([]string{args[0], "--output", "json"}, args[1:]...)
		}
		out, said, _ := real.Try(t, time.Minute, exec.Command(real.Binary(t), json1...)) // errors are JSON too
		documents := []string{out}
		if args[0] == "console-consumer" {
			documents = strings.Split(strings.TrimSpace(out), "\n")
			if len(documents) != 10 {
				t.Errorf("%s wrote %d lines", line, len(documents))
			}
		}
		if args[0] == "dump-log" && strings.Contains(out, "\n") { // a line of what it finds
			documents = strings.Split(strings.TrimSpace(out), "\n")
		}
		for _, d := range documents {
			var into map[string]any
			if err := json.Unmarshal([]byte(d), &into); err != nil {
				t.Errorf("%s: %v\n%s%s", line, err, out, said)
			}
			if wrong := strings.Contains(line, "nope") && !strings.Contains(line, "consumer-groups") || strings.HasSuffix(line, "nonexistent") || strings.HasSuffix(line, "--create"); wrong && into["error"] == nil {
				t.Errorf("%s: no error in %s", line, out)
			}
		}
	}
}

// Lag by topic and in total, and what resets, deletes and empties, is one
// command each.
func TestOneCommandTellsTheLagOfAGroup(t *testing.T) {
	c := newCommands(t)
	c.run("topics --bootstrap-server @B --create --topic a --partitions 1", "")
	c.run("topics --bootstrap-server @B --create --topic b --partitions 1", "")
	c.run("console-producer --bootstrap-server @B --topic a", "1\n2\n3\n")
	c.run("console-producer --bootstrap-server @B --topic b", "1\n2\n3\n4\n5\n")
	c.run("consumer-groups --bootstrap-server @B --reset-offsets --group g --topic a --topic b --to-earliest --execute", "")
	c.run("consumer-groups --bootstrap-server @B --reset-offsets --group g --topic a --to-offset 2 --execute", "")
	out := c.run("consumer-groups --bootstrap-server @B --describe --group g --totals", "")
	for _, want := range []string{"g a 1", "g b 5", "g (all) 6"} {
		found := false
		for line := range strings.SplitSeq(out, "\n") {
			found = found || strings.Join(strings.Fields(line), " ") == want
		}
		if !found {
			t.Errorf("no line %q in\n%s", want, out)
		}
	}
	var doc struct {
		Groups []struct {
			LagByTopic map[string]int
			TotalLag   int
		}
	}
	if err := json.Unmarshal([]byte(c.run("consumer-groups --bootstrap-server @B --describe --all-groups --output json", "")), &doc); err != nil ||
		len(doc.Groups) != 1 || doc.Groups[0].TotalLag != 6 || doc.Groups[0].LagByTopic["b"] != 5 {
		t.Errorf("%+v, %v", doc, err)
	}
}

func TestTopicsAndGroupsOfTheClusterAreCompleted(t *testing.T) {
	c := newCommands(t)
	c.run("topics --bootstrap-server @B --create --topic orders --partitions 1", "")
	c.run("topics --bootstrap-server @B --create --topic other --partitions 1", "")
	c.run("consumer-groups --bootstrap-server @B --reset-offsets --group bakery --topic orders --to-earliest --execute", "")
	dir := t.TempDir()
	real.Run(t, time.Minute, exec.Command(real.Binary(t), "install-links", dir))
	for line, want := range map[string]string{
		"topics --bootstrap-server @B --describe --topic o":                                "orders other",
		"topics --bootstrap-server @B --describe --topic or":                               "orders",
		"consumer-groups --bootstrap-server @B --group ":                                   "bakery",
		"console-consumer --bootstrap-server @B --formatter js":                            "json",
		"topics --bootstrap-server 127.0.0.1:1 --topic ":                                   "",
		"why --bootstrap-server @B or":                                                     "orders",
		"zookeeper-shell @Z getA":                                                          "getAcl getAllChildrenNumber",
		"configs --bootstrap-server @B --entity-type client":                               "clients client-metrics",
		"console-consumer --bootstrap-server @B --isolation-lev":                           "--isolation-level",
		"transactions --bootstrap-server @B de":                                            "describe describe-producers",
		"transactions --bootstrap-server @B describe --transa":                             "--transactional-id",
		"topics --bootstrap-server @B --config retention.":                                 "retention.bytes= retention.ms=",
		"configs --bootstrap-server @B --topic orders --alter --delete-config retention.":  "retention.bytes retention.ms",
		"configs --bootstrap-server @B --broker 1 --alter --add-config log.retention.byte": "log.retention.bytes=",
	} {
		args := c.args(line)
		if strings.HasSuffix(line, " ") {
			args = append(args, "")
		}
		called := []*exec.Cmd{exec.Command(real.Binary(t), append([]string{"__complete"}, args...)...)}
		for _, script := range []string{"kafka-" + args[0], args[0]} {
			if _, err := os.Stat(filepath.Join(dir, script)); err == nil {
				called = append(called, exec.Command(filepath.Join(dir, script), append([]string{"__complete"}, args[1:]...)...))
			}
		}
		for _, cmd := range called {
			var words []string
			for l := range strings.SplitSeq(strings.TrimSpace(real.Run(t, time.Minute, cmd)), "\n") {
				if word, _, _ := strings.Cut(l, "\t"); !strings.HasPrefix(word, ":") {
					words = append(words, word)
				}
			}
			if got := strings.Join(words, " "); got != want {
				t.Errorf("%s: %q, want %q", line, got, want)
			}
		}
	}
}
