package streams

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
)

// worker is one worker of Kafka Connect in distributed mode.
type worker struct {
	*real.Process
	rest string // host:port
}

func startWorker(t *testing.T, classPath, bootstrap string) *worker {
	t.Helper()
	dir, port := t.TempDir(), real.FreePort(t)
	w := &worker{rest: "127.0.0.1:" + port}
	properties := []string{
		"bootstrap.servers=" + bootstrap, "group.id=workers", "listeners=http://" + w.rest, "rest.advertised.host.name=127.0.0.1", "rest.advertised.port=" + port,
		"config.storage.topic=connect-configs", "offset.storage.topic=connect-offsets", "status.storage.topic=connect-status",
		"config.storage.replication.factor=1", "offset.storage.replication.factor=1", "status.storage.replication.factor=1",
		"offset.storage.partitions=3", "status.storage.partitions=3", "offset.flush.interval.ms=500", "plugin.discovery=only_scan",
		"key.converter=org.apache.kafka.connect.storage.StringConverter", "value.converter=org.apache.kafka.connect.storage.StringConverter",
		"session.timeout.ms=6000", "heartbeat.interval.ms=500", "scheduled.rebalance.max.delay.ms=1000",
	}
	file := filepath.Join(dir, "worker.properties")
	if err := os.WriteFile(file, []byte(strings.Join(properties, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.Process = real.Start(t, "connect-"+port, exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", real.Log4j(t),
		"-cp", classPath, "org.apache.kafka.connect.cli.ConnectDistributed", file))
	return w
}

// ask sends a request to a worker; false: no answer, or a refusal.
func (w *worker) ask(method, path string, body string, answer any) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+w.rest+path, strings.NewReader(body))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode < 300 && (answer == nil || json.NewDecoder(response.Body).Decode(answer) == nil)
}

// runs returns the worker that runs the connector's task, "" for none.
func (w *worker) runs() string {
	var status struct {
		Tasks []struct {
			State    string `json:"state"`
			WorkerID string `json:"worker_id"`
		} `json:"tasks"`
	}
	if !w.ask("GET", "/connectors/lines/status", "", &status) || len(status.Tasks) != 1 || status.Tasks[0].State != "RUNNING" {
		return ""
	}
	return status.Tasks[0].WorkerID
}

// TestConnectGoesOnWhenAWorkerIsKilled has two workers share a connector that
// reads a file; the one that runs it is killed, and every line arrives.
func TestConnectGoesOnWhenAWorkerIsKilled(t *testing.T) {
	classPath := real.Streams(t)
	b := real.Barnabas(t, 1)
	workers := []*worker{startWorker(t, classPath, b.Addr), startWorker(t, classPath, b.Addr)}
	source := filepath.Join(t.TempDir(), "source.txt")
	written := 0
	write := func(n int) {
		t.Helper()
		f, err := os.OpenFile(source, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for range n {
			if _, err := fmt.Fprintf(f, "line-%d\n", written); err != nil {
				t.Fatal(err)
			}
			written++
		}
	}
	write(500)
	config, err := json.Marshal(map[string]any{"name": "lines", "config": map[string]string{
		"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1", "file": source, "topic": "from-file",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range workers {
		w.UntilRunning(patience, "answers", func() bool { return w.ask("GET", "/connectors", "", nil) })
	}
	real.Until(t, patience, "the connector to be made", func() bool { return workers[0].ask("POST", "/connectors", string(config), nil) })

	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.ConsumeTopics("from-file"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMinAge(100*time.Millisecond), kgo.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	seen := map[string]bool{}
	arrived := func(what string) {
		t.Helper()
		real.Until(t, patience, "every line to arrive "+what, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { seen[string(r.Value)] = true })
			for i := range written {
				if !seen[fmt.Sprint("line-", i)] {
					return false
				}
			}
			return true
		})
	}
	arrived("at first")
	var killed, left *worker
	real.Until(t, patience, "a worker to run the task", func() bool {
		at := workers[1].runs()
		for i, w := range workers {
			if w.rest == at {
				killed, left = w, workers[1-i]
			}
		}
		return killed != nil
	})
	killed.Kill()
	write(500)
	real.Until(t, patience, "the other worker to run the task", func() bool { return left.runs() == left.rest })
	write(100)
	arrived("after a worker was killed")
}
