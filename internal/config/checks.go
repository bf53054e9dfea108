package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// derive works out what follows from more than one property, and checks what
// Kafka checks across properties (KafkaConfig.validateValues), and that nothing
// is asked for that this broker can't do.
func (b *Broker) derive(p *problems) {
	b.deriveVersion(p)
	b.deriveListeners(p)
	var reason string
	b.zookeeper, reason = parseConnect(b.String("zookeeper.connect"))
	p.conflict(reason == "", "zookeeper.connect", "zookeeper.connect: "+reason)

	b.checkIdentity(p)
	b.checkUnsupported(p)
	b.checkLogs(p)
	b.checkReplication(p)
	b.checkRequests(p)
	b.checkGroups(p)
	b.deriveTopic(p)
}

func (b *Broker) deriveVersion(p *problems) {
	const key = "inter.broker.protocol.version"
	b.ibp = LatestIBP
	text := b.String(key)
	if resolveVersion(text) == "" {
		return // its definition has said so
	}
	v, err := ParseIBP(text)
	if err != nil {
		p.add(Conflict, key, key+": "+err.Error())
		return
	}
	b.ibp = v
}

func (b *Broker) deriveListeners(p *problems) {
	b.protocols = parseProtocolMap(p, b.String("listener.security.protocol.map"))
	b.listeners = parseListeners(p, "listeners", b.String("listeners"), b.protocols, true)
	advertisedKey := "listeners"
	b.advertised = b.listeners
	if b.Has("advertised.listeners") {
		advertisedKey = "advertised.listeners"
		b.advertised = parseListeners(p, advertisedKey, b.String(advertisedKey), b.protocols, false)
	}
	b.deriveInterBroker(p)
	if len(b.advertised) == 0 || len(b.listeners) == 0 {
		p.conflict(anyOf(p, advertisedKey, "listeners", "listener.security.protocol.map"), advertisedKey,
			"There must be at least one broker advertised listener.")
		return
	}
	names, bound := listenerNames(b.advertised), listenerNames(b.listeners)
	for _, l := range b.advertised {
		p.conflict(slices.Contains(bound, l.Name), "advertised.listeners",
			fmt.Sprintf("advertised.listeners must be among listeners: %s is not one of %s", l.Name, strings.Join(bound, ",")))
		p.conflict(l.Host != "0.0.0.0" && strings.Trim(l.Host, "0:") != "" || l.Host == "", advertisedKey,
			wildcardText(advertisedKey, l))
	}
	instead := ""
	if b.Has("security.inter.broker.protocol") { // both are too many
		instead = ", in place of security.inter.broker.protocol"
	}
	p.conflict(slices.Contains(names, b.interBroker), "inter.broker.listener.name",
		fmt.Sprintf("inter.broker.listener.name must be a listener name defined in advertised.listeners: %s is not one of %s; set inter.broker.listener.name=%s%s",
			b.interBroker, strings.Join(names, ","), names[0], instead))
	if b.controlPlane != "" {
		p.conflict(slices.Contains(names, b.controlPlane), "control.plane.listener.name",
			fmt.Sprintf("control.plane.listener.name must be a listener name defined in advertised.listeners: %s is not one of %s",
				b.controlPlane, strings.Join(names, ",")))
		p.conflict(b.controlPlane != b.interBroker, "control.plane.listener.name",
			"control.plane.listener.name and the inter-broker listener must not be the same: both are "+b.controlPlane)
	}
}

// anyOf reports whether one of these keys has been found wrong already.
func anyOf(p *problems, keys ...string) bool {
	return slices.ContainsFunc(p.list, func(e *Error) bool { return slices.Contains(keys, e.Key) })
}

func listenerNames(all []Listener) []string {
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.Name
	}
	return names
}

// wildcardText says what to write instead of an address that means every
// interface here and nothing to a client.
func wildcardText(key string, l Listener) string {
	if key == "listeners" {
		key = "advertised.listeners, which is not set and so the same as listeners,"
	}
	return fmt.Sprintf("%s cannot use the nonroutable meta-address %s: clients would be told to connect to it. "+
		"Write the name or address by which they reach this machine, such as advertised.listeners=%s://localhost:%d "+
		"or %s://broker1.example.com:%d", key, l.Host, l.Name, l.Port, l.Name, l.Port)
}

func (b *Broker) deriveInterBroker(p *problems) {
	protocol := b.String("security.inter.broker.protocol")
	b.interBroker = protocol
	if b.Has("inter.broker.listener.name") {
		b.interBroker = strings.ToUpper(b.String("inter.broker.listener.name"))
		_, both := b.set["security.inter.broker.protocol"]
		p.conflict(!both, "inter.broker.listener.name",
			"Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.")
		_, known := b.protocols[b.interBroker]
		p.conflict(known, "inter.broker.listener.name", fmt.Sprintf(
			"Listener with name %s defined in inter.broker.listener.name not found in listener.security.protocol.map.", b.interBroker))
	}
	if b.Has("control.plane.listener.name") {
		b.controlPlane = strings.ToUpper(b.String("control.plane.listener.name"))
		_, known := b.protocols[b.controlPlane]
		p.conflict(known, "control.plane.listener.name", fmt.Sprintf(
			"Listener with name %s defined in control.plane.listener.name not found in listener.security.protocol.map.", b.controlPlane))
	}
}

func (b *Broker) checkIdentity(p *problems) {
	p.conflict(b.id == b.Int32("node.id"), "node.id",
		"You must set `node.id` to the same value as `broker.id`, or leave one of them out.")
	if b.Bool("broker.id.generation.enable") {
		p.conflict(b.id >= -1 && b.id <= b.Int32("reserved.broker.max.id"), "broker.id",
			fmt.Sprintf("broker.id must be greater than or equal to -1 and not greater than reserved.broker.max.id (%d): it is %d",
				b.Int("reserved.broker.max.id"), b.id))
	} else {
		p.conflict(b.id >= 0, "broker.id",
			fmt.Sprintf("broker.id must be greater than or equal to 0 while broker.id.generation.enable is false: it is %d", b.id))
	}
	p.conflict(len(b.LogDirs()) > 0, "log.dirs", "At least one log directory must be defined via log.dirs or log.dir.")
}

// checkUnsupported refuses what would otherwise be ignored and change what the
// broker is or what it allows.
func (b *Broker) checkUnsupported(p *problems) {
	p.conflict(len(b.List("process.roles")) == 0, "process.roles",
		"process.roles asks for KRaft, which this broker does not have: take it out, and set zookeeper.connect or leave that out too")
	p.conflict(b.String("controller.listener.names") == "", "controller.listener.names",
		"controller.listener.names must not be set when not running in KRaft mode.")
	p.conflict(!b.Bool("zookeeper.metadata.migration.enable"), "zookeeper.metadata.migration.enable",
		"zookeeper.metadata.migration.enable: this broker can't move a cluster to KRaft")
	p.conflict(!b.Bool("remote.log.storage.system.enable"), "remote.log.storage.system.enable",
		"remote.log.storage.system.enable: this broker has no tiered storage")
	for _, key := range policyClasses {
		if class := b.String(key); class != "" && !slices.Contains(builtinClasses[key], class) {
			p.add(Conflict, key, fmt.Sprintf("%s: the Java class %s decides what clients may do, and this broker can't run it: leave it out only if they may do without", key, class))
		}
	}
}

// policyClasses are properties that name a Java class by which a cluster allows
// and refuses things: to go on without it would be worse than not to start.
var policyClasses = []string{
	"alter.config.policy.class.name", "authorizer.class.name", "create.topic.policy.class.name",
	"principal.builder.class", "sasl.server.callback.handler.class", "ssl.engine.factory.class",
}

// builtinClasses are Kafka's own classes whose work this broker does itself.
var builtinClasses = map[string][]string{
	"principal.builder.class": {"org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"},
}

func (b *Broker) checkLogs(p *problems) {
	p.conflict(b.rollMs() >= 1, "log.roll.ms", "log.roll.ms must be greater than or equal to 1")
	p.conflict(b.rollJitterMs() >= 0, "log.roll.jitter.ms", "log.roll.jitter.ms must be greater than or equal to 0")
	retention := b.retentionMs()
	p.conflict(retention >= 1 || retention == -1, "log.retention.ms",
		"log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
	threads := b.Int64("log.cleaner.threads")
	if threads == 0 {
		p.add(Conflict, "log.cleaner.threads", "log.cleaner.threads must be at least 1; to switch the cleaner off set log.cleaner.enable=false")
	} else {
		p.conflict(b.Int64("log.cleaner.dedupe.buffer.size")/threads > 1<<20, "log.cleaner.dedupe.buffer.size",
			"log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
	}
}

// firstOf returns the first of these properties that has a value, in
// milliseconds.
func (b *Broker) firstOf(keys ...string) int64 {
	for _, key := range keys {
		if b.Has(key) {
			unit := int64(units[key[strings.LastIndexByte(key, '.')+1:]] / units["ms"])
			if n := b.Int64(key); n > math.MaxInt64/unit {
				return math.MaxInt64
			} else {
				return n * unit
			}
		}
	}
	return 0
}

func (b *Broker) rollMs() int64 { return b.firstOf("log.roll.ms", "log.roll.hours") }
func (b *Broker) rollJitterMs() int64 {
	return b.firstOf("log.roll.jitter.ms", "log.roll.jitter.hours")
}

// retentionMs returns how long logs are kept, in milliseconds; every negative
// value means for ever.
func (b *Broker) retentionMs() int64 {
	return max(-1, b.firstOf("log.retention.ms", "log.retention.minutes", "log.retention.hours"))
}

func (b *Broker) checkReplication(p *problems) {
	wait := b.Int64("replica.fetch.wait.max.ms")
	p.conflict(wait <= b.Int64("replica.socket.timeout.ms"), "replica.fetch.wait.max.ms",
		"replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary socket timeouts")
	p.conflict(wait <= b.Int64("replica.lag.time.max.ms"), "replica.fetch.wait.max.ms",
		"replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent frequent changes in ISR")
	name := strings.ToUpper(b.interBroker)
	if proto, ok := b.protocols[name]; ok && (proto == SASLPlaintext || proto == SASLSSL) {
		mechanism := b.String("sasl.mechanism.inter.broker.protocol")
		p.conflict(slices.Contains(b.ForListener(name).List("sasl.enabled.mechanisms"), mechanism), "sasl.mechanism.inter.broker.protocol",
			"sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is used for inter-broker communication")
	}
	if selector := b.String("replica.selector.class"); selector != "" {
		known := []string{"org.apache.kafka.common.replica.RackAwareReplicaSelector", "org.apache.kafka.common.replica.LeaderSelector"}
		p.conflict(slices.Contains(known, selector), "replica.selector.class",
			fmt.Sprintf("replica.selector.class: %s can't be run here; the known ones are %s", selector, strings.Join(known, ", ")))
	}
}

func (b *Broker) checkRequests(p *problems) {
	queued, largest := b.Int64("queued.max.request.bytes"), b.Int64("socket.request.max.bytes")
	p.conflict(queued <= 0 || queued >= largest, "queued.max.request.bytes",
		"queued.max.request.bytes must be larger or equal to socket.request.max.bytes")
	overrides, reason := parseCounts(b.String("max.connections.per.ip.overrides"))
	p.conflict(reason == "", "max.connections.per.ip.overrides", "max.connections.per.ip.overrides "+reason)
	p.conflict(b.Int("max.connections.per.ip") != 0 || len(overrides) > 0, "max.connections.per.ip",
		"max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.")
	if idle := b.Int64("connections.max.idle.ms"); idle >= 0 {
		p.conflict(b.Int64("connection.failed.authentication.delay.ms") < idle, "connection.failed.authentication.delay.ms",
			"connection.failed.authentication.delay.ms should always be less than connections.max.idle.ms to prevent failed authentication responses from timing out")
	}
}

// hostPattern is what Kafka takes for a host in max.connections.per.ip.overrides
// (Utils.validHostPattern).
var hostPattern = regexp.MustCompile(`^[0-9a-zA-Z\-%._:]*$`)

// parseCounts reads host:count,host:count.
func parseCounts(s string) (counts map[string]int, reason string) {
	counts = map[string]int{}
	for _, item := range splitList(s) {
		i := strings.LastIndexByte(item, ':')
		if i < 0 {
			return nil, fmt.Sprintf("is not host:count,host:count at %q", item)
		}
		host, text := trim(item[:i]), trim(item[i+1:])
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fmt.Sprintf("is not host:count,host:count: For input string: %q", text)
		}
		if !hostPattern.MatchString(host) {
			return nil, "contains invalid addresses : " + host
		}
		counts[host] = int(n)
	}
	return counts, ""
}

// ConnectionOverrides returns max.connections.per.ip.overrides: the limit by
// host name or address.
func (b *Broker) ConnectionOverrides() map[string]int {
	counts, _ := parseCounts(b.String("max.connections.per.ip.overrides"))
	return counts
}

// Consumers tells whether the group protocol of KIP-848 is on offer.
func (b *Broker) Consumers() bool {
	return slices.Contains(b.List("group.coordinator.rebalance.protocols"), "consumer")
}

// checkGroups checks what offset commits wait for, and the three-part settings of the group protocols, whether
// they are on offer or not, as Kafka does.
func (b *Broker) checkGroups(p *problems) {
	acks := b.Int("offsets.commit.required.acks")
	p.conflict(acks >= -1 && acks <= b.Int("offsets.topic.replication.factor"), "offsets.commit.required.acks",
		"offsets.commit.required.acks must be greater or equal to -1 and less or equal to offsets.topic.replication.factor")
	for _, s := range []struct{ low, mid, high string }{
		{"group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
		{"group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
		{"group.share.min.heartbeat.interval.ms", "group.share.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"},
		{"group.share.min.session.timeout.ms", "group.share.session.timeout.ms", "group.share.max.session.timeout.ms"},
		{"group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"},
	} {
		low, mid, high := b.Int64(s.low), b.Int64(s.mid), b.Int64(s.high)
		p.conflict(low <= high, s.high, s.high+" must be greater than or equal to "+s.low)
		p.conflict(low <= mid, s.mid, s.mid+" must be greater than or equal to "+s.low)
		p.conflict(mid <= high, s.mid, s.mid+" must be less than or equal to "+s.high)
	}
}
