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
	keys := make([]resourceKey, len(in.Resources))
	for i, res := range in.Resources {
		keys[i] = resourceKey{res.ResourceType, res.ResourceName}
	}
	b.background(q, func(ctx context.Context) {
		r := kmsg.NewPtrIncrementalAlterConfigsResponse()
		alter := func(i int) error { return b.changeConfig(ctx, keys[i], in.Resources[i].Configs, in.ValidateOnly) }
		for i, e := range b.alterResources(keys, alter) {
			answer := kmsg.NewIncrementalAlterConfigsResponseResource()
			answer.ResourceType, answer.ResourceName = keys[i].kind, keys[i].name
			if e != nil {
				answer.ErrorCode, answer.ErrorMessage = int16(e.Code), text(e.Message)
			}
			r.Resources = append(r.Resources, answer)
		}
		q.Reply(r)
	})
}

// configChange is one change of a key.
type configChange = kmsg.IncrementalAlterConfigsRequestResourceConfig

func (b *Broker) changeConfig(ctx context.Context, key resourceKey, changes []configChange, validateOnly bool) error {
	if key.kind != topicResource && key.kind != brokerResource && key.kind != loggerResource {
		return refuseResource(key.kind)
	}
	names, null := make([]string, len(changes)), make([]bool, len(changes))
	for i, c := range changes {
		names[i], null[i] = c.Name, c.Value == nil && c.Op != kmsg.IncrementalAlterConfigOpDelete
	}
	if err := checkChanges(names, null); err != nil {
		return err
	}
	if key.kind == loggerResource {
		return b.changeLogLevels(key.name, changes, validateOnly)
	}
	return b.alterConfig(ctx, key, validateOnly, func(stored storedConfig, definitions []*config.Definition) (map[string]string, error) {
		props, err := stored()
		if err != nil {
			return nil, err
		}
		return props, applyChanges(props, changes, definitions)
	})
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
func (b *Broker) changeLogLevels(broker string, changes []configChange, validateOnly bool) error {
	if err := b.loggerBroker(broker); err != nil {
		return err
	}
	for _, c := range changes {
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
