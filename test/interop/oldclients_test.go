package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/internal/zookeeper"
	"barnabas/test/real"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// machineLog returns some MB of a real log of this machine: what its package
// manager wrote down, repeated if it is short.
func machineLog(t *testing.T) []byte {
	t.Helper()
	var text []byte
	for _, pattern := range []string{"/var/log/dpkg.log*", "/var/log/apt/*.log", "/var/log/*.log"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && !bytes.Contains(b, []byte{0}) {
				text = append(text, b...)
			}
		}
	}
	var clean []byte
	for _, line := range bytes.Split(text, []byte{'\n'}) {
		if line = bytes.TrimRight(line, "\r"); len(line) > 0 && bytes.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }) < 0 {
			clean = append(append(clean, line...), '\n')
		}
	}
	if len(clean) == 0 {
		t.Fatal("this machine has no log to send")
	}
	for len(clean) < 3<<20 {
		clean = append(clean, clean...)
	}
	return clean
}

// TestConsoleClientsOf08 is the documents' own picture: the producer of Kafka
// 0.8.2.2 sends a log line by line, its consumer finds everything through
// ZooKeeper and keeps its offsets there.
func TestConsoleClientsOf08(t *testing.T) {
	text := machineLog(t)
	t.Run("embedded", func(t *testing.T) {
		broker := real.Barnabas(t, 1)
		consoleOf08(t, broker.Addr, broker.Keeper, text)
	})
	t.Run("zookeeper-3.8", func(t *testing.T) {
		zk := real.ZooKeeper(t)
		broker := real.Barnabas(t, 1, "zookeeper.connect="+zk)
		consoleOf08(t, broker.Addr, zk, text)
	})
	t.Run("chroot", func(t *testing.T) {
		zk := real.ZooKeeper(t)
		broker := real.Barnabas(t, 1, "zookeeper.connect="+zk+"/kafka/one")
		consoleOf08(t, broker.Addr, zk+"/kafka/one", text)
	})
}

func consoleOf08(t *testing.T, bootstrap, connectString string, text []byte) {
	zk := connect(t, connectString)
	// The topic is made by 0.8's TopicCommand, which writes the znodes itself.
	real.Run(t, time.Minute, real.Java(t, "0.8.2.2", "kafka.admin.TopicCommand", "--zookeeper", connectString,
		"--create", "--topic", "maillog", "--partitions", "1", "--replication-factor", "1"))
	produce := real.Java(t, "0.8.2.2", "kafka.tools.ConsoleProducer", "--broker-list", bootstrap, "--topic", "maillog", "--batch-size", "500")
	produce.Stdin = bytes.NewReader(text)
	real.Run(t, 3*time.Minute, produce)

	consumerConfig := filepath.Join(t.TempDir(), "consumer.properties")
	if err := os.WriteFile(consumerConfig, []byte("group.id=readers\nauto.commit.interval.ms=500\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	consume := real.Java(t, "0.8.2.2", "kafka.tools.ConsoleConsumer", "--zookeeper", connectString, "--topic", "maillog",
		"--from-beginning", "--consumer.config", consumerConfig)
	consume.Stdout = out
	p := real.Start(t, "ConsoleConsumer 0.8.2.2", consume)
	p.UntilRunning(2*time.Minute, "has read everything", func() bool {
		info, err := out.Stat()
		return err == nil && info.Size() >= int64(len(text))
	})
	got, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, text) {
		t.Errorf("read %d bytes that differ from the %d sent", len(got), len(text))
	}
	checkConsumerZnodes(t, zk, bytes.Count(text, []byte{'\n'}))
	p.Stop()
}

// checkConsumerZnodes looks at /consumers as the documents draw it (M6.1-M6.3).
func checkConsumerZnodes(t *testing.T, zk *zookeeper.Client, records int) {
	ids, _, err := zk.Children(t.Context(), "/consumers/readers/ids")
	if err != nil || len(ids) != 1 {
		t.Fatalf("/consumers/readers/ids: %q, %v", ids, err)
	}
	if !regexp.MustCompile(`^readers_.+-\d{13}-[0-9a-f]{8}$`).MatchString(ids[0]) {
		t.Errorf("consumer id %q is not group_host-ms-8 hex digits", ids[0])
	}
	data, stat, err := zk.Get(t.Context(), "/consumers/readers/ids/"+ids[0])
	if err != nil || stat.EphemeralOwner == 0 {
		t.Errorf("consumer node: owner %x, %v", stat.EphemeralOwner, err)
	}
	var node struct {
		Version      int            `json:"version"`
		Subscription map[string]int `json:"subscription"`
		Pattern      string         `json:"pattern"`
		Timestamp    string         `json:"timestamp"`
	}
	if err := json.Unmarshal(data, &node); err != nil {
		t.Errorf("consumer node %s: %v", data, err)
	}
	if _, err := strconv.ParseInt(node.Timestamp, 10, 64); err != nil || node.Version != 1 || fmt.Sprint(node.Subscription) != "map[maillog:1]" || node.Pattern != "white_list" {
		t.Errorf("consumer node %s", data)
	}
	owner, stat, err := zk.Get(t.Context(), "/consumers/readers/owners/maillog/0")
	if err != nil || stat.EphemeralOwner == 0 || string(owner) != ids[0]+"-0" {
		t.Errorf("owner of partition 0: %q, %v", owner, err)
	}
	var offset string
	real.Until(t, 30*time.Second, "the committed offset", func() bool {
		b, _, err := zk.Get(t.Context(), "/consumers/readers/offsets/maillog/0")
		offset = string(b)
		return err == nil && strings.TrimSpace(offset) == strconv.Itoa(records)
	})
}
