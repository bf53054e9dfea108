package api

import (
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 28, Name: "TxnOffsetCommit", Min: 0, Max: 4, MaxFrame: 16 << 20, Expansion: 24,
	Versions: []string{
		"offsets that count when the transaction is committed (KIP-98)",
		"throttled after the answer, not before it (KIP-219)",
		"leader epochs (KIP-320)",
		"flexible; the member, so that zombies are fenced (KIP-447)",
		"TRANSACTION_ABORTABLE (KIP-890)",
	},
	Handle: handleTxnOffsetCommit,
})

func handleTxnOffsetCommit(b *Broker, q *Request) {
	in := new(kmsg.TxnOffsetCommitRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	c := &groups.Commit{Group: in.Group, Member: in.MemberID, Instance: in.InstanceID, Generation: in.Generation}
	c.Producer = &coordinator.Producer{ID: in.ProducerID, Epoch: in.ProducerEpoch}
	valid := false
	for _, t := range in.Topics {
		for _, p := range t.Partitions {
			o := groups.CommitOffset{Topic: t.Topic, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Time: q.Received.UnixMilli(), Expire: -1}
			if p.Metadata != nil {
				o.Metadata = *p.Metadata
			}
			if b.Metadata.Partition(t.Topic, p.Partition) == nil {
				o.Code = wire.UnknownTopicOrPartition
			}
			valid = valid || o.Code == wire.None
			c.Offsets = append(c.Offsets, o)
		}
	}
	reply := func() {
		r := kmsg.NewPtrTxnOffsetCommitResponse()
		index := map[string]int{}
		eachCommitted(c, func(o *groups.CommitOffset) {
			at, ok := index[o.Topic]
			if !ok {
				at = len(r.Topics)
				index[o.Topic] = at
				r.Topics = append(r.Topics, kmsg.TxnOffsetCommitResponseTopic{Topic: o.Topic})
			}
			r.Topics[at].Partitions = append(r.Topics[at].Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: o.Partition, ErrorCode: int16(o.Code)})
		})
		q.Reply(r)
	}
	if !valid {
		reply()
		return
	}
	from := laterCall(q, func(any) { reply() }, func(code wire.Code) {
		if code == wire.CoordinatorLoadInProgress && q.Version < 2 { // which older clients do not expect
			code = wire.CoordinatorNotAvailable
		}
		c.Fail(code)
		reply()
	})
	if partition, ok := b.groupPartition(in.Group); ok {
		v := []verdict{{TopicPartition: wire.TopicPartition{Topic: OffsetsTopic, Partition: partition}}}
		b.verify(in.TransactionalID, *c.Producer, v)
		if code := toldToCommitter(v[0].code, q.Version >= 4); code != wire.None {
			from.Fail(code)
			return
		}
		c.Verified = v[0].since
	}
	b.atGroup(in.Group, from, func(m *groups.Machine, now time.Time, out *coordinator.Effects) { m.Commit(c, from, now, out) })
}

// toldToCommitter is a verdict's code as who commits offsets is told it
// (GroupMetadataManager.maybeConvertOffsetCommitError).
func toldToCommitter(code wire.Code, abortable bool) wire.Code {
	switch code {
	case wire.NetworkException:
		return wire.CoordinatorLoadInProgress // which every client tries again after
	case wire.TransactionAbortable:
		if !abortable {
			return wire.InvalidTxnState
		}
	case wire.ProducerFenced:
		return wire.InvalidProducerEpoch
	}
	return code
}
