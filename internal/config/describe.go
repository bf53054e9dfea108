package config

// Entry is one property in an answer of DescribeConfigs.
type Entry struct {
	Name      string
	Value     *string // nil for null and for sensitive values
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Type      Type
	Synonyms  []Synonym // strongest first; always filled, the caller drops them when not asked for
	Doc       string
}

// Synonym is one of the values an entry could have taken, and its source.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// Describe returns the broker's properties for DescribeConfigs: all of them,
// or those named by keys (nil for all). Unknown keys are left out.
func (b *Broker) Describe(keys []string) []Entry { panic("todo") }

// DescribeDefault returns the cluster-wide dynamic defaults, for
// DescribeConfigs of the broker with the empty name.
func (b *Broker) DescribeDefault(keys []string) []Entry { panic("todo") }

// DescribeTopic returns a topic's properties for DescribeConfigs.
func (b *Broker) DescribeTopic(overrides map[string]string, keys []string) ([]Entry, error) {
	panic("todo")
}
