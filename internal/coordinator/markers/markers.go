// Package markers has the leaders of a transaction's partitions write how it
// ended: what package txn decides and can't do, having no I/O.
//
// A [Writer] owns the transactions that are decided and not completed, and one
// goroutine for each broker that something waits for. It polls nothing: it tries
// again after a pause when a leader has refused or a partition has none.
//
// Writer.mu guards the transactions under way; it is a leaf, never held over I/O.
//
// Invariants:
//  1. A marker is written until a leader has taken it, the partition is gone, or
//     a later coordinator has spoken: then that one completes the transaction.
//  2. There is at most one request to a broker at a time.
//  3. Done is called once for each Send that ends, and never after Forget.
package markers

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/wire"
)

// Options are the arguments of [New]; all are needed.
type Options struct {
	// Leader returns the broker that leads a partition, -1 while nobody does;
	// known is false if the cluster has no such partition.
	Leader func(p wire.TopicPartition) (broker int32, known bool)
	// Write has a broker append markers, each to its partitions, and returns a
	// code for each partition of each marker, in their order. It blocks. An error
	// says that the broker did not answer.
	Write func(ctx context.Context, broker int32, ends []End) ([][]wire.Code, error)
	// Done is told, from any goroutine, that a transaction's markers are all
	// written.
	Done func(statePartition int32, id string, p coordinator.Producer)
	// Pause is how long to wait after a refusal; KIP-98 leaves it to the broker.
	Pause  time.Duration
	Logger *slog.Logger
}

// End is a marker and where it is to be written.
type End struct {
	coordinator.Marker
	Partitions []wire.TopicPartition
}

// Writer has the leaders of transactions' partitions write their ends, and
// tries again as leaders move (Kafka's TransactionMarkerChannelManager). For
// each broker there is at most one request at a time, which holds all that has
// come together.
type Writer struct {
	o       Options
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu struct {
		sync.Mutex // guards what follows
		closed     bool
		pending    map[string]*ending // by transactional id
		queues     map[int32]*brokerQueue
	}
}

// ending is a transaction whose markers are being written.
type ending struct {
	txn.Send
	statePartition int32
	left           map[wire.TopicPartition]struct{}
	began          time.Time
}

// brokerQueue is what waits for a broker. A worker runs while there is something.
type brokerQueue struct {
	parts   map[*ending][]wire.TopicPartition
	working bool
}

// goneAfter is how long a partition must be unknown to the cluster's metadata
// to count as deleted: right after an election not all may be known yet.
const goneAfter = 10 * time.Second

// nobody is the queue of partitions without a leader.
const nobody int32 = -1

// New returns a Writer with nothing to do.
func New(o Options) *Writer {
	m := &Writer{o: o}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.mu.pending, m.mu.queues = map[string]*ending{}, map[int32]*brokerQueue{}
	return m
}

// Send begins to write the markers of a transaction. It returns at once.
func (m *Writer) Send(statePartition int32, s txn.Send) {
	e := &ending{Send: s, statePartition: statePartition, left: map[wire.TopicPartition]struct{}{}, began: time.Now()}
	for _, p := range s.Partitions {
		e.left[p] = struct{}{}
	}
	if len(e.left) == 0 {
		m.o.Done(statePartition, s.TransactionalID, s.Marker.Producer)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return
	}
	m.mu.pending[s.TransactionalID] = e
	m.routeLocked(e, s.Partitions)
}

// Forget drops what the coordinator of a partition of __transaction_state has
// begun: a later one begins anew.
func (m *Writer) Forget(statePartition int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, e := range m.mu.pending {
		if e.statePartition == statePartition {
			delete(m.mu.pending, id)
		}
	}
}

// Close ends the workers and waits for them.
func (m *Writer) Close() {
	m.mu.Lock()
	m.mu.closed = true
	m.mu.Unlock()
	m.cancel()
	m.running.Wait()
}

// routeLocked puts partitions into the queues of their leaders.
func (m *Writer) routeLocked(e *ending, parts []wire.TopicPartition) {
	for _, p := range parts {
		broker, known := m.o.Leader(p)
		if !known || broker < 0 {
			broker = nobody
		}
		q := m.mu.queues[broker]
		if q == nil {
			q = &brokerQueue{parts: map[*ending][]wire.TopicPartition{}}
			m.mu.queues[broker] = q
		}
		q.parts[e] = append(q.parts[e], p)
		if !q.working && !m.mu.closed {
			q.working = true
			m.running.Go(func() { m.work(broker, q) })
		}
	}
}

// work empties a broker's queue.
func (m *Writer) work(broker int32, q *brokerQueue) {
	for {
		m.mu.Lock()
		var all []*ending
		var ends []End
		for e, parts := range q.parts {
			if m.mu.pending[e.TransactionalID] == e {
				all, ends = append(all, e), append(ends, End{e.Marker, parts})
			}
		}
		clear(q.parts)
		if len(all) == 0 || m.mu.closed {
			q.working = false
			delete(m.mu.queues, broker)
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		if broker == nobody {
			m.waitForLeaders(all, ends)
			continue
		}
		codes, err := m.o.Write(m.ctx, broker, ends)
		if err != nil {
			m.o.Logger.Info("a broker wrote no transaction markers; trying again", "broker", broker, "err", err)
			codes = nil
		}
		m.written(all, ends, codes)
	}
}

// waitForLeaders looks again, after a pause, for who leads partitions that
// nobody led; those that are gone need no marker.
func (m *Writer) waitForLeaders(all []*ending, ends []End) {
	m.rest()
	codes := make([][]wire.Code, len(ends))
	for i, e := range ends {
		codes[i] = make([]wire.Code, len(e.Partitions))
		for j, p := range e.Partitions {
			codes[i][j] = wire.LeaderNotAvailable
			if _, known := m.o.Leader(p); !known && time.Since(all[i].began) > goneAfter {
				codes[i][j] = wire.None
			}
		}
	}
	m.settle(all, ends, codes)
}

func (m *Writer) rest() {
	t := time.NewTimer(m.o.Pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-m.ctx.Done():
	}
}

// written judges a broker's answer; nil codes are no answer.
func (m *Writer) written(all []*ending, ends []End, codes [][]wire.Code) {
	again := codes == nil
	for i := range codes {
		again = again || len(codes[i]) != len(ends[i].Partitions) || slices.ContainsFunc(codes[i], func(c wire.Code) bool { return c != wire.None })
	}
	if again {
		m.rest()
	}
	m.settle(all, ends, codes)
}

// settle notes what is done, queues the rest again, and tells of transactions
// that have ended.
func (m *Writer) settle(all []*ending, ends []End, codes [][]wire.Code) {
	var over []*ending
	m.mu.Lock()
	for i, e := range all {
		if m.mu.pending[e.TransactionalID] != e {
			continue
		}
		var rest []wire.TopicPartition
		for j, p := range ends[i].Partitions {
			code := wire.RequestTimedOut
			if i < len(codes) && j < len(codes[i]) {
				code = codes[i][j]
			}
			switch code {
			case wire.None, wire.UnsupportedForMessageFormat: // the latter can't hold a transaction
				delete(e.left, p)
			case wire.InvalidProducerEpoch, wire.TransactionCoordinatorFenced, wire.ProducerFenced:
				m.o.Logger.Warn("a transaction was ended by a later coordinator", "transactional_id", e.TransactionalID, "partition", p.String(), "code", code.String())
				delete(m.mu.pending, e.TransactionalID)
			default:
				rest = append(rest, p)
			}
		}
		if m.mu.pending[e.TransactionalID] != e {
			continue
		}
		if len(e.left) == 0 {
			delete(m.mu.pending, e.TransactionalID)
			over = append(over, e)
			continue
		}
		m.routeLocked(e, rest)
	}
	m.mu.Unlock()
	for _, e := range over {
		m.o.Done(e.statePartition, e.TransactionalID, e.Marker.Producer)
	}
}
