package api

import (
	"context"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 33, Name: "AlterConfigs", Min: 0, Max: 2, MaxFrame: 16 << 20, Expansion: 24,
	Versions: []string{
		"replaces all configs of topics and brokers (KIP-133)",
		"throttled after the answer (KIP-219)",
		"flexible",
	},
	Handle: handleAlterConfigs,
})

func handleAlterConfigs(b *Broker, q *Request) {
	in := new(kmsg.AlterConfigsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) {
		times := map[resourceKey]int{}
		for _, res := range in.Resources {
			times[resourceKey{res.ResourceType, res.ResourceName}]++
		}
		r := kmsg.NewPtrAlterConfigsResponse()
		for _, res := range in.Resources {
			var err error
			if times[resourceKey{res.ResourceType, res.ResourceName}] > 1 {
				err = errResourceTwice
			} else {
				err = b.replaceConfig(ctx, res, in.ValidateOnly)
			}
			answer := kmsg.NewAlterConfigsResponseResource()
			answer.ResourceType, answer.ResourceName = res.ResourceType, res.ResourceName
			if e := b.refusal("altering configs of "+res.ResourceName, err); e != nil {
				answer.ErrorCode, answer.ErrorMessage = int16(e.Code), text(e.Message)
			}
			r.Resources = append(r.Resources, answer)
		}
		q.Reply(r)
	})
}

type resourceKey struct {
	kind kmsg.ConfigResourceType
	name string
}

var errResourceTwice = refuse(wire.InvalidRequest, "Each resource must appear at most once.")

func (b *Broker) replaceConfig(ctx context.Context, res kmsg.AlterConfigsRequestResource, validateOnly bool) error {
	if t := res.ResourceType; t != topicResource && t != brokerResource {
		return refuseResource(t)
	}
	keys, null := make([]string, len(res.Configs)), make([]bool, len(res.Configs))
	props := make(map[string]string, len(res.Configs))
	for i, c := range res.Configs {
		if keys[i], null[i] = c.Name, c.Value == nil; c.Value != nil {
			props[c.Name] = *c.Value
		}
	}
	if err := checkChanges(keys, null); err != nil {
		return err
	}
	if res.ResourceType == brokerResource {
		e, err := b.brokerEntity(res.ResourceName)
		if err != nil {
			return err
		}
		return b.alterBrokerConfig(ctx, e, props, validateOnly)
	}
	if err := b.alterableTopic(ctx, res.ResourceName); err != nil {
		return err
	}
	return b.alterTopicConfig(ctx, res.ResourceName, props, validateOnly)
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
