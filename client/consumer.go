package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrStarted is the error when a consumer is asked for streams a second time
// (MessageStreamsExistException).
var ErrStarted = errors.New("client: the consumer has its streams already")

// ErrRebalance is the error when the consumer could not get its share within
// rebalance.max.retries tries (ConsumerRebalanceFailedException).
var ErrRebalance = errors.New("client: the rebalance failed")

// Consumer is a member of a group that ZooKeeper coordinates: the high-level
// consumer of 0.8 (kafka.consumer.ZookeeperConsumerConnector), of whose kind the
// other members of the group may be. All methods may be called by several
// goroutines.
//
// One goroutine, run, owns the membership: the session, what is owned, the
// commits. Lock: mu guards started and closed.
type Consumer struct {
	config *consumerConfig
	id     string // group_host-ms-random
	zk     *zookeeper.Client
	kafka  *kgo.Client // nil until brokers were found
	feed   *feed
	store  *offsetStore

	// set by start, before run
	registration znode.ConsumerRegistration
	streams      map[string][]*Stream // by topic; "" for a filter's
	first        chan error           // the outcome of the first rebalance

	// of run only
	owned map[wire.TopicPartition]*owned
	stale map[wire.TopicPartition]string // owner nodes whose deletion is not certain

	commits chan commitRequest
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{} // run has ended

	mu              sync.Mutex
	started, closed bool
}

type commitRequest struct {
	ctx  context.Context
	done chan error
}

// NewConsumer connects to ZooKeeper, and fails if that takes longer than its
// connection timeout or ctx. The consumer joins its group when it is asked for
// streams. Close it.
func NewConsumer(ctx context.Context, opts ...ConsumerOption) (*Consumer, error) {
	config := defaultConsumerConfig()
	for _, o := range opts {
		o.consumer(config)
	}
	if config.logger == nil {
		config.logger = slog.New(slog.DiscardHandler)
	}
	config.applyProperties()
	if err := errors.Join(append(config.errs, config.check()...)...); err != nil {
		return nil, err
	}
	if config.clientID == "" {
		config.clientID = config.group
	}
	c := &Consumer{
		config: config, commits: make(chan commitRequest), done: make(chan struct{}), first: make(chan error, 1),
		owned: map[wire.TopicPartition]*owned{}, stale: map[wire.TopicPartition]string{},
	}
	c.id = config.group + "_" + config.id
	if config.id == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		c.id = znode.ConsumerID(config.group, host, time.Now().UnixMilli(), rand.Uint32())
	}
	zk, err := zookeeper.New(zookeeper.Options{Connect: config.zookeeper, SessionTimeout: config.sessionTimeout, ConnectTimeout: config.connectTimeout})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	c.zk = zk
	connect, stop := context.WithTimeout(ctx, config.connectTimeout)
	defer stop()
	if err := zk.Start(connect); err != nil {
		zk.Close()
		return nil, fmt.Errorf("client: ZooKeeper at %s: %w", config.zookeeper, err)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// ID returns the name of this consumer's node in ZooKeeper.
func (c *Consumer) ID() string { return c.id }

// Streams joins the group and returns, for each topic, as many streams as
// asked for. It returns when the first rebalance is done. Each stream is to be
// read, as one that is not holds up its partitions.
func (c *Consumer) Streams(ctx context.Context, topics map[string]int) (map[string][]*Stream, error) {
	subscription := map[string]int32{}
	streams := map[string][]*Stream{}
	for topic, n := range topics {
		if n < 1 {
			return nil, badOption("%d streams of topic %q", n, topic)
		}
		subscription[topic] = int32(n)
		streams[topic] = c.makeStreams(n)
	}
	r := znode.ConsumerRegistration{Subscription: subscription, Pattern: znode.PatternStatic}
	if err := c.start(ctx, r, streams); err != nil {
		return nil, err
	}
	return streams, nil
}

// FilterStreams joins the group with the topics, present and future, that a
// filter picks, and returns n streams of all of them. It returns when the first
// rebalance is done.
func (c *Consumer) FilterStreams(ctx context.Context, filter TopicFilter, n int) ([]*Stream, error) {
	if n < 1 || filter.compiled == nil {
		return nil, badOption("%d streams of a topic filter %q", n, filter)
	}
	r := znode.ConsumerRegistration{Subscription: map[string]int32{filter.expression: int32(n)}, Pattern: znode.PatternWhiteList}
	if filter.black {
		r.Pattern = znode.PatternBlackList
	}
	streams := map[string][]*Stream{"": c.makeStreams(n)}
	if err := c.start(ctx, r, streams); err != nil {
		return nil, err
	}
	return streams[""], nil
}

func (c *Consumer) makeStreams(n int) []*Stream {
	list := make([]*Stream, n)
	for i := range list {
		s := newStream(i, c.config.timeout, c.config.chunks*c.config.fetchBytes, nil)
		s.room = func() {
			if f := c.feed; f != nil {
				f.resume(s)
			}
		}
		list[i] = s
	}
	return list
}

// streamOf returns the stream of one of this consumer's threads.
func (c *Consumer) streamOf(topic string, thread int) *Stream {
	list := c.streams[""]
	if c.registration.Pattern == znode.PatternStatic {
		list = c.streams[topic]
	}
	return list[thread]
}

func (c *Consumer) start(ctx context.Context, r znode.ConsumerRegistration, streams map[string][]*Stream) error {
	c.mu.Lock()
	if c.closed || c.started {
		defer c.mu.Unlock()
		if c.closed {
			return ErrClosed
		}
		return ErrStarted
	}
	c.started = true
	c.mu.Unlock()
	r.Timestamp = time.Now().UnixMilli()
	c.registration, c.streams = r, streams
	kafka, err := c.connectKafka()
	if err != nil {
		close(c.done)
		return err
	}
	c.kafka = kafka
	c.feed = newFeed(kafka)
	admin := kadm.NewClient(kafka)
	c.store = &offsetStore{c.config.storage, c.config.group, c.zk, admin}
	go c.feed.run(c.ctx)
	go c.run()
	select {
	case err := <-c.first:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return ErrClosed
	}
}

// connectKafka makes a client without brokers; each rebalance tells it those
// that ZooKeeper names.
func (c *Consumer) connectKafka() (*kgo.Client, error) {
	reset := kgo.NewOffset().AtEnd()
	switch c.config.reset {
	case Smallest:
		reset = kgo.NewOffset().AtStart()
	case FailReset:
		reset = kgo.NoResetOffset()
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers("127.0.0.1:1"), kgo.ClientID(c.config.clientID), kgo.ConsumeResetOffset(reset), kgo.DisableClientMetrics(),
		kgo.FetchMaxPartitionBytes(int32(min(c.config.fetchBytes, 1<<30))), kgo.FetchMinBytes(int32(c.config.fetchMin)),
		kgo.FetchMaxWait(max(c.config.fetchWait, 10*time.Millisecond)), kgo.MetadataMinAge(c.config.leaderPause),
		kgo.WithPools(new(slabs)),
	}
	kafka, err := kgo.NewClient(append(opts, c.config.native...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	return kafka, nil
}

// Commit writes the offsets of what was taken from the streams.
func (c *Consumer) Commit(ctx context.Context) error {
	request := commitRequest{ctx, make(chan error, 1)}
	select {
	case c.commits <- request:
	case <-c.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-request.done:
		return err
	case <-c.done:
		return ErrClosed
	}
}

// Close ends the streams, commits (with AutoCommit), leaves the group and ends
// the session. It returns when all of that is done.
func (c *Consumer) Close() {
	c.mu.Lock()
	started, closed := c.started, c.closed
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	if started {
		<-c.done
	}
	if closed {
		return
	}
	if c.feed != nil {
		<-c.feed.done
		c.kafka.Close()
	}
	c.zk.Close()
}
