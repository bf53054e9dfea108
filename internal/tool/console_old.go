package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"barnabas/client"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/kgo"
)

// consumeOld is kafka.tools.ConsoleConsumer of 0.8.2: one stream of a group
// that ZooKeeper coordinates.
func (c *Call) consumeOld() error {
	a := c.Args
	if a.count("topic", "whitelist", "blacklist") != 1 {
		return usage("Exactly one of whitelist/blacklist/topic is required.")
	}
	props, err := properties(a.Text("consumer.config"))
	if err != nil {
		return err
	}
	pairs(props, a.All("consumer-property"))
	props["zookeeper.connect"] = a.Text("zookeeper")
	if a.Has("group") {
		props["group.id"] = a.Text("group")
	}
	if props["group.id"] == "" {
		props["group.id"] = anyGroup()
	}
	if _, set := props["auto.offset.reset"]; !set || a.Has("from-beginning") {
		props["auto.offset.reset"] = "largest"
		if a.Has("from-beginning") {
			props["auto.offset.reset"] = "smallest"
		}
	}
	if a.Has("timeout-ms") {
		props["consumer.timeout.ms"] = a.Text("timeout-ms")
	}
	most := int64(-1)
	if n, ok, err := a.Integer("max-messages", 64); err != nil {
		return err
	} else if ok {
		most = n
	}
	format, err := newFormatter(a)
	if err != nil {
		return err
	}
	if err := c.oldOffsets(props); err != nil {
		return err
	}
	consumer, err := client.NewConsumer(c.Context, client.ConsumerProperties(props))
	if err != nil {
		return err
	}
	defer consumer.Close()
	stream, err := c.oldStream(consumer)
	if err != nil {
		return err
	}
	return c.writeOld(stream, format, most)
}

// oldOffsets refuses --from-beginning for a group that has offsets, and deletes
// them if asked to.
func (c *Call) oldOffsets(props map[string]string) error {
	deleting := c.Args.Has("delete-consumer-offsets")
	if !deleting && !c.Args.Has("from-beginning") {
		return nil
	}
	zk, err := zookeeper.New(zookeeper.Options{Connect: props["zookeeper.connect"]})
	if err != nil {
		return err
	}
	defer zk.Close()
	if err := zk.Start(c.Context); err != nil {
		return err
	}
	group := znode.ConsumerGroupPath(props["group.id"])
	if deleting {
		if err := c.confirm("This deletes group " + props["group.id"] + " and its offsets from ZooKeeper."); err != nil {
			return err
		}
		return deleteTree(c.Context, zk, group)
	}
	_, exists, err := zk.Exists(c.Context, group+"/offsets")
	if err == nil && exists {
		return terse("Found previous offset information for this group %s. Please use --delete-consumer-offsets to delete previous offsets metadata", props["group.id"])
	}
	return err
}

func deleteTree(ctx context.Context, zk *zookeeper.Client, path string) error {
	children, _, err := zk.Children(ctx, path)
	if errors.Is(err, jute.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := deleteTree(ctx, zk, strings.TrimSuffix(path, "/")+"/"+child); err != nil {
			return err
		}
	}
	if err := zk.Delete(ctx, path, zookeeper.AnyVersion); err != nil && !errors.Is(err, jute.ErrNoNode) {
		return err
	}
	return nil
}

func (c *Call) oldStream(consumer *client.Consumer) (*client.Stream, error) {
	filter, err := client.WhiteList(c.Args.Text("whitelist"))
	switch {
	case c.Args.Has("topic"):
		// as in 0.8 a topic is a white list of one
		filter, err = client.WhiteList(c.Args.Text("topic"))
	case c.Args.Has("blacklist"):
		filter, err = client.BlackList(c.Args.Text("blacklist"))
	}
	if err != nil {
		return nil, err
	}
	streams, err := consumer.FilterStreams(c.Context, filter, 1)
	if err != nil {
		return nil, err
	}
	return streams[0], nil
}

func (c *Call) writeOld(stream *client.Stream, format formatter, most int64) error {
	out := bufio.NewWriter(c.Out)
	count := int64(0)
	var bad error
	for most < 0 || count < most {
		m, err := stream.Next(c.Context)
		if err != nil {
			bad = err
			break
		}
		r := &kgo.Record{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Key: m.Key, Value: m.Value, Timestamp: m.Timestamp}
		for _, h := range m.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader(h))
		}
		if err := format.write(out, r); err != nil && !c.Args.Has("skip-message-on-error") {
			bad = err
			break
		}
		count++
		if err := out.Flush(); err != nil {
			break // whoever read is gone
		}
	}
	fmt.Fprintf(c.Err, "Consumed %d messages\n", count)
	if bad != nil && !errors.Is(bad, client.ErrTimeout) && c.Context.Err() == nil {
		return bad
	}
	return nil
}
