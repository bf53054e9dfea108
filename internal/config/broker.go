package config

import "time"

// Broker is an immutable snapshot of a broker's properties.
type Broker struct{}

// NewBroker makes a snapshot from static properties alone, as if they stood in
// server.properties.
func NewBroker(static map[string]string) (*Broker, error) { panic("todo") }

// ID returns broker.id (or node.id), or -1 while it has still to be taken from
// meta.properties or generated.
func (b *Broker) ID() int32 { panic("todo") }

// WithID returns a snapshot that carries a generated broker id.
func (b *Broker) WithID(id int32) *Broker { panic("todo") }

// LogDirs returns log.dirs, or else log.dir, in the order they are written.
func (b *Broker) LogDirs() []string { panic("todo") }

// IBP returns inter.broker.protocol.version.
func (b *Broker) IBP() IBP { panic("todo") }

// EmbeddedKeeper reports whether zookeeper.connect is unset, so that the
// broker runs its own ZooKeeper server.
func (b *Broker) EmbeddedKeeper() bool { panic("todo") }

// ZooKeeper returns zookeeper.connect taken apart.
func (b *Broker) ZooKeeper() Connect { panic("todo") }

// Connect is a ZooKeeper connect string: servers, each host:port, and a chroot
// ("" for none, else it begins with a slash and does not end with one).
type Connect struct {
	Servers []string
	Chroot  string
}

// Has reports whether the key has a value that is not null.
func (b *Broker) Has(key string) bool { panic("todo") }

// Bool returns the value of a boolean property.
func (b *Broker) Bool(key string) bool { panic("todo") }

// Int returns the value of an int, short or long property (0 for null).
func (b *Broker) Int(key string) int { panic("todo") }

// Int16 returns the value of a short property (0 for null).
func (b *Broker) Int16(key string) int16 { panic("todo") }

// Int32 returns the value of an int or short property (0 for null).
func (b *Broker) Int32(key string) int32 { panic("todo") }

// Int64 returns the value of an int, short or long property (0 for null).
func (b *Broker) Int64(key string) int64 { panic("todo") }

// Float64 returns the value of a double property (0 for null).
func (b *Broker) Float64(key string) float64 { panic("todo") }

// String returns the value of a string, class or password property ("" for null).
func (b *Broker) String(key string) string { panic("todo") }

// List returns the value of a list property; the caller must not change it.
func (b *Broker) List(key string) []string { panic("todo") }

// Duration returns the value of an integer property as a time span, its unit
// taken from the key's ending: ms, seconds, secs, minutes or hours. A value too
// large for a Duration becomes the largest one; null is 0.
func (b *Broker) Duration(key string) time.Duration { panic("todo") }

// With returns the snapshot that results when the broker's own dynamic
// properties and the cluster-wide dynamic defaults are these (whole maps, as
// /config/brokers/N and /config/brokers/<default> hold them). The error names
// every property that Kafka would refuse.
func (b *Broker) With(perBroker, clusterWide map[string]string) (*Broker, error) { panic("todo") }

// ForListener returns a view in which properties written with the prefix
// listener.name.<name>. of this listener replace the plain ones.
func (b *Broker) ForListener(name string) *Broker { panic("todo") }

// Topic resolves a topic's properties: its overrides, else what the broker's
// properties of the matching names say. The error names every bad override.
func (b *Broker) Topic(overrides map[string]string) (*Topic, error) { panic("todo") }
