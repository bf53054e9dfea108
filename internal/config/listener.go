package config

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Protocol is the security protocol of a listener. The numbers are Kafka's
// (SecurityProtocol.id), which UpdateMetadata and LeaderAndIsr carry.
type Protocol int16

// The security protocols.
const (
	Plaintext     Protocol = 0
	SSL           Protocol = 1
	SASLPlaintext Protocol = 2
	SASLSSL       Protocol = 3
)

var protocolNames = []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// String returns Kafka's name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
func (p Protocol) String() string { return protocolNames[p] }

// ParseProtocol is the reverse of [Protocol.String]; upper or lower case.
func ParseProtocol(name string) (Protocol, bool) {
	i := slices.Index(protocolNames, strings.ToUpper(name))
	return Protocol(max(i, 0)), i >= 0
}

// Listener is one end point: of listeners, where the broker binds, or of
// advertised.listeners, what it hands to clients.
type Listener struct {
	Name     string // upper case, such as PLAINTEXT or INTERNAL
	Protocol Protocol
	Host     string // "" in listeners means every interface; never in brackets
	Port     int    // 0 in listeners means that the system chooses
}

// Address returns host:port for net.Listen or net.Dial, IPv6 in brackets.
func (l Listener) Address() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

// String returns NAME://host:port, as in the endpoints of /brokers/ids/N.
func (l Listener) String() string { return l.Name + "://" + l.Address() }

// endPoint is what a listener looks like (org.apache.kafka.network.EndPoint).
var endPoint = regexp.MustCompile(`^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)$`)

// parseListener reads NAME://host:port.
func parseListener(s string, protocols map[string]Protocol) (l Listener, reason string) {
	m := endPoint.FindStringSubmatch(s)
	if m == nil {
		return l, fmt.Sprintf("%q is not NAME://host:port", s)
	}
	l.Name, l.Host = strings.ToUpper(m[1]), m[2]
	var ok bool
	if l.Protocol, ok = protocols[l.Name]; !ok {
		return l, "No security protocol defined for listener " + l.Name +
			"; add " + l.Name + ":PLAINTEXT or another protocol to listener.security.protocol.map"
	}
	port, err := strconv.Atoi(m[3])
	if err != nil || port < 0 || port > 65535 {
		return l, fmt.Sprintf("the port of %s is not 0 to 65535", s)
	}
	l.Port = port
	return l, ""
}

// parseListeners reads listeners or advertised.listeners. Only where sockets
// are bound must ports differ.
func parseListeners(p *problems, key, text string, protocols map[string]Protocol, bind bool) []Listener {
	var all []Listener
	for _, item := range splitList(text) {
		l, reason := parseListener(item, protocols)
		if reason != "" {
			p.add(Conflict, key, fmt.Sprintf("Error creating broker listeners from '%s': %s", text, reason))
			return nil
		}
		for _, other := range all {
			p.conflict(other.Name != l.Name, key, "Each listener must have a different name, "+key+": "+text)
			p.conflict(!bind || other.Port != l.Port || l.Port == 0 || differentFamilies(other.Host, l.Host), key,
				"Each listener must have a different port, unless one has an IPv4 and the other an IPv6 address, "+key+": "+text)
		}
		all = append(all, l)
	}
	return all
}

// differentFamilies reports whether one host is an IPv4 and the other an IPv6
// address: those may share a port (KIP-797).
func differentFamilies(a, b string) bool {
	ipA, ipB := net.ParseIP(a), net.ParseIP(b)
	return ipA != nil && ipB != nil && (ipA.To4() == nil) != (ipB.To4() == nil)
}

// parseProtocolMap reads listener.security.protocol.map.
func parseProtocolMap(p *problems, text string) map[string]Protocol {
	const key = "listener.security.protocol.map"
	protocols := map[string]Protocol{}
	for _, item := range splitList(text) {
		i := strings.LastIndexByte(item, ':')
		if i <= 0 {
			p.add(Conflict, key, fmt.Sprintf("%q in %s is not NAME:PROTOCOL", item, key))
			continue
		}
		protocol, ok := ParseProtocol(trim(item[i+1:]))
		p.conflict(ok, key, fmt.Sprintf("Invalid security protocol `%s` defined in %s: it is none of %s",
			item[i+1:], key, strings.Join(protocolNames, ", ")))
		protocols[strings.ToUpper(trim(item[:i]))] = protocol
	}
	return protocols
}

// Listeners returns listeners in the order written; the caller must not change
// them.
func (b *Broker) Listeners() []Listener { return b.listeners }

// AdvertisedListeners returns advertised.listeners, or listeners when it is
// unset, with ports of 0 and empty hosts still unresolved; see
// [Broker.Advertise]. The caller must not change them.
func (b *Broker) AdvertisedListeners() []Listener { return b.advertised }

// Advertise returns what to hand to clients once the sockets are bound: ports
// of 0 are taken from bound (by listener name), an empty host becomes hostname.
func (b *Broker) Advertise(bound map[string]int, hostname string) []Listener {
	out := slices.Clone(b.advertised)
	for i := range out {
		if out[i].Port == 0 {
			out[i].Port = bound[out[i].Name]
		}
		if out[i].Host == "" {
			out[i].Host = hostname
		}
	}
	return out
}

// InterBrokerListener returns the name of the listener that brokers use among
// themselves.
func (b *Broker) InterBrokerListener() string { return b.interBroker }

// ControlPlaneListener returns the name of the listener for the controller's
// requests, or "" when they share the inter-broker listener (KIP-291).
func (b *Broker) ControlPlaneListener() string { return b.controlPlane }

// ListenerProtocol returns what listener.security.protocol.map says of a
// listener's name, be it one of this broker's or of another's.
func (b *Broker) ListenerProtocol(name string) (Protocol, bool) {
	p, ok := b.protocols[strings.ToUpper(name)]
	return p, ok
}
