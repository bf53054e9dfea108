package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"barnabas/internal/replica"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// mostReasons bounds the answer to a question about a topic of many partitions.
const mostReasons = 1000

// asksWhy returns the topic of a DescribeCluster request that asks, by a tagged
// field, what keeps a topic from its wanted state (barnabas why). The answer has
// the same field with the reasons, a JSON list of strings; who does not ask gets
// none.
func asksWhy(tags *kmsg.Tags) (topic string, asked bool) {
	tags.Each(func(tag uint32, value []byte) {
		if tag == wire.KinTag && badTopicName(string(value)) == "" {
			topic, asked = string(value), true
		}
	})
	return topic, asked
}

// answerWhy puts into an answer what this broker knows of a topic: as the active
// controller, as a leader, and of its own log directories.
func (b *Broker) answerWhy(ctx context.Context, topic string, r *kmsg.DescribeClusterResponse) {
	reasons := []string{}
	if b.Controller.IsActive() {
		said, err := b.Services.Why(ctx, topic)
		if err != nil {
			said = []string{"The controller did not answer: " + err.Error() + "."}
		}
		reasons = append(reasons, said...)
	}
	if t := b.Replicas.Topic([]byte(topic)); t != nil {
		for index := range t.Len() {
			if p := t.Partition(int32(index)); p != nil {
				reasons = append(reasons, b.whyReplicas(p)...)
			}
		}
	}
	reasons = append(reasons, b.whyDisks(topic)...)
	if len(reasons) > mostReasons {
		reasons = append(reasons[:mostReasons], fmt.Sprintf("And %d more.", len(reasons)-mostReasons))
	}
	value, err := json.Marshal(reasons)
	if err == nil { // of strings, always
		r.UnknownTags.Set(wire.KinTag, value)
	}
}

// whyReplicas says of a partition that is led here which replicas are not in
// sync, and of one whose log is offline that it is.
func (b *Broker) whyReplicas(p *replica.Partition) (reasons []string) {
	if p.View().Role == replica.Offline {
		return []string{fmt.Sprintf("Partition %d: the replica on broker %d is offline, its log directory has failed.", p.Index, b.ID)}
	}
	w, leads := p.Why()
	if !leads {
		return nil
	}
	for _, l := range w.Lagging {
		reasons = append(reasons, fmt.Sprintf("Partition %d: replica %d is not in sync: %s.", p.Index, l.Replica, whyLagging(&l)))
	}
	if w.Refused {
		reasons = append(reasons, fmt.Sprintf("Partition %d: acks=all is refused: %d in sync %v, and min.insync.replicas asks for %d.", p.Index, len(w.ISR), w.ISR, w.MinISR))
	}
	return reasons
}

func whyLagging(l *replica.Lagging) string {
	switch {
	case !l.Alive:
		return "its broker is not registered"
	case l.Behind < 0:
		return "its broker is registered, but has not fetched since this leader leads; see its log"
	case l.Asked:
		return "it has caught up, and the controller is being asked to count it in"
	case l.HeldBack:
		return fmt.Sprintf("it is %d records behind, held back by leader.replication.throttled.rate", l.Behind)
	default:
		return fmt.Sprintf("it is %d records behind and last fetched %v ago", l.Behind, l.Fetched.Round(time.Millisecond))
	}
}

// whyDisks says which of this broker's log directories with the topic's logs
// take nothing more, and which have failed.
func (b *Broker) whyDisks(topic string) (reasons []string) {
	for _, d := range b.Storage.Dirs() {
		if d.Err != nil {
			reasons = append(reasons, fmt.Sprintf("Broker %d: log directory %s is offline: %v.", b.ID, d.Path, d.Err))
		}
	}
	full := b.Storage.FullDirs()
	if len(full) == 0 {
		return reasons
	}
	var partitions []int32
	for _, l := range b.Storage.Logs() {
		if tp := l.Partition(); tp.Topic == topic && slices.Contains(full, l.Dir()) {
			partitions = append(partitions, tp.Partition)
		}
	}
	if slices.Sort(partitions); len(partitions) > 0 {
		reasons = append(reasons, fmt.Sprintf("Broker %d: the disk of %v is almost full: partitions %v take no records there until there is room.", b.ID, full, partitions))
	}
	return reasons
}
