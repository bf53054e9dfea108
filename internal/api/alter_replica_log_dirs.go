package api

import (
	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 34, Name: "AlterReplicaLogDirs", Min: 0, Max: 2, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{
		"replicas move from one log dir of a broker to another (KIP-113)",
		"throttled after the answer (KIP-219)",
		"flexible",
	},
	Handle: handleAlterReplicaLogDirs,
})

// handleAlterReplicaLogDirs begins the moves and answers at once; DescribeLogDirs
// tells how far they are (ReplicaManager.alterReplicaLogDirs). The answer goes by
// topic, in the order in which the request first names each.
func handleAlterReplicaLogDirs(b *Broker, q *Request) {
	in := new(kmsg.AlterReplicaLogDirsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrAlterReplicaLogDirsResponse()
	at := map[string]int{}
	for _, d := range in.Dirs {
		for _, t := range d.Topics {
			i, ok := at[t.Topic]
			if !ok {
				i = len(r.Topics)
				at[t.Topic] = i
				r.Topics = append(r.Topics, kmsg.AlterReplicaLogDirsResponseTopic{Topic: t.Topic})
			}
			for _, p := range t.Partitions {
				code := b.moveReplica(wire.TopicPartition{Topic: t.Topic, Partition: p}, d.Dir)
				r.Topics[i].Partitions = append(r.Topics[i].Partitions, kmsg.AlterReplicaLogDirsResponseTopicPartition{Partition: p, ErrorCode: int16(code)})
			}
		}
	}
	q.Reply(r)
}

// moveReplica moves one replica. Of one that this broker does not have it notes
// where it is to be made: so kafka-reassign-partitions says it beforehand.
func (b *Broker) moveReplica(tp wire.TopicPartition, dir string) wire.Code {
	if len(tp.String()) > storage.MaxMovable {
		return wire.InvalidTopicException
	}
	p := b.Replicas.Partition(tp)
	if p == nil || p.Log() == nil {
		if err := b.Storage.Prefer(tp, dir); err != nil {
			return storage.Code(err)
		}
		if p != nil {
			return wire.KafkaStorageError
		}
		if code := b.missing([]byte(tp.Topic), tp.Partition); code != wire.NotLeaderOrFollower {
			return code
		}
		return wire.ReplicaNotAvailable // as the API has it of old
	}
	if p.View().Role == replica.Offline {
		return wire.KafkaStorageError
	}
	if err := b.Storage.Move(tp, dir); err != nil {
		b.Log.Warn("a replica is not moved to another log directory", "partition", tp.String(), "dir", dir, "err", err)
		return storage.Code(err)
	}
	return wire.None
}
