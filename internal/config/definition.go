package config

// Type is the type of a property's value. The numbers are those that
// DescribeConfigs v3 and later report (KIP-569).
type Type int8

// The types of properties.
const (
	TypeUnknown  Type = 0
	TypeBoolean  Type = 1
	TypeString   Type = 2
	TypeInt      Type = 3
	TypeShort    Type = 4
	TypeLong     Type = 5
	TypeDouble   Type = 6
	TypeList     Type = 7
	TypeClass    Type = 8
	TypePassword Type = 9
)

var typeNames = [...]string{"unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password"}

// String returns the name in lower case.
func (t Type) String() string { return typeNames[t] }

// Mode says when a broker property may change (KIP-226).
type Mode int8

// The modes of broker properties.
const (
	// ReadOnly properties come from server.properties and need a restart.
	ReadOnly Mode = iota
	// PerBroker properties may change while running, for one broker at a time.
	PerBroker
	// ClusterWide properties may change while running, for one broker or as
	// the default of all.
	ClusterWide
)

// String returns the name that Kafka's documentation uses.
func (m Mode) String() string { return [...]string{"read-only", "per-broker", "cluster-wide"}[m] }

// Source says where a value came from. The numbers are those of
// DescribeConfigs v1 and later.
type Source int8

// The sources of values, strongest first.
const (
	SourceTopic                Source = 1
	SourceDynamicBroker        Source = 2
	SourceDynamicDefaultBroker Source = 3
	SourceStaticBroker         Source = 4
	SourceDefault              Source = 5
)

// Importance is how much a reader of the documentation should care.
type Importance int8

// The grades of importance.
const (
	Low Importance = iota
	Medium
	High
)

// String returns the name in lower case.
func (i Importance) String() string { return [...]string{"low", "medium", "high"}[i] }

// Definition is what there is to know about a property.
type Definition struct {
	Name       string
	Type       Type
	Default    string // as it would be written; see HasDefault
	HasDefault bool   // false: null, which is how Kafka calls an unset value
	Valid      Validator
	Importance Importance
	Mode       Mode // of broker properties; topic and client properties may always change
	Doc        string

	// BrokerKey of a topic property names the broker property that holds its
	// default, if there is one.
	BrokerKey string
	// Hidden properties can be set but are never described (internal in
	// Kafka's ConfigDef).
	Hidden bool
	// Unused properties are known, checked and described, but change nothing
	// here; setting one to something else than its default brings a warning.
	Unused bool
	// DynamicOnly properties can't stand in server.properties
	// (DynamicConfig.Broker).
	DynamicOnly bool
	// Ours is a property that Kafka does not have; it is never described to
	// clients.
	Ours bool
}

// Sensitive reports whether the value must not be shown.
func (d *Definition) Sensitive() bool { return d.Type == TypePassword }

// NeedsRestart reports whether a new value counts only after a restart.
func (d *Definition) NeedsRestart() bool { return d.Mode == ReadOnly }

// null, as a default, is Kafka's null: not set and no default.
const null = "\x00"

func def(name string, t Type, dflt string, valid Validator, i Importance, m Mode, doc string) Definition {
	d := Definition{Name: name, Type: t, Default: dflt, HasDefault: true, Valid: valid, Importance: i, Mode: m, Doc: doc}
	if dflt == null {
		d.Default, d.HasDefault = "", false
	}
	return d
}

func (d Definition) hidden() Definition             { d.Hidden = true; return d }
func (d Definition) unused() Definition             { d.Unused = true; return d }
func (d Definition) dynamicOnly() Definition        { d.DynamicOnly = true; return d }
func (d Definition) ours() Definition               { d.Ours = true; return d }
func (d Definition) as(brokerKey string) Definition { d.BrokerKey = brokerKey; return d }

// table is a set of definitions by name.
type table struct {
	byName map[string]*Definition
	sorted []*Definition
}

func (t *table) get(name string) *Definition { return t.byName[name] }

func makeTable(groups ...[]Definition) *table {
	t := &table{byName: map[string]*Definition{}}
	for _, g := range groups {
		for i := range g {
			t.byName[g[i].Name] = &g[i]
			t.sorted = append(t.sorted, &g[i])
		}
	}
	sortDefinitions(t.sorted)
	return t
}
