package storage

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

func TestFolderNames(t *testing.T) {
	for name, want := range map[string]string{
		"t-0": "t-0", "a-b-12": "a-b-12", "__consumer_offsets-49": "__consumer_offsets-49",
		"t": "", "t-": "", "-1": "", "t-x": "", "t-01": "", "t--1": "t--1", "t-99999999999": "", "__cluster_metadata-0": "",
		"t-0.0123456789abcdef0123456789abcdef-delete": "", "t-0.0123456789abcdef0123456789abcdef-future": "",
	} {
		tp, ok := parseFolder(name)
		if ok != (want != "") || ok && tp.String() != want {
			t.Errorf("%q is %v %v", name, tp, ok)
		}
	}
	long := wire.TopicPartition{Topic: strings.Repeat("x", 249), Partition: 123}
	name := deleteFolderName(long)
	if len(name) != 255 || !isDeleteFolder(name) || !strings.Contains(name, "-123.") {
		t.Fatal(len(name), name)
	}
	if name := deleteFolderName(tp0); !isDeleteFolder(name) || !strings.HasPrefix(name, "t-0.") || len(name) != 4+32+7 {
		t.Fatal(name)
	}
	if isDeleteFolder("some-delete") || isDeleteFolder("t-0.xyz-delete") {
		t.Fatal("not ours to delete")
	}
}

func TestCheckpointText(t *testing.T) {
	offsets := map[wire.TopicPartition]int64{{Topic: "b", Partition: 10}: 7, {Topic: "b", Partition: 2}: 0, {Topic: "a", Partition: 0}: 1 << 40}
	text := "0\n3\na 0 1099511627776\nb 2 0\nb 10 7\n"
	if got := string(formatOffsets(offsets)); got != text {
		t.Fatalf("%q", got)
	}
	back, err := parseOffsets([]byte(text))
	if err != nil || fmt.Sprint(back) != fmt.Sprint(offsets) {
		t.Fatal(back, err)
	}
	if got, err := parseOffsets(nil); err != nil || len(got) != 0 {
		t.Fatal("an empty file has no entries:", got, err)
	}
	for _, bad := range []string{"0", "0\n", "0\n1\n", "1\n0\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na 0 x\n", "0\n1\na 0 -1\n", "0\n-1\n", "0\n99999999999999999999\n", "\x00\x00"} {
		if _, err := parseOffsets([]byte(bad)); !errors.Is(err, errCheckpoint) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMetaPropertiesMustFit(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{"version=0\nbroker.id=1\ncluster.id=cluster\n", ""},
		{"#\n#Mon\nbroker.id=1\nversion=0\ncluster.id=cluster\ndirectory.id=x\n", ""},
		{"version=0\n", ""},
		{"version=0\nbroker.id=2\ncluster.id=cluster\n", "broker.id"},
		{"version=0\nbroker.id=1\ncluster.id=other\n", "ZooKeeper"},
		{"version=1\nnode.id=1\ncluster.id=cluster\n", "KRaft"},
		{"version=7\n", "version"},
		{"broker.id=1\n", "version"},
		{"\x00\x01\x02garbage", "no \"=\""},
		{"version=0\nbroker.id=x\n", "broker.id"},
		{"", "version"},
	} {
		mem := vfs.NewMem()
		must(t, mem.MkdirAll("/d", 0o755))
		must(t, vfs.WriteFile(mem, "/d/"+metaFile, []byte(c.content), 0o644))
		m, err := Open(options(t, mem, newClock()))
		if c.want == "" {
			must(t, err)
			if id, err := ReadIdentity(mem, []string{"/d"}); err != nil || id != (Identity{1, "cluster"}) {
				t.Errorf("%q: %v %v", c.content, id, err)
			}
			must(t, m.Close())
			continue
		}
		if !errors.Is(err, ErrMeta) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.content, err)
		}
		if ok, _ := vfs.Exists(mem, "/d/"+cleanFile); ok {
			t.Error("a clean mark after a failed start")
		}
	}
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("/d", 0o755))
	must(t, vfs.WriteFile(mem, "/d/"+metaFile, []byte("version=0\nbroker.id=1\ncluster.id=old\n"), 0o644))
	o := options(t, mem, newClock())
	o.ClusterCreated = true
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "ZooKeeper is the store that was reset") {
		t.Error(err)
	}
}

func TestIdentitiesMustAgree(t *testing.T) {
	mem := vfs.NewMem()
	for dir, text := range map[string]string{"/a": "version=0\nbroker.id=1\n", "/b": "version=0\nbroker.id=2\n", "/c": "version=0\nbroker.id=1\ncluster.id=x\n"} {
		must(t, mem.MkdirAll(dir, 0o755))
		must(t, vfs.WriteFile(mem, dir+"/"+metaFile, []byte(text), 0o644))
	}
	if id, err := ReadIdentity(mem, []string{"/missing"}); err != nil || id.BrokerID != -1 {
		t.Error(id, err)
	}
	if id, err := ReadIdentity(mem, []string{"/a", "/c"}); err != nil || id != (Identity{1, "x"}) {
		t.Error(id, err)
	}
	if _, err := ReadIdentity(mem, []string{"/a", "/b"}); !errors.Is(err, ErrMeta) {
		t.Error(err)
	}
}

func TestEveryErrorHasACode(t *testing.T) {
	for err, want := range map[error]wire.Code{
		nil: wire.None, ErrClosed: wire.NotLeaderOrFollower, ErrOffline: wire.KafkaStorageError, ErrOffsetOutOfRange: wire.OffsetOutOfRange,
		ErrUnexpectedOffset: wire.UnknownServerError, ErrBatchTooLarge: wire.RecordListTooLarge, ErrOutOfOrderSequence: wire.OutOfOrderSequenceNumber,
		ErrProducerFenced: wire.InvalidProducerEpoch, ErrInvalidTxnState: wire.InvalidTxnState, ErrCoordinatorFenced: wire.TransactionCoordinatorFenced,
		ErrInvalidBatch: wire.CorruptMessage, ErrInconsistentTopicID: wire.InconsistentTopicID, ErrPolicy: wire.PolicyViolation,
		ErrNotFound: wire.NotLeaderOrFollower, ErrNoDir: wire.KafkaStorageError, wire.InvalidRecord: wire.InvalidRecord,
		&CorruptionError{Cause: errTorn}: wire.CorruptMessage, errors.New("disk"): wire.KafkaStorageError,
	} {
		if got := Code(err); got != want {
			t.Errorf("%v is %v, expected %v", err, got, want)
		}
		if err != nil {
			if got := Code(fmt.Errorf("wrapped: %w", err)); got != want {
				t.Errorf("wrapped %v is %v, expected %v", err, got, want)
			}
		}
	}
}

// What was written without a sync is written again when it is to be durable.
func TestACheckpointIsDurableWhenAsked(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("/d", 0o755))
	must(t, mem.SyncAll("/d"))
	c := offsetCheckpoint{fs: mem, path: "/d/c"}
	offsets := map[wire.TopicPartition]int64{tp0: 7}
	must(t, c.write(offsets, false))
	must(t, c.write(offsets, true))
	lost := offsetCheckpoint{fs: mem.CrashClone(vfs.LoseUnsynced, nil), path: "/d/c"}
	if got, err := lost.read(); err != nil || got[tp0] != 7 {
		t.Error(got, err)
	}
}

// After lost power the file may be the one before the last that was not synced.
func TestACheckpointMayNameALogUntilItIsOnTheDisk(t *testing.T) {
	mem, none := vfs.NewMem(), map[wire.TopicPartition]int64{}
	must(t, mem.MkdirAll("/d", 0o755))
	c := offsetCheckpoint{fs: mem, path: "/d/c"}
	for i, step := range []struct {
		offsets map[wire.TopicPartition]int64
		durable bool
		want    bool
	}{{none, true, false}, {map[wire.TopicPartition]int64{tp0: 7}, true, true}, {none, false, true}, {none, true, false}} {
		must(t, c.write(step.offsets, step.durable))
		if got := c.mayName(tp0); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}
