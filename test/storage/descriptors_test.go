package storage

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/test/real"
)

// A broker that may have 300 files open, with logs of many more files, meets
// clients that open 1,000 connections to it and 1,000 to its ZooKeeper and keep
// them: the others' work goes on, and when the crowd has gone anybody is served.
func TestConnectionsWithoutEndLeaveTheLogsTheirDescriptors(t *testing.T) {
	const limit, crowd, partitions = 300, 1000, 80
	script := filepath.Join(t.TempDir(), "barnabas")
	if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nulimit -n %d && exec %s \"$@\"\n", limit, real.Binary(t)), 0o755); err != nil {
		t.Fatal(err)
	}
	b := real.BarnabasFrom(t, script, 1, "offsets.topic.num.partitions=5")
	said := regexp.MustCompile(`few connections can be served.*raise its limit \(ulimit -n, LimitNOFILE\)" connections=(\d+) .*limit=` + strconv.Itoa(limit)).FindStringSubmatch(b.Output())
	if said == nil {
		t.Fatal("nobody is told that the limit is low")
	}
	places, _ := strconv.Atoi(said[1])
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumeTopics("before"), kgo.ConsumerGroup("g"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ConnIdleTimeout(15*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	create := func(topic string) {
		t.Helper()
		segment, index := "2000", "100"
		if _, err := admin.CreateTopic(t.Context(), partitions, 1, map[string]*string{"segment.bytes": &segment, "index.interval.bytes": &index}, topic); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	sent, got := 0, 0
	work := func(topics ...string) {
		t.Helper()
		var records []*kgo.Record
		for _, topic := range topics {
			for p := range int32(partitions) {
				for range 3 {
					records = append(records, &kgo.Record{Topic: topic, Partition: p, Value: bytes.Repeat([]byte("v"), 700)})
				}
				if topic == "before" {
					sent += 3
				}
			}
		}
		if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		for got < sent {
			fetches := client.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				t.Fatalf("%d of %d records: %v", got, sent, err)
			}
			got += fetches.NumRecords()
		}
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			t.Fatal(err)
		}
	}
	create("before")
	work("before")
	var conns []net.Conn
	for range crowd {
		for _, addr := range []string{b.Addr, b.Keeper} {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			conns = append(conns, nc)
		}
	}
	b.UntilRunning(time.Minute, "all places are taken", func() bool { return descriptors(t, b.PID(), "socket:") >= places })
	for i := range 5 {
		topic := fmt.Sprint("meanwhile-", i)
		create(topic)
		work("before", topic)
	}
	open := descriptors(t, b.PID(), "")
	t.Logf("%d descriptors, %d of them sockets; %d places", open, descriptors(t, b.PID(), "socket:"), places)
	for _, nc := range conns {
		nc.Close()
	}
	latecomer, err := kgo.NewClient(kgo.SeedBrokers(b.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer latecomer.Close()
	dirs, err := kadm.NewClient(latecomer).DescribeAllLogDirs(ctx, nil)
	if err == nil {
		err = dirs[1].Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	work("before")
	if code := b.Stop(); code != 0 || strings.Contains(b.Output(), "offline") {
		t.Fatalf("exit code %d:\n%s", code, b.Output())
	}
}

// descriptors counts what a process has open that begins with kind.
func descriptors(t *testing.T, pid int, kind string) int {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil && strings.HasPrefix(to, kind) {
			n++
		}
	}
	return n
}
