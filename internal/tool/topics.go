package tool

import (
	"fmt"
	"strings"

	"barnabas/internal/config"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicsCommand is kafka-topics (org.apache.kafka.tools.TopicCommand).
func topicsCommand() *Command {
	return &Command{
		Name: "topics", Script: "kafka-topics", Short: "Create, list, describe, grow, empty and delete topics",
		Purpose: "This tool helps to create, delete, describe, or change a topic.",
		Long:    "--empty deletes the records of a topic and keeps the topic, its configuration and its offsets: what is written next goes on where the last record was.",
		Example: []string{
			"barnabas topics --bootstrap-server localhost:9092 --create --topic orders --partitions 3",
			"barnabas topics --bootstrap-server localhost:9092 --describe --topic orders",
			"barnabas topics --bootstrap-server localhost:9092 --empty --topic orders",
		},
		Options: []Option{
			{Name: "alter", Text: "Alter the number of partitions and replica assignment. Update the configuration of an existing topic via --alter is no longer supported here (the kafka-configs CLI supports altering topic configs with a --bootstrap-server option)."},
			{Name: "at-min-isr-partitions", Text: "if set when describing topics, only show partitions whose isr count is equal to the configured minimum."},
			bootstrap, commandConfig,
			{Name: "config", Property: true, Arg: "String: name=value", Text: "A topic configuration override for the topic being created. The following is a list of valid configurations:\n" + topicKeys() + "\nIt is supported only in combination with --create."},
			{Name: "create", Text: "Create a new topic."},
			{Name: "delete", Text: "Delete a topic"},
			{Name: "delete-config", Property: true, Arg: "String: name", Text: "A topic configuration override to be removed for an existing topic. Not supported with the --bootstrap-server option."},
			{Name: "describe", Text: "List details for the given topics."},
			{Name: "empty", Ours: true, Text: "Delete all records of the given topics."},
			{Name: "exclude-internal", Text: "exclude internal topics when running list or describe command. The internal topics will be listed by default"},
			{Name: "if-exists", Text: "if set when altering or deleting or describing topics, the action will only execute if the topic exists."},
			{Name: "if-not-exists", Text: "if set when creating topics, the action will only execute if the topic does not already exist."},
			{Name: "list", Text: "List all available topics."},
			{Name: "partition-size-limit-per-response", Arg: "Integer: maximum number of partitions in one response.", Text: "the maximum partition size to be included in one DescribeTopicPartitions response."},
			{Name: "partitions", Arg: "Integer: # of partitions", Text: "The number of partitions for the topic being created or altered (WARNING: If partitions are increased for a topic that has a key, the partition logic or ordering of the messages will be affected). If not supplied for create, defaults to the cluster default."},
			{Name: "replica-assignment", Arg: "String: broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , broker_id_for_part2_replica1 : broker_id_for_part2_replica2 , ...", Text: "A list of manual partition-to-broker assignments for the topic being created or altered."},
			{Name: "replication-factor", Arg: "Integer: replication factor", Text: "The replication factor for each partition in the topic being created. If not supplied, defaults to the cluster default."},
			{Name: "topic", Arg: "String: topic", Topic: true, Text: "The topic to create, alter, describe or delete. It also accepts a regular expression, except for --create option. Put topic name in double quotes and use the '\\' prefix to escape regular expression symbols; e.g. \"test\\.topic\"."},
			{Name: "topic-id", Arg: "String: topic-id", Text: "The topic-id to describe."},
			{Name: "topics-with-overrides", Text: "if set when describing topics, only show topics that have overridden configs"},
			{Name: "unavailable-partitions", Text: "if set when describing topics, only show partitions whose leader is not available"},
			{Name: "zookeeper", Arg: "String: hosts", Text: "DEPRECATED, The connection string for the zookeeper connection in the form host:port. Multiple hosts can be given to allow fail-over. (In Kafka's script up to 2.8.)"},
			{Name: "under-min-isr-partitions", Text: "if set when describing topics, only show partitions whose isr count is less than the configured minimum."},
			{Name: "under-replicated-partitions", Text: "if set when describing topics, only show under replicated partitions"},
			yes,
		},
		Run: runTopics,
	}
}

func topicKeys() string {
	var b strings.Builder
	for i, d := range config.TopicDefinitions() {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(d.Name)
	}
	return b.String()
}

var topicActions = []string{"alter", "create", "describe", "list", "delete", "empty"}

func without(list []string, names ...string) (rest []string) {
	for _, l := range list {
		keep := true
		for _, n := range names {
			keep = keep && l != n
		}
		if keep {
			rest = append(rest, l)
		}
	}
	return rest
}

// checkTopics is TopicCommandOptions.checkArgs.
func checkTopics(a *Args) error {
	if a.count(topicActions...) != 1 {
		return usage("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
	}
	if a.Has("zookeeper") {
		if err := checkTopicsOld(a); err != nil {
			return err
		}
	} else if !a.Has("bootstrap-server") {
		return terse("--bootstrap-server must be specified")
	}
	if a.Has("describe") && a.Has("if-exists") && !a.Has("topic") && !a.Has("topic-id") {
		return usage("--topic or --topic-id is required to describe a topic")
	}
	if !a.Has("list") && !a.Has("describe") {
		if err := a.needs("topic"); err != nil {
			return err
		}
	}
	if a.Has("alter") && !a.Has("zookeeper") {
		if a.Has("config") {
			return usage("Option combination \"[[bootstrap-server], [config]]\" can't be used with option \"[alter]\" (the kafka-configs CLI supports altering topic configs with a --bootstrap-server option)")
		}
		if err := a.needs("partitions"); err != nil {
			return err
		}
	}
	reports := []string{"under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions", "unavailable-partitions"}
	for _, rule := range []struct {
		name string
		not  []string
	}{
		{"config", without(topicActions, "alter", "create")},
		{"delete-config", append(without(topicActions, "alter"), "bootstrap-server")},
		{"partitions", without(topicActions, "alter", "create")},
		{"replication-factor", without(topicActions, "create")},
		{"replica-assignment", without(topicActions, "create", "alter")},
		{"under-replicated-partitions", append(without(topicActions, "describe"), "topics-with-overrides")},
		{"under-min-isr-partitions", append(without(topicActions, "describe"), "topics-with-overrides")},
		{"at-min-isr-partitions", append(without(topicActions, "describe"), "topics-with-overrides")},
		{"unavailable-partitions", append(without(topicActions, "describe"), "topics-with-overrides")},
		{"topics-with-overrides", append(without(topicActions, "describe"), reports...)},
		{"if-exists", without(topicActions, "alter", "delete", "describe", "empty")},
		{"if-not-exists", without(topicActions, "create")},
		{"exclude-internal", without(topicActions, "list", "describe")},
	} {
		if err := a.not(rule.name, rule.not...); err != nil {
			return err
		}
	}
	if a.Has("create") {
		return a.not("replica-assignment", "partitions", "replication-factor")
	}
	return nil
}

func runTopics(c *Call) error {
	if err := checkTopics(c.Args); err != nil {
		return err
	}
	if c.Args.Has("zookeeper") {
		return c.topicsDone(c.withZooKeeper(c.topicsOld))
	}
	return c.topicsDone(c.withAdmin(func(admin *kadm.Client, k *kgo.Client) error {
		switch {
		case c.Args.Has("create"):
			return c.createTopic(k)
		case c.Args.Has("list"):
			return c.listTopics(admin)
		case c.Args.Has("describe"):
			return c.describeTopics(admin)
		case c.Args.Has("alter"):
			return c.growTopics(admin, k)
		case c.Args.Has("empty"):
			return c.emptyTopics(admin)
		}
		return c.deleteTopics(admin)
	}))
}

// topicsDone tells of an error as Kafka's script does.
func (c *Call) topicsDone(err error) error {
	if err == nil || err == ErrReported || c.JSON {
		return err
	}
	fmt.Fprintln(c.Out, "Error while executing topic command : "+text(err))
	fmt.Fprintln(c.Err, text(err))
	c.hint(err)
	return ErrReported
}

func (c *Call) createTopic(k *kgo.Client) error {
	name := c.Args.Text("topic")
	partitions, hasPartitions, err := c.Args.Integer("partitions", 32)
	if err != nil {
		return err
	}
	replicas, hasReplicas, err := c.Args.Integer("replication-factor", 32)
	if err != nil {
		return err
	}
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
	if t.Configs, err = topicConfigs(c.Args.All("config")); err != nil {
		return err
	}
	if collides(name) && !c.JSON {
		fmt.Fprintln(c.Out, "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To avoid issues it is best to use either, but not both.")
	}
	switch {
	case hasReplicas && (replicas < 1 || replicas > 32767):
		return says("The replication factor must be between 1 and 32767 inclusive")
	case hasPartitions && partitions < 1:
		return says("The partitions must be greater than 0")
	}
	if hasPartitions {
		t.NumPartitions = int32(partitions)
	}
	if hasReplicas {
		t.ReplicationFactor = int16(replicas)
	}
	if c.Args.Has("replica-assignment") {
		lists, err := parseAssignment(c.Args.Text("replica-assignment"))
		if err != nil {
			return err
		}
		for i, list := range lists {
			t.ReplicaAssignment = append(t.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(i), Replicas: list})
		}
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(patience.Milliseconds())
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(c.Context, k)
	if err != nil {
		return err
	}
	for _, r := range resp.Topics {
		if err := answered(r.ErrorCode, r.ErrorMessage); err != nil {
			if r.ErrorCode == kerr.TopicAlreadyExists.Code && c.Args.Has("if-not-exists") {
				return nil
			}
			return err
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"created": name})
	}
	fmt.Fprintf(c.Out, "Created topic %s.\n", name)
	return nil
}

// topicConfigs reads and checks name=value as the tool does before it asks.
func topicConfigs(list []string) (configs []kmsg.CreateTopicsRequestTopicConfig, err error) {
	values := map[string]string{}
	for _, kv := range list {
		name, value, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, terse("requirement failed: Invalid topic config: all configs to be added must be in the format \"key=val\".")
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		values[name] = value
		configs = append(configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: &value})
	}
	broker, err := config.NewBroker(nil)
	if err != nil {
		return nil, err
	}
	return configs, broker.ValidateTopic(values)
}

// parseAssignment reads "1:2,2:1": the brokers of each partition.
func parseAssignment(s string) (lists [][]int32, err error) {
	for part := range strings.SplitSeq(s, ",") {
		var list []int32
		for id := range strings.SplitSeq(part, ":") {
			n, err := atoi(strings.TrimSpace(id))
			if err != nil {
				return nil, says("For input string: \"%s\"", id)
			}
			for _, other := range list {
				if other == n {
					return nil, says("Partition replica lists may not contain duplicate entries: %d", n)
				}
			}
			list = append(list, n)
		}
		if len(lists) > 0 && len(list) != len(lists[0]) {
			return nil, says("Partition %d has different replication factor: %v", len(lists), list)
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// topicsNamed returns the topics that --topic picks; if none does, that is an
// error unless --if-exists.
func (c *Call) topicsNamed(admin *kadm.Client) ([]string, kadm.TopicDetails, error) {
	all, err := admin.ListTopicsWithInternal(c.Context)
	if err != nil {
		return nil, nil, err
	}
	names, err := matching(all, c.Args.Text("topic"), c.Args.Has("exclude-internal"))
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 && c.Args.Has("topic") && !c.Args.Has("if-exists") {
		return nil, nil, because(kerr.UnknownTopicOrPartition, "Topic 'Optional[%s]' does not exist as expected", c.Args.Text("topic"))
	}
	return names, all, nil
}

func (c *Call) listTopics(admin *kadm.Client) error {
	all, err := admin.ListTopicsWithInternal(c.Context)
	if err != nil {
		return err
	}
	names, err := matching(all, c.Args.Text("topic"), c.Args.Has("exclude-internal"))
	if err != nil {
		return err
	}
	if c.JSON {
		return c.printJSON(map[string]any{"topics": append([]string{}, names...)})
	}
	fmt.Fprintln(c.Out, strings.Join(names, "\n")) // an empty line for none, as Kafka's
	return nil
}

func (c *Call) deleteTopics(admin *kadm.Client) error {
	names, _, err := c.topicsNamed(admin)
	if err != nil || len(names) == 0 {
		return err
	}
	if err := c.confirm(fmt.Sprintf("This deletes %s and all records.", quoteAll("topic", names))); err != nil {
		return err
	}
	done, err := admin.DeleteTopics(c.Context, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		if r := done[name]; r.Err != nil {
			return withMessage(r.Err, r.ErrMessage)
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"deleted": names})
	}
	return nil
}

func quoteAll(what string, names []string) string {
	if len(names) == 1 {
		return what + " " + names[0]
	}
	if len(names) > 5 {
		return fmt.Sprintf("%d %ss (%s, ...)", len(names), what, strings.Join(names[:5], ", "))
	}
	return what + "s " + strings.Join(names, ", ")
}

func (c *Call) growTopics(admin *kadm.Client, k *kgo.Client) error {
	names, all, err := c.topicsNamed(admin)
	if err != nil || len(names) == 0 {
		return err
	}
	count, _, err := c.Args.Integer("partitions", 32)
	if err != nil {
		return err
	}
	var lists [][]int32
	if c.Args.Has("replica-assignment") {
		if lists, err = parseAssignment(c.Args.Text("replica-assignment")); err != nil {
			return err
		}
	}
	if count < 1 {
		return says("The partitions must be greater than 0")
	}
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = int32(patience.Milliseconds())
	for _, name := range names {
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = name, int32(count)
		if at := len(all[name].Partitions); lists != nil && at <= len(lists) {
			for _, list := range lists[at:] {
				t.Assignment = append(t.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: list})
			}
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(c.Context, k)
	if err != nil {
		return err
	}
	for _, r := range resp.Topics {
		if err := answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return err
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"altered": names, "partitions": count})
	}
	return nil
}

// emptyTopics deletes all records up to the end of each partition.
func (c *Call) emptyTopics(admin *kadm.Client) error {
	names, _, err := c.topicsNamed(admin)
	if err != nil || len(names) == 0 {
		return err
	}
	if err := c.confirm(fmt.Sprintf("This deletes all records of %s.", quoteAll("topic", names))); err != nil {
		return err
	}
	ends, err := admin.ListEndOffsets(c.Context, names...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	done, err := admin.DeleteRecords(c.Context, ends.Offsets())
	if err == nil {
		err = done.Error()
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return c.printJSON(map[string]any{"emptied": names})
	}
	for _, n := range names {
		fmt.Fprintf(c.Out, "Emptied topic %s.\n", n)
	}
	return nil
}
