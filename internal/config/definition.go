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
