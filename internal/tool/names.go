package tool

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"barnabas/client"

	"github.com/twmb/franz-go/pkg/kadm"
)

// isInternal tells whether Kafka counts a topic among its own.
func isInternal(topic string) bool {
	return topic == "__consumer_offsets" || topic == "__transaction_state"
}

// topicFilter is TopicFilter.IncludeList of Kafka's tools: a regular expression
// with a comma for |.
func topicFilter(expression string) (func(topic string, hideInternal bool) bool, error) {
	f, err := client.WhiteList(expression)
	if err != nil {
		return nil, terse("%s is an invalid regex.", expression)
	}
	return func(topic string, hideInternal bool) bool {
		return f.Allows(topic, false) && !(hideInternal && isInternal(topic))
	}, nil
}

// matching returns the topics, by name, that a filter lets pass; "" lets all.
func matching(all kadm.TopicDetails, expression string, hideInternal bool) ([]string, error) {
	allows := func(topic string, hide bool) bool { return !(hide && isInternal(topic)) }
	if expression != "" {
		var err error
		if allows, err = topicFilter(expression); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, t := range all.Names() {
		if allows(t, hideInternal) {
			names = append(names, t)
		}
	}
	slices.Sort(names)
	return names, nil
}

// collides tells whether a topic's name may be that of another in metrics.
func collides(topic string) bool { return strings.ContainsAny(topic, "._") }

// hashOrder puts keys in the order in which a java.util.HashMap of that many
// entries gives them out.
func hashOrder(keys []string, entries int) {
	capacity := 16
	for entries > capacity*3/4 {
		capacity *= 2
	}
	bucket := func(s string) uint32 {
		var h uint32
		for _, u := range utf16.Encode([]rune(s)) {
			h = 31*h + uint32(u)
		}
		return (h ^ h>>16) & uint32(capacity-1)
	}
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(bucket(a), bucket(b)) })
}

func joinInts(list []int32, between string) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(itoa(n))
	}
	return b.String()
}

// sortedKeys are a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
