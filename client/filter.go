package client

import (
	"fmt"
	"regexp"
	"strings"
)

// TopicFilter picks topics by a regular expression that must match the whole
// name (kafka.consumer.TopicFilter).
type TopicFilter struct {
	expression string
	black      bool
	compiled   *regexp.Regexp
}

// WhiteList picks the topics that match. In the expression, blanks at its ends,
// spaces, and quotes around it are dropped, and a comma stands for |, so that
// "a, b" picks two topics. Syntax is RE2's: what Java has beyond it, looking
// ahead and behind and back references, is an error here.
func WhiteList(expression string) (TopicFilter, error) { return newFilter(expression, false) }

// BlackList picks the topics that do not match.
func BlackList(expression string) (TopicFilter, error) { return newFilter(expression, true) }

func newFilter(expression string, black bool) (TopicFilter, error) {
	e := strings.Trim(expression, "\x00\x01\x02\x03\x04\x05\x06\a\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f ") // String.trim
	e = strings.ReplaceAll(strings.ReplaceAll(e, ",", "|"), " ", "")
	e = strings.Trim(e, `"'`)
	compiled, err := regexp.Compile(`^(?:` + e + `)$`)
	if err != nil {
		return TopicFilter{}, fmt.Errorf("%w: topic filter %q: %w", ErrOption, expression, err)
	}
	return TopicFilter{e, black, compiled}, nil
}

// String returns the expression as it stands in ZooKeeper.
func (f TopicFilter) String() string { return f.expression }

// internalTopic is the one topic that kafka.common.Topic of 0.8.2 takes for
// internal. All members must agree on the topics of a filter, so
// __transaction_state, which came later, is not among them.
const internalTopic = "__consumer_offsets"

// Allows tells whether the filter picks a topic. hideInternal leaves out
// __consumer_offsets (exclude.internal.topics).
func (f TopicFilter) Allows(topic string, hideInternal bool) bool {
	if hideInternal && topic == internalTopic {
		return false
	}
	return f.compiled.MatchString(topic) != f.black
}
