package api

import (
	"cmp"
	"slices"

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
	byDir := map[string][]described{}
	for _, l := range b.Storage.Logs() {
		if in.Topics == nil || wanted[l.Partition()] {
			// The lag is how far it is behind the high watermark.
			byDir[l.Dir()] = append(byDir[l.Dir()], described{l.Partition(), l.Size(), max(0, l.HighWatermark()-l.EndOffset()), false})
		}
	}
	for _, f := range b.Storage.Futures() {
		if in.Topics == nil || wanted[f.Partition] {
			byDir[f.Dir] = append(byDir[f.Dir], described{f.Partition, f.Size, f.Lag, true})
		}
	}
	r := kmsg.NewPtrDescribeLogDirsResponse()
	for _, info := range b.Storage.Dirs() {
		dir := kmsg.NewDescribeLogDirsResponseDir()
		dir.Dir = info.Path
		if info.Err != nil {
			dir.ErrorCode = int16(wire.KafkaStorageError)
		} else {
			dir.Topics = describedTopics(byDir[info.Path])
			if total, usable, ok := diskSpace(info.Path); ok {
				dir.TotalBytes, dir.UsableBytes = total, usable
			}
		}
		r.Dirs = append(r.Dirs, dir)
	}
	q.Reply(r)
}

// described is a log in a log dir, or the copy of one that is being moved there.
type described struct {
	wire.TopicPartition
	size, lag int64
	future    bool
}

func describedTopics(logs []described) []kmsg.DescribeLogDirsResponseDirTopic {
	slices.SortFunc(logs, func(x, y described) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
	})
	var topics []kmsg.DescribeLogDirsResponseDirTopic
	for _, l := range logs {
		if n := len(topics); n == 0 || topics[n-1].Topic != l.Topic {
			topics = append(topics, kmsg.DescribeLogDirsResponseDirTopic{Topic: l.Topic})
		}
		t := &topics[len(topics)-1]
		t.Partitions = append(t.Partitions, kmsg.DescribeLogDirsResponseDirTopicPartition{Partition: l.Partition, Size: l.size, OffsetLag: l.lag, IsFuture: l.future})
	}
	return topics
}
