package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// listenerSecurityKeys can change while running for one listener at a time, and
// never for all (DynamicBrokerConfig.DynamicSecurityConfigs).
var listenerSecurityKeys = []string{
	"ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location",
	"ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location",
	"ssl.truststore.password", "ssl.truststore.type",
}

// clusterListenerKeys may have a cluster-wide default even with the prefix of a
// listener (DynamicBrokerConfig.ClusterLevelListenerConfigs).
var clusterListenerKeys = []string{"max.connections", "max.connection.creation.rate", "num.network.threads"}

// With returns the snapshot that results when the broker's own dynamic
// properties and the cluster-wide dynamic defaults are these (whole maps, as
// /config/brokers/N and /config/brokers/<default> hold them). The error is an
// [Errors] that names every property that Kafka would refuse.
func (b *Broker) With(perBroker, clusterWide map[string]string) (*Broker, error) {
	var p problems
	checkDynamic(&p, perBroker, true)
	checkDynamic(&p, clusterWide, false)
	if err := p.err(); err != nil {
		return nil, err
	}
	next := build(b.static, perBroker, clusterWide, &p)
	if err := p.err(); err != nil {
		return nil, err
	}
	return next.WithID(b.id), nil
}

// Alter is With for a change that a client asks for: it also refuses what is
// too far from the snapshot in force, and what can't be done to a listener
// that is open.
func (b *Broker) Alter(perBroker, clusterWide map[string]string) (*Broker, error) {
	next, err := b.With(perBroker, clusterWide)
	if err != nil {
		return nil, err
	}
	var p problems
	b.checkThreads(&p, next)
	b.checkOpenListeners(&p, next)
	if err := p.err(); err != nil {
		return nil, err
	}
	return next, nil
}

// WithStored is With for properties as they were found in ZooKeeper, where
// anybody may have written them: what is wrong is left out, with a warning, so
// that one bad key does not take the others away
// (DynamicBrokerConfig.fromPersistentProps). Passwords are stored encoded.
func (b *Broker) WithStored(perBroker, clusterWide map[string]string) (*Broker, []Warning) {
	perBroker, warnings := b.Stored(perBroker, true)
	clusterWide, more := b.Stored(clusterWide, false)
	warnings = append(warnings, more...)
	for {
		next, err := b.With(perBroker, clusterWide)
		if err != nil && len(perBroker)+len(clusterWide) == 0 {
			return b, warnings
		}
		if err == nil {
			slices.SortFunc(warnings, func(a, b Warning) int { return strings.Compare(a.Key, b.Key) })
			return next, warnings
		}
		// A rule across properties. Leave out the key it is about; if that is
		// not among the dynamic ones, there is no telling which: leave out all.
		for _, e := range err.(Errors) {
			before := len(perBroker) + len(clusterWide)
			warnings = append(warnings, ignored(e))
			delete(perBroker, e.Key)
			delete(clusterWide, e.Key)
			if len(perBroker)+len(clusterWide) == before {
				clear(perBroker)
				clear(clusterWide)
			}
		}
	}
}

// Stored returns one layer of dynamic properties, as it was found in ZooKeeper,
// with its passwords decoded and without what has no place or no meaning there.
func (b *Broker) Stored(layer map[string]string, perBroker bool) (map[string]string, []Warning) {
	var warnings []Warning
	if perBroker {
		layer, warnings = b.DecodePasswords(layer)
	} else {
		layer = maps.Clone(layer)
	}
	var p problems
	checkDynamic(&p, layer, perBroker)
	for _, e := range p.list {
		warnings = append(warnings, ignored(e))
		delete(layer, e.Key)
	}
	return layer, warnings
}

func ignored(e *Error) Warning {
	return Warning{Key: e.Key, Text: e.Text + "; this dynamic property is ignored"}
}

// checkDynamic refuses keys that can't be dynamic, or not in this layer, and
// bad values. Keys that no definition has are let through, as in Kafka: a
// plug-in might know them.
func checkDynamic(p *problems, layer map[string]string, perBroker bool) {
	for _, key := range slices.Sorted(maps.Keys(layer)) {
		d := brokerDefinition(key)
		plain := d != nil && d.Name == key
		switch {
		case d == nil:
		case plain && (d.Mode == ReadOnly || d.Ours):
			p.add(NotDynamic, key, fmt.Sprintf("Cannot update these configs dynamically: Set(%s)", key))
		case slices.Contains(listenerSecurityKeys, key):
			p.add(NeedsListener, key, fmt.Sprintf(
				"These security configs can be dynamically updated only per-listener using the listener prefix: Set(%s)", key))
		default:
			if v, reason := d.parse(layer[key]); reason != "" {
				p.value(d, d.Name, layer[key], v, reason)
			} else if !perBroker && needsBroker(d, key) {
				p.add(NeedsBroker, key, fmt.Sprintf(
					"Cannot update these configs at default cluster level, broker id must be specified: Set(%s)", key))
			}
		}
	}
}

func needsBroker(d *Definition, key string) bool {
	if slices.Contains(clusterListenerKeys, d.Name) {
		return false
	}
	return d.Mode == PerBroker || strings.HasPrefix(key, listenerPrefix)
}

// stepKeys may only be halved or doubled at a time (DynamicThreadPool,
// LogCleaner).
var stepKeys = []string{
	"background.threads", "log.cleaner.threads", "num.io.threads", "num.network.threads",
	"num.recovery.threads.per.data.dir", "num.replica.fetchers",
}

func (b *Broker) checkThreads(p *problems, next *Broker) {
	for _, key := range stepKeys {
		old, now := b.Int64(key), next.Int64(key)
		text := fmt.Sprintf("Dynamic thread count update validation failed for %s=%d, value should ", key, now)
		switch {
		case now == old:
		case now <= 0:
			p.add(TooFarAtOnce, key, text+"be at least 1")
		case now < old/2:
			p.add(TooFarAtOnce, key, text+fmt.Sprintf("be at least half the current value %d", old))
		case now > old*2:
			p.add(TooFarAtOnce, key, text+fmt.Sprintf("not be greater than double the current value %d", old))
		}
	}
}

// checkOpenListeners keeps the security protocol of a listener that stays
// (DynamicListenerConfig.validateReconfiguration).
func (b *Broker) checkOpenListeners(p *problems, next *Broker) {
	for _, old := range b.listeners {
		for _, now := range next.listeners {
			p.conflict(old.Name != now.Name || old.Protocol == now.Protocol, "listener.security.protocol.map",
				"Security protocol cannot be updated for existing listener "+old.Name)
		}
	}
}
