package api

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"barnabas/internal/config"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 44, Name: "IncrementalAlterConfigs", Min: 0, Max: 1, MaxFrame: 16 << 20, Expansion: 24,
	Versions: []string{
		"sets, deletes, appends and subtracts single configs (KIP-339); log levels (KIP-412)",
		"flexible",
	},
	Handle: handleIncrementalAlterConfigs,
})

func handleIncrementalAlterConfigs(b *Broker, q *Request) {
	in := new(kmsg.IncrementalAlterConfigsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) {
		times := map[resourceKey]int{}
		for _, res := range in.Resources {
			times[resourceKey{res.ResourceType, res.ResourceName}]++
		}
		r := kmsg.NewPtrIncrementalAlterConfigsResponse()
		for _, res := range in.Resources {
			var err error
			if times[resourceKey{res.ResourceType, res.ResourceName}] > 1 {
				err = errResourceTwice
			} else {
				err = b.changeConfig(ctx, res, in.ValidateOnly)
			}
			answer := kmsg.NewIncrementalAlterConfigsResponseResource()
			answer.ResourceType, answer.ResourceName = res.ResourceType, res.ResourceName
			if e := b.refusal("altering configs of "+res.ResourceName, err); e != nil {
				answer.ErrorCode, answer.ErrorMessage = int16(e.Code), text(e.Message)
			}
			r.Resources = append(r.Resources, answer)
		}
		q.Reply(r)
	})
}

// configChange is one change of a key.
type configChange = kmsg.IncrementalAlterConfigsRequestResourceConfig

func (b *Broker) changeConfig(ctx context.Context, res kmsg.IncrementalAlterConfigsRequestResource, validateOnly bool) error {
	if t := res.ResourceType; t != topicResource && t != brokerResource && t != loggerResource {
		return refuseResource(t)
	}
	keys, null := make([]string, len(res.Configs)), make([]bool, len(res.Configs))
	for i, c := range res.Configs {
		keys[i], null[i] = c.Name, c.Value == nil && c.Op != kmsg.IncrementalAlterConfigOpDelete
	}
	if err := checkChanges(keys, null); err != nil {
		return err
	}
	switch res.ResourceType {
	case loggerResource:
		return b.changeLogLevels(res, validateOnly)
	case brokerResource:
		e, err := b.brokerEntity(res.ResourceName)
		if err != nil {
			return err
		}
		props, err := b.brokerConfig(ctx, e)
		if err != nil {
			return err
		}
		if err := applyChanges(props, res.Configs, config.BrokerDefinitions()); err != nil {
			return err
		}
		return b.alterBrokerConfig(ctx, e, props, validateOnly)
	default:
		if err := b.alterableTopic(ctx, res.ResourceName); err != nil {
			return err
		}
		props, err := b.topicConfig(ctx, res.ResourceName)
		if err != nil {
			return err
		}
		if err := applyChanges(props, res.Configs, config.TopicDefinitions()); err != nil {
			return err
		}
		return b.alterTopicConfig(ctx, res.ResourceName, props, validateOnly)
	}
}

// applyChanges changes props as ConfigAdminManager.prepareIncrementalConfigs
// does. Lists start from the default where the key is not set.
func applyChanges(props map[string]string, changes []configChange, definitions []*config.Definition) error {
	for _, c := range changes {
		switch c.Op {
		case kmsg.IncrementalAlterConfigOpSet:
			props[c.Name] = *c.Value
		case kmsg.IncrementalAlterConfigOpDelete:
			delete(props, c.Name)
		case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
			verb := "append"
			if c.Op == kmsg.IncrementalAlterConfigOpSubtract {
				verb = "subtract"
			}
			i := slices.IndexFunc(definitions, func(d *config.Definition) bool { return d.Name == c.Name })
			if i < 0 {
				return refuse(wire.InvalidConfig, "Unknown config name: "+c.Name)
			}
			if definitions[i].Type != config.TypeList {
				return refuse(wire.InvalidConfig, "Config value "+verb+" is not allowed for config key: "+c.Name)
			}
			old, set := props[c.Name]
			if !set {
				old = definitions[i].Default
			}
			props[c.Name] = changeList(old, *c.Value, verb == "append")
		default:
			return refuse(wire.InvalidRequest, "Unknown operation on config key: "+c.Name)
		}
	}
	return nil
}

func changeList(old, value string, add bool) string {
	var list []string
	if old != "" {
		list = strings.Split(old, ",")
	}
	for v := range strings.SplitSeq(value, ",") {
		i := slices.Index(list, v)
		switch {
		case add && i < 0:
			list = append(list, v)
		case !add && i >= 0:
			list = slices.Delete(list, i, i+1)
		}
	}
	return strings.Join(list, ",")
}

// changeLogLevels sets the level of the one logger there is.
func (b *Broker) changeLogLevels(res kmsg.IncrementalAlterConfigsRequestResource, validateOnly bool) error {
	if err := b.loggerBroker(res.ResourceName); err != nil {
		return err
	}
	for _, c := range res.Configs {
		switch {
		case c.Op == kmsg.IncrementalAlterConfigOpAppend:
			return refuse(wire.InvalidRequest, "APPEND operation is not allowed for the BROKER_LOGGER resource")
		case c.Op == kmsg.IncrementalAlterConfigOpSubtract:
			return refuse(wire.InvalidRequest, "SUBTRACT operation is not allowed for the BROKER_LOGGER resource")
		case c.Name != rootLogger:
			return refuse(wire.InvalidConfig, "Logger "+c.Name+" does not exist!")
		case c.Op == kmsg.IncrementalAlterConfigOpDelete:
			return refuse(wire.InvalidRequest, "Removing the log level of the root logger is not allowed")
		case c.Op != kmsg.IncrementalAlterConfigOpSet:
			return refuse(wire.InvalidRequest, "Unknown operation on config key: "+c.Name)
		}
		level, ok := logLevels[*c.Value]
		if !ok {
			return refuse(wire.InvalidConfig, "Cannot set the log level of "+c.Name+" to "+*c.Value+
				" as it is not a supported log level. Valid log levels are "+validLevels())
		}
		if !validateOnly && b.LogLevel != nil {
			b.LogLevel.Set(level)
		}
	}
	return nil
}

func (b *Broker) logLevel() slog.Level {
	if b.LogLevel == nil {
		return slog.LevelInfo
	}
	return b.LogLevel.Level()
}
