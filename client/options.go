package client

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrOption is the cause of the error for options or properties that cannot be
// used.
var ErrOption = errors.New("client: bad option")

func badOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOption, fmt.Sprintf(format, args...))
}

// ProducerOption configures a Producer.
type ProducerOption interface{ producer(*producerConfig) }

// ConsumerOption configures a Consumer.
type ConsumerOption interface{ consumer(*consumerConfig) }

// Option is for both.
type Option interface {
	ProducerOption
	ConsumerOption
}

type producerOption func(*producerConfig)

func (o producerOption) producer(c *producerConfig) { o(c) }

type option struct {
	p func(*producerConfig)
	c func(*consumerConfig)
}

func (o option) producer(c *producerConfig) { o.p(c) }
func (o option) consumer(c *consumerConfig) { o.c(c) }

// Mode says what Producer.Send does.
type Mode int8

// The modes of a producer (producer.type).
const (
	// Sync sends the records at once and returns when they are acknowledged.
	Sync Mode = iota
	// Async puts the records in the queue.
	Async
)

// Acks says when a broker answers (request.required.acks, acks).
type Acks int8

// The values of Acks.
const (
	AllAcks   Acks = -1 // when all replicas in sync have the record
	NoAcks    Acks = 0  // never: what is lost is not noticed
	LeaderAck Acks = 1  // when the leader has it
)

type producerConfig struct {
	brokers    []string
	clientID   string
	mode       Mode
	acks       Acks
	retries    int
	backoff    time.Duration
	timeout    time.Duration // of a request
	delivery   time.Duration // of a record, 0: what the retries take at most
	idempotent bool

	transactionalID    string
	transactionTimeout time.Duration

	compression []kgo.CompressionCodec
	partitioner Partitioner
	keys        Serializer
	values      Serializer

	batchBytes   int
	batchRecords int           // 0: no limit of its own
	batchTime    time.Duration // how long a batch may wait for more
	queueRecords int
	queueBytes   int
	queueWait    time.Duration // < 0: without limit
	inFlight     int
	metadataAge  time.Duration

	dropped func(*Record)
	failed  func(*SendError)
	logger  *slog.Logger
	native  []kgo.Opt

	props   map[string]string
	classes map[string]any
	errs    []error
}

func defaultProducerConfig() *producerConfig {
	return &producerConfig{
		clientID: "barnabas", acks: AllAcks, retries: 3, backoff: 100 * time.Millisecond, timeout: 30 * time.Second,
		partitioner: Murmur2(), keys: ByType, values: ByType,
		batchBytes: 1000000, queueRecords: 10000, queueBytes: 32 << 20, queueWait: -1,
		metadataAge: 5 * time.Minute, transactionTimeout: time.Minute,
	}
}

// Brokers names brokers, host:port, from which the others are learnt
// (bootstrap.servers, metadata.broker.list).
func Brokers(addresses ...string) ProducerOption {
	return producerOption(func(c *producerConfig) { c.brokers = addresses })
}

// ClientID is the name that brokers see in logs and quotas (client.id).
func ClientID(id string) Option {
	return option{func(c *producerConfig) { c.clientID = id }, func(c *consumerConfig) { c.clientID = id }}
}

// Logger takes what a producer or consumer has to say; none by default.
func Logger(l *slog.Logger) Option {
	return option{func(c *producerConfig) { c.logger = l }, func(c *consumerConfig) { c.logger = l }}
}

// SendMode sets what Send does; Sync by default (producer.type).
func SendMode(m Mode) ProducerOption {
	return producerOption(func(c *producerConfig) { c.mode = m })
}

// RequiredAcks sets when a broker answers; AllAcks by default.
func RequiredAcks(a Acks) ProducerOption {
	return producerOption(func(c *producerConfig) { c.acks = a })
}

// Retries sets how often a record that failed is sent again, and the pause
// before each; 3 times and 100 ms by default (message.send.max.retries,
// retry.backoff.ms).
func Retries(n int, backoff time.Duration) ProducerOption {
	return producerOption(func(c *producerConfig) { c.retries, c.backoff = n, backoff })
}

// RequestTimeout sets how long a broker may take to answer; 30 s by default
// (request.timeout.ms).
func RequestTimeout(d time.Duration) ProducerOption {
	return producerOption(func(c *producerConfig) { c.timeout = d })
}

// DeliveryTimeout bounds the time from Send to the end of a record, whatever
// the retries (delivery.timeout.ms). By default it is what the retries can take.
func DeliveryTimeout(d time.Duration) ProducerOption {
	return producerOption(func(c *producerConfig) { c.delivery = d })
}

// Idempotent makes brokers drop repetitions (KIP-98, since 0.11). It needs
// AllAcks, and makes a record whose fate is unknown be retried past the number
// of Retries, until DeliveryTimeout. Off by default.
func Idempotent() ProducerOption {
	return producerOption(func(c *producerConfig) { c.idempotent = true })
}

// Compression sets the codec: none (the default), gzip, snappy, lz4 or zstd
// (compression.codec, compression.type).
func Compression(name string) ProducerOption {
	return producerOption(func(c *producerConfig) { c.setCompression(name) })
}

func (c *producerConfig) setCompression(name string) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
		"0": kgo.NoCompression(), "1": kgo.GzipCompression(), "2": kgo.SnappyCompression(), "3": kgo.Lz4Compression(),
	}
	codec, ok := codecs[strings.ToLower(name)]
	if !ok {
		c.errs = append(c.errs, badOption("compression %q: write none, gzip, snappy, lz4 or zstd", name))
		return
	}
	c.compression = []kgo.CompressionCodec{codec}
}

// PartitionWith sets the partitioner; Murmur2 by default (partitioner.class).
func PartitionWith(p Partitioner) ProducerOption {
	return producerOption(func(c *producerConfig) { c.partitioner = p })
}

// KeySerializer sets how keys become bytes; ByType by default
// (key.serializer.class, key.serializer).
func KeySerializer(s Serializer) ProducerOption {
	return producerOption(func(c *producerConfig) { c.keys = s })
}

// ValueSerializer sets how values become bytes; ByType by default
// (serializer.class, value.serializer).
func ValueSerializer(s Serializer) ProducerOption {
	return producerOption(func(c *producerConfig) { c.values = s })
}

// Batches says when the queue is sent: as soon as records, over all topics, or
// bytes, of one partition, are there (0: no limit of records), or the oldest
// has waited so long (batch.num.messages, batch.size, queue.buffering.max.ms,
// linger.ms). By default 1,000,000 bytes and no waiting.
func Batches(records, bytes int, wait time.Duration) ProducerOption {
	return producerOption(func(c *producerConfig) { c.batchRecords, c.batchBytes, c.batchTime = records, bytes, wait })
}

// Queue bounds what an asynchronous producer holds, in records and in bytes of
// keys and values: 10,000 and 32 MiB by default (queue.buffering.max.messages,
// buffer.memory).
func Queue(records, bytes int) ProducerOption {
	return producerOption(func(c *producerConfig) { c.queueRecords, c.queueBytes = records, bytes })
}

// WhenFull says what Send does when the queue is full: it waits without limit
// (-1, the default), at most so long, or not at all (0). Then the record is
// dropped: Send answers ErrQueueFull (queue.enqueue.timeout.ms, max.block.ms).
func WhenFull(wait time.Duration) ProducerOption {
	return producerOption(func(c *producerConfig) { c.queueWait = wait })
}

// OnDropped is told of each record that a full queue made drop, in the
// goroutine that called Send.
func OnDropped(f func(*Record)) ProducerOption {
	return producerOption(func(c *producerConfig) { c.dropped = f })
}

// OnFailed is told of each record that was queued without a callback and could
// not be sent. Calls do not overlap; the producer waits for their end.
func OnFailed(f func(*SendError)) ProducerOption {
	return producerOption(func(c *producerConfig) { c.failed = f })
}

// ProducerProperties takes Kafka's properties, with the names of 0.8 and of
// today, as a producer.properties has them; see [ReadProperties]. They are
// applied after all other options. Unknown names are logged.
func ProducerProperties(props map[string]string) ProducerOption {
	return producerOption(func(c *producerConfig) { c.props = props })
}

// Classes gives names, as partitioner.class and the serializers' properties
// have them, to partitioners and serializers of one's own.
func Classes(byName map[string]any) ProducerOption {
	return producerOption(func(c *producerConfig) { c.classes = byName })
}

// Native passes options to the franz-go client that does the sending and
// fetching: TLS, SASL, dialing. A Consumer has its own pool of records, and no
// other may go with it: it would be told that what a Message holds is free.
func Native(opts ...kgo.Opt) Option {
	return option{func(c *producerConfig) { c.native = append(c.native, opts...) }, func(c *consumerConfig) { c.native = append(c.native, opts...) }}
}
