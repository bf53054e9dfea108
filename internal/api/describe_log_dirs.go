package api

import (
	"cmp"
	"slices"

	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 35, Name: "DescribeLogDirs", Min: 0, Max: 4, MaxFrame: 16 << 20, Expansion: 24,
	Versions: []string{
		"the log dirs, and the size of each partition (KIP-113)",
		"throttled after the answer (KIP-219)",
		"flexible",
		"a code for the whole answer",
		"total and usable bytes (KIP-827)",
	},
	Handle: handleDescribeLogDirs,
})

func handleDescribeLogDirs(b *Broker, q *Request) {
	in := new(kmsg.DescribeLogDirsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	wanted := map[wire.TopicPartition]bool{}
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			wanted[wire.TopicPartition{Topic: t.Topic, Partition: p}] = true
		}
	}
	byDir := map[string][]*storage.Log{}
	for _, l := range b.Storage.Logs() {
		if in.Topics == nil || wanted[l.Partition()] {
			byDir[l.Dir()] = append(byDir[l.Dir()], l)
		}
	}
	r := kmsg.NewPtrDescribeLogDirsResponse()
	for _, info := range b.Storage.Dirs() {
		dir := kmsg.NewDescribeLogDirsResponseDir()
		dir.Dir = info.Path
		if info.Err != nil {
			dir.ErrorCode = int16(wire.KafkaStorageError)
		} else {
			dir.Topics = b.describedLogs(byDir[info.Path])
			if total, usable, ok := diskSpace(info.Path); ok {
				dir.TotalBytes, dir.UsableBytes = total, usable
			}
		}
		r.Dirs = append(r.Dirs, dir)
	}
	q.Reply(r)
}

func (b *Broker) describedLogs(logs []*storage.Log) []kmsg.DescribeLogDirsResponseDirTopic {
	slices.SortFunc(logs, func(x, y *storage.Log) int {
		a, b := x.Partition(), y.Partition()
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	var topics []kmsg.DescribeLogDirsResponseDirTopic
	for _, l := range logs {
		tp := l.Partition()
		if n := len(topics); n == 0 || topics[n-1].Topic != tp.Topic {
			topics = append(topics, kmsg.DescribeLogDirsResponseDirTopic{Topic: tp.Topic})
		}
		t := &topics[len(topics)-1]
		// The lag of a log that is not a future one: how far it is behind the
		// high watermark.
		t.Partitions = append(t.Partitions, kmsg.DescribeLogDirsResponseDirTopicPartition{
			Partition: tp.Partition, Size: l.Size(), OffsetLag: max(0, l.HighWatermark()-l.EndOffset()),
		})
	}
	return topics
}
