package api

import (
	"context"

	"barnabas/internal/config"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What AlterConfigs and IncrementalAlterConfigs have in common.

// resourceKey names what is configured.
type resourceKey struct {
	kind kmsg.ConfigResourceType
	name string
}

// alterResources alters one resource after the other; one that is named twice is
// refused.
func (b *Broker) alterResources(keys []resourceKey, alter func(i int) error) []*Error {
	times := map[resourceKey]int{}
	for _, k := range keys {
		times[k]++
	}
	refusals := make([]*Error, len(keys))
	for i, k := range keys {
		if times[k] > 1 {
			refusals[i] = refuse(wire.InvalidRequest, "Each resource must appear at most once.")
		} else {
			refusals[i] = b.refusal("altering configs of "+k.name, alter(i))
		}
	}
	return refusals
}

// storedConfig reads the properties that a resource has of its own.
type storedConfig func() (map[string]string, error)

// alterConfig gives a broker or a topic the properties that change returns.
func (b *Broker) alterConfig(ctx context.Context, key resourceKey, validateOnly bool,
	change func(storedConfig, []*config.Definition) (map[string]string, error)) error {
	if key.kind == brokerResource {
		e, err := b.brokerEntity(key.name)
		if err != nil {
			return err
		}
		props, err := change(func() (map[string]string, error) { return b.brokerConfig(ctx, e) }, config.BrokerDefinitions())
		if err != nil {
			return err
		}
		return b.alterBrokerConfig(ctx, e, props, validateOnly)
	}
	if err := b.alterableTopic(ctx, key.name); err != nil {
		return err
	}
	props, err := change(func() (map[string]string, error) { return b.topicConfig(ctx, key.name) }, config.TopicDefinitions())
	if err != nil {
		return err
	}
	return b.alterTopicConfig(ctx, key.name, props, validateOnly)
}

// alterableTopic refuses topics that do not exist.
func (b *Broker) alterableTopic(ctx context.Context, name string) error {
	if name == "" {
		return refuse(wire.InvalidRequest, "Default topic resources are not allowed.")
	}
	known, err := b.topicKnown(ctx, name)
	if err == nil && !known {
		return refuse(wire.UnknownTopicOrPartition, "The topic '"+name+"' does not exist.")
	}
	return err
}
