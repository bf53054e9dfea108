package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consoleConsumerCommand is kafka-console-consumer
// (org.apache.kafka.tools.consumer.ConsoleConsumer), and with --zookeeper that
// of 0.8 (kafka.tools.ConsoleConsumer).
func consoleConsumerCommand() *Command {
	return &Command{
		Name: "console-consumer", Script: "kafka-console-consumer", Short: "Write records to standard output",
		Purpose: "This tool helps to read data from Kafka topics and outputs it to standard output.",
		Long: "With --zookeeper it is the consumer of 0.8: a member of a group that ZooKeeper coordinates, whose options are --topic, --whitelist or --blacklist, --from-beginning, --max-messages, --consumer.config, --delete-consumer-offsets, --skip-message-on-error, --formatter and --property.\n" +
			"Without --group no group is joined and no offset kept.",
		Example: []string{
			"barnabas console-consumer --bootstrap-server localhost:9092 --topic orders --from-beginning",
			"barnabas console-consumer --zookeeper localhost:2181 --whitelist 'orders.*'",
		},
		Options: []Option{
			bootstrap,
			{Name: "consumer-property", Arg: "String: consumer_prop", Text: "A mechanism to pass user-defined properties in the form key=value to the consumer."},
			{Name: "consumer.config", Arg: "String: config file", Text: "Consumer config properties file. Note that [consumer-property] takes precedence over this config."},
			{Name: "enable-systest-events", Text: "Log lifecycle events of the consumer in addition to logging consumed messages. (This is specific for system tests.)"},
			{Name: "formatter", Arg: "String: class", Default: "org.apache.kafka.tools.consumer.DefaultMessageFormatter", Text: "The name of a class to use for formatting kafka messages for display.", Values: formatters()},
			{Name: "formatter-config", Arg: "String: config file", Text: "Config properties file to initialize the message formatter. Note that [property] takes precedence over this config."},
			{Name: "from-beginning", Text: "If the consumer does not already have an established offset to consume from, start with the earliest message present in the log rather than the latest message."},
			{Name: "group", Arg: "String: consumer group id", Group: true, Text: "The consumer group id of the consumer."},
			{Name: "include", Arg: "String: Java regex (String)", Text: "Regular expression specifying list of topics to include for consumption."},
			{Name: "isolation-level", Arg: "String", Default: "read_uncommitted", Values: []string{"read_committed", "read_uncommitted"}, Text: "Set to read_committed in order to filter out transactional messages which are not committed. Set to read_uncommitted to read all messages."},
			{Name: "key-deserializer", Arg: "String: deserializer for key", Text: "The class of the deserializer of keys."},
			{Name: "max-messages", Arg: "Integer: num_messages", Text: "The maximum number of messages to consume before exiting. If not set, consumption is continual."},
			{Name: "offset", Arg: "String: consume offset", Default: "latest", Values: []string{"earliest", "latest"}, Text: "The offset to consume from (a non-negative number), or 'earliest' which means from beginning, or 'latest' which means from end"},
			{Name: "partition", Arg: "Integer: partition", Text: "The partition to consume from. Consumption starts from the end of the partition unless '--offset' is specified."},
			{Name: "property", Arg: "String: prop", Text: "The properties to initialize the message formatter. Default properties include:\nprint.timestamp=true|false\nprint.key=true|false\nprint.offset=true|false\nprint.partition=true|false\nprint.headers=true|false\nprint.value=true|false\nkey.separator=<key.separator>\nline.separator=<line.separator>\nheaders.separator=<line.separator>\nnull.literal=<null.literal>\nkey.deserializer=<key.deserializer>\nvalue.deserializer=<value.deserializer>\nheader.deserializer=<header.deserializer>"},
			{Name: "skip-message-on-error", Text: "If there is an error when processing a message, skip it instead of halt."},
			{Name: "timeout-ms", Arg: "Long: timeout_ms", Text: "If specified, exit if no message is available for consumption for the specified interval."},
			{Name: "topic", Arg: "String: topic", Topic: true, Text: "The topic to consume on."},
			{Name: "value-deserializer", Arg: "String: deserializer for values", Text: "The class of the deserializer of values."},
			{Name: "whitelist", Arg: "String: Java regex (String)", Text: "DEPRECATED, use --include instead; ignored if --include specified. Regular expression specifying list of topics to include for consumption."},
			{Name: "zookeeper", Arg: "String: urls", Text: "The connection string of ZooKeeper in the form host:port: consume as 0.8 did. (In Kafka's script up to 1.1.)"},
			{Name: "blacklist", Arg: "String: blacklist", Text: "Topics to exclude from consumption; with --zookeeper only. (In Kafka's script up to 1.1.)"},
			{Name: "delete-consumer-offsets", Text: "If specified, the consumer path in zookeeper is deleted when starting up. (In Kafka's script up to 1.1.)"},
			yes,
		},
		Run: runConsoleConsumer,
	}
}

// consoleConsumer is a checked command line.
type consoleConsumer struct {
	include      bool // the topic is an expression
	topic        string
	partition    int32
	hasPartition bool
	at           kgo.Offset
	most         int64 // -1: no limit
	timeout      time.Duration
	props        map[string]string
	format       formatter
}

func runConsoleConsumer(c *Call) error {
	if c.Args.Has("zookeeper") {
		return c.consumeOld()
	}
	o, err := c.checkConsumer()
	if err != nil {
		return err
	}
	opts, err := o.options(c)
	if err != nil {
		return err
	}
	k, err := c.kafkaAt(c.Args.Text("bootstrap-server"), o.props, opts...)
	if err != nil {
		return err
	}
	defer k.Close()
	return c.consume(k, o)
}

// checkConsumer is ConsoleConsumerOptions.
func (c *Call) checkConsumer() (*consoleConsumer, error) {
	a := c.Args
	o := &consoleConsumer{most: -1, timeout: -1}
	if err := a.needs("bootstrap-server"); err != nil {
		return nil, err
	}
	include := a.Text("include")
	if include == "" {
		include = a.Text("whitelist")
	}
	o.topic, o.include = a.Text("topic"), include != ""
	if o.include == (o.topic != "") {
		return nil, usage("Exactly one of --include/--topic is required. ")
	}
	if o.include {
		o.topic = include
	}
	if err := o.readOffset(a); err != nil {
		return nil, err
	}
	var err error
	if o.props, err = properties(a.Text("consumer.config")); err != nil {
		return nil, err
	}
	pairs(o.props, a.All("consumer-property"))
	if group := o.props["group.id"]; group != "" && a.Has("group") && group != a.Text("group") {
		return nil, terse("The group ids provided in different places (directly using '--group', via '--consumer-property', or via '--consumer.config') do not match. Detected group ids: '%s', '%s'", a.Text("group"), group)
	}
	if a.Has("group") {
		o.props["group.id"] = a.Text("group")
	}
	if o.hasPartition && a.Has("group") {
		return nil, usage("Options group and partition cannot be specified together.")
	}
	if !a.Has("isolation-level") && o.props["isolation.level"] != "" {
		a.values["isolation-level"] = []string{o.props["isolation.level"]}
	}
	if l := a.Text("isolation-level"); l != "read_committed" && l != "read_uncommitted" {
		return nil, terse("Invalid value %s for configuration isolation.level: String must be one of: read_committed, read_uncommitted", l)
	}
	if o.format, err = newFormatter(a); err != nil {
		return nil, err
	}
	if n, ok, err := a.Integer("max-messages", 32); err != nil {
		return nil, c.before("Processed a total of 0 messages", err)
	} else if ok {
		o.most = n
	}
	if n, ok, err := a.Integer("timeout-ms", 64); err != nil {
		return nil, c.before("Processed a total of 0 messages", err)
	} else if ok {
		o.timeout = time.Duration(n) * time.Millisecond
	}
	return o, nil
}

// before makes a usage error that Kafka's script finds late: after it has
// counted.
func (c *Call) before(line string, err error) error {
	fmt.Fprintln(c.Err, line)
	return terse("%s", err.Error())
}

func (o *consoleConsumer) readOffset(a *Args) error {
	n, ok, err := a.Integer("partition", 32)
	if err != nil {
		return err
	}
	o.partition, o.hasPartition = int32(n), ok
	if ok && o.include {
		return usage("The topic is required when partition is specified.")
	}
	if !a.Has("offset") {
		o.at = kgo.NewOffset().AtEnd()
		if a.Has("from-beginning") {
			o.at = kgo.NewOffset().AtStart()
		}
		return nil
	}
	if !ok {
		return usage("The partition is required when offset is specified.")
	}
	if a.Has("from-beginning") {
		return usage("Options from-beginning and offset cannot be specified together.")
	}
	switch s := strings.ToLower(a.Text("offset")); s {
	case "earliest":
		o.at = kgo.NewOffset().AtStart()
	case "latest":
		o.at = kgo.NewOffset().AtEnd()
	default:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return usage("The provided offset value '%s' is incorrect. Valid values are 'earliest', 'latest', or a non-negative long.", a.Text("offset"))
		}
		o.at = kgo.NewOffset().At(n)
	}
	return nil
}

func (o *consoleConsumer) options(c *Call) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.ClientID("console-consumer"), kgo.FetchMaxWait(500 * time.Millisecond), kgo.KeepRetryableFetchErrors(), kgo.MetadataMaxAge(time.Minute),
		kgo.AllowAutoTopicCreation(), // as allow.auto.create.topics of Java's consumer
	}
	if c.Args.Text("isolation-level") == "read_committed" {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if n, err := strconv.Atoi(o.props["max.partition.fetch.bytes"]); err == nil && n > 0 {
		opts = append(opts, kgo.FetchMaxPartitionBytes(int32(n)))
	}
	topic := o.topic
	if o.include {
		f, err := topicFilter(o.topic)
		if err != nil {
			return nil, err
		}
		_ = f // it compiles
		topic = "^(?:" + strings.ReplaceAll(o.topic, ",", "|") + ")$"
		opts = append(opts, kgo.ConsumeRegex())
	}
	reset := o.at
	if !c.Args.Has("from-beginning") && !c.Args.Has("offset") && o.props["auto.offset.reset"] == "earliest" {
		reset = kgo.NewOffset().AtStart()
	}
	if o.hasPartition {
		return append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.topic: {o.partition: o.at}})), nil
	}
	opts = append(opts, kgo.ConsumeTopics(topic))
	if group := o.props["group.id"]; group != "" {
		opts = append(opts, kgo.ConsumerGroup(group), kgo.ConsumeResetOffset(reset), kgo.Balancers(kgo.RangeBalancer(), kgo.CooperativeStickyBalancer()))
		if o.props["enable.auto.commit"] == "false" {
			return append(opts, kgo.DisableAutoCommit()), nil
		}
		list := (*kadm.Client).ListEndOffsets
		switch {
		case reset == kgo.NewOffset().AtStart():
			list = (*kadm.Client).ListStartOffsets
		case c.Args.Text("isolation-level") == "read_committed":
			list = (*kadm.Client).ListCommittedOffsets
		}
		for _, o := range commitStarts(list) {
			opts = append(opts, o)
		}
		return append(opts, kgo.AutoCommitMarks()), nil
	}
	return append(opts, kgo.ConsumeResetOffset(reset)), nil
}

// consume writes records until there were enough, none came for the timeout, or
// the command is interrupted.
func (c *Call) consume(k *kgo.Client, o *consoleConsumer) error {
	out := bufio.NewWriterSize(c.Out, 1<<16)
	count := int64(0)
	var bad error
	warned := map[string]bool{}
	last := time.Now() // when records came
	for bad == nil && (o.most < 0 || count < o.most) && c.Context.Err() == nil {
		poll, cancel := c.Context, context.CancelFunc(func() {})
		if o.timeout >= 0 {
			poll, cancel = context.WithDeadline(c.Context, last.Add(o.timeout))
		}
		fetches := k.PollFetches(poll)
		cancel()
		if fetches.NumRecords() == 0 && errors.Is(poll.Err(), context.DeadlineExceeded) {
			bad = context.DeadlineExceeded
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				return
			}
			if !passing(err) {
				bad = err
				return
			}
			if errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress) {
				return // the first group of a cluster waits for the topic of offsets
			}
			name := topic
			if partition >= 0 { // else it is about all
				name = fmt.Sprintf("%s-%d", topic, partition)
			}
			why := text(err)
			if topic != "" { // else it is about the group
				why = name + ": " + why
			}
			if !warned[why] {
				warned[why] = true
				fmt.Fprintln(c.Err, why)
				c.hint(err)
			}
		})
		for it := fetches.RecordIter(); !it.Done() && (o.most < 0 || count < o.most); {
			r := it.Next()
			if err := o.format.write(out, r); err != nil && !c.Args.Has("skip-message-on-error") {
				bad = err
				break
			}
			if o.props["group.id"] != "" {
				k.MarkCommitRecords(r)
			}
			count++
		}
		if err := out.Flush(); err != nil { // whoever read is gone
			bad = ErrReported
		}
		if fetches.NumRecords() > 0 {
			last = time.Now()
		}
	}
	if o.props["group.id"] != "" && o.props["enable.auto.commit"] != "false" {
		commit, cancel := context.WithTimeout(context.WithoutCancel(c.Context), 5*time.Second)
		defer cancel()
		if err := k.CommitMarkedOffsets(commit); err != nil {
			fmt.Fprintln(c.Err, "Offsets were not committed: "+text(err))
		}
	}
	if errors.Is(bad, context.DeadlineExceeded) {
		fmt.Fprintln(c.Err, "Error processing message, terminating consumer process: \nNo record came within --timeout-ms.")
		bad = nil
	}
	if bad != nil && bad != ErrReported {
		fmt.Fprintln(c.Err, "Error processing message, terminating consumer process: "+text(bad))
		c.hint(bad)
		bad = nil // as Kafka's script: the exit status is 0
	}
	fmt.Fprintf(c.Err, "Processed a total of %d messages\n", count)
	return bad
}

// commitStarts commits where partitions begin that have no offset yet, when they
// are assigned. What comes from there on without being printed is then left to
// the group, as by Java's consumer, which commits its positions.
func commitStarts(list func(*kadm.Client, context.Context, ...string) (kadm.ListedOffsets, error)) []kgo.GroupOpt {
	var k *kgo.Client // of the callback that comes first
	return []kgo.GroupOpt{
		kgo.OnPartitionsAssigned(func(_ context.Context, client *kgo.Client, _ map[string][]int32) { k = client }),
		kgo.AdjustFetchOffsetsFn(func(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
			var topics []string
			for topic, parts := range offsets {
				if slices.ContainsFunc(slices.Collect(maps.Values(parts)), unset) {
					topics = append(topics, topic)
				}
			}
			if len(topics) == 0 {
				return offsets, nil
			}
			listed, err := list(kadm.NewClient(k), ctx, topics...)
			if ctx.Err() != nil {
				return nil, err
			}
			var starts []*kgo.Record // before the first
			listed.Each(func(l kadm.ListedOffset) {
				if at, ok := offsets[l.Topic][l.Partition]; ok && unset(at) && l.Err == nil { // else the client asks until it is told, and nothing is committed
					offsets[l.Topic][l.Partition] = kgo.NewOffset().At(l.Offset)
					starts = append(starts, &kgo.Record{Topic: l.Topic, Partition: l.Partition, Offset: l.Offset - 1, LeaderEpoch: -1})
				}
			})
			return offsets, k.CommitRecords(ctx, starts...)
		}),
	}
}

// unset tells whether a partition has no committed offset: it begins where
// the reset says.
func unset(at kgo.Offset) bool { return at.EpochOffset().Offset < 0 }

// anyGroup is the name of a group that nobody else has.
func anyGroup() string { return "console-consumer-" + strconv.Itoa(rand.IntN(100000)) }

func formatters() []string {
	return slices.Sorted(slices.Values([]string{
		"org.apache.kafka.tools.consumer.DefaultMessageFormatter", "org.apache.kafka.tools.consumer.LoggingMessageFormatter",
		"org.apache.kafka.tools.consumer.NoOpMessageFormatter", "kafka.tools.DefaultMessageFormatter", "kafka.tools.NoOpMessageFormatter",
		"kafka.tools.LoggingMessageFormatter", "json",
	}))
}
