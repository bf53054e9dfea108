package api

import "strings"

// OffsetsTopic is the topic of committed offsets and group members.
const OffsetsTopic = "__consumer_offsets"

// TransactionsTopic is the topic of transaction states.
const TransactionsTopic = "__transaction_state"

// raftTopic is where KRaft keeps metadata; no topic may have its name.
const raftTopic = "__cluster_metadata"

// internalTopic tells whether clients see the topic as internal
// (org.apache.kafka.common.internals.Topic; the last is of share groups).
func internalTopic(name string) bool {
	return name == OffsetsTopic || name == TransactionsTopic || name == "__share_group_state"
}

// maxTopicName is the longest name of a topic: a folder name less "-" and a
// partition number.
const maxTopicName = 249

// badTopicName returns what is wrong with a topic's name, "" for nothing.
func badTopicName(name string) string {
	switch {
	case name == "":
		return "Topic name is invalid: the empty string is not allowed"
	case name == "." || name == "..":
		return "Topic name is invalid: '" + name + "' is not allowed"
	case len(name) > maxTopicName:
		return "Topic name is invalid: the length of '" + name + "' is longer than the max allowed length 249"
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return "Topic name is invalid: '" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
		}
	}
	return ""
}

// mayCollide tells whether another name can be equal to this one in metrics,
// where '.' and '_' are the same.
func mayCollide(name string) bool { return strings.ContainsAny(name, "._") }

// collide tells whether two different names are equal but for '.' and '_'.
func collide(a, b string) bool {
	return a != b && strings.ReplaceAll(a, ".", "_") == strings.ReplaceAll(b, ".", "_")
}
