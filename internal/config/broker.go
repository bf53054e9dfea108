package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Broker is an immutable snapshot of a broker's properties.
type Broker struct {
	// What was set, as it was written, layer by layer.
	perBroker, clusterWide, static map[string]string
	// defaults is Kafka's defaults with ours in their place.
	defaults map[string]string

	// set is the layers put together, strongest on top.
	set map[string]string
	// values has every defined property, parsed; nil for null.
	values map[string]value

	id           int32
	ibp          IBP
	zookeeper    Connect
	listeners    []Listener
	advertised   []Listener
	protocols    map[string]Protocol // by listener name
	interBroker  string
	controlPlane string

	topicValues  map[string]value // what a topic without overrides has
	topicDefault *Topic
}

// Format prints next to nothing: a snapshot holds passwords.
func (b *Broker) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "config.Broker(%d)", b.id) }

// NewBroker makes a snapshot from static properties alone, as if they stood in
// server.properties. The error is an [Errors].
func NewBroker(static map[string]string) (*Broker, error) {
	var p problems
	b := build(static, nil, nil, &p)
	if err := p.err(); err != nil {
		return nil, err
	}
	return b, nil
}

// build makes a snapshot and gathers what is wrong with it; with problems, the
// snapshot must not be handed out.
func build(static, perBroker, clusterWide map[string]string, p *problems) *Broker {
	b := &Broker{perBroker: maps.Clone(perBroker), clusterWide: maps.Clone(clusterWide)}
	var twin string
	b.static, twin = withTwin(static, "broker.id", "node.id")
	b.set = maps.Clone(b.static)
	override(b.set, clusterWide)
	override(b.set, perBroker)
	b.defaults = defaultsFor(b.set)
	b.values = b.parseAll(b.set, p)
	// What is wrong with a value is said once, with the name that was written.
	p.list = slices.DeleteFunc(p.list, func(e *Error) bool { return e.Key == twin })
	b.id = int32(b.values["broker.id"].(int64))
	b.derive(p)
	return b
}

// withTwin copies a layer; where one of two names of the same thing is set, so
// becomes the other, whose name is returned (KafkaConfig.populateSynonyms).
func withTwin(layer map[string]string, a, b string) (out map[string]string, twin string) {
	out = make(map[string]string, len(layer)+1)
	maps.Copy(out, layer)
	va, hasA := out[a]
	vb, hasB := out[b]
	switch {
	case hasA && !hasB:
		out[b] = va
		return out, b
	case hasB && !hasA:
		out[a] = vb
		return out, a
	}
	return out, ""
}

// override puts a dynamic layer on top of what is set. A dynamic value also
// takes away what the other names of its family say: log.retention.ms set while
// running makes a log.retention.hours of the file unset
// (DynamicBrokerConfig.overrideProps).
func override(set, layer map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(layer)) {
		if !strings.HasPrefix(key, listenerPrefix) {
			for _, synonym := range brokerSynonyms(key) {
				delete(set, synonym)
			}
		}
		set[key] = layer[key]
	}
}

// parseAll parses what is set, and the defaults of the rest.
func (b *Broker) parseAll(set map[string]string, p *problems) map[string]value {
	values := make(map[string]value, len(brokerTable.sorted))
	for _, d := range brokerTable.sorted {
		text, ok := set[d.Name]
		if !ok {
			if text, ok = b.defaults[d.Name]; !ok {
				values[d.Name] = nil
				continue
			}
		}
		values[d.Name] = parseInto(p, d, d.Name, text)
	}
	for key, text := range set {
		if brokerTable.get(key) == nil {
			if d := brokerDefinition(key); d != nil {
				parseInto(p, d, key, text)
			}
		}
	}
	return values
}

// parseInto parses a value; in the place of a bad one it returns the default,
// so that the checks that follow can go on.
func parseInto(p *problems, d *Definition, key, text string) value {
	v, reason := d.parse(text)
	if reason == "" {
		return v
	}
	p.value(d, key, text, v, reason)
	if !d.HasDefault {
		return nil
	}
	v, _ = d.parse(d.Default)
	return v
}

// ID returns broker.id (or node.id), or -1 while it has still to be taken from
// meta.properties or generated.
func (b *Broker) ID() int32 { return b.id }

// WithID returns a snapshot that carries a generated broker id. What broker.id
// says is left as it is, as in Kafka.
func (b *Broker) WithID(id int32) *Broker {
	c := *b
	c.id = id
	return &c
}

// LogDirs returns log.dirs, or else log.dir, in the order they are written.
func (b *Broker) LogDirs() []string {
	dirs := b.String("log.dirs")
	if !b.Has("log.dirs") {
		dirs = b.String("log.dir")
	}
	return splitList(dirs)
}

// splitList cuts a comma-separated text; blanks around the parts and empty
// parts go away.
func splitList(s string) []string {
	var parts []string
	for part := range strings.SplitSeq(s, ",") {
		if part = trim(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// IBP returns inter.broker.protocol.version.
func (b *Broker) IBP() IBP { return b.ibp }

// EmbeddedKeeper reports whether zookeeper.connect is unset, so that the
// broker runs its own ZooKeeper server.
func (b *Broker) EmbeddedKeeper() bool { return len(b.zookeeper.Servers) == 0 }

// ZooKeeper returns zookeeper.connect taken apart.
func (b *Broker) ZooKeeper() Connect { return b.zookeeper }

// definition returns the definition of a key. It panics when there is none: a
// mistake in the program, not in the input.
func (b *Broker) definition(key string) *Definition {
	d := brokerTable.get(key)
	if d == nil {
		panic("config: no broker property is called " + key)
	}
	return d
}

func typed[T any](b *Broker, key string) (v T) {
	x, ok := b.values[key]
	if !ok || x == nil {
		b.definition(key)
		return v
	}
	v, ok = x.(T)
	if !ok {
		panic("config: " + key + " is of type " + b.definition(key).Type.String())
	}
	return v
}

// Has reports whether the key has a value that is not null.
func (b *Broker) Has(key string) bool { return b.values[b.definition(key).Name] != nil }

// Bool returns the value of a boolean property.
func (b *Broker) Bool(key string) bool { return typed[bool](b, key) }

// Int returns the value of an int, short or long property (0 for null).
func (b *Broker) Int(key string) int { return int(typed[int64](b, key)) }

// Int16 returns the value of a short property (0 for null).
func (b *Broker) Int16(key string) int16 { return int16(typed[int64](b, key)) }

// Int32 returns the value of an int or short property (0 for null).
func (b *Broker) Int32(key string) int32 { return int32(typed[int64](b, key)) }

// Int64 returns the value of an int, short or long property (0 for null).
func (b *Broker) Int64(key string) int64 { return typed[int64](b, key) }

// Float64 returns the value of a double property (0 for null).
func (b *Broker) Float64(key string) float64 { return typed[float64](b, key) }

// String returns the value of a string, class or password property ("" for null).
func (b *Broker) String(key string) string { return typed[string](b, key) }

// List returns the value of a list property; the caller must not change it.
func (b *Broker) List(key string) []string { return typed[[]string](b, key) }

// units are what the last word of a key says about its number.
var units = map[string]time.Duration{
	"ms": time.Millisecond, "seconds": time.Second, "secs": time.Second,
	"minutes": time.Minute, "hours": time.Hour,
}

// Duration returns the value of an integer property as a time span, its unit
// taken from the key's ending: ms, seconds, secs, minutes or hours. A value too
// large for a Duration becomes the largest one; null is 0.
func (b *Broker) Duration(key string) time.Duration {
	n := b.Int64(key)
	unit, ok := units[key[strings.LastIndexByte(key, '.')+1:]]
	if !ok {
		panic("config: the name of " + key + " ends with no unit of time")
	}
	return span(n, unit)
}

func span(n int64, unit time.Duration) time.Duration {
	if limit := math.MaxInt64 / int64(unit); n > limit || n < -limit {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}

// ForListener returns a view in which properties written with the prefix
// listener.name.<name>. of this listener replace the plain ones (KIP-103).
func (b *Broker) ForListener(name string) *Broker {
	prefix := listenerPrefix + strings.ToLower(name) + "."
	own := map[string]string{}
	for key, text := range b.set {
		if base, ok := strings.CutPrefix(key, prefix); ok && brokerTable.get(base) != nil {
			own[base] = text
		}
	}
	if len(own) == 0 {
		return b
	}
	c := *b
	c.values = maps.Clone(b.values)
	for key, text := range own {
		c.values[key], _ = brokerTable.get(key).parse(text)
	}
	return &c
}

// SetForListener tells whether a property is set with the prefix of a listener.
func (b *Broker) SetForListener(listener, key string) bool {
	_, ok := b.set[listenerPrefix+strings.ToLower(listener)+"."+b.definition(key).Name]
	return ok
}

// MechanismProperty returns a property of a SASL mechanism on a listener, which
// stands under listener.name.<listener>.<mechanism>.<base>, or else under
// <mechanism>.<base>, and the key under which it stands or should.
func (b *Broker) MechanismProperty(listener, mechanism, base string) (text, key string) {
	plain := strings.ToLower(mechanism) + "." + base
	key = listenerPrefix + strings.ToLower(listener) + "." + plain
	text, ok := b.set[key]
	if !ok {
		if text, ok = b.set[plain]; ok {
			key = plain
		}
	}
	return trim(text), key
}

// MaxReauth returns connections.max.reauth.ms for a mechanism of a listener.
func (b *Broker) MaxReauth(listener, mechanism string) time.Duration {
	const base = "connections.max.reauth.ms"
	if text, _ := b.MechanismProperty(listener, mechanism, base); text != "" {
		if v, reason := brokerTable.get(base).parse(text); reason == "" {
			return span(v.(int64), time.Millisecond)
		}
	}
	return b.ForListener(listener).Duration(base)
}
