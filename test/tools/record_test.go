//go:build record

package tools

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"barnabas/test/real"
)

// classes are the programs behind Kafka's scripts.
var classes = map[string]string{
	"topics":                  "org.apache.kafka.tools.TopicCommand",
	"configs":                 "kafka.admin.ConfigCommand",
	"console-producer":        "kafka.tools.ConsoleProducer",
	"console-consumer":        "org.apache.kafka.tools.consumer.ConsoleConsumer",
	"get-offsets":             "org.apache.kafka.tools.GetOffsetShell",
	"delete-records":          "org.apache.kafka.tools.DeleteRecordsCommand",
	"consumer-groups":         "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
	"transactions":            "org.apache.kafka.tools.TransactionsCommand",
	"leader-election":         "org.apache.kafka.tools.LeaderElectionCommand",
	"reassign-partitions":     "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
	"producer-perf-test":      "org.apache.kafka.tools.ProducerPerformance",
	"consumer-perf-test":      "org.apache.kafka.tools.ConsumerPerformance",
	"zookeeper-shell":         "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka",
	"consumer-offset-checker": "kafka.tools.ConsumerOffsetChecker",
}

// oldClasses are those that have another place in 2.8.2.
var oldClasses = map[string]string{
	"topics": "kafka.admin.TopicCommand", "console-consumer": "kafka.tools.ConsoleConsumer", "get-offsets": "kafka.tools.GetOffsetShell",
}

func writeSession(t *testing.T, file string, steps []step) {
	t.Helper()
	var b bytes.Buffer
	for _, s := range steps {
		for _, c := range s.comments {
			fmt.Fprintln(&b, c)
		}
		fmt.Fprintln(&b, "$"+s.mark+" "+s.line)
		for _, l := range s.input {
			fmt.Fprintln(&b, strings.TrimRight("< "+l, " "))
		}
		for _, l := range s.out {
			fmt.Fprintln(&b, strings.TrimRight("| "+l, " "))
		}
		if s.err != "" {
			fmt.Fprintln(&b, "! "+s.err)
		}
		if s.exit != 0 {
			fmt.Fprintln(&b, "?", s.exit)
		}
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// theirs is a script of Kafka with the logging that its scripts have.
func theirs(t *testing.T, release string, args []string) *exec.Cmd {
	class := classes[args[0]]
	if old, ok := oldClasses[args[0]]; ok && release == "2.8.2" {
		class = old
	}
	if args[0] == "consumer-offset-checker" {
		release = "0.8.2.2"
	}
	if args[0] == "zookeeper-shell" {
		args = slices.Insert(args, 1, "-server") // as the script does
	}
	file := filepath.Join(t.TempDir(), "tools-log4j.properties")
	text := "log4j.rootLogger=WARN, E\nlog4j.appender.E=org.apache.log4j.ConsoleAppender\nlog4j.appender.E.Target=System.err\n" +
		"log4j.appender.E.layout=org.apache.log4j.PatternLayout\nlog4j.appender.E.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return exec.Command("java", append([]string{"-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto",
		"-Dlog4j.configuration=file:" + file, "-cp", real.Jars(t, release) + "/*", class}, args[1:]...)...)
}

func TestRecord(t *testing.T) {
	only := os.Getenv("BARNABAS_RECORD")
	for _, file := range sessions(t) {
		if !strings.Contains(file, only) {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			p := kafkaPlace(t, file)
			p.dir = t.TempDir()
			steps := readSession(t, file)
			for i, s := range steps {
				makeFiles(t, p.dir, s.comments)
				p.act(t, s.comments)
				steps[i] = p.run(t, s, theirs(t, releaseOf(file), s.args(p.broker, p.zookeeper, p.dir)))
			}
			writeSession(t, file, steps)
		})
	}
}
