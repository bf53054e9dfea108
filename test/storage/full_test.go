package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/test/real"
)

// One of two log directories runs full: its partitions refuse records and serve
// reads, the other goes on, and when there is room all is as before.
func TestAFullDiskRefusesRecordsUntilThereIsRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	small, large := t.TempDir(), t.TempDir()
	if _, errOut, err := real.Try(t, time.Minute, exec.Command("mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", small)); err != nil {
		t.Skip("no tmpfs can be mounted here: ", errOut)
	}
	t.Cleanup(func() { _ = exec.Command("umount", small).Run() })
	ballast := filepath.Join(small, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 40<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	b := real.Barnabas(t, 1, "log.dirs="+filepath.Join(small, "log")+","+filepath.Join(large, "log"))
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(t.Context(), 2, 1, nil, "topic"); err != nil {
		t.Fatal(err)
	}
	full := int32(-1)
	real.Until(t, 20*time.Second, "each directory has a partition", func() bool {
		dirs, err := admin.DescribeAllLogDirs(context.Background(), nil)
		if err != nil {
			return false
		}
		held := 0
		dirs.Each(func(d kadm.DescribedLogDir) {
			d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
				held++
				if p.Dir == filepath.Join(small, "log") {
					full = p.Partition
				}
			})
		})
		return held == 2 && full >= 0
	})
	value := bytes.Repeat([]byte("v"), 900_000)
	send := func(partition int32) error {
		return client.ProduceSync(context.Background(), &kgo.Record{Topic: "topic", Partition: partition, Value: value}).FirstErr()
	}
	n := int64(0)
	for err = nil; err == nil && n < 200; n++ {
		err = send(full)
	}
	n--
	if !errors.Is(err, kerr.KafkaStorageError) || n < 20 || n > 50 {
		t.Fatalf("the disk of 96 MB with 40 MB on it took %d records of 0.9 MB: %v", n, err)
	}
	if err := send(1 - full); err != nil {
		t.Fatal("the other directory:", err)
	}
	check := func(what string, want int64) {
		t.Helper()
		got := consumeAllOf(t, b.Addr, full)
		if got != want {
			t.Fatalf("%s: %d records, expected %d", what, got, want)
		}
	}
	check("while the disk is full", n)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	real.Until(t, 20*time.Second, "records are taken again", func() bool { return send(full) == nil })
	check("afterwards", n+1)
	if code := b.Stop(); code != 0 {
		t.Fatal("exit code", code)
	}
	for _, dir := range []string{small, large} {
		if _, err := os.Stat(filepath.Join(dir, "log", ".kafka_cleanshutdown")); err != nil {
			t.Fatal("the stop was not clean:", err)
		}
	}
	b.Restart(t)
	check("after a restart", n+1)
}

// consumeAllOf counts the records of a partition.
func consumeAllOf(t *testing.T, addr string, partition int32) int64 {
	t.Helper()
	out := real.Run(t, time.Minute, real.Kcat(t, "-b", addr, "-C", "-t", "topic", "-p", fmt.Sprint(partition), "-o", "beginning", "-e", "-q", "-f", "%o\n"))
	return int64(bytes.Count([]byte(out), []byte("\n")))
}
