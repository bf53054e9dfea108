package config

import (
	"maps"
	"slices"
)

// Entry is one property in an answer of DescribeConfigs.
type Entry struct {
	Name      string
	Value     *string // nil for null and for sensitive values
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Type      Type
	Synonyms  []Synonym // strongest first; always filled, the caller drops them when not asked for
	Doc       string    // "" for a key that no definition has
}

// IsDefault is what v0 of the answer reports in the place of a source.
func (e *Entry) IsDefault() bool { return e.Source == SourceDefault }

// Synonym is one of the values an entry could have taken, and its source.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// Describe returns the broker's properties for DescribeConfigs, by name: all of
// them, or those named by keys (nil or empty for all). Unknown keys are left
// out; keys that are set but that no definition has are there without their
// value, since it may be a secret (ConfigHelper).
func (b *Broker) Describe(keys []string) []Entry {
	names := map[string]bool{}
	for _, d := range brokerTable.sorted {
		if !d.Hidden && !d.DynamicOnly && !d.Ours {
			names[d.Name] = true
		}
	}
	for key := range b.set {
		if d := brokerTable.get(key); d == nil || !d.Ours {
			names[key] = true
		}
	}
	var entries []Entry
	for _, name := range wanted(names, keys) {
		entries = append(entries, b.brokerEntry(name, b.brokerValue(name)))
	}
	return entries
}

// wanted returns the names to describe, in order.
func wanted(names map[string]bool, keys []string) []string {
	all := slices.Sorted(maps.Keys(names))
	if len(keys) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(keys, name) })
}

// brokerValue returns the value of a key as text, nil for null.
func (b *Broker) brokerValue(name string) *string {
	if brokerTable.get(name) == nil {
		text := b.set[name]
		return &text
	}
	v := b.values[name]
	if v == nil {
		return nil
	}
	text := format(v)
	return &text
}

func (b *Broker) brokerEntry(name string, text *string) Entry {
	d := brokerDefinition(name)
	e := Entry{Name: name, Value: text, Sensitive: d == nil || d.Sensitive(), Source: SourceDefault}
	if d != nil {
		e.Type, e.Doc = d.Type, d.Doc
	}
	// Only the plain names count as dynamic here, whatever can really be
	// changed: so says Kafka.
	e.ReadOnly = d == nil || d.Name != name || d.Mode == ReadOnly || d.DynamicOnly
	if e.Sensitive {
		e.Value = nil
	}
	e.Synonyms = b.synonyms(name, e.Sensitive)
	if len(e.Synonyms) > 0 {
		e.Source = e.Synonyms[0].Source
	}
	return e
}

// synonyms returns every value that the key could take, layer by layer, without
// those before the first that bears the key's own name (ConfigHelper
// .configSynonyms).
func (b *Broker) synonyms(name string, sensitive bool) []Synonym {
	var all []Synonym
	names := brokerSynonyms(name)
	for _, layer := range []struct {
		values map[string]string
		source Source
	}{
		{b.perBroker, SourceDynamicBroker},
		{b.clusterWide, SourceDynamicDefaultBroker},
		{b.static, SourceStaticBroker},
		{b.defaults, SourceDefault},
	} {
		for _, n := range names {
			if layer.source == SourceDefault && dynamicOnly(n) {
				continue // Kafka's table of defaults does not have them
			}
			if text, ok := layer.values[n]; ok {
				s := Synonym{Name: n, Source: layer.source}
				if !sensitive {
					s.Value = &text
				}
				all = append(all, s)
			}
		}
	}
	first := slices.IndexFunc(all, func(s Synonym) bool { return s.Name == name })
	if first < 0 {
		return nil
	}
	return all[first:]
}

// DescribeDefault returns the cluster-wide dynamic defaults, for
// DescribeConfigs of the broker with the empty name.
func (b *Broker) DescribeDefault(keys []string) []Entry {
	names := map[string]bool{}
	for key := range b.clusterWide {
		names[key] = true
	}
	var entries []Entry
	for _, name := range wanted(names, keys) {
		text := b.clusterWide[name]
		e := b.brokerEntry(name, &text)
		e.Synonyms = slices.DeleteFunc(e.Synonyms, func(s Synonym) bool { return s.Source != SourceDynamicDefaultBroker })
		e.Source = SourceDynamicDefaultBroker
		entries = append(entries, e)
	}
	return entries
}

// DescribeTopic returns a topic's properties for DescribeConfigs, by name: all
// of them, or those named by keys (nil or empty for all). Overrides that no
// definition has are there without their value. A bad override is described as
// it was written.
func (b *Broker) DescribeTopic(overrides map[string]string, keys []string) []Entry {
	names := map[string]bool{}
	for _, d := range topicTable.sorted {
		names[d.Name] = true
	}
	for key := range overrides {
		names[key] = true
	}
	var entries []Entry
	for _, name := range wanted(names, keys) {
		entries = append(entries, b.topicEntry(name, overrides))
	}
	return entries
}

func (b *Broker) topicEntry(name string, overrides map[string]string) Entry {
	d := topicTable.get(name)
	text, overridden := overrides[name]
	if d == nil {
		return Entry{Name: name, Sensitive: true, Source: SourceTopic, Synonyms: []Synonym{{name, nil, SourceTopic}}}
	}
	shown := format(b.topicValues[name])
	if overridden {
		shown = text
		if v, reason := d.parse(text); reason == "" {
			shown = format(v)
		}
	}
	e := Entry{Name: name, Value: &shown, Source: SourceDefault, Type: d.Type, Doc: d.Doc}
	if overridden {
		e.Synonyms = append(e.Synonyms, Synonym{name, &shown, SourceTopic})
	}
	if d.BrokerKey != "" {
		e.Synonyms = append(e.Synonyms, b.synonyms(d.BrokerKey, false)...)
	}
	if len(e.Synonyms) > 0 {
		e.Source = e.Synonyms[0].Source
	}
	return e
}

func dynamicOnly(name string) bool {
	d := brokerTable.get(name)
	return d != nil && d.DynamicOnly
}
