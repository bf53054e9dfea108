package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/controller"
	"barnabas/internal/jute"
	"barnabas/internal/metadata"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// topicWish is a topic that a client, or this broker itself, wants made.
type topicWish struct {
	name       string
	partitions int32             // -1: num.partitions
	factor     int32             // -1: default.replication.factor
	assignment map[int32][]int32 // nil: brokers are chosen
	configs    map[string]string
}

// planTopic checks a wish as kafka.server.ZkAdminManager does, in its order, and
// chooses what is left open. names is asked for the topics in ZooKeeper when the
// name could collide.
func (b *Broker) planTopic(ctx context.Context, w topicWish, names func() ([]string, error)) (controller.NewTopic, error) {
	none := controller.NewTopic{}
	c := b.Config.Load()
	if b.Metadata.Topic(w.name) != nil {
		return none, topicExists(w.name)
	}
	assignment, err := b.chooseReplicas(c, w)
	if err != nil {
		return none, err
	}
	if bad := badTopicName(w.name); bad != "" {
		return none, refuse(wire.InvalidTopicException, bad)
	}
	if err := b.checkUnused(ctx, w.name, names); err != nil {
		return none, err
	}
	if w.assignment != nil {
		if assignment, err = checkAssignment(w.assignment); err != nil {
			return none, err
		}
	}
	if err := c.ValidateTopic(w.configs); err != nil {
		return none, refuse(wire.InvalidConfig, config.First(err).Text)
	}
	t := controller.NewTopic{Name: w.name, Config: w.configs, Assignment: assignment}
	if c.IBP() >= config.V2_8IV0 {
		t.ID = wire.NewUUID()
	}
	return t, nil
}

func topicExists(name string) *Error {
	return refuse(wire.TopicAlreadyExists, "Topic '"+name+"' already exists.")
}

func (b *Broker) chooseReplicas(c *config.Broker, w topicWish) ([][]int32, error) {
	if w.assignment != nil {
		return nil, nil
	}
	partitions, factor := w.partitions, w.factor
	if partitions == -1 {
		partitions = c.Int32("num.partitions")
	}
	if factor == -1 {
		factor = c.Int32("default.replication.factor")
	}
	if partitions > maxPartitions {
		return nil, refuse(wire.InvalidPartitions, fmt.Sprintf("Number of partitions must not be larger than %d.", maxPartitions))
	}
	brokers := b.liveBrokers()
	return controller.AssignReplicas(brokers, controller.Placement{
		Partitions: int(partitions), ReplicationFactor: int(factor),
		Start: rand.IntN(max(1, len(brokers))), Shift: rand.IntN(max(1, len(brokers))),
	})
}

// maxPartitions of one topic: its znode has to stay under jute.maxbuffer, and
// nothing is allocated for a number that a client made up.
const maxPartitions = 100_000

func (b *Broker) liveBrokers() []controller.BrokerRack {
	var live []controller.BrokerRack
	for _, broker := range b.Metadata.Cluster().Brokers {
		r := controller.BrokerRack{ID: broker.ID}
		if broker.Rack != nil {
			r.Rack = *broker.Rack
		}
		live = append(live, r)
	}
	return live
}

// checkUnused looks in ZooKeeper, where a topic can be that no broker knows of
// yet, for the name and for names that differ only in '.' and '_'.
func (b *Broker) checkUnused(ctx context.Context, name string, names func() ([]string, error)) error {
	_, there, err := b.ZooKeeper.Exists(ctx, znode.TopicPath(name))
	switch {
	case err != nil:
		return err
	case there:
		return topicExists(name)
	case !mayCollide(name):
		return nil
	}
	all, err := names()
	if err != nil {
		return err
	}
	var colliding []string
	for _, other := range all {
		if collide(name, other) {
			colliding = append(colliding, other)
		}
	}
	if len(colliding) > 0 {
		slices.Sort(colliding)
		return refuse(wire.InvalidTopicException, "Topic '"+name+"' collides with existing topics: "+strings.Join(colliding, ", "))
	}
	return nil
}

// topicNames returns a function that reads the names of all topics in ZooKeeper
// once and remembers them.
func (b *Broker) topicNames(ctx context.Context) func() ([]string, error) {
	var names []string
	read := false
	return func() ([]string, error) {
		if read {
			return names, nil
		}
		all, err := b.ZooKeeper.Children(ctx, znode.Topics)
		if err != nil && !errors.Is(err, jute.ErrNoNode) {
			return nil, err
		}
		names, read = all, true
		return names, nil
	}
}

// checkAssignment checks replicas that a client chose, as AdminZkClient does.
// Unknown brokers are let through: they may come. No replicas at all, which
// Kafka lets through too, would be a topic that nothing can be done with.
func checkAssignment(m map[int32][]int32) ([][]int32, error) {
	list := make([][]int32, len(m))
	factor := -1
	for p, replicas := range m {
		if p < 0 || int(p) >= len(m) {
			return nil, refuse(wire.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
		if factor >= 0 && factor != len(replicas) {
			return nil, refuse(wire.InvalidReplicaAssignment, "All partitions should have the same number of replicas")
		}
		factor = len(replicas)
		list[p] = replicas
	}
	for p, replicas := range list {
		if len(replicas) == 0 {
			return nil, refuse(wire.InvalidReplicaAssignment, fmt.Sprintf("Partition %d has no replicas", p))
		}
		if duplicates(replicas) {
			return nil, refuse(wire.InvalidReplicaAssignment, fmt.Sprintf("Duplicate replica assignment found: partition %d on %s", p, joinIDs(replicas)))
		}
		if slices.Min(replicas) < 0 {
			return nil, refuse(wire.InvalidReplicaAssignment, fmt.Sprintf("Partition %d names a broker below 0: %s", p, joinIDs(replicas)))
		}
	}
	return list, nil
}

func duplicates(ids []int32) bool {
	sorted := slices.Sorted(slices.Values(ids))
	return len(slices.Compact(sorted)) < len(ids)
}

func joinIDs(ids []int32) string {
	var s []string
	for _, id := range ids {
		s = append(s, strconv.Itoa(int(id)))
	}
	return strings.Join(s, ", ")
}

// createTopics makes planned topics; the errors are in their order.
func (b *Broker) createTopics(ctx context.Context, topics []controller.NewTopic) []error {
	if len(topics) == 0 {
		return nil
	}
	errs := b.Controller.CreateTopics(ctx, topics)
	for i, t := range topics {
		if errs[i] != nil {
			continue
		}
		b.Log.Info("created a topic", "topic", t.Name, "partitions", len(t.Assignment), "replicas", len(t.Assignment[0]))
	}
	return errs
}

// waitForLeaders waits until this broker's metadata shows leaders for the first
// n partitions of each topic, or until the timeout; it returns, for each topic,
// whether it does.
func (b *Broker) waitForLeaders(ctx context.Context, timeout time.Duration, topics map[string]int) map[string]bool {
	ready := func(name string, n int) bool {
		t := b.Metadata.Topic(name)
		if t == nil {
			return false
		}
		for i := range n {
			if p := t.Partition(int32(i)); p == nil || p.Leader == metadata.NoLeader {
				return false
			}
		}
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	b.Metadata.WaitFor(func() bool {
		for name, n := range topics {
			if !ready(name, n) {
				return false
			}
		}
		return true
	}, ctx.Done())
	done := make(map[string]bool, len(topics))
	for name, n := range topics {
		done[name] = ready(name, n)
	}
	return done
}

// autoCreateTimeout bounds how long an automatic creation waits for ZooKeeper:
// the client asks again anyway.
const autoCreateTimeout = 5 * time.Second

// createAutomatically makes topics that somebody asked about, as
// AutoTopicCreationManager does: straight through ZooKeeper, whichever broker
// this is, and without waiting for a leader. The codes are what Metadata says.
func (b *Broker) createAutomatically(ctx context.Context, names []string) []wire.Code {
	ctx, cancel := context.WithTimeout(ctx, autoCreateTimeout)
	defer cancel()
	codes := make([]wire.Code, len(names))
	var topics []controller.NewTopic
	var at []int
	all := b.topicNames(ctx)
	for i, name := range names {
		codes[i] = wire.LeaderNotAvailable
		if _, busy := b.creating.LoadOrStore(name, true); busy {
			continue // another request is making it
		}
		defer b.creating.Delete(name)
		t, err := b.planTopic(ctx, b.automaticTopic(name), all)
		if err != nil {
			codes[i] = b.automaticCode(name, err)
			continue
		}
		topics, at = append(topics, t), append(at, i)
	}
	for i, err := range b.createTopics(ctx, topics) {
		if err != nil {
			codes[at[i]] = b.automaticCode(topics[i].Name, err)
		}
	}
	return codes
}

func (b *Broker) automaticCode(name string, err error) wire.Code {
	r := b.refusal("creating topic "+name+" automatically", err)
	switch r.Code {
	case wire.TopicAlreadyExists, wire.RequestTimedOut:
		return wire.LeaderNotAvailable
	}
	b.Log.Warn("could not create a topic automatically", "topic", name, "why", r.Error())
	return r.Code
}

// automaticTopic is how a topic is made that nobody described.
func (b *Broker) automaticTopic(name string) topicWish {
	c := b.Config.Load()
	w := topicWish{name: name, partitions: -1, factor: -1, configs: map[string]string{}}
	switch name {
	case OffsetsTopic:
		w.partitions = c.Int32("offsets.topic.num.partitions")
		w.factor = c.Int32("offsets.topic.replication.factor")
		w.configs["cleanup.policy"] = "compact"
		w.configs["compression.type"] = "producer"
		w.configs["segment.bytes"] = strconv.Itoa(c.Int("offsets.topic.segment.bytes"))
	case TransactionsTopic:
		w.partitions = c.Int32("transaction.state.log.num.partitions")
		w.factor = c.Int32("transaction.state.log.replication.factor")
		w.configs["cleanup.policy"] = "compact"
		w.configs["compression.type"] = "uncompressed"
		w.configs["unclean.leader.election.enable"] = "false"
		w.configs["min.insync.replicas"] = strconv.Itoa(c.Int("transaction.state.log.min.isr"))
		w.configs["segment.bytes"] = strconv.Itoa(c.Int("transaction.state.log.segment.bytes"))
	}
	return w
}
