package tool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"

	"barnabas/internal/config"
	"barnabas/internal/controller"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// withZooKeeper runs f with a session at the ZooKeeper that --zookeeper names.
func (c *Call) withZooKeeper(f func(context.Context, *zookeeper.Client) error) error {
	options, err := zookeeperOptions(c.Args.Text("zookeeper"), c.Args.Text("zk-tls-config-file"))
	if err != nil {
		return err
	}
	zk, err := zookeeper.New(options)
	if err != nil {
		return err
	}
	defer zk.Close()
	start, cancel := context.WithTimeout(c.Context, patience)
	defer cancel()
	if err := zk.Start(start); err != nil {
		return err
	}
	return f(c.Context, zk)
}

// zookeeperOptions are those for a connect string and a file with Kafka's
// zookeeper.ssl.* properties, "" for none. Stores are PEM.
func zookeeperOptions(connect, file string) (zookeeper.Options, error) {
	o := zookeeper.Options{Connect: connect}
	props, err := properties(file)
	if err != nil || props["zookeeper.ssl.client.enable"] != "true" {
		return o, err
	}
	plain := map[string]string{}
	for name, value := range props {
		plain[strings.TrimPrefix(name, "zookeeper.")] = value
	}
	for _, name := range []string{"ssl.crl.enable", "ssl.ocsp.enable"} {
		if plain[name] == "true" {
			return o, fmt.Errorf("zookeeper.%s: revoked certificates are not looked up", name)
		}
	}
	secure, err := tlsConfig(plain)
	if err == nil {
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", addr)
		}
	}
	return o, err
}

// checkTopicsOld are the rules that --zookeeper has of its own (TopicCommand of
// 2.8).
func checkTopicsOld(a *Args) error {
	switch {
	case a.Has("bootstrap-server"):
		return usage("Only one of --bootstrap-server or --zookeeper must be specified")
	case a.Has("create") && !a.Has("replica-assignment"):
		if err := a.needs("partitions", "replication-factor"); err != nil {
			return err
		}
	}
	for _, name := range []string{"under-min-isr-partitions", "at-min-isr-partitions", "topic-id", "empty"} {
		if err := a.not(name, "zookeeper"); err != nil {
			return err
		}
	}
	return nil
}

// topicsOld is kafka-topics as it was up to 2.8: it reads and writes the nodes
// in ZooKeeper, and a controller carries out what they say.
func (c *Call) topicsOld(ctx context.Context, zk *zookeeper.Client) error {
	if c.Args.Has("create") {
		return c.createOld(ctx, zk)
	}
	all, err := topicsIn(ctx, zk)
	if err != nil {
		return err
	}
	names, err := matching(all, c.Args.Text("topic"), c.Args.Has("exclude-internal"))
	if err != nil {
		return err
	}
	if len(names) == 0 && c.Args.Has("topic") && !c.Args.Has("if-exists") && !c.Args.Has("list") {
		return because(kerr.UnknownTopicOrPartition, "Topic '%s' does not exist as expected", c.Args.Text("topic"))
	}
	switch {
	case c.Args.Has("list"):
		return c.listOld(ctx, zk, names)
	case c.Args.Has("describe"):
		return c.describeOld(ctx, zk, all, names)
	case c.Args.Has("delete"):
		return c.deleteOld(ctx, zk, names)
	}
	for _, name := range names {
		if err := c.alterOld(ctx, zk, name, all[name]); err != nil {
			return err
		}
	}
	return nil
}

// topicsIn reads all topics with their partitions' states.
func topicsIn(ctx context.Context, zk *zookeeper.Client) (kadm.TopicDetails, error) {
	all := kadm.TopicDetails{}
	names, _, err := zk.Children(ctx, znode.Topics)
	if err != nil && !errors.Is(err, jute.ErrNoNode) {
		return nil, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.TopicPath(name)
	}
	reads, err := zk.GetMany(ctx, paths, false)
	if err != nil {
		return nil, err
	}
	for i, r := range reads {
		if r.Err != nil {
			continue // deleted just now
		}
		t, err := znode.DecodeTopic(r.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[i], err)
		}
		d := kadm.TopicDetail{Topic: names[i], ID: kadm.TopicID(t.ID), Partitions: kadm.PartitionDetails{}}
		for p, a := range t.Partitions {
			d.Partitions[p] = kadm.PartitionDetail{Topic: names[i], Partition: p, Leader: znode.NoLeader, Replicas: a.Replicas}
		}
		all[names[i]] = d
	}
	return all, readStates(ctx, zk, all)
}

func readStates(ctx context.Context, zk *zookeeper.Client, all kadm.TopicDetails) error {
	var parts []kadm.PartitionDetail
	var paths []string
	for _, t := range all {
		for _, p := range t.Partitions {
			parts, paths = append(parts, p), append(paths, znode.StatePath(t.Topic, p.Partition))
		}
	}
	reads, err := zk.GetMany(ctx, paths, false)
	if err != nil {
		return err
	}
	for i, r := range reads {
		if r.Err != nil {
			continue // the controller has still to make it
		}
		if s, err := znode.DecodePartitionState(r.Data); err == nil {
			p := parts[i]
			p.Leader, p.ISR = s.Leader, s.ISR
			all[p.Topic].Partitions[p.Partition] = p
		}
	}
	return nil
}

// brokersIn reads the brokers that are registered.
func brokersIn(ctx context.Context, zk *zookeeper.Client) (list []controller.BrokerRack, err error) {
	ids, _, err := zk.Children(ctx, znode.BrokerIDs)
	if err != nil && !errors.Is(err, jute.ErrNoNode) {
		return nil, err
	}
	for _, name := range ids {
		id, err := znode.ParseBrokerID(name)
		if err != nil {
			continue
		}
		b := controller.BrokerRack{ID: id}
		if data, _, err := zk.Get(ctx, znode.BrokerPath(id)); err == nil {
			if info, err := znode.DecodeBroker(data); err == nil && info.Rack != nil {
				b.Rack = *info.Rack
			}
		}
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b controller.BrokerRack) int { return int(a.ID) - int(b.ID) })
	return list, nil
}

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

func (c *Call) createOld(ctx context.Context, zk *zookeeper.Client) error {
	name := c.Args.Text("topic")
	if collides(name) && !c.JSON {
		fmt.Fprintln(c.Out, "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To avoid issues it is best to use either, but not both.")
	}
	lists, err := c.placeOld(ctx, zk)
	if err != nil {
		return err
	}
	if _, exists, err := zk.Exists(ctx, znode.TopicPath(name)); err != nil || exists && c.Args.Has("if-not-exists") {
		return err
	} else if exists {
		return says("Topic '%s' already exists.", name)
	}
	switch {
	case !topicName.MatchString(name):
		return says("Topic name \"%s\" is illegal, it contains a character other than ASCII alphanumerics, '.', '_' and '-'", name)
	case name == "" || name == "." || name == ".." || len(name) > 249:
		return says("Topic name is illegal, it can't be empty, \".\" or \"..\", or longer than 249 characters")
	}
	configs, err := topicConfigs(c.Args.All("config"))
	if err != nil {
		return err
	}
	values := map[string]string{}
	for _, kv := range configs {
		values[kv.Name] = *kv.Value
	}
	t := znode.Topic{Version: 2, Partitions: map[int32]znode.Assignment{}} // the controller gives it an id
	for i, list := range lists {
		t.Partitions[int32(i)] = znode.Assignment{Replicas: list}
	}
	if err := writeNode(ctx, zk, znode.TopicConfig(name).Path(), znode.EncodeConfig(values)); err != nil {
		return err
	}
	if _, _, err := zk.CreateRecursive(ctx, znode.TopicPath(name), t.Encode(), zookeeper.Persistent); err != nil {
		return err
	}
	if c.JSON {
		return c.printJSON(map[string]any{"created": name})
	}
	fmt.Fprintf(c.Out, "Created topic %s.\n", name)
	return nil
}

// placeOld returns the replicas of a new topic's partitions.
func (c *Call) placeOld(ctx context.Context, zk *zookeeper.Client) ([][]int32, error) {
	if c.Args.Has("replica-assignment") {
		return parseAssignment(c.Args.Text("replica-assignment"))
	}
	partitions, _, err := c.Args.Integer("partitions", 32)
	if err != nil {
		return nil, err
	}
	factor, _, err := c.Args.Integer("replication-factor", 32)
	if err != nil {
		return nil, err
	}
	brokers, err := brokersIn(ctx, zk)
	switch {
	case err != nil:
		return nil, err
	case partitions < 1:
		return nil, says("Number of partitions must be larger than 0.")
	case factor < 1:
		return nil, says("Replication factor must be larger than 0.")
	case int(factor) > len(brokers):
		return nil, says("Replication factor: %d larger than available brokers: %d.", factor, len(brokers))
	}
	return controller.AssignReplicas(brokers, controller.Placement{Partitions: int(partitions), ReplicationFactor: int(factor),
		Start: rand.IntN(len(brokers)), Shift: rand.IntN(len(brokers))})
}

// writeNode sets a node's data, and makes the node if it is missing.
func writeNode(ctx context.Context, zk *zookeeper.Client, path string, data []byte) error {
	_, err := zk.Set(ctx, path, data, zookeeper.AnyVersion)
	if errors.Is(err, jute.ErrNoNode) {
		_, _, err = zk.CreateRecursive(ctx, path, data, zookeeper.Persistent)
	}
	return err
}

func (c *Call) listOld(ctx context.Context, zk *zookeeper.Client, names []string) error {
	if c.JSON {
		return c.printJSON(map[string]any{"topics": append([]string{}, names...)})
	}
	for _, name := range names {
		_, doomed, err := zk.Exists(ctx, znode.DeleteTopicPath(name))
		if err != nil {
			return err
		}
		if doomed {
			name += " - marked for deletion"
		}
		fmt.Fprintln(c.Out, name)
	}
	return nil
}

func (c *Call) describeOld(ctx context.Context, zk *zookeeper.Client, all kadm.TopicDetails, names []string) error {
	brokers, err := brokersIn(ctx, zk)
	if err != nil {
		return err
	}
	live := map[int32]bool{}
	for _, b := range brokers {
		live[b.ID] = true
	}
	reports := []topicReport{}
	for _, name := range names {
		props, err := readConfig(ctx, zk, znode.TopicConfig(name))
		if err != nil {
			return err
		}
		rc := kadm.ResourceConfig{Name: name}
		for _, key := range slices.Sorted(maps.Keys(props)) {
			rc.Configs = append(rc.Configs, kadm.Config{Key: key, Value: kadm.StringPtr(props[key]), Source: kmsg.ConfigSourceDynamicTopicConfig})
		}
		if r, ok := c.reportTopic(all[name], kadm.ResourceConfigs{rc}, nil, live); ok {
			reports = append(reports, r)
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"topics": reports})
	}
	for _, r := range reports {
		r.print(c)
	}
	return nil
}

func (c *Call) alterOld(ctx context.Context, zk *zookeeper.Client, name string, t kadm.TopicDetail) error {
	if c.Args.Has("config") || c.Args.Has("delete-config") {
		if err := c.alterConfigOld(ctx, zk, name); err != nil {
			return err
		}
	}
	if !c.Args.Has("partitions") {
		return nil
	}
	if !c.JSON {
		fmt.Fprintln(c.Out, "WARNING: If partitions are increased for a topic that has a key, the partition logic or ordering of the messages will be affected")
	}
	count, _, err := c.Args.Integer("partitions", 32)
	if err != nil {
		return err
	}
	have := len(t.Partitions)
	if int(count) <= have {
		return says("The number of partitions for a topic can only be increased. Topic %s currently has %d partitions, %d would not be an increase.", name, have, count)
	}
	first := t.Partitions[0].Replicas
	brokers, err := brokersIn(ctx, zk)
	if err != nil {
		return err
	}
	lists, err := controller.AssignReplicas(brokers, controller.Placement{Partitions: int(count) - have, ReplicationFactor: len(first), FirstPartition: have,
		Start: max(0, slices.IndexFunc(brokers, func(b controller.BrokerRack) bool { return len(first) > 0 && b.ID >= first[0] }))})
	if err != nil {
		return err
	}
	if c.Args.Has("replica-assignment") {
		if lists, err = parseAssignment(c.Args.Text("replica-assignment")); err != nil {
			return err
		}
		lists = lists[min(have, len(lists)):]
	}
	data, stat, err := zk.Get(ctx, znode.TopicPath(name))
	if err != nil {
		return err
	}
	node, err := znode.DecodeTopic(data)
	if err != nil {
		return err
	}
	for i, list := range lists {
		node.Partitions[int32(have+i)] = znode.Assignment{Replicas: list}
	}
	if _, err := zk.Set(ctx, znode.TopicPath(name), node.Encode(), stat.Version); err != nil {
		return err
	}
	if c.JSON {
		return c.printJSON(map[string]any{"altered": []string{name}, "partitions": count})
	}
	fmt.Fprintln(c.Out, "Adding partitions succeeded!")
	return nil
}

func (c *Call) alterConfigOld(ctx context.Context, zk *zookeeper.Client, name string) error {
	if !c.JSON {
		fmt.Fprint(c.Out, "WARNING: Altering topic configuration from this script has been deprecated and may be removed in future releases.\n"+
			"         Going forward, please use kafka-configs.sh for this functionality\n")
	}
	add, err := topicConfigs(c.Args.All("config"))
	if err != nil {
		return err
	}
	e := znode.TopicConfig(name)
	props, err := readConfig(ctx, zk, e)
	if err != nil {
		return err
	}
	for _, kv := range add {
		props[kv.Name] = *kv.Value
	}
	for _, key := range c.Args.All("delete-config") {
		delete(props, strings.TrimSpace(key))
	}
	if err := writeConfig(ctx, zk, e, props); err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintf(c.Out, "Updated config for topic %s.\n", name)
	}
	return nil
}

func (c *Call) deleteOld(ctx context.Context, zk *zookeeper.Client, names []string) error {
	if err := c.confirm(fmt.Sprintf("This deletes %s and all records.", quoteAll("topic", names))); err != nil {
		return err
	}
	for _, name := range names {
		if isInternal(name) {
			return says("Topic %s is a kafka internal topic and is not allowed to be marked as deletion.", name)
		}
		_, _, err := zk.CreateRecursive(ctx, znode.DeleteTopicPath(name), nil, zookeeper.Persistent)
		switch {
		case errors.Is(err, jute.ErrNodeExists):
			err = nil
			if !c.JSON {
				fmt.Fprintf(c.Out, "Topic %s is already marked for deletion.\n", name)
			}
		case err == nil && !c.JSON:
			fmt.Fprintf(c.Out, "Topic %s is marked for deletion.\nNote: This will have no impact if delete.topic.enable is not set to true.\n", name)
		}
		if err != nil {
			return err
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"deleted": append([]string{}, names...)})
	}
	return nil
}

// readConfig reads an entity's configuration; without a node there is none.
func readConfig(ctx context.Context, zk *zookeeper.Client, e znode.ConfigEntity) (map[string]string, error) {
	data, _, err := zk.Get(ctx, e.Path())
	if errors.Is(err, jute.ErrNoNode) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	return znode.DecodeConfig(data)
}

// writeConfig writes an entity's configuration and tells every broker.
func writeConfig(ctx context.Context, zk *zookeeper.Client, e znode.ConfigEntity, props map[string]string) error {
	if err := validateConfig(e, props); err != nil {
		return err
	}
	if err := writeNode(ctx, zk, e.Path(), znode.EncodeConfig(props)); err != nil {
		return err
	}
	_, _, err := zk.CreateRecursive(ctx, znode.ConfigChanges+"/"+znode.ConfigChangePrefix, znode.EncodeConfigChange(e), zookeeper.PersistentSequential)
	return err
}

func validateConfig(e znode.ConfigEntity, props map[string]string) error {
	switch {
	case e.Type == znode.TopicEntity:
		broker, err := config.NewBroker(nil)
		if err != nil {
			return err
		}
		return broker.ValidateTopic(props)
	case e.Type == znode.UserEntity && !e.HasClient:
		return config.ValidateEntity(config.Users, props)
	case e.Type == znode.IPEntity:
		return config.ValidateEntity(config.IPs, props)
	case e.Type != znode.BrokerEntity:
		return config.ValidateEntity(config.Clients, props)
	}
	return nil
}
