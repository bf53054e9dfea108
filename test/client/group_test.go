package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"barnabas/client"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"
)

// cluster is what a group's test runs against.
type cluster struct {
	broker, zookeeper string
}

func clusters(t *testing.T, test func(t *testing.T, c cluster)) {
	t.Run("kafka-2.8.2", func(t *testing.T) {
		zk := real.ZooKeeper(t)
		test(t, cluster{real.Kafka(t, "2.8.2", 1, zk).Addr, zk})
	})
	t.Run("barnabas", func(t *testing.T) {
		b := real.Barnabas(t, 1)
		test(t, cluster{b.Addr, b.Keeper})
	})
}

// received is what the members of a group got, by value.
type received struct {
	mu   sync.Mutex
	by   map[string]map[string]int // member, value: times
	seen map[string]int
}

func (r *received) add(member, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by, r.seen = map[string]map[string]int{}, map[string]int{}
	}
	if r.by[member] == nil {
		r.by[member] = map[string]int{}
	}
	r.by[member][value]++
	r.seen[value]++
}

func (r *received) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

func (r *received) from(member string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.by[member])
}

// lines hands what a program prints, line by line, to a function.
type lines struct {
	mu   sync.Mutex
	rest []byte
	each func(string)
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		at := bytes.IndexByte(l.rest, '\n')
		if at < 0 {
			return len(p), nil
		}
		l.each(string(l.rest[:at]))
		l.rest = l.rest[at+1:]
	}
}

// theirProperties suit a test: quick commits and tries.
func theirProperties(c cluster, group, id string) []string {
	return []string{"zookeeper.connect=" + c.zookeeper, "group.id=" + group, "consumer.id=" + id, "auto.offset.reset=smallest", "auto.commit.interval.ms=200",
		"zookeeper.session.timeout.ms=6000", "rebalance.backoff.ms=500", "rebalance.max.retries=20"}
}

// connector starts 0.8.2.2's ZookeeperConsumerConnector.
func connector(t *testing.T, c cluster, got *received, group, id, kind, topics string, streams int) *real.Process {
	args := append([]string{kind, topics, fmt.Sprint(streams)}, theirProperties(c, group, id)...)
	cmd := java(t, "0.8.2.2", "Connector.java", args...)
	cmd.Stdout = &lines{each: func(line string) {
		if f := strings.Fields(line); len(f) == 5 {
			got.add(id, f[4])
		}
	}}
	return real.Start(t, id, cmd)
}

// consoleConsumer starts 0.8.2.2's ConsoleConsumer.
func consoleConsumer(t *testing.T, c cluster, got *received, group, id string, what ...string) *real.Process {
	file := writeProperties(t, theirProperties(c, group, id))
	args := append([]string{"--zookeeper", c.zookeeper, "--consumer.config", file}, what...)
	cmd := real.Java(t, "0.8.2.2", "kafka.tools.ConsoleConsumer", args...)
	cmd.Stdout = &lines{each: func(line string) { got.add(id, line) }}
	return real.Start(t, id, cmd)
}

// ours starts a consumer of ours, whose streams are read until it is closed.
func ours(t *testing.T, c cluster, got *received, group, id string, options ...client.ConsumerOption) *client.Consumer {
	t.Helper()
	all := append([]client.ConsumerOption{client.ZooKeeper(c.zookeeper), client.Group(group), client.ConsumerID(id), client.OffsetReset(client.Smallest),
		client.AutoCommit(200 * time.Millisecond), client.Rebalances(20, 500*time.Millisecond)}, options...)
	consumer, err := client.NewConsumer(within(t, time.Minute), all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consumer.Close)
	return consumer
}

func readAll(got *received, id string, streams ...*client.Stream) {
	for _, s := range streams {
		go func() {
			for m, err := range s.All(context.Background()) {
				if err != nil {
					return
				}
				got.add(id, string(m.Value))
			}
		}()
	}
}

func oursOf(t *testing.T, c cluster, got *received, group, id, topic string, streams int) *client.Consumer {
	t.Helper()
	consumer := ours(t, c, got, group, id)
	s, err := consumer.Streams(within(t, time.Minute), map[string]int{topic: streams})
	if err != nil {
		t.Fatal(err)
	}
	readAll(got, id, s[topic]...)
	return consumer
}

func zookeeperClient(t *testing.T, connect string) *zookeeper.Client {
	t.Helper()
	zk, err := zookeeper.New(zookeeper.Options{Connect: connect})
	if err != nil {
		t.Fatal(err)
	}
	if err := zk.Start(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(zk.Close)
	return zk
}

// owners reads who owns the partitions of a topic: "thread: partitions".
func owners(t *testing.T, zk *zookeeper.Client, group, topic string) map[string][]string {
	t.Helper()
	ctx := within(t, time.Minute)
	found := map[string][]string{}
	parts, _, err := zk.Children(ctx, znode.ConsumerOwnersPath(group, topic))
	if err != nil && !errors.Is(err, jute.ErrNoNode) {
		t.Fatal(err)
	}
	slices.Sort(parts)
	for _, p := range parts {
		data, _, err := zk.Get(ctx, znode.ConsumerOwnersPath(group, topic)+"/"+p)
		if err != nil {
			continue // it went just now
		}
		found[string(data)] = append(found[string(data)], p)
	}
	return found
}

// untilOwned waits until the owners of a topic are as wanted: thread (without
// the group) to partitions.
func untilOwned(t *testing.T, zk *zookeeper.Client, group, topic string, want map[string]string) {
	t.Helper()
	var last string
	defer func() {
		if t.Failed() {
			t.Logf("owners of %s: %s", topic, last)
		}
	}()
	real.Until(t, 40*time.Second, fmt.Sprintf("owners %v of %s", want, topic), func() bool {
		got := map[string]string{}
		for id, parts := range owners(t, zk, group, topic) {
			got[strings.TrimPrefix(id, group+"_")] = strings.Join(parts, " ")
		}
		last = fmt.Sprint(got)
		return maps.Equal(got, want)
	})
}

// numbers sends the numbers from..to-1 as values and keys.
func numbers(t *testing.T, c cluster, topic string, from, to int) {
	t.Helper()
	p, err := client.NewProducer(client.Brokers(c.broker))
	if err != nil {
		t.Fatal(err)
	}
	var records []*client.Record
	for i := from; i < to; i++ {
		records = append(records, &client.Record{Topic: topic, Key: fmt.Sprint(i), Value: fmt.Sprint(topic, ":", i)})
	}
	if err := p.Send(within(t, time.Minute), records...); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
}

func TestAGroupMixesOurConsumersWithThoseOfKafka(t *testing.T) {
	clusters(t, func(t *testing.T, c cluster) {
		createTopic(t, c.broker, "mixed", 8, nil)
		zk := zookeeperClient(t, c.zookeeper)
		var got received
		numbers(t, c, "mixed", 0, 400)

		a := oursOf(t, c, &got, "g", "a", "mixed", 1)
		untilOwned(t, zk, "g", "mixed", map[string]string{"a-0": "0 1 2 3 4 5 6 7"})
		b := connector(t, c, &got, "g", "b", "topics", "mixed", 2)
		untilOwned(t, zk, "g", "mixed", map[string]string{"a-0": "0 1 2", "b-0": "3 4 5", "b-1": "6 7"})
		oursOf(t, c, &got, "g", "c", "mixed", 1)
		untilOwned(t, zk, "g", "mixed", map[string]string{"a-0": "0 1", "b-0": "2 3", "b-1": "4 5", "c-0": "6 7"})
		d := consoleConsumer(t, c, &got, "g", "d", "--topic", "mixed")
		untilOwned(t, zk, "g", "mixed", map[string]string{"a-0": "0 1", "b-0": "2 3", "b-1": "4 5", "c-0": "6", "d-0": "7"})
		numbers(t, c, "mixed", 400, 1200)
		real.Until(t, 30*time.Second, "all records so far", func() bool { return got.count() == 1200 })
		for _, id := range []string{"a", "b", "c", "d"} {
			if got.from(id) == 0 {
				t.Errorf("%s got nothing", id)
			}
		}
		compareNodes(t, zk, "g", "mixed", "a", "b")

		b.Kill() // its session lasts 6 s more
		untilOwned(t, zk, "g", "mixed", map[string]string{"a-0": "0 1 2", "c-0": "3 4 5", "d-0": "6 7"})
		a.Close()
		untilOwned(t, zk, "g", "mixed", map[string]string{"c-0": "0 1 2 3", "d-0": "4 5 6 7"})
		d.Stop()
		untilOwned(t, zk, "g", "mixed", map[string]string{"c-0": "0 1 2 3 4 5 6 7"})
		numbers(t, c, "mixed", 1200, 2000)
		real.Until(t, 30*time.Second, "all records", func() bool { return got.count() == 2000 })
	})
}

// compareNodes compares, field by field, what two consumers wrote.
func compareNodes(t *testing.T, zk *zookeeper.Client, group, topic, our, their string) {
	t.Helper()
	ctx := within(t, time.Minute)
	registration := func(id string) map[string]any {
		data, stat, err := zk.Get(ctx, znode.ConsumerIDPath(group, group+"_"+id))
		if err != nil {
			t.Fatal(id, err)
		}
		if stat.EphemeralOwner == 0 {
			t.Errorf("the id of %s is not ephemeral", id)
		}
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		return fields
	}
	x, y := registration(our), registration(their)
	if a, b := slices.Sorted(maps.Keys(x)), slices.Sorted(maps.Keys(y)); !slices.Equal(a, b) {
		t.Errorf("the registration of ours has %v, theirs %v", a, b)
	}
	for name, value := range y {
		switch name {
		case "subscription": // the number of streams differs on purpose
			s, _ := x[name].(map[string]any)
			for topic := range value.(map[string]any) {
				if _, ok := s[topic].(float64); !ok {
					t.Errorf("subscription of ours: %v, theirs: %v", x[name], value)
				}
			}
		case "timestamp":
			if s, ok := x[name].(string); !ok || !regexp.MustCompile(`^\d{13}$`).MatchString(s) {
				t.Errorf("timestamp of ours: %#v, theirs: %#v", x[name], value)
			}
		default:
			if x[name] != value {
				t.Errorf("%s of ours: %#v, theirs: %#v", name, x[name], value)
			}
		}
	}
	for id, parts := range owners(t, zk, group, topic) {
		for _, p := range parts {
			if _, stat, err := zk.Get(ctx, znode.ConsumerOwnersPath(group, topic)+"/"+p); err != nil || stat.EphemeralOwner == 0 {
				t.Errorf("the owner node of %s by %s is not ephemeral: %v", p, id, err)
			}
		}
	}
	offsets, _, err := zk.Children(ctx, znode.ConsumerOffsetsPath(group, topic))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range offsets {
		data, stat, err := zk.Get(ctx, znode.ConsumerOffsetsPath(group, topic)+"/"+p)
		if err != nil || stat.EphemeralOwner != 0 || !regexp.MustCompile(`^\d+$`).Match(data) {
			t.Errorf("offset of %s: %q, %v", p, data, err)
		}
	}
}

func TestTopicFiltersOfAMixedGroupTakeInNewTopics(t *testing.T) {
	clusters(t, func(t *testing.T, c cluster) {
		createTopic(t, c.broker, "white1", 4, nil)
		createTopic(t, c.broker, "black", 2, nil)
		zk := zookeeperClient(t, c.zookeeper)
		var got received
		numbers(t, c, "white1", 0, 100)
		numbers(t, c, "black", 0, 10)
		filter, err := client.WhiteList(" 'white.*, other' ")
		if err != nil {
			t.Fatal(err)
		}
		a := ours(t, c, &got, "w", "a")
		streams, err := a.FilterStreams(within(t, time.Minute), filter, 1)
		if err != nil {
			t.Fatal(err)
		}
		readAll(&got, "a", streams...)
		untilOwned(t, zk, "w", "white1", map[string]string{"a-0": "0 1 2 3"})
		connector(t, c, &got, "w", "b", "white", "white.*,other", 1)
		untilOwned(t, zk, "w", "white1", map[string]string{"a-0": "0 1", "b-0": "2 3"})
		compareNodes(t, zk, "w", "white1", "a", "b")
		createTopic(t, c.broker, "other", 2, nil)
		untilOwned(t, zk, "w", "other", map[string]string{"a-0": "0", "b-0": "1"})
		numbers(t, c, "white1", 100, 200)
		numbers(t, c, "other", 0, 100)
		real.Until(t, 30*time.Second, "all records", func() bool { return got.count() == 300 })
	})
}

func writeProperties(t *testing.T, properties []string) string {
	t.Helper()
	file := t.TempDir() + "/consumer.properties"
	if err := os.WriteFile(file, []byte(strings.Join(properties, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
