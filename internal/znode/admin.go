package znode

import "barnabas/internal/wire"

const (
	// DeleteTopics has a child, with null data, for each topic to delete.
	DeleteTopics = "/admin/delete_topics"
	// ReassignPartitions is created by tools and deleted by the controller.
	ReassignPartitions = "/admin/reassign_partitions"
	// PreferredElection is created by tools and deleted by the controller.
	PreferredElection = "/admin/preferred_replica_election"
)

// DeleteTopicPath asks for the deletion of a topic.
func DeleteTopicPath(topic string) string { return DeleteTopics + "/" + topic }

// Reassignment is one wish in /admin/reassign_partitions.
type Reassignment struct {
	wire.TopicPartition
	Replicas []int32 // the target, in order of preference
}

// EncodeReassignments writes the data of ReassignPartitions, version 1.
func EncodeReassignments(list []Reassignment) []byte {
	dst := []byte(`{"version":1,"partitions":[`)
	for i, r := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTopicPartition(dst, r.TopicPartition)
		dst = appendInt32s(append(dst, `,"replicas":`...), r.Replicas)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

// DecodeReassignments reads the data of ReassignPartitions. The order is kept
// and doubles are not removed; for the controller the last one counts.
func DecodeReassignments(data []byte) ([]Reassignment, error) {
	p := parse("partition reassignment", data)
	var list []Reassignment
	for key := range p.fields() {
		if string(key) != "partitions" {
			p.skip()
			continue
		}
		list = nil
		for range p.elements() {
			tp, replicas := p.topicPartition(true)
			list = append(list, Reassignment{tp, replicas})
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	return list, nil
}

// EncodePreferredElection writes the data of PreferredElection, version 1.
func EncodePreferredElection(list []wire.TopicPartition) []byte {
	return encodeTopicPartitions(list)
}

// DecodePreferredElection reads the data of PreferredElection.
func DecodePreferredElection(data []byte) ([]wire.TopicPartition, error) {
	return decodeTopicPartitions("preferred replica election", data)
}

// encodeTopicPartitions writes {"version":1,"partitions":[{"topic":"t","partition":0}]}.
func encodeTopicPartitions(list []wire.TopicPartition) []byte {
	dst := []byte(`{"version":1,"partitions":[`)
	for i, tp := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendTopicPartition(dst, tp), '}')
	}
	return append(dst, "]}"...)
}

// appendTopicPartition leaves the object open.
func appendTopicPartition(dst []byte, tp wire.TopicPartition) []byte {
	dst = appendString(append(dst, `{"topic":`...), tp.Topic)
	return appendInt(append(dst, `,"partition":`...), int64(tp.Partition))
}

func decodeTopicPartitions(kind string, data []byte) ([]wire.TopicPartition, error) {
	p := parse(kind, data)
	var list []wire.TopicPartition
	for key := range p.fields() {
		if string(key) != "partitions" {
			p.skip()
			continue
		}
		list = nil
		for range p.elements() {
			tp, _ := p.topicPartition(false)
			list = append(list, tp)
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	return list, nil
}

func (p *parser) topicPartition(needReplicas bool) (tp wire.TopicPartition, list []int32) {
	var topic, partition, replicas bool
	for key := range p.fields() {
		switch string(key) {
		case "topic":
			tp.Topic, topic = p.string(), true
		case "partition":
			tp.Partition, partition = p.int32(), true
		case "replicas":
			if !needReplicas {
				p.skip()
				continue
			}
			list, replicas = p.int32s(), true
		default:
			p.skip()
		}
	}
	p.require(topic, "topic")
	p.require(partition, "partition")
	p.require(replicas || !needReplicas, "replicas")
	return tp, list
}
