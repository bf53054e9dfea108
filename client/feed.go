package client

import (
	"context"
	"errors"
	"sync"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kgo"
)

// feed moves what is fetched from the brokers into the streams.
//
// Its goroutine and whoever takes partitions away take turns, so that no record
// fetched in an earlier ownership of a partition is given out in a later one.
// A stream that has enough does not hold up the others: its partitions are
// paused. Only when all have enough does the fetching wait.
//
// Lock: mu, over the table of partitions and the pending turn.
type feed struct {
	kafka *kgo.Client
	turn  chan struct{} // holds the one token
	roomy chan struct{} // of capacity 1: a stream has room again
	done  chan struct{}

	mu struct {
		sync.Mutex
		parts   map[wire.TopicPartition]*owned
		waiting int                // those that want the turn
		cancel  context.CancelFunc // of the poll that goes on
	}
}

func newFeed(kafka *kgo.Client) *feed {
	f := &feed{kafka: kafka, turn: make(chan struct{}, 1), roomy: make(chan struct{}, 1), done: make(chan struct{})}
	f.mu.parts = map[wire.TopicPartition]*owned{}
	f.turn <- struct{}{}
	return f
}

// byTopic groups partitions as kgo wants them.
func byTopic(parts []*owned) map[string][]int32 {
	m := map[string][]int32{}
	for _, o := range parts {
		m[o.Topic] = append(m[o.Topic], o.Partition)
	}
	return m
}

// add begins to fetch partitions at their positions.
func (f *feed) add(parts []*owned) {
	offsets := map[string]map[int32]kgo.Offset{}
	f.mu.Lock()
	for _, o := range parts {
		f.mu.parts[o.TopicPartition] = o
	}
	f.mu.Unlock()
	for _, o := range parts {
		if offsets[o.Topic] == nil {
			offsets[o.Topic] = map[int32]kgo.Offset{}
		}
		offsets[o.Topic][o.Partition] = kgo.NewOffset().At(o.position())
	}
	f.kafka.ResumeFetchPartitions(byTopic(parts)) // of an earlier ownership
	f.kafka.AddConsumePartitions(offsets)
	f.hasRoom()
}

// remove ends the fetching of partitions. When it returns nothing more of them
// is on its way to a stream.
func (f *feed) remove(parts []*owned) {
	if len(parts) == 0 {
		return
	}
	f.mu.Lock()
	f.mu.waiting++
	if f.mu.cancel != nil {
		f.mu.cancel()
	}
	f.mu.Unlock()
	<-f.turn
	f.kafka.RemoveConsumePartitions(byTopic(parts))
	f.mu.Lock()
	f.mu.waiting--
	for _, o := range parts {
		if f.mu.parts[o.TopicPartition] == o {
			delete(f.mu.parts, o.TopicPartition)
		}
	}
	f.mu.Unlock()
	f.turn <- struct{}{}
}

func (f *feed) hasRoom() {
	select {
	case f.roomy <- struct{}{}:
	default:
	}
}

// streamPartsLocked returns the partitions of a stream.
func (f *feed) streamPartsLocked(s *Stream) (parts []*owned) {
	for _, o := range f.mu.parts {
		if o.stream == s {
			parts = append(parts, o)
		}
	}
	return parts
}

// resume is called when a stream has room again.
func (f *feed) resume(s *Stream) {
	f.mu.Lock()
	parts := f.streamPartsLocked(s)
	f.mu.Unlock()
	f.kafka.ResumeFetchPartitions(byTopic(parts))
	f.hasRoom()
}

// allFull tells whether there is no stream to fetch for.
func (f *feed) allFull() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.mu.parts {
		if !o.stream.isFull() {
			return false
		}
	}
	return len(f.mu.parts) > 0
}

// run fetches until ctx ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	for ctx.Err() == nil {
		if f.allFull() {
			select {
			case <-f.roomy:
			case <-ctx.Done():
				return
			}
			continue
		}
		<-f.turn
		f.poll(ctx)
		f.turn <- struct{}{}
	}
}

func (f *feed) poll(ctx context.Context) {
	poll, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	if f.mu.waiting > 0 {
		f.mu.Unlock()
		return
	}
	f.mu.cancel = cancel
	f.mu.Unlock()
	fetches := f.kafka.PollFetches(poll)
	f.mu.Lock()
	f.mu.cancel = nil
	f.mu.Unlock()

	full := map[*Stream]bool{}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		f.mu.Lock()
		o := f.mu.parts[wire.TopicPartition{Topic: p.Topic, Partition: p.Partition}]
		f.mu.Unlock()
		if o == nil {
			return
		}
		if p.Err != nil && !errors.Is(p.Err, context.Canceled) {
			o.stream.fail(p.Err)
		}
		if len(p.Records) > 0 {
			if o.stream.put(chunk{of: o, records: p.Records, bytes: sizeOf(p.Records)}) {
				full[o.stream] = true
			}
		}
	})
	if len(full) == 0 || f.allFull() {
		return
	}
	for s := range full {
		f.mu.Lock()
		parts := f.streamPartsLocked(s)
		f.mu.Unlock()
		f.kafka.PauseFetchPartitions(byTopic(parts))
		if !s.isFull() { // it was emptied meanwhile
			f.kafka.ResumeFetchPartitions(byTopic(parts))
		}
	}
}
