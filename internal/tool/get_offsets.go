package tool

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// getOffsetsCommand is kafka-get-offsets (org.apache.kafka.tools.GetOffsetShell).
func getOffsetsCommand() *Command {
	return &Command{
		Name: "get-offsets", Script: "kafka-get-offsets", Short: "Show the offsets of topics' partitions",
		Purpose: "An interactive shell for getting topic-partition offsets.",
		Example: []string{"barnabas get-offsets --bootstrap-server localhost:9092 --topic orders --time earliest"},
		Before:  "Error occurred: ",
		Options: []Option{
			{Name: "bootstrap-server", Arg: "String: HOST1:PORT1,...,HOST3:PORT3", Required: true, Text: "The server(s) to connect to in the form HOST1:PORT1,HOST2:PORT2."},
			{Name: "broker-list", Arg: "String: HOST1:PORT1,...,HOST3:PORT3", Text: "DEPRECATED, use --bootstrap-server instead; ignored if --bootstrap-server is specified. The server(s) to connect to in the form HOST1:PORT1,HOST2:PORT2."},
			commandConfig,
			{Name: "exclude-internal-topics", Text: "By default, internal topics are included. If specified, internal topics are excluded."},
			{Name: "partitions", Arg: "String: partition ids", Text: "Comma separated list of partition ids to get the offsets for. If not present, all partitions of the authorized topics are queried. Cannot be used if --topic-partitions is present."},
			{Name: "time", Arg: "String: <timestamp> / -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered", Default: "latest", Text: "timestamp of the offsets before that. [Note: No offset is returned, if the timestamp greater than recently committed record timestamp is given.]", Values: []string{"latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered"}},
			{Name: "topic", Arg: "String: topic", Topic: true, Text: "The topic to get the offsets for. It also accepts a regular expression. If not present, all authorized topics are queried. Cannot be used if --topic-partitions is present."},
			{Name: "topic-partitions", Arg: "String: topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3", Text: "Comma separated list of topic-partition patterns to get the offsets for, with the format of '([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?'. The first group is an optional regex for the topic name, if omitted, it matches any topic name. The section after ':' describes a 'partition' pattern, which can be: a number, a range in the format of 'NUMBER-NUMBER' (lower inclusive, upper exclusive), an inclusive lower bound in the format of 'NUMBER-', an exclusive upper bound in the format of '-NUMBER' or may be omitted to accept all partitions."},
		},
		Run: runGetOffsets,
	}
}

type partitionFilter func(topic string, partition int32) bool

func runGetOffsets(c *Call) error {
	a := c.Args
	if !a.Has("bootstrap-server") {
		if !a.Has("broker-list") {
			return terse("Missing required option(s) [bootstrap-server]")
		}
		a.values["bootstrap-server"] = a.values["broker-list"]
	}
	if !validServers(a.Text("bootstrap-server")) {
		return terse("Please provide valid host:port like host1:9091,host2:9092\n ")
	}
	at, err := offsetTime(a.Text("time"))
	if err != nil {
		return err
	}
	filter, err := offsetFilter(a)
	if err != nil {
		return err
	}
	return c.withAdmin(func(admin *kadm.Client, k *kgo.Client) error {
		all, err := admin.ListTopicsWithInternal(c.Context)
		if err != nil {
			return err
		}
		var list []kadm.PartitionDetail
		for _, t := range all {
			if a.Has("exclude-internal-topics") && isInternal(t.Topic) {
				continue
			}
			for _, p := range t.Partitions {
				if filter(t.Topic, p.Partition) {
					list = append(list, p)
				}
			}
		}
		if len(list) == 0 {
			return terse("Could not match any topic-partitions with the specified filters")
		}
		return c.printOffsets(k, list, at)
	})
}

var serverPattern = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*://)?\[?[0-9a-zA-Z\-%._:]+\]?:[0-9]+$`)

// validServers is ToolsUtils.validateBootstrapServer.
func validServers(list string) bool {
	for s := range strings.SplitSeq(list, ",") {
		if !serverPattern.MatchString(s) {
			return false
		}
	}
	return true
}

func offsetTime(s string) (int64, error) {
	switch s {
	case "earliest":
		return -2, nil
	case "latest":
		return -1, nil
	case "max-timestamp":
		return -3, nil
	case "earliest-local":
		return -4, nil
	case "latest-tiered":
		return -5, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, terse("Malformed time argument %s. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered, or a specified long format timestamp", s)
	}
	return n, nil
}

func offsetFilter(a *Args) (partitionFilter, error) {
	if a.Has("topic-partitions") {
		if a.Has("topic") || a.Has("partitions") {
			return nil, terse("--topic-partitions cannot be used with --topic or --partitions")
		}
		return patternFilter(a.Text("topic-partitions"))
	}
	allows := func(string, bool) bool { return true }
	if a.Has("topic") {
		var err error
		if allows, err = topicFilter(a.Text("topic")); err != nil {
			return nil, err
		}
	}
	var ids []int32
	if s := a.Text("partitions"); s != "" {
		for part := range strings.SplitSeq(s, ",") {
			if part == "" {
				continue
			}
			id, err := atoi(part)
			if err != nil {
				return nil, terse("--partitions expects a comma separated list of numeric partition ids, but received: %s", s)
			}
			ids = append(ids, id)
		}
	}
	return func(topic string, partition int32) bool {
		return allows(topic, false) && (len(ids) == 0 || slices.Contains(ids, partition))
	}, nil
}

var offsetPattern = regexp.MustCompile(`^([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?$`)

// patternFilter reads --topic-partitions.
func patternFilter(patterns string) (partitionFilter, error) {
	var any []partitionFilter
	for rule := range strings.SplitSeq(patterns, ",") {
		m := offsetPattern.FindStringSubmatch(rule)
		if m == nil {
			return nil, terse("Invalid rule specification: %s", rule)
		}
		topics := m[1]
		if topics == "" {
			topics = ".*"
		}
		allows, err := topicFilter(topics)
		if err != nil {
			return nil, err
		}
		number := func(s string, otherwise int64) int64 {
			if n, err := strconv.ParseInt(s, 10, 32); err == nil {
				return n
			}
			return otherwise
		}
		first, end := int64(0), int64(1)<<31
		switch {
		case m[2] != "":
			first = number(m[2], 0)
			end = first + 1
		case m[3] != "" || m[4] != "":
			first, end = number(m[3], 0), number(m[4], 1<<31)
		}
		any = append(any, func(topic string, p int32) bool {
			return allows(topic, false) && int64(p) >= first && int64(p) < end
		})
	}
	return func(topic string, p int32) bool {
		return slices.ContainsFunc(any, func(f partitionFilter) bool { return f(topic, p) })
	}, nil
}

type listedOffset struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	name      string
	err       error
}

// printOffsets asks each leader once. Lines come in the order of
// "topic-partition" as text, as Kafka's do.
func (c *Call) printOffsets(k *kgo.Client, list []kadm.PartitionDetail, at int64) error {
	found, err := listOffsets(c.Context, k, list, at)
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b listedOffset) int { return strings.Compare(a.name, b.name) })
	shown := []listedOffset{}
	var total int64
	for _, o := range found {
		switch {
		case o.err != nil:
			to := c.Out
			if c.JSON {
				to = c.Err
			}
			fmt.Fprintf(to, "Skip getting offsets for topic-partition %s due to: %s\n", o.name, text(o.err))
		case o.Offset >= 0:
			shown = append(shown, o)
			total += o.Offset
			if !c.JSON {
				fmt.Fprintf(c.Out, "%s:%d:%d\n", o.Topic, o.Partition, o.Offset)
			}
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"offsets": shown, "total": total})
	}
	return nil
}

func listOffsets(ctx context.Context, k *kgo.Client, list []kadm.PartitionDetail, at int64) (found []listedOffset, err error) {
	req := kmsg.NewPtrListOffsetsRequest()
	topics := map[string]int{}
	for _, p := range list {
		i, ok := topics[p.Topic]
		if !ok {
			i = len(req.Topics)
			topics[p.Topic] = i
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		one := kmsg.NewListOffsetsRequestTopicPartition()
		one.Partition, one.Timestamp, one.CurrentLeaderEpoch = p.Partition, at, -1
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, one)
	}
	for _, shard := range k.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				found = append(found, listedOffset{t.Topic, p.Partition, p.Offset, fmt.Sprintf("%s-%d", t.Topic, p.Partition), answered(p.ErrorCode, nil)})
			}
		}
	}
	return found, nil
}
