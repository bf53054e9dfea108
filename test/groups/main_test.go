package groups

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// patience is for what takes long on a busy machine only.
const patience = 3 * time.Minute

// produce writes records with the values from to to-1, spread over the
// partitions.
func produce(t *testing.T, addr, topic string, from, to int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(addr, ",")...), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()),
		kgo.ProducerBatchCompression(kgo.GzipCompression())) // the one codec that every client has
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var records []*kgo.Record
	for i := from; i < to; i++ {
		records = append(records, &kgo.Record{Topic: topic, Value: []byte(fmt.Sprint("record-", i))})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// missing returns how many of the records up to to-1 no output shows.
func missing(outputs []func() string, to int) int {
	seen := map[string]bool{}
	for _, out := range outputs {
		for _, word := range strings.Fields(out()) {
			seen[word] = true
		}
	}
	n := 0
	for i := range to {
		if !seen[fmt.Sprint("record-", i)] {
			n++
		}
	}
	return n
}

// describe returns what DescribeGroups says of a group.
func describe(t *testing.T, addr, group string) kmsg.DescribeGroupsResponseGroup {
	t.Helper()
	r := kmsg.NewPtrDescribeGroupsRequest()
	r.Version, r.Groups = 5, []string{group}
	return raw.Ask[*kmsg.DescribeGroupsResponse](t, addr, r).Groups[0]
}

// shared is how the members of a group share a topic.
type shared struct {
	state   string
	members int
	owners  map[int32][]string
}

// share asks how a group of either protocol shares a topic.
func share(t *testing.T, addr, group, topic string) (s shared) {
	t.Helper()
	s.owners = map[int32][]string{}
	own := func(member, of string, partitions []int32) {
		for _, p := range partitions {
			if of == topic {
				s.owners[p] = append(s.owners[p], member)
			}
		}
	}
	g := describe(t, addr, group)
	if g.State != "Dead" {
		s.state, s.members = g.State, len(g.Members)
		for _, m := range g.Members {
			var a kmsg.ConsumerMemberAssignment
			if a.ReadFrom(m.MemberAssignment) == nil {
				for _, at := range a.Topics {
					own(m.MemberID, at.Topic, at.Partitions)
				}
			}
		}
		return s
	}
	r := kmsg.NewPtrConsumerGroupDescribeRequest()
	r.Groups = []string{group}
	c := raw.Ask[*kmsg.ConsumerGroupDescribeResponse](t, addr, r).Groups[0]
	s.state, s.members = c.State, len(c.Members)
	for _, m := range c.Members {
		for _, at := range m.Assignment.TopicPartitions {
			own(m.MemberID, at.Topic, at.Partitions)
		}
	}
	return s
}

// settled waits until a group is stable with so many members, and checks that
// each partition of the topic has one owner.
func settled(t *testing.T, addr, group, topic string, members int, partitions int32) {
	t.Helper()
	settledAt(t, func() string { return addr }, group, topic, members, partitions)
}

// settledAt is settled for a coordinator that moves; "" is none at the moment.
func settledAt(t *testing.T, coordinator func() string, group, topic string, members int, partitions int32) {
	t.Helper()
	var s shared
	defer func() {
		if t.Failed() {
			t.Logf("%s at last: %+v", group, s)
		}
	}()
	real.Until(t, patience, fmt.Sprintf("%s to be stable with %d members", group, members), func() bool {
		addr := coordinator()
		if addr == "" {
			return false
		}
		s = share(t, addr, group, topic)
		return s.state == "Stable" && s.members == members && len(s.owners) == int(partitions)
	})
	for p, owners := range s.owners {
		if len(owners) != 1 {
			t.Errorf("%s-%d belongs to %v", topic, p, owners)
		}
	}
}
