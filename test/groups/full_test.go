package groups

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/test/raw"
	"barnabas/test/real"
)

// The coordinators of groups and transactions refuse what a full disk does not
// take, and go on when there is room.
func TestCoordinatorsOutliveAFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	small := t.TempDir()
	if _, errOut, err := real.Try(t, time.Minute, exec.Command("mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", small)); err != nil {
		t.Skip("no tmpfs can be mounted here: ", errOut)
	}
	t.Cleanup(func() { _ = exec.Command("umount", small).Run() })
	b := real.Barnabas(t, 1, "log.dirs="+filepath.Join(small, "log"), "offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1")
	topic, id := raw.NewTopic(t, b.Addr, 1), "id"
	raw.Coordinated(t, b.Addr, "group")
	raw.TransactionsCoordinated(t, b.Addr, id)
	c := raw.Dial(t, b.Addr)
	commit := func(offset int64) int16 {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Version, r.Group, r.Generation = 8, "group", -1
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Offset = offset
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
		return raw.Do[*kmsg.OffsetCommitResponse](c, r).Topics[0].Partitions[0].ErrorCode
	}
	initProducer := func() *kmsg.InitProducerIDResponse {
		r := kmsg.NewPtrInitProducerIDRequest()
		r.Version, r.TransactionalID, r.TransactionTimeoutMillis, r.ProducerID, r.ProducerEpoch = 4, &id, 60000, -1, -1
		return raw.Do[*kmsg.InitProducerIDResponse](c, r)
	}
	real.Until(t, patience, "a commit", func() bool { return commit(5) == 0 })
	var before *kmsg.InitProducerIDResponse
	real.Until(t, patience, "a producer id", func() bool { before = initProducer(); return before.ErrorCode == 0 })
	ballast := filepath.Join(small, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 88<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	real.Until(t, patience, "a commit to be refused", func() bool { return commit(5) != 0 })
	real.Until(t, patience, "a producer to be refused", func() bool {
		before.ProducerEpoch++ // if not now, then when there is room
		return initProducer().ErrorCode != 0
	})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	real.Until(t, patience, "commits to be taken again", func() bool {
		f := kmsg.NewPtrOffsetFetchRequest()
		f.Version, f.Group = 7, "group"
		f.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0}}}
		r := raw.Do[*kmsg.OffsetFetchResponse](c, f)
		if r.ErrorCode == 0 && r.Topics[0].Partitions[0].Offset != 5 {
			t.Fatalf("the committed offset is %d", r.Topics[0].Partitions[0].Offset)
		}
		return r.ErrorCode == 0 && commit(6) == 0
	})
	var after *kmsg.InitProducerIDResponse
	real.Until(t, patience, "producers to be taken again", func() bool { after = initProducer(); return after.ErrorCode == 0 })
	if after.ProducerID != before.ProducerID || after.ProducerEpoch != before.ProducerEpoch {
		t.Errorf("producer %d epoch %d, want %d and %d", after.ProducerID, after.ProducerEpoch, before.ProducerID, before.ProducerEpoch)
	}
}
