package load

import (
	"context"
	"fmt"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Admin is a client for administration that ends with the test.
type Admin struct {
	*kadm.Client
	Raw *kgo.Client
}

// NewAdmin returns a client that ends with the test.
func NewAdmin(t *testing.T, seeds []string) *Admin {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.MetadataMinAge(10*time.Millisecond), kgo.AlwaysRetryEOF())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &Admin{kadm.NewClient(client), client}
}

// Text is a pointer to a config's value.
func Text(s string) *string { return &s }

// CreateTopic makes a topic with an assignment that rotates over the brokers.
func CreateTopic(t *testing.T, a *Admin, topic string, partitions int, brokers []int32, configs map[string]*string) {
	t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	want := kmsg.NewCreateTopicsRequestTopic()
	want.Topic, want.NumPartitions, want.ReplicationFactor = topic, -1, -1
	for p := range partitions {
		place := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		place.Partition = int32(p)
		for i := range brokers {
			place.Replicas = append(place.Replicas, brokers[(p+i)%len(brokers)])
		}
		want.ReplicaAssignment = append(want.ReplicaAssignment, place)
	}
	for k, v := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, v
		want.Configs = append(want.Configs, c)
	}
	r.Topics, r.TimeoutMillis = append(r.Topics, want), 30000
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last error
	real.Until(t, time.Minute, "topic "+topic+" is made", func() bool {
		response, err := r.RequestWith(ctx, a.Raw)
		if err != nil {
			last = err
			return false
		}
		code := response.Topics[0].ErrorCode
		return code == 0 || code == 36
	})
	if last != nil {
		t.Logf("making the topic: %v", last)
	}
}

// Describe returns what a broker says of a topic, nil while it knows none.
func Describe(t *testing.T, a *Admin, topic string) map[int32]kadm.PartitionDetail {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := a.Metadata(ctx, topic)
	if err != nil || m.Topics[topic].Err != nil {
		return nil
	}
	return m.Topics[topic].Partitions
}

// UntilInSync waits until each partition of a topic has n replicas in sync and a
// leader.
func UntilInSync(t *testing.T, a *Admin, topic string, partitions, n int) {
	t.Helper()
	var seen map[int32]kadm.PartitionDetail
	defer func() {
		if t.Failed() {
			t.Logf("%s: %v", topic, seen)
		}
	}()
	real.Until(t, 90*time.Second, fmt.Sprintf("%d replicas of each partition of %s in sync", n, topic), func() bool {
		seen = Describe(t, a, topic)
		for _, p := range seen {
			if len(p.ISR) != n || p.Leader < 0 {
				return false
			}
		}
		return len(seen) == partitions
	})
}

// UntilEach waits until something holds for each partition of a topic, as the
// broker at one of the client's seeds sees it.
func UntilEach(t *testing.T, a *Admin, seed int, topic string, partitions int, what string, ok func(kmsg.MetadataResponseTopicPartition) bool) {
	t.Helper()
	var seen string
	defer func() {
		if t.Failed() {
			t.Logf("seed %d: %s", seed, seen)
		}
	}()
	r := kmsg.NewPtrMetadataRequest()
	r.Topics = append(r.Topics, kmsg.MetadataRequestTopic{Topic: &topic})
	real.Until(t, 90*time.Second, fmt.Sprintf("broker %d of the seeds: %s", seed, what), func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		answer, err := a.Raw.SeedBrokers()[seed].Request(ctx, r)
		if err != nil {
			seen = err.Error()
			return false
		}
		list := answer.(*kmsg.MetadataResponse).Topics[0].Partitions
		seen = fmt.Sprintf("%+v", list)
		for _, p := range list {
			if !ok(p) {
				return false
			}
		}
		return len(list) == partitions
	})
}
