package tool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/kadm"
)

// offsetCheckerCommand is kafka.tools.ConsumerOffsetChecker of 0.8.2.
func offsetCheckerCommand() *Command {
	return &Command{
		Name: "consumer-offset-checker", Script: "kafka-consumer-offset-checker", Short: "Show offsets, lag and owners of a group that ZooKeeper coordinates",
		Purpose: "Check the offset of your consumers.",
		Long:    "--totals adds the lag of each topic and of the whole group.",
		Example: []string{"barnabas consumer-offset-checker --zookeeper localhost:2181 --group g --totals"},
		Options: []Option{
			{Name: "broker-info", Text: "Print broker info"},
			{Name: "group", Arg: "group", Required: true, Text: "Consumer group."},
			{Name: "retry.backoff.ms", Arg: "Integer", Default: "3000", Text: "Retry back-off to use for failed offset queries."},
			{Name: "socket.timeout.ms", Arg: "Integer", Default: "6000", Text: "Socket timeout to use when querying for offsets."},
			{Name: "topic", Arg: "topics", Text: "Comma-separated list of consumer topics (all topics if absent)."},
			{Name: "totals", Ours: true, Text: "Add the lag of each topic and of the group."},
			{Name: "zookeeper", Arg: "urls", Default: "localhost:2181", Text: "ZooKeeper connect string."},
		},
		Run: runOffsetChecker,
	}
}

// checkedOffset is one line of the table.
type checkedOffset struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    *int64 `json:"offset"`
	LogSize   *int64 `json:"logSize"`
	Lag       *int64 `json:"lag"`
	Owner     string `json:"owner,omitempty"`
}

func runOffsetChecker(c *Call) error {
	if err := c.Args.needs("group"); err != nil {
		return err
	}
	zk, err := zookeeper.New(zookeeper.Options{Connect: c.Args.Text("zookeeper")})
	if err != nil {
		return err
	}
	defer zk.Close()
	ctx, cancel := context.WithTimeout(c.Context, patience)
	defer cancel()
	if err := zk.Start(ctx); err != nil {
		return err
	}
	lines, brokers, err := c.checkOffsets(ctx, zk)
	if err != nil && c.JSON {
		return err
	}
	if err != nil {
		fmt.Fprintf(c.Out, "Exiting due to: %s.\n", err)
		return nil // as 0.8 does
	}
	byTopic, total := map[string]int64{}, int64(0)
	for _, l := range lines {
		if l.Lag != nil {
			byTopic[l.Topic] += *l.Lag
			total += *l.Lag
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"offsets": lines, "lagByTopic": byTopic, "totalLag": total})
	}
	fmt.Fprintf(c.Out, "%-15s %-30s %-3s %-15s %-15s %-15s %s\n", "Group", "Topic", "Pid", "Offset", "logSize", "Lag", "Owner")
	number := func(n *int64) string {
		if n == nil {
			return "unknown"
		}
		return strconv.FormatInt(*n, 10)
	}
	for _, l := range lines {
		owner := l.Owner
		if owner == "" {
			owner = "none"
		}
		fmt.Fprintf(c.Out, "%-15s %-30s %-3d %-15s %-15s %-15s %s\n", l.Group, l.Topic, l.Partition, number(l.Offset), number(l.LogSize), number(l.Lag), owner)
	}
	if c.Args.Has("broker-info") {
		fmt.Fprintln(c.Out, "BROKER INFO")
		for _, b := range brokers {
			fmt.Fprintln(c.Out, b)
		}
	}
	if c.Args.Has("totals") {
		c.printTotals(c.Args.Text("group"), byTopic, total)
	}
	return nil
}

// topicsOf are the topics that --topic names, or of which the group owns some.
func (c *Call) topicsOf(ctx context.Context, zk *zookeeper.Client, group string) ([]string, error) {
	if s := c.Args.Text("topic"); s != "" {
		return strings.Split(s, ","), nil
	}
	path := znode.ConsumerGroupPath(group) + "/owners"
	topics, _, err := zk.Children(ctx, path)
	if errors.Is(err, jute.ErrNoNode) {
		return nil, says("org.apache.zookeeper.KeeperException$NoNodeException: KeeperErrorCode = NoNode for %s", path)
	}
	slices.Sort(topics)
	return topics, err
}

func (c *Call) checkOffsets(ctx context.Context, zk *zookeeper.Client) (lines []checkedOffset, brokers []string, err error) {
	group := c.Args.Text("group")
	topics, err := c.topicsOf(ctx, zk, group)
	if err != nil {
		return nil, nil, err
	}
	servers, brokers, err := registeredBrokers(ctx, zk)
	if err != nil {
		return nil, nil, err
	}
	lines = []checkedOffset{}
	var ends kadm.ListedOffsets
	var committed kadm.OffsetResponses
	if len(servers) > 0 && len(topics) > 0 {
		k, err := c.kafkaAt(strings.Join(servers, ","), nil)
		if err != nil {
			return nil, nil, err
		}
		defer k.Close()
		admin := kadm.NewClient(k)
		if ends, err = admin.ListEndOffsets(ctx, topics...); err != nil && !shardErrors(err) {
			return nil, nil, err
		}
		committed, _ = admin.FetchOffsets(ctx, group) // a group may have none there
	}
	for _, topic := range topics {
		data, _, err := zk.Get(ctx, znode.TopicPath(topic))
		if errors.Is(err, jute.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		t, err := znode.DecodeTopic(data)
		if err != nil {
			return nil, nil, err
		}
		var parts []int32
		for p := range t.Partitions {
			parts = append(parts, p)
		}
		slices.Sort(parts)
		for _, p := range parts {
			l := checkedOffset{Group: group, Topic: topic, Partition: p}
			if data, _, err := zk.Get(ctx, znode.ConsumerOwnerPath(group, topic, p)); err == nil {
				l.Owner = string(data)
			}
			if o, ok := committed.Lookup(topic, p); ok && o.At >= 0 {
				l.Offset = &o.At
			}
			if data, _, err := zk.Get(ctx, znode.ConsumerOffsetPath(group, topic, p)); err == nil && l.Offset == nil {
				if n, err := znode.DecodeConsumerOffset(data); err == nil {
					l.Offset = &n
				}
			}
			if o, ok := ends.Lookup(topic, p); ok && o.Err == nil {
				l.LogSize = &o.Offset
			}
			if l.Offset != nil && l.LogSize != nil {
				lag := *l.LogSize - *l.Offset
				l.Lag = &lag
			}
			lines = append(lines, l)
		}
	}
	return lines, brokers, nil
}

func registeredBrokers(ctx context.Context, zk *zookeeper.Client) (servers, info []string, err error) {
	ids, _, err := zk.Children(ctx, znode.BrokerIDs)
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(ids)
	for _, id := range ids {
		data, _, err := zk.Get(ctx, znode.BrokerIDs+"/"+id)
		if err != nil {
			continue
		}
		if b, err := znode.DecodeBroker(data); err == nil && b.Port > 0 {
			servers = append(servers, net.JoinHostPort(b.Host, itoa(b.Port)))
			info = append(info, fmt.Sprintf("%s -> %s:%d", id, b.Host, b.Port))
		}
	}
	return servers, info, nil
}
