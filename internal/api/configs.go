package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The kinds of resources that have configs (ConfigResource.Type).
const (
	topicResource   = kmsg.ConfigResourceTypeTopic
	brokerResource  = kmsg.ConfigResourceTypeBroker
	loggerResource  = kmsg.ConfigResourceTypeBrokerLogger
	metricsResource = kmsg.ConfigResourceTypeClientMetrics
)

// entityConfig reads an entity's node; no node is an empty config.
func (b *Broker) entityConfig(ctx context.Context, e znode.ConfigEntity) (map[string]string, error) {
	data, _, err := b.ZooKeeper.Get(ctx, e.Path())
	if errors.Is(err, jute.ErrNoNode) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	config, err := znode.DecodeConfig(data)
	if err != nil { // as Kafka: what can't be read is no config
		b.Log.Warn("a configuration node can't be read", "path", e.Path(), "err", err)
		return map[string]string{}, nil
	}
	return config, nil
}

// writeEntityConfig replaces an entity's config and notifies every broker. As
// in Kafka 3.9 the write holds only while the controller is the one that was
// read, so that a cluster on its way to KRaft refuses it.
func (b *Broker) writeEntityConfig(ctx context.Context, e znode.ConfigEntity, config map[string]string) error {
	_, controller, err := b.ZooKeeper.Get(ctx, znode.ControllerPath)
	if errors.Is(err, jute.ErrNoNode) {
		return refuse(wire.NotController, "There is no controller at the moment.")
	}
	if err != nil {
		return err
	}
	data := znode.EncodeConfig(config)
	err = b.ZooKeeper.SetChecked(ctx, znode.ControllerPath, controller.Version, e.Path(), data)
	if errors.Is(err, jute.ErrNoNode) {
		err = b.ZooKeeper.CreateRecursive(ctx, e.Path(), data)
		if errors.Is(err, jute.ErrNodeExists) { // another broker was first
			err = b.ZooKeeper.SetChecked(ctx, znode.ControllerPath, controller.Version, e.Path(), data)
		}
	}
	if errors.Is(err, jute.ErrBadVersion) {
		return refuse(wire.NotController, "The controller changed during the write.")
	}
	if err != nil {
		return err
	}
	if len(config) == 0 {
		b.removeEmptied(ctx, e)
	}
	_, err = b.ZooKeeper.CreateSequential(ctx, znode.ConfigChanges+"/"+znode.ConfigChangePrefix, znode.EncodeConfigChange(e))
	return err
}

// removeEmptied deletes the node of a user, client or address that has no
// config left, and the folders above that are empty then (Kafka 3.9's
// tryCleanQuotaNodes). Others may be writing there: whatever fails stays.
func (b *Broker) removeEmptied(ctx context.Context, e znode.ConfigEntity) {
	if e.Type == znode.TopicEntity || e.Type == znode.BrokerEntity {
		return
	}
	if b.ZooKeeper.Delete(ctx, e.Path(), -1) != nil || !e.HasClient {
		return
	}
	user := znode.UserConfig(e.EntityName)
	if b.ZooKeeper.Delete(ctx, znode.UserClientsPath(e.EntityName), -1) != nil {
		return
	}
	if data, stat, err := b.ZooKeeper.Get(ctx, user.Path()); err == nil {
		if config, err := znode.DecodeConfig(data); err == nil && len(config) == 0 {
			_ = b.ZooKeeper.Delete(ctx, user.Path(), stat.Version)
		}
	}
}

// topicConfig returns the overrides of a topic as they stand in its node.
func (b *Broker) topicConfig(ctx context.Context, topic string) (map[string]string, error) {
	return b.entityConfig(ctx, znode.TopicConfig(topic))
}

// topicKnown tells whether a topic exists, in the metadata or in ZooKeeper.
func (b *Broker) topicKnown(ctx context.Context, topic string) (bool, error) {
	if b.Metadata.Topic(topic) != nil {
		return true, nil
	}
	if badTopicName(topic) != "" {
		return false, nil
	}
	_, there, err := b.ZooKeeper.Exists(ctx, znode.TopicPath(topic))
	return there, err
}

// alterTopicConfig checks and writes the whole of a topic's overrides.
func (b *Broker) alterTopicConfig(ctx context.Context, topic string, overrides map[string]string, validateOnly bool) error {
	if err := b.Config.Load().ValidateTopic(overrides); err != nil {
		bad := config.First(err)
		message := bad.Text
		if bad.Kind == config.BadValue {
			message = "Invalid config value for resource ConfigResource(type=TOPIC, name='" + topic + "'): " + message
		}
		return refuse(wire.InvalidConfig, message)
	}
	if validateOnly {
		return nil
	}
	return b.writeEntityConfig(ctx, znode.TopicConfig(topic), overrides)
}

// brokerEntity returns the entity of a broker resource: this broker, or with
// an empty name the default of all.
func (b *Broker) brokerEntity(name string) (znode.ConfigEntity, error) {
	if name == "" {
		return znode.BrokerDefaultConfig(), nil
	}
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return znode.ConfigEntity{}, refuse(wire.InvalidRequest, "Node id must be an integer, but it is: "+name)
	}
	if int32(id) != b.ID {
		return znode.ConfigEntity{}, refuse(wire.InvalidRequest, fmt.Sprintf("Unexpected broker id, expected %d, but received %s", b.ID, name))
	}
	return znode.BrokerConfig(b.ID), nil
}

// alterBrokerConfig checks and writes the whole of the dynamic properties of
// this broker or of all.
func (b *Broker) alterBrokerConfig(ctx context.Context, e znode.ConfigEntity, props map[string]string, validateOnly bool) error {
	other := znode.BrokerDefaultConfig()
	if e.Default {
		other = znode.BrokerConfig(b.ID)
	}
	stored, err := b.brokerConfig(ctx, other)
	if err != nil {
		return err
	}
	perBroker, clusterWide := props, stored
	if e.Default {
		perBroker, clusterWide = stored, props
	}
	if _, err := b.Config.Load().Alter(perBroker, clusterWide); err != nil {
		return refuse(wire.InvalidRequest, config.First(err).Text)
	}
	if validateOnly {
		return nil
	}
	if props, err = b.Config.Load().EncodePasswords(props); errors.Is(err, config.ErrNoSecret) {
		return refuse(wire.InvalidRequest, "Password encoder secret not configured")
	} else if err != nil {
		return refuse(wire.InvalidRequest, err.Error())
	}
	return b.writeEntityConfig(ctx, e, props)
}

// brokerConfig returns the dynamic properties of a broker or of all, without
// what somebody wrote there that can't be one.
func (b *Broker) brokerConfig(ctx context.Context, e znode.ConfigEntity) (map[string]string, error) {
	stored, err := b.entityConfig(ctx, e)
	if err != nil {
		return nil, err
	}
	props, warnings := b.Config.Load().Stored(stored, !e.Default)
	for _, w := range warnings {
		b.Log.Warn("left out a dynamic property", "why", w.String())
	}
	return props, nil
}

// checkChanges refuses what Kafka refuses of a resource whatever its kind: keys
// that come twice, and null values.
func checkChanges(keys []string, null []bool) error {
	var nulls []string
	seen := map[string]bool{}
	for i, key := range keys {
		if seen[key] {
			return refuse(wire.InvalidRequest, "Error due to duplicate config keys")
		}
		seen[key] = true
		if null[i] {
			nulls = append(nulls, key)
		}
	}
	if len(nulls) > 0 {
		return refuse(wire.InvalidRequest, "Null value not supported for : "+strings.Join(nulls, ","))
	}
	return nil
}

// knownResource tells whether Kafka 3.9 knows the kind of resource.
func knownResource(t kmsg.ConfigResourceType) bool {
	return t == topicResource || t == brokerResource || t == loggerResource || t == metricsResource
}

// refuseResource is the answer for kinds of resources that can't be altered.
func refuseResource(t kmsg.ConfigResourceType) error {
	if t == metricsResource {
		return refuse(wire.InvalidRequest, "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS")
	}
	return refuse(wire.InvalidRequest, fmt.Sprintf("Unknown resource type %d", int8(t)))
}

// rootLogger is the one logger that this broker has.
const rootLogger = "root"

// logLevels are the levels of log4j by the levels of slog that stand for them.
var logLevels = map[string]slog.Level{
	"TRACE": slog.LevelDebug - 4, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo,
	"WARN": slog.LevelWarn, "ERROR": slog.LevelError, "FATAL": slog.LevelError + 4,
}

// levelName returns the log4j name of a level.
func levelName(l slog.Level) string {
	best := "FATAL"
	for name, level := range logLevels {
		if level >= l && level <= logLevels[best] {
			best = name
		}
	}
	return best
}

// loggerBroker checks the name of a logger resource.
func (b *Broker) loggerBroker(name string) error {
	id, err := strconv.ParseInt(name, 10, 32)
	switch {
	case name == "":
		return refuse(wire.InvalidRequest, "Broker id must not be empty")
	case err != nil:
		return refuse(wire.InvalidRequest, "Broker id must be an integer, but it is: "+name)
	case int32(id) != b.ID:
		return refuse(wire.InvalidRequest, fmt.Sprintf("Unexpected broker id, expected %d but received %s", b.ID, name))
	}
	return nil
}

// validLevels lists the levels as Kafka's message does.
func validLevels() string { return strings.Join(slices.Sorted(maps.Keys(logLevels)), ", ") }
