package group

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unicode/utf16"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Commit is an OffsetCommit or TxnOffsetCommit request.
type Commit struct {
	Group, Member string
	Instance      *string
	Generation    int32 // -1: from outside of the group
	// Producer is set for TxnOffsetCommit.
	Producer *coordinator.Producer
	Verified int64 // coordinator.Effects has it
	Version  int16 // of OffsetCommit
	Offsets  []CommitOffset
}

// CommitOffset is one offset of a Commit. What has a Code is refused already.
type CommitOffset struct {
	Topic       string
	Partition   int32
	Offset      int64
	LeaderEpoch int32
	Metadata    string
	Time        int64 // ms
	Expire      int64 // ms; -1: by the broker's retention
	Code        wire.Code
}

// Fail refuses what is not refused yet.
func (c *Commit) Fail(code wire.Code) {
	for i := range c.Offsets {
		if c.Offsets[i].Code == wire.None {
			c.Offsets[i].Code = code
		}
	}
}

// Commit stores offsets (GroupCoordinator.handleCommitOffsets and
// handleTxnCommitOffsets). The answer is c, with its codes.
func (m *Machine) Commit(c *Commit, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	g := m.groups[c.Group]
	var code wire.Code
	switch {
	case g != nil:
		code = m.checkCommit(g, c)
	case c.Producer != nil && (c.Generation >= 0 || c.Member != "" || c.Instance != nil):
		code = wire.UnknownMemberID
	case c.Generation >= 0:
		// Only who does not rely on the group for members may commit before it is there.
		code = wire.IllegalGeneration
	}
	if code != wire.None {
		c.Fail(code)
		out.ReplyNow(from, c)
		return
	}
	for i := range c.Offsets {
		o := &c.Offsets[i]
		if o.Code != wire.None {
			continue
		}
		// Characters, as Kafka counts them.
		if len(o.Metadata) > m.c.MaxMetadata && len(utf16.Encode([]rune(o.Metadata))) > m.c.MaxMetadata {
			o.Code = wire.OffsetMetadataTooLarge
			continue
		}
		out.Append(offsetKey(c.Group, o.Topic, o.Partition), offsetValue(&offset{
			offset: o.Offset, leaderEpoch: o.LeaderEpoch, metadata: o.Metadata, commitTime: o.Time, expireTime: o.Expire,
		}))
	}
	if len(out.Records) > 0 {
		out.Producer, out.Verified = c.Producer, c.Verified
		m.groupOrNew(c.Group, now)
	}
	if g != nil && c.Producer == nil && g.consumer == nil {
		if member := g.members[c.Member]; member != nil && member.join == nil {
			m.heard(g, member, now, out)
		}
	}
	out.Reply(from, c)
}

// WriteMarker ends a transaction in this partition. The answer is nil.
func (m *Machine) WriteMarker(marker coordinator.Marker, from coordinator.Caller, out *coordinator.Effects) {
	out.Marker = &marker
	out.Reply(from, nil)
}

// checkCommit judges who commits (validateOffsetCommit).
func (m *Machine) checkCommit(g *group, c *Commit) wire.Code {
	if g.consumer != nil {
		return g.consumer.checkCommit(c)
	}
	switch {
	case c.Generation >= 0 || c.Member != "" || c.Instance != nil:
		if code := g.checkMember(c.Member, c.Instance); code != wire.None {
			return code
		}
		if c.Generation != g.generation {
			return wire.IllegalGeneration
		}
	case c.Producer == nil && g.state != empty:
		return wire.UnknownMemberID
	}
	if g.state == completing && c.Producer == nil {
		return wire.RebalanceInProgress
	}
	return wire.None
}

// checkCommit judges who commits to a consumer group
// (ConsumerGroup.validateOffsetCommit).
func (c *consumerGroup) checkCommit(commit *Commit) wire.Code {
	if commit.Generation < 0 && len(c.members) == 0 {
		return wire.None
	}
	member := c.members[commit.Member]
	switch {
	case member == nil:
		return wire.UnknownMemberID
	case commit.Producer == nil && member.classic == nil && commit.Version < 9:
		return wire.UnsupportedVersion
	case member.epoch == commit.Generation:
		return wire.None
	case member.classic != nil:
		return wire.IllegalGeneration
	}
	return wire.StaleMemberEpoch
}

// checkFetch judges who reads a consumer group's offsets
// (ConsumerGroup.validateOffsetFetch).
func (c *consumerGroup) checkFetch(id *string, epoch int32) wire.Code {
	if id == nil && epoch < 0 {
		return wire.None
	}
	var member *consumerMember
	if id != nil {
		member = c.members[*id]
	}
	switch {
	case member == nil:
		return wire.UnknownMemberID
	case member.epoch == epoch:
		return wire.None
	case member.classic != nil:
		return wire.IllegalGeneration
	}
	return wire.StaleMemberEpoch
}

// Fetch answers one group of an OffsetFetch request with committed offsets
// (GroupMetadataManager.getOffsets); nil topics are all. The answer is a
// *kmsg.OffsetFetchResponseGroup.
func (m *Machine) Fetch(ask *kmsg.OffsetFetchRequestGroup, requireStable bool, from coordinator.Caller, out *coordinator.Effects) {
	r := kmsg.NewOffsetFetchResponseGroup()
	r.Group = ask.Group
	topics, g := ask.Topics, m.groups[ask.Group]
	if g != nil && g.consumer != nil {
		if code := g.consumer.checkFetch(ask.MemberID, ask.MemberEpoch); code != wire.None {
			r.ErrorCode = int16(code)
			out.Reply(from, &r)
			return
		}
	}
	if topics == nil {
		if g != nil {
			topics = g.topicsWithOffsets()
		}
	}
	r.Topics = make([]kmsg.OffsetFetchResponseGroupTopic, 0, len(topics))
	for _, t := range topics {
		answer := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic, Partitions: make([]kmsg.OffsetFetchResponseGroupTopicPartition, 0, len(t.Partitions))}
		for _, index := range t.Partitions {
			answer.Partitions = append(answer.Partitions, g.fetch(t.Topic, index, requireStable))
		}
		r.Topics = append(r.Topics, answer)
	}
	out.Reply(from, &r)
}

func (g *group) fetch(topic string, index int32, requireStable bool) kmsg.OffsetFetchResponseGroupTopicPartition {
	none := ""
	p := kmsg.OffsetFetchResponseGroupTopicPartition{Partition: index, Offset: -1, LeaderEpoch: -1, Metadata: &none}
	if g == nil {
		return p
	}
	if requireStable && g.isUncertain(topic, index) {
		p.ErrorCode = int16(wire.UnstableOffsetCommit)
		return p
	}
	if o, ok := g.offset(topic, index); ok {
		p.Offset, p.LeaderEpoch, p.Metadata = o.offset, o.leaderEpoch, &o.metadata
	}
	return p
}

func (g *group) topicsWithOffsets() []kmsg.OffsetFetchRequestGroupTopic {
	var all []kmsg.OffsetFetchRequestGroupTopic
	for _, topic := range slices.Sorted(maps.Keys(g.offsets)) {
		all = append(all, kmsg.OffsetFetchRequestGroupTopic{Topic: topic, Partitions: slices.Sorted(maps.Keys(g.offsets[topic]))})
	}
	return all
}

// DeleteOffsets handles OffsetDelete (GroupCoordinator.handleDeleteOffsets).
// Topics with a code for each partition are refused already: skip tells which.
// The answer is a *kmsg.OffsetDeleteResponse.
func (m *Machine) DeleteOffsets(r *kmsg.OffsetDeleteRequest, skip func(topic string, index int32) wire.Code, from coordinator.Caller, out *coordinator.Effects) {
	answer := kmsg.NewPtrOffsetDeleteResponse()
	g := m.groups[r.Group]
	switch {
	case r.Group == "":
		answer.ErrorCode = int16(wire.InvalidGroupID)
	case g == nil:
		answer.ErrorCode = int16(wire.GroupIDNotFound)
	case g.hasMembers() && g.consumer == nil && g.protocolType != consumerType:
		answer.ErrorCode = int16(wire.NonEmptyGroup)
	}
	if answer.ErrorCode != 0 {
		out.ReplyNow(from, answer)
		return
	}
	deleted := map[partition]bool{} // a request may name one twice
	for _, t := range r.Topics {
		topic := kmsg.OffsetDeleteResponseTopic{Topic: t.Topic}
		var rest []kmsg.OffsetDeleteResponseTopicPartition // Kafka answers first what does not exist
		for _, p := range t.Partitions {
			if code := skip(t.Topic, p.Partition); code != wire.None {
				topic.Partitions = append(topic.Partitions, kmsg.OffsetDeleteResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
				continue
			}
			code := wire.None
			if g.hasMembers() && g.isSubscribed(t.Topic) {
				code = wire.GroupSubscribedToTopic
			} else if _, ok := g.offset(t.Topic, p.Partition); ok && !deleted[partition{t.Topic, p.Partition}] {
				deleted[partition{t.Topic, p.Partition}] = true
				out.Append(offsetKey(g.id, t.Topic, p.Partition), nil)
			}
			rest = append(rest, kmsg.OffsetDeleteResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code)})
		}
		topic.Partitions = append(topic.Partitions, rest...)
		answer.Topics = append(answer.Topics, topic)
	}
	m.removeIfUnused(g, len(out.Records), out)
	out.Reply(from, answer)
}

// offsetCount counts the committed offsets, decided or not.
func (g *group) offsetCount() int {
	n := 0
	for _, parts := range g.offsets {
		n += len(parts)
	}
	for _, offsets := range g.uncertain {
		n += len(offsets)
	}
	return n
}

// removeIfUnused takes out an empty group of whose offsets none is left when
// those that out deletes are gone (cleanupGroupMetadata).
func (m *Machine) removeIfUnused(g *group, deleted int, out *coordinator.Effects) {
	if g.hasMembers() || g.offsetCount() > deleted {
		return
	}
	m.bury(g, out)
}

// PartitionsDeleted forgets the offsets of partitions that are no more
// (GroupCoordinator.handleDeletedPartitions). The answer is nil.
func (m *Machine) PartitionsDeleted(gone []wire.TopicPartition, from coordinator.Caller, out *coordinator.Effects) {
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[id]
		before := len(out.Records)
		for _, p := range gone {
			if _, ok := g.offset(p.Topic, p.Partition); ok {
				out.Append(offsetKey(g.id, p.Topic, p.Partition), nil)
			}
		}
		if deleted := len(out.Records) - before; deleted > 0 {
			m.removeIfUnused(g, deleted, out)
		}
	}
	out.Reply(from, nil)
}

// removeExpired deletes the offsets that nobody has used for long and the
// groups that are left with nothing (KIP-211).
func (m *Machine) removeExpired(now time.Time, out *coordinator.Effects) {
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[id]
		before := len(out.Records)
		for _, p := range g.expired(now.UnixMilli(), m.c.Retention.Milliseconds()) {
			out.Append(offsetKey(g.id, p.topic, p.index), nil)
		}
		m.removeIfUnused(g, len(out.Records)-before, out)
	}
}

// expired returns the offsets whose time is up (GroupMetadata.removeExpiredOffsets).
func (g *group) expired(now, retention int64) []partition {
	var since func(topic string, o *offset) (int64, bool)
	switch {
	case g.consumer != nil:
		since = func(topic string, o *offset) (int64, bool) { return o.commitTime, !g.isSubscribed(topic) }
	case g.protocolType == "": // only offsets are kept here
		since = func(_ string, o *offset) (int64, bool) { return o.commitTime, true }
	case g.state == empty:
		since = func(_ string, o *offset) (int64, bool) {
			if g.stateTime >= 0 {
				return g.stateTime, true
			}
			return o.commitTime, true
		}
	case g.protocolType == consumerType && g.state == stable && g.subscribed != nil:
		since = func(topic string, o *offset) (int64, bool) { return o.commitTime, !g.isSubscribed(topic) }
	default:
		return nil
	}
	var gone []partition
	for topic, parts := range g.offsets {
		for index, o := range parts {
			from, may := since(topic, &o)
			over := now-from >= retention
			if o.expireTime >= 0 {
				over = now >= o.expireTime
			}
			if may && over && !g.isUncertain(topic, index) {
				gone = append(gone, partition{topic, index})
			}
		}
	}
	slices.SortFunc(gone, func(a, b partition) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.index, b.index))
	})
	return gone
}
