package client

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Reset says where a partition begins that has no offset, or one that is not in
// the log any more (auto.offset.reset).
type Reset int8

// The values of Reset.
const (
	Largest   Reset = iota // after the newest record
	Smallest               // at the oldest record
	FailReset              // Next answers with the error
)

// Storage says where offsets are kept (offsets.storage, dual.commit.enabled).
type Storage int8

// The values of Storage.
const (
	InZooKeeper Storage = iota
	InKafka
	// InBoth writes both, as a group does while it moves from ZooKeeper to
	// Kafka, and begins at the larger of the two.
	InBoth
)

// Listener is told of rebalances, in the goroutine that does them: what it
// calls must return, and may not call the Consumer. Each field may be nil.
type Listener struct {
	// BeforeRelease is called when no more records of the partitions come out,
	// before their offsets are committed and their owner nodes deleted
	// (ConsumerRebalanceListener.beforeReleasingPartitions). commit writes
	// their offsets; with AutoCommit that follows by itself.
	BeforeRelease func(partitions map[string][]int32, commit func(context.Context) error)
	// Lost is called instead when the ZooKeeper session is gone: others may
	// own the partitions already, and nothing is committed.
	Lost func(partitions map[string][]int32)
	// BeforeStart is called when the partitions are owned, before records of
	// them come out.
	BeforeStart func(partitions map[string][]int32)
	// Failed is called when rebalance.max.retries tries did not get all of this
	// consumer's share. It goes on trying.
	Failed func(error)
}

type consumerConfig struct {
	clientID  string
	logger    *slog.Logger
	native    []kgo.Opt
	zookeeper string
	group     string
	id        string

	strategy       Strategy
	reset          Reset
	storage        Storage
	autoCommit     bool
	commitInterval time.Duration
	commitRetries  int
	hideInternal   bool
	listener       Listener

	sessionTimeout time.Duration
	connectTimeout time.Duration
	backoff        time.Duration
	retries        int

	fetchBytes  int
	fetchMin    int
	fetchWait   time.Duration
	chunks      int
	leaderPause time.Duration
	timeout     time.Duration // of Next; < 0: none

	props map[string]string
	errs  []error
}

func defaultConsumerConfig() *consumerConfig {
	return &consumerConfig{
		clientID: "", autoCommit: true, commitInterval: time.Minute, commitRetries: 5, hideInternal: true,
		sessionTimeout: 6 * time.Second, connectTimeout: 6 * time.Second, backoff: 2 * time.Second, retries: 4,
		fetchBytes: 1 << 20, fetchMin: 1, fetchWait: 100 * time.Millisecond, chunks: 2, leaderPause: 200 * time.Millisecond, timeout: -1,
	}
}

type consumerOption func(*consumerConfig)

func (o consumerOption) consumer(c *consumerConfig) { o(c) }

// ZooKeeper is the connect string, "host:port,host:port/chroot"
// (zookeeper.connect).
func ZooKeeper(connect string) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.zookeeper = connect })
}

// Group is the group's name (group.id).
func Group(name string) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.group = name })
}

// ConsumerID replaces host, time and random digits in this consumer's id; it
// must be unique in the group (consumer.id).
func ConsumerID(id string) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.id = id })
}

// AssignBy sets the strategy, Range by default (partition.assignment.strategy).
func AssignBy(s Strategy) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.strategy = s })
}

// OffsetReset sets where to begin without an offset; Largest by default
// (auto.offset.reset).
func OffsetReset(r Reset) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.reset = r })
}

// OffsetStorage sets where offsets are; InZooKeeper by default
// (offsets.storage, dual.commit.enabled).
func OffsetStorage(s Storage) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.storage = s })
}

// AutoCommit sets how often offsets are committed; every minute by default. 0
// turns it off: then only Commit does it (auto.commit.enable,
// auto.commit.interval.ms).
func AutoCommit(interval time.Duration) ConsumerOption {
	return consumerOption(func(c *consumerConfig) {
		if c.autoCommit = interval > 0; c.autoCommit {
			c.commitInterval = interval
		}
	})
}

// ExcludeInternalTopics says whether filters pass __consumer_offsets; they do
// not by default (exclude.internal.topics).
func ExcludeInternalTopics(hide bool) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.hideInternal = hide })
}

// OnRebalance sets who is told of rebalances.
func OnRebalance(l Listener) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.listener = l })
}

// SessionTimeout is how long ZooKeeper keeps the consumer in the group when
// nothing is heard of it; 6 s by default (zookeeper.session.timeout.ms).
func SessionTimeout(d time.Duration) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.sessionTimeout = d })
}

// Rebalances sets how often a rebalance is tried and the pause between tries; 4
// more times and 2 s by default (rebalance.max.retries, rebalance.backoff.ms).
// A try that waits for another owner is made again at once when that owner
// lets go.
func Rebalances(retries int, backoff time.Duration) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.retries, c.backoff = retries, backoff })
}

// Fetches sets how many bytes of a partition are fetched at once, and how long
// a broker waits for the first record; 1 MiB and 100 ms by default
// (fetch.message.max.bytes, fetch.wait.max.ms).
func Fetches(bytes int, wait time.Duration) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.fetchBytes, c.fetchWait = bytes, wait })
}

// NextTimeout makes Next answer ErrTimeout after so long without a record
// (consumer.timeout.ms). There is none by default.
func NextTimeout(d time.Duration) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.timeout = d })
}

// ConsumerProperties takes Kafka's properties, as a consumer.properties of 0.8
// has them; see [ReadProperties]. They are applied after all other options.
// Unknown names are logged.
func ConsumerProperties(props map[string]string) ConsumerOption {
	return consumerOption(func(c *consumerConfig) { c.props = props })
}

func (c *consumerConfig) applyProperties() {
	if c.props == nil {
		return
	}
	r := newPropertyReader(c.props)
	r.string(&c.zookeeper, "zookeeper.connect")
	r.string(&c.group, "group.id")
	r.string(&c.id, "consumer.id")
	r.string(&c.clientID, "client.id")
	r.ms(&c.sessionTimeout, 1, "zookeeper.session.timeout.ms")
	c.connectTimeout = c.sessionTimeout
	r.ms(&c.connectTimeout, 1, "zookeeper.connection.timeout.ms")
	r.ms(&c.backoff, 0, "zookeeper.sync.time.ms")
	r.ms(&c.backoff, 0, "rebalance.backoff.ms")
	r.int(&c.retries, 0, "rebalance.max.retries")
	r.bool(&c.autoCommit, "auto.commit.enable")
	r.ms(&c.commitInterval, 1, "auto.commit.interval.ms")
	r.int(&c.commitRetries, 0, "offsets.commit.max.retries")
	r.bool(&c.hideInternal, "exclude.internal.topics")
	r.int(&c.fetchBytes, 1, "fetch.message.max.bytes")
	r.int(&c.fetchMin, 1, "fetch.min.bytes")
	r.ms(&c.fetchWait, 0, "fetch.wait.max.ms")
	r.int(&c.chunks, 1, "queued.max.message.chunks")
	r.ms(&c.leaderPause, 1, "refresh.leader.backoff.ms")
	r.ms(&c.timeout, -1, "consumer.timeout.ms")
	r.text("socket.timeout.ms", "socket.receive.buffer.bytes", "num.consumer.fetchers", "offsets.channel.backoff.ms", "offsets.channel.socket.timeout.ms") // left to franz-go
	c.readChoices(r)
	for _, name := range r.unknown() {
		c.logger.Warn("an unknown consumer property is ignored", "name", name)
	}
	c.errs = append(c.errs, r.errs...)
}

func (c *consumerConfig) readChoices(r *propertyReader) {
	if name, v, ok := r.text("auto.offset.reset"); ok {
		switch strings.ToLower(v) {
		case "largest", "latest":
			c.reset = Largest
		case "smallest", "earliest":
			c.reset = Smallest
		case "none":
			c.reset = FailReset
		default:
			r.bad(name, v, "largest, smallest or none")
		}
	}
	if name, v, ok := r.text("partition.assignment.strategy"); ok {
		switch strings.ToLower(v) {
		case "range":
			c.strategy = Range
		case "roundrobin":
			c.strategy = RoundRobinAssignment
		default:
			r.bad(name, v, "range or roundrobin")
		}
	}
	if name, v, ok := r.text("offsets.storage"); ok {
		switch strings.ToLower(v) {
		case "zookeeper":
			c.storage = InZooKeeper
		case "kafka":
			c.storage = InBoth // as dual.commit.enabled is true then, unless set
		default:
			r.bad(name, v, "zookeeper or kafka")
		}
	}
	dual := c.storage == InBoth
	r.bool(&dual, "dual.commit.enabled")
	if c.storage != InZooKeeper {
		c.storage = InKafka
		if dual {
			c.storage = InBoth
		}
	}
}

func (c *consumerConfig) check() (errs []error) {
	if c.zookeeper == "" {
		errs = append(errs, badOption("zookeeper.connect is not set"))
	}
	if c.group == "" || strings.Contains(c.group, "/") {
		errs = append(errs, badOption("group.id %q: write a name without /", c.group))
	}
	if c.fetchBytes < 1 || c.chunks < 1 || c.sessionTimeout <= 0 || c.retries < 0 || c.backoff < 0 {
		errs = append(errs, badOption("sizes and timeouts are above 0"))
	}
	return errs
}
