package znode

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Consumers is the parent of the groups of ZooKeeper consumers (0.7 to 2.x)
// and of the offsets that OffsetCommit version 0 writes.
const Consumers = "/consumers"

// ConsumerGroupPath is the parent of a group's ids, owners and offsets.
func ConsumerGroupPath(group string) string { return Consumers + "/" + group }

// ConsumerIDsPath is the parent of a group's registrations.
func ConsumerIDsPath(group string) string { return ConsumerGroupPath(group) + "/ids" }

// ConsumerIDPath is the ephemeral registration of one consumer.
func ConsumerIDPath(group, consumer string) string { return ConsumerIDsPath(group) + "/" + consumer }

// ConsumerOwnersPath is the parent of the owned partitions of a topic.
func ConsumerOwnersPath(group, topic string) string {
	return ConsumerGroupPath(group) + "/owners/" + topic
}

// ConsumerOwnerPath is the ephemeral claim on one partition; its data is the
// consumer thread's id as plain text.
func ConsumerOwnerPath(group, topic string, partition int32) string {
	return ConsumerOwnersPath(group, topic) + "/" + strconv.Itoa(int(partition))
}

// ConsumerOffsetsPath is the parent of a group's offsets of a topic.
func ConsumerOffsetsPath(group, topic string) string {
	return ConsumerGroupPath(group) + "/offsets/" + topic
}

// ConsumerOffsetPath holds the next offset of one partition.
func ConsumerOffsetPath(group, topic string, partition int32) string {
	return ConsumerOffsetsPath(group, topic) + "/" + strconv.Itoa(int(partition))
}

// ConsumerID makes the id of a consumer that configured none: group, host,
// start in ms, and the first 8 hex digits of a random number.
func ConsumerID(group, host string, startMS int64, random uint32) string {
	hex := strconv.FormatUint(uint64(random), 16)
	hex = strings.Repeat("0", 8-len(hex)) + hex
	return group + "_" + host + "-" + strconv.FormatInt(startMS, 10) + "-" + hex
}

// ConsumerThreadID is the data of an owner node.
func ConsumerThreadID(consumer string, thread int) string {
	return consumer + "-" + strconv.Itoa(thread)
}

// The values of ConsumerRegistration.Pattern.
const (
	PatternStatic    = "static"
	PatternWhiteList = "white_list" // the one key of Subscription is a regular expression
	PatternBlackList = "black_list" // the same; topics that do not match are taken
)

// ConsumerRegistration is the data of /consumers/G/ids/C, version 1.
type ConsumerRegistration struct {
	Subscription map[string]int32 // topic (or expression) to number of streams
	Pattern      string
	Timestamp    int64 // in ms since 1970; 0 when unreadable
}

// Encode writes version 1.
func (c ConsumerRegistration) Encode() []byte {
	dst := append([]byte(nil), `{"version":1,"subscription":{`...)
	for i, topic := range slices.Sorted(maps.Keys(c.Subscription)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, topic), ':')
		dst = appendInt(dst, int64(c.Subscription[topic]))
	}
	dst = appendString(append(dst, `},"pattern":`...), c.Pattern)
	dst = appendDecimal(append(dst, `,"timestamp":`...), c.Timestamp)
	return append(dst, '}')
}

// DecodeConsumerRegistration requires subscription and pattern.
func DecodeConsumerRegistration(data []byte) (ConsumerRegistration, error) {
	p := parse("consumer registration", data)
	var c ConsumerRegistration
	for key := range p.fields() {
		switch string(key) {
		case "subscription":
			c.Subscription = map[string]int32{}
			for key := range p.fields() {
				topic := string(key)
				c.Subscription[topic] = p.int32()
			}
		case "pattern":
			c.Pattern = p.string()
		case "timestamp":
			c.Timestamp = p.timestamp()
		default:
			p.skip()
		}
	}
	p.require(c.Subscription != nil, "subscription")
	p.require(c.Pattern != "", "pattern")
	if p.err != nil {
		return ConsumerRegistration{}, p.err
	}
	return c, nil
}

// EncodeConsumerOffset writes decimal text.
func EncodeConsumerOffset(offset int64) []byte { return appendInt(nil, offset) }

// DecodeConsumerOffset reads decimal text.
func DecodeConsumerOffset(data []byte) (int64, error) {
	return decodeDecimal("consumer offset", data, 64)
}
