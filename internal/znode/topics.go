package znode

import (
	"maps"
	"slices"
	"strconv"

	"barnabas/internal/wire"
)

// Topics is the parent of all topics.
const Topics = "/brokers/topics"

// TopicPath holds a topic's assignment.
func TopicPath(topic string) string { return Topics + "/" + topic }

// PartitionsPath is the parent of a topic's partitions; null data.
func PartitionsPath(topic string) string { return Topics + "/" + topic + "/partitions" }

// PartitionPath is the parent of a partition's state; null data.
func PartitionPath(topic string, partition int32) string {
	return PartitionsPath(topic) + "/" + strconv.Itoa(int(partition))
}

// StatePath holds a partition's leader and ISR.
func StatePath(topic string, partition int32) string {
	return PartitionPath(topic, partition) + "/state"
}

// ParsePartition reads the name of a child of PartitionsPath; else ErrPath.
func ParsePartition(name string) (int32, error) { return parseID(name) }

// Assignment says which brokers hold a partition.
type Assignment struct {
	// Replicas in order of preference; while reassigning it holds both the
	// old and the new ones.
	Replicas []int32
	Adding   []int32 // those of Replicas that a reassignment brings in
	Removing []int32 // those of Replicas that a reassignment takes out
}

// Topic is the data of /brokers/topics/T.
//
// Versions: 1 (0.8) partitions only; 2 (2.4, KIP-455) adding_replicas and
// removing_replicas; 3 (2.8, KIP-516) topic_id, only when there is one. Since
// 2.8 every broker writes version 3 whatever its inter.broker.protocol.version.
type Topic struct {
	Version    int32
	ID         wire.UUID // zero: none
	Partitions map[int32]Assignment
}

// Encode writes the layout of t.Version: 1, 2, or 3 for all else. Adding and
// Removing hold only lists that are not empty.
func (t Topic) Encode() []byte {
	version := t.Version
	if version != 1 && version != 2 {
		version = 3
	}
	order := slices.Sorted(maps.Keys(t.Partitions))
	dst := make([]byte, 0, 96+24*len(order))
	dst = append(dst, '{')
	if version >= 2 {
		dst = append(dst, `"removing_replicas":`...)
		dst = append(t.appendLists(dst, order, func(a Assignment) []int32 { return a.Removing }, false), ',')
	}
	dst = append(dst, `"partitions":`...)
	dst = t.appendLists(dst, order, func(a Assignment) []int32 { return a.Replicas }, true)
	if version >= 3 && !t.ID.IsZero() {
		dst = appendString(append(dst, `,"topic_id":`...), t.ID.String())
	}
	if version >= 2 {
		dst = append(dst, `,"adding_replicas":`...)
		dst = t.appendLists(dst, order, func(a Assignment) []int32 { return a.Adding }, false)
	}
	dst = appendInt(append(dst, `,"version":`...), int64(version))
	return append(dst, '}')
}

func (t Topic) appendLists(dst []byte, order []int32, list func(Assignment) []int32, empty bool) []byte {
	dst = append(dst, '{')
	first := true
	for _, p := range order {
		l := list(t.Partitions[p])
		if len(l) == 0 && !empty {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendDecimal(dst, int64(p))
		dst = appendInt32s(append(dst, ':'), l)
	}
	return append(dst, '}')
}

// DecodeTopic reads every version. It does not look at "version" (nor does
// kafka.zk.TopicZNode); no "partitions" means none yet.
func DecodeTopic(data []byte) (Topic, error) {
	p := parse("topic", data)
	t := Topic{Partitions: map[int32]Assignment{}}
	var adding, removing map[int32][]int32
	for key := range p.fields() {
		switch string(key) {
		case "version":
			t.Version = p.int32()
		case "topic_id":
			id, err := wire.ParseUUID(p.string())
			if err != nil {
				p.fail(err.Error())
			}
			t.ID = id
		case "partitions":
			clear(t.Partitions)
			for partition, replicas := range p.assignment() {
				t.Partitions[partition] = Assignment{Replicas: replicas}
			}
		case "adding_replicas":
			adding = p.assignment()
		case "removing_replicas":
			removing = p.assignment()
		default:
			p.skip()
		}
	}
	if p.err != nil {
		return Topic{}, p.err
	}
	for partition, list := range adding {
		if a, ok := t.Partitions[partition]; ok && len(list) > 0 {
			a.Adding = list
			t.Partitions[partition] = a
		}
	}
	for partition, list := range removing {
		if a, ok := t.Partitions[partition]; ok && len(list) > 0 {
			a.Removing = list
			t.Partitions[partition] = a
		}
	}
	return t, nil
}

// assignment reads {"0":[1,2]}.
func (p *parser) assignment() map[int32][]int32 {
	m := map[int32][]int32{}
	for key := range p.fields() {
		partition, err := parseID(string(key))
		if err != nil {
			p.fail("not a partition number")
			break
		}
		m[partition] = p.int32s()
	}
	return m
}
