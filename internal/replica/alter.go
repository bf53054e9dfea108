package replica

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// alterPause is before the next try when the controller gave no answer
	// (Kafka's DefaultAlterPartitionManager).
	alterPause = 50 * time.Millisecond
	// lookAgainAfter is before a change that was refused is proposed again.
	lookAgainAfter = 250 * time.Millisecond
)

// isrChanges carries out the changes of ISRs that this broker's leaders ask
// for: through the controller, or below inter-broker protocol version 2.7-IV2
// by writing the states themselves. One goroutine, one request in flight.
type isrChanges struct {
	m     *Manager
	apply func(ctx context.Context, list []*isrChange) (left []*isrChange, err error)
	wake  chan struct{} // of capacity one
	mu    struct {
		sync.Mutex
		queue []*isrChange
		again map[*Partition]struct{}
		timer *time.Timer
	}
	failing bool // of the goroutine
}

func newISRChanges(m *Manager) *isrChanges {
	q := &isrChanges{m: m, wake: make(chan struct{}, 1)}
	q.mu.again = map[*Partition]struct{}{}
	q.apply = q.ask
	if m.cluster.IBP < config.V2_7IV2 {
		d := &directISR{m: m}
		q.apply = d.write
		m.work.Go(func() { d.run(m.ctx) })
	}
	return q
}

// submit queues a change; nil is none.
func (m *Manager) submit(c *isrChange) {
	if c == nil {
		return
	}
	q := m.isr
	q.mu.Lock()
	q.mu.queue = append(q.mu.queue, c)
	q.mu.Unlock()
	q.poke()
}

func (q *isrChanges) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// lookAgain has a partition's ISR looked at before long.
func (q *isrChanges) lookAgain(p *Partition) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.again[p] = struct{}{}
	if q.mu.timer == nil {
		q.mu.timer = time.AfterFunc(lookAgainAfter, q.poke)
	}
}

func (q *isrChanges) take() (list []*isrChange, again []*Partition) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, q.mu.queue = q.mu.queue, nil
	if q.mu.timer != nil && len(q.mu.again) > 0 {
		for p := range q.mu.again {
			again = append(again, p)
		}
		clear(q.mu.again)
		q.mu.timer.Stop()
		q.mu.timer = nil
	}
	return list, again
}

func (q *isrChanges) run(ctx context.Context) {
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.mu.timer != nil {
			q.mu.timer.Stop()
		}
	}()
	var list []*isrChange
	for {
		if len(list) == 0 {
			select {
			case <-q.wake:
			case <-ctx.Done():
				return
			}
		}
		more, again := q.take()
		list = slices.DeleteFunc(append(list, more...), func(c *isrChange) bool { return !c.current() })
		for _, p := range again {
			p.expandISR()
		}
		if len(list) == 0 {
			continue
		}
		left, err := q.apply(ctx, list)
		if ctx.Err() != nil {
			return
		}
		q.tell(err)
		if list = left; err != nil || len(left) > 0 {
			timer := time.NewTimer(alterPause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
	}
}

func (q *isrChanges) tell(err error) {
	switch {
	case err != nil && !q.failing:
		q.m.o.Logger.Warn("changes of the ISR can't be made; trying until they can", "err", err)
	case err == nil && q.failing:
		q.m.o.Logger.Info("changes of the ISR can be made again")
	}
	q.failing = err != nil
}

// mostAlter is the newest AlterPartition version this broker writes.
const mostAlter = 3

// ask asks the controller (AlterPartition, KIP-497).
func (q *isrChanges) ask(ctx context.Context, list []*isrChange) ([]*isrChange, error) {
	most := int16(mostAlter)
	for _, c := range list {
		if c.topicID.IsZero() || q.m.cluster.IBP < config.V2_8IV0 {
			most = 1 // later versions name topics by id
		}
	}
	answer, err := q.m.cluster.AlterPartition(ctx, most, func(version int16) *kmsg.AlterPartitionRequest {
		return alterRequest(q.m.o.BrokerID, q.m.brokerEpoch(), version, list)
	})
	if err != nil {
		return list, err
	}
	if code := wire.Code(answer.ErrorCode); code != wire.None {
		return list, fmt.Errorf("the controller refuses: %w", code)
	}
	type key struct {
		topic string
		id    wire.UUID
		index int32
	}
	found := map[key]*kmsg.AlterPartitionResponseTopicPartition{}
	for i := range answer.Topics {
		t := &answer.Topics[i]
		for j := range t.Partitions {
			k := key{topic: t.Topic, index: t.Partitions[j].Partition}
			if answer.Version >= 2 {
				k = key{id: t.TopidID, index: k.index}
			}
			found[k] = &t.Partitions[j]
		}
	}
	var left []*isrChange
	for _, c := range list {
		k := key{topic: c.p.Topic, index: c.p.Index}
		if answer.Version >= 2 {
			k = key{id: c.topicID, index: c.p.Index}
		}
		if r := found[k]; r == nil || !q.answered(c, r) {
			left = append(left, c)
		}
	}
	return left, nil
}

// answered handles the controller's word on one change; false: ask again
// (Partition.handleAlterPartitionError).
func (q *isrChanges) answered(c *isrChange, r *kmsg.AlterPartitionResponseTopicPartition) bool {
	code := wire.Code(r.ErrorCode)
	switch code {
	case wire.None:
		c.done(r.LeaderEpoch, r.PartitionEpoch, r.ISR)
		return true
	case wire.UnknownTopicOrPartition, wire.UnknownTopicID, wire.FencedLeaderEpoch, wire.InvalidUpdateVersion, wire.NewLeaderElected:
		// What holds now is not known, and the larger ISR stays in force until
		// the controller tells.
		q.m.o.Logger.Info("the controller knows better about an ISR", "partition", c.p.TopicPartition.String(), "code", code, "isr", c.isr)
		return true
	case wire.OperationNotAttempted, wire.IneligibleReplica, wire.InvalidRequest:
		q.m.o.Logger.Debug("the controller refuses an ISR", "partition", c.p.TopicPartition.String(), "code", code, "isr", c.isr)
		c.refused()
		return true
	}
	return false
}

func alterRequest(broker int32, epoch int64, version int16, list []*isrChange) *kmsg.AlterPartitionRequest {
	r := kmsg.NewPtrAlterPartitionRequest()
	r.SetVersion(version)
	r.BrokerID, r.BrokerEpoch = broker, epoch
	topics := map[string]int{}
	for _, c := range list {
		i, ok := topics[c.p.Topic]
		if !ok {
			i = len(r.Topics)
			topics[c.p.Topic] = i
			t := kmsg.NewAlterPartitionRequestTopic()
			t.Topic, t.TopicID = c.p.Topic, c.topicID
			r.Topics = append(r.Topics, t)
		}
		p := kmsg.NewAlterPartitionRequestTopicPartition()
		p.Partition, p.LeaderEpoch, p.PartitionEpoch = c.p.Index, c.leaderEpoch, c.version
		if version < 3 {
			p.NewISR = c.isr
		}
		for _, id := range c.isr {
			if version >= 3 { // leaders with ZooKeeper know no epochs of others
				p.NewEpochISR = append(p.NewEpochISR, kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: id, BrokerEpoch: -1})
			}
		}
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, p)
	}
	return r
}
