package config

import (
	"encoding/base64"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
)

// EntityKind is a kind of entity under /config that has properties of its own
// besides topics and brokers.
type EntityKind int8

// The kinds of entities.
const (
	Users EntityKind = iota
	Clients
	IPs
)

var quotaDefinitions = []Definition{
	def("producer_byte_rate", TypeLong, "9223372036854775807", anything, Medium, ClusterWide,
		"Bytes a second that a client may produce to one broker."),
	def("consumer_byte_rate", TypeLong, "9223372036854775807", anything, Medium, ClusterWide,
		"Bytes a second that a client may fetch from one broker."),
	def("request_percentage", TypeDouble, "2.147483647E9", anything, Medium, ClusterWide,
		"The share of one broker's worker time that a client may use, in percent of one worker."),
	def("controller_mutation_rate", TypeDouble, "2.147483647E9", anything, Medium, ClusterWide,
		"Partitions a second that a client may create, add or delete."),
}

var scramDefinitions = []Definition{
	def("SCRAM-SHA-256", TypeString, null, scramCredential, Medium, ClusterWide,
		"The user's credential for SCRAM with SHA-256."),
	def("SCRAM-SHA-512", TypeString, null, scramCredential, Medium, ClusterWide,
		"The user's credential for SCRAM with SHA-512."),
}

var ipDefinitions = []Definition{
	def("connection_creation_rate", TypeInt, "2147483647", atLeast(0), Medium, ClusterWide,
		"New connections a second from the address."),
}

var entityTables = map[EntityKind]*table{
	Users:   makeTable(quotaDefinitions, scramDefinitions),
	Clients: makeTable(quotaDefinitions),
	IPs:     makeTable(ipDefinitions),
}

// EntityDefinitions returns the definitions of an entity's properties, by name.
// The caller must not change what they point to.
func EntityDefinitions(kind EntityKind) []*Definition { return slices.Clone(entityTables[kind].sorted) }

// ValidateEntity checks quota properties (and SCRAM credentials of users) as
// they stand under /config/users, /config/clients and /config/ips
// (DynamicConfig.User, .Client and .Ip). The error is an [Errors].
func ValidateEntity(kind EntityKind, props map[string]string) error {
	var p problems
	for _, key := range slices.Sorted(maps.Keys(props)) {
		d := entityTables[kind].get(key)
		if d == nil {
			p.add(UnknownKey, key, "Unknown Dynamic Configuration: Set("+key+").")
			continue
		}
		if v, reason := d.parse(props[key]); reason != "" {
			if key == "SCRAM-SHA-256" || key == "SCRAM-SHA-512" {
				v = "[hidden]"
			}
			p.value(d, key, props[key], v, reason)
		}
	}
	return p.err()
}

// ValidIPEntity reports whether name can be an entity under /config/ips: an
// address, a host name that resolves is not looked up here, or <default>.
func ValidIPEntity(name string) bool { return name == "<default>" || net.ParseIP(name) != nil }

// scramCredential is salt=<base64>,stored_key=<base64>,server_key=<base64>,iterations=<n>
// (ScramCredentialUtils), in any order.
var scramCredential = Validator{text: "salt=...,stored_key=...,server_key=...,iterations=...", fn: func(x value) string {
	const reason = "String must be salt=<base64>,stored_key=<base64>,server_key=<base64>,iterations=<number>"
	fields := map[string]string{}
	for part := range strings.SplitSeq(x.(string), ",") {
		k, v, ok := strings.Cut(part, "=")
		if !ok {
			return reason
		}
		fields[trim(k)] = v
	}
	if len(fields) != 4 {
		return reason
	}
	for _, k := range []string{"salt", "stored_key", "server_key"} {
		if b, err := base64.StdEncoding.DecodeString(fields[k]); err != nil || len(b) == 0 {
			return reason
		}
	}
	if n, err := strconv.Atoi(fields["iterations"]); err != nil || n < 1 {
		return reason
	}
	return ""
}}
