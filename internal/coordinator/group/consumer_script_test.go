package group

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The commands of scripts for consumer groups:
//
//	beat NAME [group=g] [member=NAME] [epoch=0] [topics=t,u] [regex=t.*] [has=t-0,t-1] [rebalance=20s] [instance=I] [assignor=A]
//	describe-consumers NAME, topics t=4 u=2 (from now on), policy upgrade|downgrade|bidirectional|disabled
//
// has is left out for what has not changed; "has=" is nothing.

// topicID is a topic's id in scripts.
func topicID(name string) (id wire.UUID) {
	copy(id[:], name)
	return id
}

func (w *world) topic(name string) (wire.UUID, int32) { return topicID(name), w.topics[name] }

func (w *world) topicName(id wire.UUID) (string, bool) {
	for name := range w.topics {
		if topicID(name) == id {
			return name, true
		}
	}
	return "", false
}

func (w *world) setTopics(words []string) {
	w.topics = map[string]int32{}
	w.came++
	for _, word := range words {
		name, n, _ := strings.Cut(word, "=")
		parts, _ := strconv.Atoi(n)
		w.topics[name] = int32(parts)
	}
}

func (w *world) policy(p string) {
	w.c.Upgrade, w.c.Downgrade = p == "upgrade" || p == "bidirectional", p == "downgrade" || p == "bidirectional"
	w.M.c.Upgrade, w.M.c.Downgrade = w.c.Upgrade, w.c.Downgrade
}

func (w *world) beat(from client, a arguments) {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Group, r.MemberID, r.MemberEpoch, r.InstanceID = a.or("group", "g"), a.or("member", string(from)), int32(a.number("epoch", 0)), a.instance()
	r.RebalanceTimeoutMillis = -1
	if t, ok := a.options["topics"]; ok {
		r.SubscribedTopicNames = strings.Split(t, ",")
	}
	if regex, ok := a.options["regex"]; ok {
		r.SubscribedTopicRegex = &regex
	}
	if has, ok := a.options["has"]; ok || r.MemberEpoch == 0 {
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		for _, word := range strings.Split(has, ",") {
			if topic, p, _ := tp(word); topic != "" {
				r.Topics = append(r.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: topicID(topic), Partitions: []int32{p}})
			}
		}
	}
	if _, ok := a.options["rebalance"]; ok || r.MemberEpoch == 0 {
		r.RebalanceTimeoutMillis = a.millis("rebalance", "20s")
	}
	if name, ok := a.options["assignor"]; ok {
		r.ServerAssignor = &name
	}
	w.M.ConsumerHeartbeat(r, string(from), "/h", from, w.Now, &w.Out)
}

func (w *world) describeConsumers(from client, a arguments) {
	w.M.ConsumerDescribe(a.or("group", "g"), from, &w.Out)
}

// showAssignment lists partitions as t-0,t-1.
func showAssignment(a assignment) string {
	var words []string
	for _, topic := range a.topics() {
		for _, p := range a[topic] {
			words = append(words, fmt.Sprintf("%s-%d", strings.TrimRight(string(topic[:]), "\x00"), p))
		}
	}
	return strings.Join(words, ",")
}

func showConsumerRecord(k key, r coordinator.Record) string {
	name := fmt.Sprintf("%s/%d", k.group, k.version)
	if k.member != "" {
		name += " " + k.member
	}
	if r.Value == nil {
		return name + " deleted"
	}
	v, err := decodeConsumer(k.version, r.Value)
	if err != nil {
		return err.Error()
	}
	switch k.version {
	case consumerGroupKey, targetEpochKey:
		return fmt.Sprintf("%s epoch=%d", name, v.epoch)
	case subscriptionKey:
		for _, t := range v.topics {
			name += fmt.Sprintf(" %s=%d", t.name, t.partitions)
		}
		return name
	case memberKey:
		m := v.member
		text := fmt.Sprintf("%s client=%s topics=%s", name, m.clientID, strings.Join(m.topics, ","))
		if m.instance != nil {
			text += " instance=" + *m.instance
		}
		if m.regex != nil {
			text += " regex=" + *m.regex
		}
		if m.assignor != nil {
			text += " assignor=" + *m.assignor
		}
		if m.classic != nil {
			text += " classic"
		}
		return text
	case patternKey:
		return fmt.Sprintf("%s matches=%s", name, strings.Join(v.matches, ","))
	case targetKey:
		return fmt.Sprintf("%s target=%s", name, showAssignment(v.member.partitions))
	default:
		m := v.member
		return fmt.Sprintf("%s epoch=%d previous=%d state=%d has=%s revokes=%s", name, m.epoch, m.previous, m.state, showAssignment(m.partitions), showAssignment(m.revoking))
	}
}

func showHeartbeat(r *kmsg.ConsumerGroupHeartbeatResponse) string {
	if r.ErrorCode != 0 {
		return fmt.Sprintf("beat %s: %s", code(r.ErrorCode), deref(r.ErrorMessage))
	}
	text := fmt.Sprintf("beat member=%s epoch=%d", deref(r.MemberID), r.MemberEpoch)
	if r.Assignment != nil {
		var b assignmentBuilder
		for _, t := range r.Assignment.Topics {
			for _, p := range t.Partitions {
				b.add(owned{t.TopicID, p})
			}
		}
		text += " gets " + showAssignment(b.done())
	}
	return text
}

func showConsumers(r *kmsg.ConsumerGroupDescribeResponseGroup) string {
	if r.ErrorCode != 0 {
		return fmt.Sprintf("%s %s", code(r.ErrorCode), deref(r.ErrorMessage))
	}
	text := fmt.Sprintf("%s %s epoch=%d target=%d %s", r.Group, r.State, r.Epoch, r.AssignmentEpoch, r.AssignorName)
	for _, m := range r.Members {
		of := map[string][]string{}
		for what, a := range map[string]kmsg.Assignment{"has": m.Assignment, "target": m.TargetAssignment} {
			for _, t := range a.TopicPartitions {
				for _, p := range t.Partitions {
					of[what] = append(of[what], fmt.Sprintf("%s-%d", t.Topic, p))
				}
			}
		}
		text += fmt.Sprintf(" %s(%s)@%d", m.MemberID, strings.Join(m.SubscribedTopics, ","), m.MemberEpoch)
		for _, what := range slices.Sorted(maps.Keys(of)) {
			text += fmt.Sprintf(" %s=%s", what, strings.Join(of[what], ","))
		}
	}
	return text
}
