package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Producer sends records. All methods may be called by several goroutines.
//
// Lock: mu guards closed, and is held for reading while a record is handed
// over, so that none comes after Close has begun to wait.
type Producer struct {
	config *producerConfig
	kafka  *kgo.Client
	room   *room
	topics *newTopics
	scala  bool // the partitioner wants hash codes

	unsent atomic.Int64 // records queued since the queue was last told to go
	counts struct{ dropped, waited, late atomic.Int64 }

	finished func(*kgo.Record, error) // finish, made a value once

	life context.Context // ends when Close gives up
	end  context.CancelFunc

	mu     sync.RWMutex
	closed bool
}

// ProducerStats counts since the producer was made.
type ProducerStats struct {
	Queued      int   // records in the queue or on their way, just now
	QueuedBytes int   // of their keys and values
	Sent        int64 // acknowledged, or written when acks is 0
	Failed      int64 // given back with an error after they were taken
	Waited      int64 // calls that found the queue full and waited
	Dropped     int64 // records that a full queue turned away, Late among them
	Late        int64 // records dropped after waiting as long as WhenFull says
}

// NewProducer makes a producer. It connects when the first record is sent. The
// error is ErrOption's.
func NewProducer(opts ...ProducerOption) (*Producer, error) {
	c := defaultProducerConfig()
	for _, o := range opts {
		o.producer(c)
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.applyProperties()
	if err := errors.Join(append(c.errs, c.check()...)...); err != nil {
		return nil, err
	}
	kafka, err := kgo.NewClient(append(c.kafkaOptions(), c.native...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	p := &Producer{config: c, kafka: kafka, room: &room{maxRecords: c.queueRecords, maxBytes: c.queueBytes}, topics: newNewTopics(kafka)}
	p.finished = p.finish
	if c.batchTime > 0 {
		p.room.full = p.dispatch // a full queue is no time to wait for more
	}
	p.life, p.end = context.WithCancel(context.Background())
	if b, ok := c.partitioner.(builtin); ok {
		_, p.scala = b.native.(scalaPartitioner)
	}
	return p, nil
}

func (c *producerConfig) check() (errs []error) {
	if len(c.brokers) == 0 {
		errs = append(errs, badOption("no broker is named; set bootstrap.servers or metadata.broker.list"))
	}
	if c.partitioner == nil || c.keys == nil || c.values == nil {
		errs = append(errs, badOption("a partitioner or serializer is nil"))
	}
	if c.queueRecords < 1 || c.queueBytes < 1 || c.batchBytes < 1 || c.batchRecords < 0 || c.retries < 0 || c.timeout <= 0 {
		errs = append(errs, badOption("sizes of queue and batches and the request timeout are above 0; the number of retries is not below it"))
	}
	if c.idempotent && c.acks != AllAcks {
		errs = append(errs, badOption("an idempotent producer needs acks of all replicas"))
	}
	return errs
}

// maxRetries keeps (retries+1) times the request timeout a duration.
const maxRetries = 1 << 20

func (c *producerConfig) kafkaOptions() []kgo.Opt {
	delivery := c.delivery
	if delivery <= 0 && c.retries < maxRetries {
		delivery = time.Duration(c.retries+1)*(c.timeout+max(c.backoff, time.Second)) + c.batchTime
	}
	inFlight := c.inFlight
	if inFlight <= 0 {
		inFlight = 1 // order holds through retries
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.brokers...), kgo.ClientID(c.clientID), kgo.AllowAutoTopicCreation(),
		kgo.RecordPartitioner(nativePartitioner(c.partitioner)),
		kgo.RecordRetries(c.retries), kgo.UnknownTopicRetries(c.retries), kgo.RequestRetries(c.retries),
		kgo.RetryBackoffFn(func(int) time.Duration { return c.backoff }),
		kgo.ProduceRequestTimeout(c.timeout), kgo.RecordDeliveryTimeout(delivery),
		kgo.MetadataMinAge(max(min(c.backoff, c.metadataAge/2), 10*time.Millisecond)), kgo.MetadataMaxAge(c.metadataAge),
		// The bounds are room's: kgo's own would make Send wait past them.
		kgo.MaxBufferedRecords(1 << 30),
		kgo.ProducerBatchMaxBytes(int32(min(c.batchBytes, 1<<30))),
		kgo.ProducerLinger(c.batchTime), kgo.DisableClientMetrics(),
	}
	if len(c.compression) > 0 {
		opts = append(opts, kgo.ProducerBatchCompression(c.compression...))
	} else {
		opts = append(opts, kgo.ProducerBatchCompression(kgo.NoCompression()))
	}
	switch c.acks {
	case NoAcks:
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()))
	case LeaderAck:
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()))
	default:
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	}
	opts = append(opts, c.transactionOptions()...)
	if !c.idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(inFlight))
	}
	return opts
}

// sending is a record on its way. It is the kgo record's context, by which the
// partitioner finds our record.
type sending struct {
	context.Context
	record *Record
	kafka  kgo.Record
	hash   int32 // of the key, for ScalaHash
	size   int
	done   func(Result)
	// reuse: nothing holds on to it after its promise. While the client below
	// does not know a topic, a goroutine of it looks at the record's context.
	reuse bool
}

func sendingOf(k *kgo.Record) *sending { return k.Context.(*sending) }

// serialized is what is made of a record before it takes a place in the queue.
type serialized struct {
	key, value []byte
	hash       int32 // of the key, for ScalaHash
	size       int   // of key, value and headers
}

func (p *Producer) serialize(r *Record) (b serialized, err error) {
	if r.Key != nil {
		if b.key, err = p.config.keys.Serialize(r.Topic, r.Key); err != nil {
			return b, err
		}
	}
	if r.Value != nil {
		if b.value, err = p.config.values.Serialize(r.Topic, r.Value); err != nil {
			return b, err
		}
	}
	if p.scala && r.Partition == nil && keyed(r) {
		key := r.PartitionKey
		if key == nil {
			key = r.Key
		}
		if b.hash, err = JavaHash(key); err != nil {
			return b, err
		}
	}
	b.size = len(b.key) + len(b.value)
	for _, h := range r.Headers {
		b.size += len(h.Key) + len(h.Value)
	}
	return b, nil
}

// fill makes s, which is zero, ready. It reads nothing of s: that memory is
// last in the cache of the processor that saw the record before off.
func (s *sending) fill(ctx context.Context, r *Record, b *serialized, done func(Result)) {
	s.Context, s.record, s.done, s.hash, s.size = ctx, r, done, b.hash, b.size
	s.kafka.Context, s.kafka.Topic, s.kafka.Timestamp, s.kafka.Key, s.kafka.Value = s, r.Topic, r.Timestamp, b.key, b.value
	if len(r.Headers) > 0 {
		headers := make([]kgo.RecordHeader, len(r.Headers))
		for i, h := range r.Headers {
			headers[i] = kgo.RecordHeader(h)
		}
		s.kafka.Headers = headers
	}
}

func (s *sending) result(err error) Result {
	r := Result{Record: s.record, Partition: -1, Offset: -1, Err: err}
	if err == nil {
		r.Partition, r.Offset = s.kafka.Partition, s.kafka.Offset
	}
	return r
}

// Send sends records in the producer's mode: with Sync as SendSync does, with
// Async each as SendAsync does without a callback. The error is a *SendError,
// which holds the records that were not taken or not acknowledged.
func (p *Producer) Send(ctx context.Context, records ...*Record) error {
	if p.config.mode == Sync {
		_, err := p.SendSync(ctx, records...)
		return err
	}
	var failed []Result
	for _, r := range records {
		if err := p.SendAsync(ctx, r, nil); err != nil {
			failed = append(failed, Result{r, -1, -1, err})
		}
	}
	if failed != nil {
		return &SendError{failed}
	}
	return nil
}

// SendSync sends records and returns when each is acknowledged or has failed
// for good: results in the order of records, and a *SendError if any failed. It
// does not use the queue.
func (p *Producer) SendSync(ctx context.Context, records ...*Record) ([]Result, error) {
	results := make([]Result, len(records))
	list := make([]*kgo.Record, 0, len(records))
	place := make(map[*kgo.Record]int, len(records))
	p.mu.RLock()
	closed := p.closed
	p.mu.RUnlock()
	for i, r := range records {
		if closed {
			results[i] = Result{r, -1, -1, ErrClosed}
			continue
		}
		b, err := p.serialize(r)
		if err != nil {
			results[i] = Result{r, -1, -1, err}
			continue
		}
		s := new(sending)
		s.fill(ctx, r, &b, nil)
		p.topics.wait(ctx, r.Topic)
		place[&s.kafka] = i
		list = append(list, &s.kafka)
	}
	for _, done := range p.kafka.ProduceSync(ctx, list...) {
		results[place[done.Record]] = sendingOf(done.Record).result(own(done.Err))
	}
	var failed []Result
	for _, r := range results {
		if r.Err != nil {
			failed = append(failed, r)
		}
	}
	p.room.count(len(records)-len(failed), len(failed))
	if failed != nil {
		return results, &SendError{failed}
	}
	return results, nil
}

// own turns the errors of the client below into ours.
func own(err error) error {
	if errors.Is(err, kgo.ErrClientClosed) {
		return ErrClosed
	}
	return err
}

// SendAsync puts a record in the queue. done, which may be nil, is called once
// with what became of it, in another goroutine; calls do not overlap, and no
// other record goes on while one lasts. With an error the record was not taken:
// ErrQueueFull if there was no room, ErrSerialize, ErrClosed or ctx's. ctx also
// ends the record's own way, if it is not yet sent.
func (p *Producer) SendAsync(ctx context.Context, r *Record, done func(Result)) error {
	b, err := p.serialize(r)
	if err != nil {
		return err
	}
	s, waited, err := p.room.enter(ctx, b.size, p.config.queueWait)
	if waited {
		p.counts.waited.Add(1)
	}
	if err != nil {
		if errors.Is(err, ErrQueueFull) {
			p.counts.dropped.Add(1)
			if waited {
				p.counts.late.Add(1)
			}
			if p.config.dropped != nil {
				p.config.dropped(r)
			}
		}
		return err
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		p.room.leave(b.size)
		return ErrClosed
	}
	if s == nil {
		s = new(sending)
	}
	s.fill(ctx, r, &b, done)
	if ready, proven := p.topics.isReady(r.Topic); ready {
		s.reuse = proven
		p.kafka.Produce(ctx, &s.kafka, p.finished)
	} else {
		p.topics.whenReady(p.life, r.Topic, func() { p.kafka.Produce(ctx, &s.kafka, p.finished) })
	}
	if n := int64(p.config.batchRecords); n > 0 && p.config.batchTime > 0 && p.unsent.Add(1) >= n {
		p.unsent.Store(0)
		p.dispatch()
	}
	return nil
}

// over is a context that has ended.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// dispatch makes all that lingers go now; it does not wait.
func (p *Producer) dispatch() { _ = p.kafka.Flush(over) }

func (p *Producer) finish(k *kgo.Record, err error) {
	s := sendingOf(k)
	r, size, done := s.result(own(err)), s.size, s.done
	if s.reuse && err == nil {
		*s = sending{}
	} else {
		s = nil
	}
	p.room.comeBack(size, err == nil, s)
	switch {
	case done != nil:
		done(r)
	case err == nil:
	case p.config.failed != nil:
		p.config.failed(&SendError{[]Result{r}})
	default:
		p.config.logger.Error("a record was not sent", "topic", r.Record.Topic, "err", r.Err)
	}
	if err == nil && s == nil {
		p.topics.prove(r.Record.Topic)
	}
}

// Flush sends what is queued and returns when each record came back, or with
// ctx's error.
func (p *Producer) Flush(ctx context.Context) error {
	if err := p.topics.drained(ctx); err != nil {
		return err
	}
	return p.kafka.Flush(ctx)
}

// Close takes no more records, sends what is queued and returns when each came
// back; once ctx ends, the rest fails with ErrClosed, and Close returns ctx's
// error.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.Flush(ctx)
	p.end()
	p.kafka.Close()
	_ = p.topics.drained(context.Background()) // the rest is handed to a closed client
	return err
}

// Stats returns the counters.
func (p *Producer) Stats() ProducerStats {
	stats := p.room.stats()
	stats.Waited, stats.Dropped, stats.Late = p.counts.waited.Load(), p.counts.dropped.Load(), p.counts.late.Load()
	return stats
}
