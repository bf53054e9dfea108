package api

import (
	"context"
	"strings"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/controller"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 19, Name: "CreateTopics", Min: 0, Max: 7, MaxFrame: 64 << 20, Expansion: 24,
	Versions: []string{
		"topics with partitions or assignments, and configs",
		"validate_only, error messages",
		"throttle time",
		"throttled after the answer (KIP-219)",
		"-1 for the broker's number of partitions and replication factor (KIP-464)",
		"flexible; configs, partitions and replication factor in the answer (KIP-525)",
		"THROTTLING_QUOTA_EXCEEDED (KIP-599)",
		"topic ids (KIP-516)",
	},
	Handle: handleCreateTopics,
})

// handleCreateTopics makes topics and answers once this broker's metadata shows
// their leaders, or when the request's timeout is over.
func handleCreateTopics(b *Broker, q *Request) {
	in := new(kmsg.CreateTopicsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrCreateTopicsResponse()
	r.Topics = make([]kmsg.CreateTopicsResponseTopic, len(in.Topics))
	times := map[string]int{}
	for i := range in.Topics {
		t := &r.Topics[i]
		t.Default()
		t.Topic, t.NumPartitions, t.ReplicationFactor = in.Topics[i].Topic, -1, -1
		t.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
		times[t.Topic]++
	}
	if !b.Controller.IsActive() {
		for i := range r.Topics {
			r.Topics[i].ErrorCode = int16(wire.NotController)
		}
		q.Reply(r)
		return
	}
	b.patience(q, func(ctx, waiting context.Context) {
		b.createWished(b.reach(ctx, in.TimeoutMillis), waiting, in, r, times)
		q.Reply(r)
	})
}

func (b *Broker) createWished(ctx, waiting context.Context, in *kmsg.CreateTopicsRequest, r *kmsg.CreateTopicsResponse, times map[string]int) {
	var topics []controller.NewTopic
	var at []int
	names := b.topicNames(ctx)
	for i := range in.Topics {
		want, answer := &in.Topics[i], &r.Topics[i]
		t, err := b.planWished(ctx, want, times[want.Topic], names)
		if err != nil {
			b.failTopic(answer, err)
			continue
		}
		answer.NumPartitions = int32(len(t.Assignment))
		answer.ReplicationFactor = int16(len(t.Assignment[0]))
		answer.Configs = createdConfigs(b.Config.Load().DescribeTopic(t.Config, nil))
		topics, at = append(topics, t), append(at, i)
	}
	if in.ValidateOnly {
		return
	}
	made := map[string]int{}
	for i, err := range b.createTopics(ctx, topics) {
		answer := &r.Topics[at[i]]
		if err != nil {
			b.failTopic(answer, err)
			continue
		}
		answer.TopicID = topics[i].ID
		made[topics[i].Name] = len(topics[i].Assignment)
	}
	done := map[string]bool{}
	if in.TimeoutMillis > 0 {
		done = b.waitForLeaders(waiting, time.Duration(in.TimeoutMillis)*time.Millisecond, made)
	}
	for i := range topics {
		answer := &r.Topics[at[i]]
		if answer.ErrorCode == 0 && !done[answer.Topic] {
			b.failTopic(answer, refuse(wire.RequestTimedOut, ""))
		}
	}
}

func (b *Broker) failTopic(answer *kmsg.CreateTopicsResponseTopic, err error) {
	e := b.refusal("creating topic "+answer.Topic, err)
	answer.ErrorCode, answer.ErrorMessage = int16(e.Code), text(e.Message)
	answer.NumPartitions, answer.ReplicationFactor = -1, -1
	answer.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
}

// planWished turns a request's topic into a plan.
func (b *Broker) planWished(ctx context.Context, t *kmsg.CreateTopicsRequestTopic, times int, names func() ([]string, error)) (controller.NewTopic, error) {
	none := controller.NewTopic{}
	switch {
	case times > 1:
		return none, refuse(wire.InvalidRequest, "Found multiple entries for this topic.")
	case t.Topic == raftTopic:
		return none, refuse(wire.InvalidRequest, "Creation of internal topic "+raftTopic+" is prohibited.")
	case b.Metadata.Topic(t.Topic) != nil:
		return none, topicExists(t.Topic)
	}
	w := topicWish{name: t.Topic, partitions: t.NumPartitions, factor: int32(t.ReplicationFactor), configs: map[string]string{}}
	var nulls []string
	for _, c := range t.Configs {
		if c.Value == nil {
			nulls = append(nulls, c.Name)
			continue
		}
		w.configs[c.Name] = *c.Value
	}
	if len(nulls) > 0 {
		return none, refuse(wire.InvalidConfig, "Null value not supported for topic configs: "+strings.Join(nulls, ","))
	}
	if len(t.ReplicaAssignment) > 0 {
		if t.NumPartitions != -1 || t.ReplicationFactor != -1 {
			return none, refuse(wire.InvalidRequest, "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time.")
		}
		w.assignment = map[int32][]int32{}
		for _, a := range t.ReplicaAssignment {
			w.assignment[a.Partition] = a.Replicas
		}
	}
	return b.planTopic(ctx, w, names)
}

func createdConfigs(entries []config.Entry) []kmsg.CreateTopicsResponseTopicConfig {
	out := make([]kmsg.CreateTopicsResponseTopicConfig, len(entries))
	for i, e := range entries {
		out[i] = kmsg.CreateTopicsResponseTopicConfig{Name: e.Name, Value: e.Value, ReadOnly: e.ReadOnly, Source: int8(e.Source), IsSensitive: e.Sensitive}
	}
	return out
}
