package storage

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"barnabas/test/real"
)

// The decoders of dump-log print the records of __consumer_offsets and
// __transaction_state that Apache Kafka wrote as kafka-dump-log prints them.
func TestDumpLogDecodesTheCoordinatorsTopicsAsKafkasToolDoes(t *testing.T) {
	w := newWorld(t)
	w.start("3.9.1", "log.cleaner.enable=false", "inter.broker.protocol.version=3.9")
	w.create("in")
	w.create("out")
	c := w.client(kgo.DefaultProduceTopic("in"))
	for range 3 {
		w.produce(c, &kgo.Record{Value: []byte("v")})
	}
	// Groups: one that kcat joins and leaves, one with a static member that commits
	// in a transaction, commits by hand, a deleted group.
	real.Run(t, time.Minute, real.Kcat(t, "-b", w.addr, "-G", "kcat", "-X", "auto.offset.reset=earliest", "-e", "-q", "in"))
	session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(w.addr), kgo.TransactionalID("txn \"quoted\" é"), kgo.ConsumerGroup("static"), kgo.InstanceID("one"), kgo.ConsumeTopics("in"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DefaultProduceTopic("out"))
	if err != nil {
		t.Fatal(err)
	}
	for _, commit := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := session.Begin(); err != nil {
			t.Fatal(err)
		}
		f := session.PollFetches(t.Context())
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		for range f.NumRecords() {
			session.Produce(context.Background(), &kgo.Record{Value: []byte("out")}, nil)
		}
		if _, err := session.End(context.Background(), commit); err != nil {
			t.Fatal(err)
		}
	}
	session.Close()
	commit := func(version int16, group, metadata string, keep int64) {
		t.Helper()
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group, r.Generation, r.RetentionTimeMillis = group, -1, keep
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Offset, p.Metadata, p.LeaderEpoch = 42, &metadata, 3
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "in", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
		pinned := w.client(kgo.MaxVersions(versions(8, version)))
		if answer, err := r.RequestWith(t.Context(), pinned); err != nil || answer.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatal(err, answer)
		}
	}
	commit(2, "by hand", "with \"quotes\", \\ and ünïcode", 3600_000)
	commit(8, "by hand", "", -1)
	commit(8, "gone", "m", -1)
	if _, err := kadm.NewClient(w.client()).DeleteGroup(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	w.stop()
	for flag, folder := range map[string]string{"--offsets-decoder": "__consumer_offsets-0", "--transaction-log-decoder": "__transaction_state-0"} {
		files, err := filepath.Glob(filepath.Join(w.dir, folder, "*.log"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, more := range [][]string{nil, {"--skip-record-metadata"}} {
			args := append([]string{flag, "--files", strings.Join(files, ",")}, more...)
			want := real.Run(t, time.Minute, real.Java(t, "3.9.1", "kafka.tools.DumpLogSegments", args...))
			got := real.Run(t, time.Minute, exec.Command(real.Binary(t), append([]string{"dump-log"}, args...)...))
			sameLines(t, flag, want, got)
		}
	}
}

// versions lets an API go up to a version.
func versions(key, version int16) *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(key, version)
	return v
}

// sameLines compares what two programs printed, but for blanks at the ends of lines.
func sameLines(t *testing.T, what, want, got string) {
	t.Helper()
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = strings.TrimRight(a[i], " ")
		}
		if i < len(b) {
			y = strings.TrimRight(b[i], " ")
		}
		if x != y {
			t.Fatalf("%s: line %d\nKafka %s\nours  %s\n\n%s", what, i+1, x, y, want)
		}
	}
}
