package config

// EntityKind is a kind of entity under /config that has properties of its own
// besides topics and brokers.
type EntityKind int8

// The kinds of entities.
const (
	Users EntityKind = iota
	Clients
	IPs
)

// ValidateEntity checks quota properties (and SCRAM credentials of users) as
// they stand under /config/users, /config/clients and /config/ips.
func ValidateEntity(kind EntityKind, props map[string]string) error { panic("todo") }
