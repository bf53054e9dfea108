package broker

import (
	"context"
	"errors"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// setStraysAside looks for logs of older topics among the partitions that a
// LeaderAndIsr request names: topics that were deleted while this broker was
// away, and made again. What belongs to the topic that ZooKeeper has now stays,
// also when its id was lost and made anew: the log is then older than the id,
// but not than the topic's node.
func (l local) setStraysAside(ctx context.Context, r *kmsg.LeaderAndISRRequest) error {
	if l.b.replicas.CheckController(r.ControllerEpoch, r.BrokerEpoch) != wire.None {
		return nil
	}
	for i := range r.TopicStates {
		t := &r.TopicStates[i]
		strangers := l.strangers(t)
		if len(strangers) == 0 {
			continue
		}
		data, stat, err := zkView{l.b.zk}.Get(ctx, znode.TopicPath(t.Topic))
		if errors.Is(err, jute.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		now, err := znode.DecodeTopic(data)
		if err != nil || now.ID != t.TopicID {
			continue // the request is older than the topic
		}
		for _, tp := range strangers {
			folder, err := l.b.replicas.SetAside(tp, t.TopicID, time.UnixMilli(stat.Ctime))
			switch {
			case err != nil:
				l.b.log.Error("cannot move the log of a deleted topic aside", "partition", tp.String(), "err", err)
			case folder != "":
				l.b.log.Warn("the log of a deleted topic of the same name is moved aside", "partition", tp.String(), "folder", folder)
			}
		}
	}
	return nil
}

// strangers are the partitions whose logs here are of another topic id.
func (l local) strangers(t *kmsg.LeaderAndISRRequestTopicState) (list []wire.TopicPartition) {
	id := wire.UUID(t.TopicID)
	if id.IsZero() {
		return nil
	}
	for i := range t.PartitionStates {
		tp := wire.TopicPartition{Topic: t.Topic, Partition: t.PartitionStates[i].Partition}
		if log, ok := l.b.storage.Log(tp); ok && !log.TopicID().IsZero() && log.TopicID() != id {
			list = append(list, tp)
		}
	}
	return list
}
