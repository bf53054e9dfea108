package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// whyCommand asks what keeps a topic from its wanted state. Kafka has nothing
// like it.
func whyCommand() *Command {
	return &Command{
		Name: "why", Short: "Say what a topic waits for",
		Purpose: "This tool says what keeps a topic from its wanted state: a deletion that waits and for which broker, a partition without a leader and who has to come back, a replica that is not in sync and why, a reassignment and the replicas it waits for, a log directory that has failed or is full, an in-sync set below min.insync.replicas.",
		Long:    "Each Barnabas broker is asked: the controller for what it waits for, leaders for how their followers are, all for their log directories. Of brokers of Apache Kafka only what clients can see is known. The reasons are also in the brokers' logs.",
		Example: []string{"barnabas why --bootstrap-server localhost:9092 --topic orders", "barnabas why orders"},
		Options: []Option{
			{Name: "bootstrap-server", Arg: "String: server to connect to", Default: "localhost:9092", Text: "The Kafka server to connect to."},
			commandConfig,
			{Name: "topic", Arg: "String: topic", Topic: true, Text: "The topic. It may also stand alone, without --topic."},
		},
		Words: func(ctx context.Context, c *Command, before []string) []string {
			return c.names(ctx, Option{Topic: true}, before)
		},
		Run: runWhy,
	}
}

func runWhy(c *Call) error {
	topic, err := c.Args.One("topic")
	if err != nil {
		return err
	}
	switch rest := c.Args.Rest; {
	case topic == "" && len(rest) == 1:
		topic = rest[0]
	case topic == "" || len(rest) > 0:
		return usage("Name one topic.")
	}
	return c.withAdmin(func(admin *kadm.Client, k *kgo.Client) error {
		reasons, err := why(c.Context, admin, k, topic)
		if err != nil {
			return err
		}
		if c.JSON {
			return c.printJSON(struct {
				Topic   string   `json:"topic"`
				Reasons []string `json:"reasons"`
			}{topic, reasons})
		}
		for _, r := range reasons {
			fmt.Fprintln(c.Out, r)
		}
		if len(reasons) == 0 {
			fmt.Fprintf(c.Out, "Topic %s waits for nothing.\n", topic)
		}
		return nil
	})
}

// why collects the reasons of all brokers: the controller's first.
func why(ctx context.Context, admin *kadm.Client, k *kgo.Client, topic string) ([]string, error) {
	meta, err := admin.Metadata(ctx, topic)
	if err != nil {
		return nil, err
	}
	if err := meta.Topics[topic].Err; errors.Is(err, kerr.InvalidTopicException) {
		return nil, because(err, "%q can't be a topic's name", topic)
	}
	brokers := meta.Brokers.NodeIDs()
	slices.SortStableFunc(brokers, func(a, b int32) int {
		switch meta.Controller {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	reasons, strangers := []string{}, map[int32]bool{}
	for _, id := range brokers {
		said, ours, err := whyOf(ctx, k.Broker(int(id)), topic)
		switch {
		case err != nil:
			reasons = append(reasons, fmt.Sprintf("Broker %d does not answer: %v.", id, text(err)))
		case !ours:
			strangers[id] = true
		}
		reasons = append(reasons, said...)
	}
	if strangers[meta.Controller] || meta.Controller < 0 {
		seen, err := whySeen(ctx, admin, topic, meta)
		if err != nil {
			return nil, err
		}
		reasons = append(reasons, seen...)
	}
	for _, p := range meta.Topics[topic].Partitions.Sorted() {
		if out := outOf(p.Replicas, p.ISR); strangers[p.Leader] && len(out) > 0 {
			reasons = append(reasons, fmt.Sprintf("Partition %d: replicas %v are not in sync; the leader, broker %d, is Apache Kafka and says no more.", p.Partition, out, p.Leader))
		}
	}
	return reasons, nil
}

// whyOf asks one broker by a tagged field that only Barnabas knows.
func whyOf(ctx context.Context, broker *kgo.Broker, topic string) (reasons []string, ours bool, err error) {
	request := kmsg.NewPtrDescribeClusterRequest()
	request.UnknownTags.Set(wire.KinTag, []byte(topic))
	answer, err := broker.RetriableRequest(ctx, request)
	if err != nil {
		return nil, false, err
	}
	r := answer.(*kmsg.DescribeClusterResponse)
	if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
		return nil, false, err
	}
	r.UnknownTags.Each(func(tag uint32, value []byte) {
		if tag == wire.KinTag {
			ours = true
			err = json.Unmarshal(value, &reasons)
		}
	})
	return reasons, ours, err
}

// whySeen is what clients can see of a topic where the controller is Apache
// Kafka.
func whySeen(ctx context.Context, admin *kadm.Client, topic string, meta kadm.Metadata) ([]string, error) {
	t := meta.Topics[topic]
	if t.Err != nil {
		return []string{fmt.Sprintf("Topic %s is not known to clients (%s). The controller, broker %d, is Apache Kafka and does not say whether it is being deleted: look at /admin/delete_topics.",
			topic, strings.TrimSuffix(t.Err.Error(), "."), meta.Controller)}, nil
	}
	var reasons []string
	moving, err := admin.ListPartitionReassignments(ctx, nil)
	if err != nil {
		return nil, err
	}
	moves := moving[topic]
	for _, p := range t.Partitions.Sorted() {
		if m, ok := moves[p.Partition]; ok {
			reasons = append(reasons, fmt.Sprintf("Partition %d is being reassigned: replicas %v are to be added, %v to go; in sync are %v.", p.Partition, m.AddingReplicas, m.RemovingReplicas, p.ISR))
		}
		if p.Leader < 0 {
			reasons = append(reasons, fmt.Sprintf("Partition %d has no leader: one of brokers %v has to come back; of its replicas %v, %v are offline.", p.Partition, p.ISR, p.Replicas, p.OfflineReplicas))
		}
	}
	return reasons, nil
}

// outOf returns what is in all and not in some.
func outOf(all, some []int32) (out []int32) {
	for _, id := range all {
		if !slices.Contains(some, id) {
			out = append(out, id)
		}
	}
	return out
}
