package client

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrTimeout is the error of Next when no record came for NextTimeout
// (kafka.consumer.ConsumerTimeoutException).
var ErrTimeout = errors.New("client: no record came in time")

// Message is a record as a stream gives it out. Key and Value must not be
// changed.
type Message struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       []byte // nil: null
	Value     []byte // nil: null
	Headers   []Header
	// Timestamp is the producer's or the broker's; zero with messages of
	// before 0.10.
	Timestamp time.Time
}

// owned is a partition that this consumer owns. The fields below mu are
// guarded by the stream's.
type owned struct {
	wire.TopicPartition
	stream *Stream
	owner  string // text of the owner node

	// guarded by stream.mu
	next    int64 // the offset after the last record taken; -1: none known
	revoked bool  // nothing of it may come out any more

	committed int64 // as storage has it; of the run loop only
}

// chunk is what one fetch brought of one partition. Records that were taken stay
// in it up to the last: to forget each alone costs more than to give it out, as
// the collector must hear of it, and their bytes are in one piece of memory.
type chunk struct {
	of      *owned
	records []*kgo.Record
	taken   int // of records
	bytes   int
}

// sizeOf returns about how many bytes the records of a chunk are. It looks at
// some of them: of a large fetch most are in no cache of the processor, and
// reading a length of each costs as much as giving it out.
func sizeOf(records []*kgo.Record) (bytes int) {
	step := len(records)/64 | 1
	looked := 0
	for i := 0; i < len(records); i += step {
		bytes += len(records[i].Key) + len(records[i].Value) + 64
		looked++
	}
	if looked == 0 {
		return 0
	}
	return bytes * len(records) / looked
}

// Stream gives out the records of the partitions that fell to one of this
// consumer's threads. It may be used by several goroutines, though order then
// means little.
//
// Lock: mu, over what is queued and over the owned partitions' offsets, so that
// a record is taken before its partition is revoked or not at all.
type Stream struct {
	thread  int
	timeout time.Duration
	room    func() // called when the queue has shrunk below half
	limit   int    // of bytes queued

	mu struct {
		sync.Mutex
		chunks []chunk
		bytes  int
		full   bool // over limit, and not yet below half of it
		closed bool
		err    error // for the next call
	}
	wake chan struct{} // of capacity 1
}

func newStream(thread int, timeout time.Duration, limit int, room func()) *Stream {
	return &Stream{thread: thread, timeout: timeout, room: room, limit: limit, wake: make(chan struct{}, 1)}
}

func (s *Stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Next takes the next record, waiting until there is one. Its offset counts as
// consumed from now on. Errors: ErrClosed, ErrTimeout, ctx's, or what a
// partition could not go on from.
func (s *Stream) Next(ctx context.Context) (m Message, err error) {
	r, err := s.take()
	if r == nil && err == nil {
		r, err = s.await(ctx)
	}
	if err != nil {
		return m, err
	}
	m.Topic, m.Partition, m.Offset, m.Key, m.Value = r.Topic, r.Partition, r.Offset, r.Key, r.Value
	if r.Attrs.TimestampType() >= 0 {
		m.Timestamp = r.Timestamp
	}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, Header(h))
	}
	r.Recycle() // see slabs
	return m, nil
}

// await is take which waits.
func (s *Stream) await(ctx context.Context) (*kgo.Record, error) {
	var late <-chan time.Time
	if s.timeout >= 0 {
		timer := time.NewTimer(s.timeout)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late:
			return nil, ErrTimeout
		}
		if r, err := s.take(); r != nil || err != nil {
			return r, err
		}
	}
}

// All gives out records until ctx ends or Next fails; the last pair has the
// error.
func (s *Stream) All(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			m, err := s.Next(ctx)
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// take returns the next record, if there is one.
func (s *Stream) take() (r *kgo.Record, err error) {
	s.mu.Lock()
	if s.mu.err != nil {
		err, s.mu.err = s.mu.err, nil
		s.mu.Unlock()
		return nil, err
	}
	if s.mu.closed {
		s.mu.Unlock()
		s.signal() // for whoever waits beside us
		return nil, ErrClosed
	}
	if len(s.mu.chunks) == 0 {
		s.mu.Unlock()
		return nil, nil
	}
	c := &s.mu.chunks[0]
	r = c.records[c.taken]
	c.taken++
	c.of.next = r.Offset + 1
	drained := false
	if c.taken == len(c.records) {
		s.mu.bytes -= c.bytes
		s.mu.chunks[0] = chunk{}
		s.mu.chunks = s.mu.chunks[1:]
		if s.mu.full && s.mu.bytes <= s.limit/2 {
			s.mu.full, drained = false, true
		}
	}
	more := len(s.mu.chunks) > 0
	s.mu.Unlock()
	if more && len(s.wake) == 0 {
		s.signal()
	}
	if drained {
		s.room()
	}
	return r, nil
}

// put queues a chunk, unless its partition was revoked. full tells whether the
// stream has enough for now.
func (s *Stream) put(c chunk) (full bool) {
	s.mu.Lock()
	if c.of.revoked || s.mu.closed {
		full = s.mu.full
		s.mu.Unlock()
		return full
	}
	s.mu.chunks = append(s.mu.chunks, c)
	s.mu.bytes += c.bytes
	if s.mu.bytes > s.limit {
		s.mu.full = true
	}
	full = s.mu.full
	s.mu.Unlock()
	s.signal()
	return full
}

// fail hands an error to the next call of Next.
func (s *Stream) fail(err error) {
	s.mu.Lock()
	s.mu.err = err
	s.mu.Unlock()
	s.signal()
}

// revoke ends a partition: nothing of it comes out any more.
func (s *Stream) revoke(o *owned) {
	s.mu.Lock()
	o.revoked = true
	kept := s.mu.chunks[:0]
	for _, c := range s.mu.chunks {
		if c.of == o {
			s.mu.bytes -= c.bytes
		} else {
			kept = append(kept, c)
		}
	}
	clear(s.mu.chunks[len(kept):])
	s.mu.chunks = kept
	drained := s.mu.full && s.mu.bytes <= s.limit/2
	if drained {
		s.mu.full = false
	}
	s.mu.Unlock()
	if drained {
		s.room()
	}
}

func (s *Stream) close() {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.chunks = nil
	s.mu.Unlock()
	s.signal()
}

func (s *Stream) isFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.full
}

// position returns the offset after the last record taken.
func (o *owned) position() int64 {
	o.stream.mu.Lock()
	defer o.stream.mu.Unlock()
	return o.next
}

func (o *owned) begin(offset int64) {
	o.stream.mu.Lock()
	o.next = offset
	o.stream.mu.Unlock()
}
