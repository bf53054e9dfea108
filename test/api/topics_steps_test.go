package api

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type newTopic = kmsg.CreateTopicsRequestTopic

func topic(name string, partitions int32, factor int16, more ...func(*newTopic)) newTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, factor
	for _, f := range more {
		f(&t)
	}
	return t
}

func withConfig(key string, value *string) func(*newTopic) {
	return func(t *newTopic) {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key, Value: value})
	}
}

func on(partition int32, replicas ...int32) func(*newTopic) {
	return func(t *newTopic) {
		t.ReplicaAssignment = append(t.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: partition, Replicas: replicas})
	}
}

func create(version int16, timeout int32, validateOnly bool, topics ...newTopic) step {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Topics, r.TimeoutMillis, r.ValidateOnly = topics, timeout, validateOnly
	return at(version, r)
}

func topicSteps() []step {
	return []step{
		create(0, 5000, false, topic("c0", 1, 1)), create(1, 5000, true, topic("c1", 1, 1)), create(3, 5000, false, topic("c3", -1, -1)),
		create(4, 5000, false, topic("c4", -1, -1)), create(5, 5000, false, topic("c5", -1, -1, withConfig("retention.ms", ptr("1000")))),
		create(5, 5000, true, topic("c5v", 3, 1)), create(6, 5000, false, topic("c6", 2, 1)), create(7, 5000, false, topic("c7", 2, 1)),
		create(7, 0, false, topic("c7z", 2, 1)), create(7, -1, false, topic("c7y", 2, 1)),
		create(2, 5000, false,
			topic("c0", 1, 1), topic("dup", 1, 1), topic("dup", 1, 1), topic("p0", 0, 1), topic("r0", 1, 0), topic("r2", 1, 2), topic("p-2", -2, 1), topic("r-2", 1, -2),
			topic("", 1, 1), topic(".", 1, 1), topic("..", 1, 1), topic("a b", 1, 1), topic("a/b", 1, 1), topic(strings.Repeat("x", 250), 1, 1),
			topic("both", 1, -1, on(0, 1)), topic("twins", -1, -1, on(0, 1, 1)), topic("uneven", -1, -1, on(0, 1), on(1, 1, 2)), topic("gap", -1, -1, on(0, 1), on(2, 1)),
			topic("null", 1, 1, withConfig("retention.ms", nil)), topic("unknown", 1, 1, withConfig("zzz", ptr("1"))), topic("text", 1, 1, withConfig("retention.ms", ptr("x"))),
			topic("policy", 1, 1, withConfig("cleanup.policy", ptr("shred"))), topic("isr", 1, 1, withConfig("min.insync.replicas", ptr("0"))),
			topic("__cluster_metadata", 1, 1)),
		create(7, 5000, false, topic(strings.Repeat("y", 249), 1, 1)),
		create(2, 5000, false, topic("dot.ted", 1, 1)), after("dot.ted", create(2, 5000, false, topic("dot_ted", 1, 1))),
		create(2, 5000, false, topic("twice", -1, -1, on(0, 1), on(0, 1)), topic("same", 1, 1, withConfig("retention.ms", ptr("1")), withConfig("retention.ms", ptr("2")))),
		create(7, 1000, false, topic("ghost", -1, -1, on(0, 99))), create(7, 3000, false, topic("half", -1, -1, on(0, 99, 1))),
		otherwise("a partition on no broker is refused; Kafka makes a topic that can't live", create(7, 1000, false, topic("nowhere", -1, -1, on(0)))),
		otherwise("a partition below 0 is refused; Kafka fails", create(7, 1000, false, topic("below", -1, -1, on(-1, 1)))),
		create(7, 3000, false), create(0, 5000, false, topic("twins2", 1, 1), topic("twins3", 1, 1)),
		rawBody(19, 0, 255, 255, 255, 255, 0, 0, 0, 0), rawBody(19, 5, 0, 0, 0, 0, 0, 0, 0),
	}
}

func partitionSteps() []step {
	grow := func(version int16, validateOnly bool, name string, count int32, assignment ...[]int32) step {
		r := kmsg.NewPtrCreatePartitionsRequest()
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = name, count
		for _, replicas := range assignment {
			t.Assignment = append(t.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: replicas})
		}
		r.Topics, r.TimeoutMillis, r.ValidateOnly = append(r.Topics, t), 5000, validateOnly
		return at(version, r)
	}
	twice := kmsg.NewPtrCreatePartitionsRequest()
	for _, name := range []string{"grow", "grow", "other"} {
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = name, 9
		twice.Topics = append(twice.Topics, t)
	}
	return []step{
		create(2, 5000, false, topic("grow", 2, 1), topic("other", 1, 1)),
		grow(0, true, "grow", 3), grow(0, false, "grow", 3), grow(1, false, "grow", 3), grow(2, false, "grow", 2), grow(3, false, "grow", 0), grow(3, false, "grow", -1),
		grow(3, false, "nope", 3), grow(3, false, "a b", 3), grow(3, false, "grow", 5, []int32{1}), grow(3, false, "grow", 4, []int32{1, 1}),
		grow(3, false, "grow", 4, []int32{1, 2}), grow(3, false, "grow", 4, []int32{2}), grow(3, false, "grow", 4, []int32{}),
		grow(3, false, "grow", 5, []int32{1}, []int32{1}), metadata(4, false, "grow"), at(3, twice), rawBody(37, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0),
	}
}

func deletionSteps() []step {
	remove := func(version int16, timeout int32, names ...string) step {
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.TopicNames, r.TimeoutMillis = names, timeout
		for _, n := range names {
			r.Topics = append(r.Topics, kmsg.DeleteTopicsRequestTopic{Topic: &n})
		}
		return at(version, r)
	}
	byID := func(topics ...kmsg.DeleteTopicsRequestTopic) step {
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.Topics, r.TimeoutMillis = topics, 1000
		return at(6, r)
	}
	unknown := kmsg.DeleteTopicsRequestTopic{TopicID: [16]byte{5}}
	return []step{
		create(2, 5000, false, topic("d0", 1, 1), topic("d1", 3, 1), topic("d5", 1, 1), topic("d6", 1, 1)),
		remove(0, 5000, "d0", "nope"), remove(1, 5000, "d1", "d1", "a b", ""), remove(5, 0, "d5"), remove(6, 5000, "d6", "nope", "nope"),
		metadata(4, false, "d0", "d1", "d6"),
		byID(unknown, kmsg.DeleteTopicsRequestTopic{Topic: ptr("x"), TopicID: [16]byte{7}}, kmsg.DeleteTopicsRequestTopic{}), byID(unknown, unknown), byID(unknown),
		rawBody(20, 0, 255, 255, 255, 255, 0, 0, 0, 0), rawBody(20, 6, 0, 0, 0, 0, 0, 0),
	}
}
