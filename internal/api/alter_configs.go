package api

import (
	"context"

	"barnabas/internal/config"

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
	keys := make([]resourceKey, len(in.Resources))
	for i, res := range in.Resources {
		keys[i] = resourceKey{res.ResourceType, res.ResourceName}
	}
	b.background(q, func(ctx context.Context) {
		r := kmsg.NewPtrAlterConfigsResponse()
		alter := func(i int) error { return b.replaceConfig(ctx, keys[i], in.Resources[i].Configs, in.ValidateOnly) }
		for i, e := range b.alterResources(keys, alter) {
			answer := kmsg.NewAlterConfigsResponseResource()
			answer.ResourceType, answer.ResourceName = keys[i].kind, keys[i].name
			if e != nil {
				answer.ErrorCode, answer.ErrorMessage = int16(e.Code), text(e.Message)
			}
			r.Resources = append(r.Resources, answer)
		}
		q.Reply(r)
	})
}

func (b *Broker) replaceConfig(ctx context.Context, key resourceKey, configs []kmsg.AlterConfigsRequestResourceConfig, validateOnly bool) error {
	if key.kind != topicResource && key.kind != brokerResource {
		return refuseResource(key.kind)
	}
	names, null := make([]string, len(configs)), make([]bool, len(configs))
	props := make(map[string]string, len(configs))
	for i, c := range configs {
		if names[i], null[i] = c.Name, c.Value == nil; c.Value != nil {
			props[c.Name] = *c.Value
		}
	}
	if err := checkChanges(names, null); err != nil {
		return err
	}
	return b.alterConfig(ctx, key, validateOnly, func(storedConfig, []*config.Definition) (map[string]string, error) { return props, nil })
}
