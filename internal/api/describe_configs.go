package api

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"barnabas/internal/config"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 32, Name: "DescribeConfigs", Min: 0, Max: 4, MaxFrame: 16 << 20, Expansion: 24,
	Versions: []string{
		"configs of topics and brokers (KIP-133)",
		"synonyms, and the source in place of is_default (KIP-226)",
		"throttled after the answer (KIP-219)",
		"types and documentation (KIP-569)",
		"flexible",
	},
	Handle: handleDescribeConfigs,
})

// handleDescribeConfigs reads a topic's overrides from its znode, so that the
// answer is right even before this broker has been told of a change.
func handleDescribeConfigs(b *Broker, q *Request) {
	in := new(kmsg.DescribeConfigsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	for _, res := range in.Resources {
		if !knownResource(res.ResourceType) { // Kafka refuses the whole request
			b.replyConfigs(q, in, func(kmsg.DescribeConfigsRequestResource) ([]config.Entry, error) {
				return nil, refuse(wire.InvalidRequest, explain(wire.InvalidRequest))
			})
			return
		}
	}
	b.background(q, func(ctx context.Context) {
		b.replyConfigs(q, in, func(res kmsg.DescribeConfigsRequestResource) ([]config.Entry, error) {
			return b.describe(ctx, res)
		})
	})
}

func (b *Broker) replyConfigs(q *Request, in *kmsg.DescribeConfigsRequest, describe func(kmsg.DescribeConfigsRequestResource) ([]config.Entry, error)) {
	r := kmsg.NewPtrDescribeConfigsResponse()
	for _, res := range in.Resources {
		answer := kmsg.NewDescribeConfigsResponseResource()
		answer.ResourceType, answer.ResourceName = res.ResourceType, res.ResourceName
		entries, err := describe(res)
		message := ""
		if e := b.refusal("describing configs of "+res.ResourceName, err); e != nil {
			answer.ErrorCode, message = int16(e.Code), e.Message
		}
		answer.ErrorMessage = &message
		for i := range entries {
			answer.Configs = append(answer.Configs, describedConfig(&entries[i], in))
		}
		r.Resources = append(r.Resources, answer)
	}
	q.Reply(r)
}

func (b *Broker) describe(ctx context.Context, res kmsg.DescribeConfigsRequestResource) ([]config.Entry, error) {
	name, keys, c := res.ResourceName, res.ConfigNames, b.Config.Load()
	switch res.ResourceType {
	case topicResource:
		if bad := badTopicName(name); bad != "" {
			return nil, refuse(wire.InvalidTopicException, bad)
		}
		known, err := b.topicKnown(ctx, name)
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, refuse(wire.UnknownTopicOrPartition, "")
		}
		overrides, err := b.topicConfig(ctx, name)
		if err != nil {
			return nil, err
		}
		return c.DescribeTopic(overrides, keys), nil
	case brokerResource:
		if name == "" {
			return c.DescribeDefault(keys), nil
		}
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return nil, refuse(wire.InvalidRequest, "Broker id must be an integer, but it is: "+name)
		}
		if int32(id) != b.ID {
			return nil, refuse(wire.InvalidRequest, fmt.Sprintf("Unexpected broker id, expected %d or empty string, but received %s", b.ID, name))
		}
		return c.Describe(keys), nil
	case loggerResource:
		if err := b.loggerBroker(name); err != nil {
			return nil, err
		}
		if len(keys) > 0 && !slices.Contains(keys, rootLogger) {
			return nil, nil
		}
		level := levelName(b.logLevel())
		return []config.Entry{{Name: rootLogger, Value: &level, Source: sourceLogger}}, nil
	default:
		if name == "" {
			return nil, refuse(wire.InvalidRequest, "Client metrics subscription name must not be empty")
		}
		return nil, refuse(wire.InvalidRequest, "Config type client-metrics is only supported on KRaft clusters")
	}
}

// sourceLogger is DYNAMIC_BROKER_LOGGER_CONFIG.
const sourceLogger config.Source = 6

func describedConfig(e *config.Entry, in *kmsg.DescribeConfigsRequest) kmsg.DescribeConfigsResponseResourceConfig {
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name, c.Value, c.ReadOnly, c.IsSensitive = e.Name, e.Value, e.ReadOnly, e.Sensitive
	c.IsDefault = e.IsDefault()
	c.Source, c.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
	if in.IncludeSynonyms {
		for _, s := range e.Synonyms {
			c.ConfigSynonyms = append(c.ConfigSynonyms, kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{
				Name: s.Name, Value: s.Value, Source: kmsg.ConfigSource(s.Source),
			})
		}
	}
	if in.IncludeDocumentation || e.Source == sourceLogger {
		c.Documentation = &e.Doc
	}
	return c
}
