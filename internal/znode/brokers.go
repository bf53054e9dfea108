package znode

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	// BrokerIDs is the parent of the ephemeral registrations.
	BrokerIDs = "/brokers/ids"
	// BrokerSeqID counts generated broker ids: a setData of no data gives the
	// new data version, to which reserved.broker.max.id is added.
	BrokerSeqID = "/brokers/seqid"
)

// BrokerPath is the registration of broker id.
func BrokerPath(id int32) string { return BrokerIDs + "/" + strconv.Itoa(int(id)) }

// ParseBrokerID reads the name of a child of BrokerIDs; else ErrPath.
func ParseBrokerID(name string) (int32, error) { return parseID(name) }

// GeneratedBrokerID is the id for the data version that setting BrokerSeqID
// gave; reservedMax is reserved.broker.max.id.
func GeneratedBrokerID(version, reservedMax int32) int32 { return version + reservedMax }

// Endpoint is one advertised listener.
type Endpoint struct {
	Listener string // listener name, upper case: "PLAINTEXT", "INTERNAL"
	Protocol string // security protocol: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
	Host     string // "" when the registration names none
	Port     int32
}

// String gives the form of "endpoints": LISTENER://host:port, with brackets
// around an IPv6 address (kafka.cluster.EndPoint.connectionString).
func (e Endpoint) String() string {
	host := e.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return e.Listener + "://" + host + ":" + strconv.Itoa(int(e.Port))
}

// VersionRange is the span of one feature that a broker supports (KIP-584).
type VersionRange struct{ Min, Max int16 }

// Broker is a registration, the data of /brokers/ids/N.
//
// Versions: 1 (0.8) host and port only; 2 (0.9) endpoints; 3 rack, never
// written by a release; 4 (0.10.0-IV1, KIP-103) listener_security_protocol_map;
// 5 (2.7-IV0, KIP-584) features. The creating zxid of the node is the broker
// epoch.
type Broker struct {
	Version   int32
	Endpoints []Endpoint // from version 2 on
	// Host and Port are for clients of 0.8: of the first PLAINTEXT endpoint,
	// or "" (written as null) and -1 when there is none.
	Host      string
	Port      int32
	JMXPort   int32   // -1: none
	Timestamp int64   // of the registration, in ms since 1970; 0 when unreadable
	Rack      *string // broker.rack, from version 3 on; nil: none
	Features  map[string]VersionRange
}

// NewBroker fills Host and Port from endpoints. Version is the one to write:
// 5 for inter.broker.protocol.version 2.7-IV0 and later, 4 down to
// 0.10.0-IV1, else 2. Timestamp is in ms.
func NewBroker(version int32, endpoints []Endpoint, rack *string, timestamp int64) Broker {
	b := Broker{Version: version, Endpoints: endpoints, Port: -1, JMXPort: -1, Timestamp: timestamp, Rack: rack}
	for _, e := range endpoints {
		if e.Protocol == plaintext {
			b.Host, b.Port = e.Host, e.Port
			break
		}
	}
	return b
}

const plaintext = "PLAINTEXT"

// Encode writes the layout of b.Version, which must be 1 to 5; other values
// are taken as the nearest one.
func (b Broker) Encode() []byte {
	version := min(max(b.Version, 1), 5)
	dst := make([]byte, 0, 256)
	dst = append(dst, '{')
	if version >= 5 {
		dst = b.appendFeatures(dst)
	}
	if version >= 4 {
		dst = b.appendProtocols(dst)
	}
	if version >= 2 {
		names := make([]string, len(b.Endpoints))
		for i, e := range b.Endpoints {
			names[i] = e.String()
		}
		dst = appendStrings(append(dst, `"endpoints":`...), names)
		dst = append(dst, ',')
	}
	if version >= 3 && b.Rack != nil {
		dst = appendString(append(dst, `"rack":`...), *b.Rack)
		dst = append(dst, ',')
	}
	dst = appendInt(append(dst, `"jmx_port":`...), int64(b.JMXPort))
	dst = appendInt(append(dst, `,"port":`...), int64(b.Port))
	dst = append(dst, `,"host":`...)
	if b.Host == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendString(dst, b.Host)
	}
	dst = appendInt(append(dst, `,"version":`...), int64(version))
	dst = appendDecimal(append(dst, `,"timestamp":`...), b.Timestamp)
	return append(dst, '}')
}

func (b Broker) appendFeatures(dst []byte) []byte {
	dst = append(dst, `"features":{`...)
	for i, name := range slices.Sorted(maps.Keys(b.Features)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		span := b.Features[name]
		dst = append(appendString(dst, name), `:{"min_version":`...)
		dst = appendInt(dst, int64(span.Min))
		dst = appendInt(append(dst, `,"max_version":`...), int64(span.Max))
		dst = append(dst, '}')
	}
	return append(dst, "},"...)
}

func (b Broker) appendProtocols(dst []byte) []byte {
	dst = append(dst, `"listener_security_protocol_map":{`...)
	for i, e := range b.Endpoints {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, e.Listener), ':')
		dst = appendString(dst, e.Protocol)
	}
	return append(dst, "},"...)
}

// DecodeBroker reads any version from 1 on (Kafka takes the layout of 5 for
// later ones too). It requires version and jmx_port, with version 1 host and
// port, above it endpoints. Without a listener map, a listener's name is its
// protocol.
func DecodeBroker(data []byte) (Broker, error) {
	const kind = "broker registration"
	p := parse(kind, data)
	b := Broker{Port: -1}
	var protocols map[string]string
	var names []string
	var version, jmx, host, port, endpoints bool
	for key := range p.fields() {
		switch string(key) {
		case "version":
			b.Version, version = p.int32(), true
		case "jmx_port":
			b.JMXPort, jmx = p.int32(), true
		case "host":
			if host = !p.null(); host {
				b.Host = p.string()
			}
		case "port":
			b.Port, port = p.int32(), true
		case "timestamp":
			b.Timestamp = p.timestamp()
		case "endpoints":
			names, endpoints = p.strings(), true
		case "rack":
			if b.Rack = nil; !p.null() {
				rack := p.string()
				b.Rack = &rack
			}
		case "listener_security_protocol_map":
			protocols = p.stringMap()
		case "features":
			b.Features = p.features()
		default:
			p.skip()
		}
	}
	p.require(version, "version")
	p.require(jmx, "jmx_port")
	switch {
	case p.err != nil:
	case b.Version < 1:
		return Broker{}, badVersion(kind, b.Version)
	case b.Version == 1:
		p.require(host, "host")
		p.require(port, "port")
		b.Endpoints = []Endpoint{{plaintext, plaintext, b.Host, b.Port}}
	default:
		p.require(endpoints, "endpoints")
		for _, name := range names {
			e, err := ParseEndpoint(name, protocols)
			if err != nil {
				p.key = []byte("endpoints")
				p.fail(strconv.Quote(name) + ": " + err.Error())
				break
			}
			b.Endpoints = append(b.Endpoints, e)
		}
	}
	if p.err != nil {
		return Broker{}, p.err
	}
	return b, nil
}

var (
	errEndpoint = errors.New("not LISTENER://host:port")
	errProtocol = errors.New("no known security protocol for this listener")
)

// ParseEndpoint reads LISTENER://host:port. protocols maps listener names to
// security protocols; nil: the name is the protocol. The name is made upper
// case (kafka.cluster.EndPoint.createEndPoint).
func ParseEndpoint(text string, protocols map[string]string) (Endpoint, error) {
	name, rest, ok := strings.Cut(text, "://")
	colon := strings.LastIndexByte(rest, ':')
	if !ok || colon < 0 {
		return Endpoint{}, errEndpoint
	}
	port, err := strconv.ParseInt(rest[colon+1:], 10, 32)
	host := rest[:colon]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if err != nil || strings.ContainsAny(host, "/[] ") {
		return Endpoint{}, errEndpoint
	}
	e := Endpoint{Listener: strings.ToUpper(name), Host: host, Port: int32(port)}
	e.Protocol = e.Listener
	if protocols != nil {
		if e.Protocol, ok = protocols[e.Listener]; !ok {
			return Endpoint{}, errProtocol
		}
	}
	switch e.Protocol = strings.ToUpper(e.Protocol); e.Protocol {
	case plaintext, "SSL", "SASL_PLAINTEXT", "SASL_SSL":
		return e, nil
	}
	return Endpoint{}, errProtocol
}

func (p *parser) stringMap() map[string]string {
	m := map[string]string{}
	for key := range p.fields() {
		name := string(key)
		m[name] = p.string()
	}
	return m
}

func (p *parser) features() map[string]VersionRange {
	m := map[string]VersionRange{}
	for key := range p.fields() {
		name := string(key)
		var span VersionRange
		var low, high bool
		for key := range p.fields() {
			switch string(key) {
			case "min_version":
				span.Min, low = int16(p.integer(16)), true
			case "max_version":
				span.Max, high = int16(p.integer(16)), true
			default:
				p.skip()
			}
		}
		p.require(low, "min_version")
		p.require(high, "max_version")
		m[name] = span
	}
	return m
}
