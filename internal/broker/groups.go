package broker

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/config"
	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/group"
	"barnabas/internal/record"
	"barnabas/internal/replica"
	"barnabas/internal/wire"
)

// newGroups makes the coordinator of consumer groups. It leads partitions when
// roleChanged says so.
func (b *Broker) newGroups(c *config.Broker) *api.Groups {
	conf := group.Config{
		MinSession:    c.Duration("group.min.session.timeout.ms"),
		MaxSession:    c.Duration("group.max.session.timeout.ms"),
		InitialDelay:  c.Duration("group.initial.rebalance.delay.ms"),
		MaxSize:       c.Int("group.max.size"),
		MaxMetadata:   c.Int("offset.metadata.max.bytes"),
		Retention:     c.Duration("offsets.retention.minutes"),
		CheckInterval: c.Duration("offsets.retention.check.interval.ms"),
		MaxRecord:     c.Int("message.max.bytes"),
		NewID:         randomUUID,

		ConsumerSession:   c.Duration("group.consumer.session.timeout.ms"),
		ConsumerHeartbeat: c.Duration("group.consumer.heartbeat.interval.ms"),
		ConsumerMaxSize:   c.Int("group.consumer.max.size"),
		Topic: func(name string) (wire.UUID, int32) {
			if t := b.metadata.Topic(name); t != nil {
				return t.ID, int32(len(t.Partitions))
			}
			return wire.UUID{}, 0
		},
		TopicName: func(id wire.UUID) (string, bool) {
			if t := b.metadata.TopicByID(id); t != nil {
				return t.Name, true
			}
			return "", false
		},
		Topics:     b.metadata.Names,
		TopicsCame: b.metadata.Came,
	}
	policy := strings.ToLower(c.String("group.consumer.migration.policy"))
	conf.Upgrade = policy == "upgrade" || policy == "bidirectional"
	conf.Downgrade = policy == "downgrade" || policy == "bidirectional"
	return coordinator.New(coordinator.Options[*group.Machine]{
		Topic:         api.OffsetsTopic,
		New:           func(int32, int32) *group.Machine { return group.New(conf) },
		CommitTimeout: func() time.Duration { return b.config.Load().Duration("offsets.commit.timeout.ms") },
		LoadBuffer:    c.Int("offsets.load.buffer.size"),
		Codec:         record.Codec(c.Int("offsets.topic.compression.codec")),
		Logger:        b.log.With("part", "groups"),
	})
}

// roleChanged tells the coordinators which partitions of their topics this
// broker leads.
func (b *Broker) roleChanged(p *replica.Partition) {
	var coordinators interface {
		Elected(int32, coordinator.Log)
		Resigned(int32)
	}
	switch p.Topic {
	case api.OffsetsTopic:
		coordinators = b.groups
	case api.TransactionsTopic:
		coordinators = b.transactions
	default:
		return
	}
	if p.View().Role == replica.Leader {
		coordinators.Elected(p.Index, coordinator.LeaderLog(p))
	} else {
		coordinators.Resigned(p.Index)
	}
}

// partitionsDeleted has the committed offsets of partitions forgotten that are
// no more.
func (b *Broker) partitionsDeleted(gone []wire.TopicPartition) {
	if len(gone) == 0 {
		return
	}
	partitions, _ := b.groups.Led()
	for _, partition := range partitions {
		c := new(nobody)
		b.groups.Do(partition, c, func(m *group.Machine, _ time.Time, out *coordinator.Effects) {
			m.PartitionsDeleted(gone, c, out)
		})
	}
}

// nobody asks without waiting for an answer.
type nobody struct{ _ byte }

func (*nobody) Answer(any)     {}
func (*nobody) Fail(wire.Code) {}

// randomUUID returns a UUID as Java's UUID.randomUUID prints it.
func randomUUID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // it never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
