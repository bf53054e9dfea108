package config

import (
	"slices"
	"strings"
)

var (
	brokerTable = makeTable(serverDefinitions, clusterDefinitions, logDefinitions,
		coordinatorDefinitions, securityDefinitions, unusedDefinitions)
	topicTable = makeTable(topicDefinitions)
)

func sortDefinitions(d []*Definition) {
	slices.SortFunc(d, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
}

// BrokerDefinitions returns the definitions of all broker properties, by name.
// The caller must not change what they point to.
func BrokerDefinitions() []*Definition { return slices.Clone(brokerTable.sorted) }

// TopicDefinitions returns the definitions of all topic properties, by name.
// The caller must not change what they point to.
func TopicDefinitions() []*Definition { return slices.Clone(topicTable.sorted) }

// synonymFamilies are the broker properties of which an earlier one, when set,
// hides the later ones (DynamicBrokerConfig.brokerConfigSynonyms).
var synonymFamilies = [][]string{
	{"log.roll.ms", "log.roll.hours"},
	{"log.roll.jitter.ms", "log.roll.jitter.hours"},
	{"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
}

// brokerSynonyms returns the names that can give the property its value,
// strongest first: for listener.name.<listener>.<key> that and the plain key
// (and, for SASL, the key without its mechanism), for a member of a family the
// whole family.
func brokerSynonyms(name string) []string {
	if name == "log.flush.interval.ms" {
		return []string{name, "log.flush.scheduler.interval.ms"}
	}
	for _, f := range synonymFamilies {
		if slices.Contains(f, name) {
			return f
		}
	}
	if base, ok := listenerKey(name); ok {
		for _, key := range mechanismKeys {
			if strings.HasSuffix(base, "."+key) {
				base = key
			}
		}
		return []string{name, base}
	}
	return []string{name}
}

const listenerPrefix = "listener.name."

// listenerKey takes listener.name.<listener>. off a key. A listener's name has
// no dot in it.
func listenerKey(name string) (base string, ok bool) {
	rest, ok := strings.CutPrefix(name, listenerPrefix)
	if !ok {
		return "", false
	}
	listener, base, ok := strings.Cut(rest, ".")
	return base, ok && listener != "" && base != ""
}

// mechanismKeys may carry a SASL mechanism between the listener prefix and the
// key itself.
var mechanismKeys = []string{
	"sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class",
	"sasl.server.callback.handler.class", "connections.max.reauth.ms",
}

// mechanismKey takes a key of mechanismKeys apart that may stand with or without
// a listener's prefix; without a mechanism before it, mechanism is "".
func mechanismKey(name string) (mechanism, base string) {
	if under, ok := listenerKey(name); ok {
		name = under
	}
	for _, key := range mechanismKeys {
		if name == key {
			return "", key
		}
		if m, ok := strings.CutSuffix(name, "."+key); ok && !strings.Contains(m, ".") {
			return m, key
		}
	}
	return "", ""
}

// brokerDefinition finds the definition that a broker key is checked with, be
// it plain or prefixed with a listener; nil if there is none.
func brokerDefinition(name string) *Definition {
	if d := brokerTable.get(name); d != nil {
		return d
	}
	if _, ok := listenerKey(name); ok {
		return brokerTable.get(brokerSynonyms(name)[1])
	}
	return nil
}
