package txn

import (
	"slices"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"
)

// Init is an InitProducerId request. Its answer is an Initialized.
type Init struct {
	TransactionalID string
	Timeout         int32 // ms; the caller has checked it
	// Known is what the producer has (KIP-360), ID -1 for nothing.
	Known coordinator.Producer
	// Fresh is a producer id that nobody ever had, -1 for none: if one is needed
	// the answer says so.
	Fresh int64
}

// Initialized is the answer to Init.
type Initialized struct {
	Code wire.Code
	coordinator.Producer
	NeedsID bool // ask again with a fresh producer id
}

// Init gives a transactional id's producer an id and epoch, and fences all
// before (TransactionCoordinator.handleInitProducerId).
func (m *Machine) Init(r Init, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	t := m.ids[r.TransactionalID]
	if t == nil {
		t = &transaction{id: r.TransactionalID, lastEpoch: noEpoch, lastProducer: noProducer}
		t.producer, t.epoch, t.start = r.Fresh, noEpoch, -1
		if r.Fresh < 0 {
			out.ReplyNow(from, Initialized{NeedsID: true})
			return
		}
	}
	refuse := func(code wire.Code) {
		out.Reply(from, Initialized{Code: code, Producer: coordinator.Producer{ID: noProducer, Epoch: noEpoch}})
	}
	known := r.Known.ID >= 0
	if known && t.epoch != noEpoch && r.Known.ID != t.producer && !(r.Known.ID == t.lastProducer && r.Known.Epoch >= lastUsableEpoch) {
		refuse(wire.ProducerFenced)
		return
	}
	s := stored{producer: t.producer, timeout: r.Timeout, state: Empty, update: now.UnixMilli(), start: -1}
	lastEpoch, lastProducer := int16(noEpoch), t.lastProducer
	switch {
	case t.state == PrepareCommit || t.state == PrepareAbort:
		refuse(wire.ConcurrentTransactions)
		return
	case t.state == Ongoing: // the client will ask again, and get the epoch after
		m.fence(t, now, out)
		refuse(wire.ConcurrentTransactions)
		return
	case t.epoch >= lastUsableEpoch && (!known || r.Known.Epoch == t.epoch):
		if r.Fresh < 0 {
			out.ReplyNow(from, Initialized{NeedsID: true})
			return
		}
		s.producer, s.epoch, lastProducer = r.Fresh, 0, t.producer
		if known {
			lastEpoch = t.epoch
		}
	case !known:
		s.epoch = t.epoch + 1
	case t.epoch == noEpoch || r.Known.Epoch == t.epoch:
		s.epoch, lastEpoch = t.epoch+1, t.epoch
	case r.Known.Epoch == t.lastEpoch: // a retry: the answer was lost
		s.epoch, lastEpoch = t.epoch, t.lastEpoch
	default:
		refuse(wire.ProducerFenced)
		return
	}
	t.lastEpoch, t.lastProducer = lastEpoch, lastProducer
	m.ids[t.id] = t
	m.write(t, s, out)
	out.Reply(from, Initialized{Producer: coordinator.Producer{ID: s.producer, Epoch: s.epoch}})
}

// check judges who a request is from.
func (m *Machine) check(id string, p coordinator.Producer) (*transaction, wire.Code) {
	t := m.ids[id]
	switch {
	case id == "":
		return nil, wire.InvalidRequest
	case t == nil || t.producer != p.ID:
		return nil, wire.InvalidProducerIDMapping
	case t.epoch != p.Epoch:
		return nil, wire.ProducerFenced
	}
	return t, wire.None
}

// Add takes partitions into a producer's transaction, and begins it if need be
// (TransactionCoordinator.handleAddPartitionsToTransaction). While the markers of
// the one before are being written it waits a little: Kafka answers
// CONCURRENT_TRANSACTIONS at once, and then the client pauses for much longer
// than the markers take. The answer is a wire.Code.
func (m *Machine) Add(id string, p coordinator.Producer, partitions []wire.TopicPartition, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	t, code := m.check(id, p)
	switch {
	case code != wire.None:
		out.Reply(from, code)
	case t.state == PrepareCommit || t.state == PrepareAbort:
		if len(t.waiting) == 0 {
			out.Set(waitOf(id), now.Add(longestWait))
		}
		t.waiting = append(t.waiting, waitingAdd{p, partitions, from})
	default:
		m.add(t, t.stored, partitions, from, now, out)
	}
}

// longestWait is how long an Add waits for the transaction before.
const longestWait = time.Second

// waitingAdd is an Add that waits for the end of the transaction before.
type waitingAdd struct {
	coordinator.Producer
	partitions []wire.TopicPartition
	from       coordinator.Caller
}

// add is Add for a transaction whose state will be s. It returns what that
// becomes.
func (m *Machine) add(t *transaction, s stored, partitions []wire.TopicPartition, from coordinator.Caller, now time.Time, out *coordinator.Effects) stored {
	if s.state == Ongoing {
		all := merged(s.partitions, partitions)
		if len(all) == len(s.partitions) {
			out.Reply(from, wire.None)
			return s
		}
		s.partitions = all
	} else {
		s.start, s.partitions = now.UnixMilli(), merged(nil, partitions)
	}
	s.state, s.update = Ongoing, now.UnixMilli()
	m.write(t, s, out)
	out.Reply(from, wire.None)
	return s
}

// giveUp answers the Adds that have waited too long.
func (t *transaction) giveUp(out *coordinator.Effects) {
	for _, w := range t.waiting {
		out.Reply(w.from, wire.ConcurrentTransactions)
	}
	t.waiting = nil
}

// merged returns a new list of the partitions of both, in order.
func merged(a, b []wire.TopicPartition) []wire.TopicPartition {
	all := append(slices.Clone(a), b...)
	slices.SortFunc(all, comparePartitions)
	return slices.Compact(all)
}

// Verify tells for each partition whether a producer's transaction has it
// (handleVerifyPartitionsInTransaction). The answer is a []wire.Code.
func (m *Machine) Verify(id string, p coordinator.Producer, partitions []wire.TopicPartition, from coordinator.Caller, out *coordinator.Effects) {
	t, code := m.check(id, p)
	if code == wire.None && (t.state == PrepareCommit || t.state == PrepareAbort) {
		code = wire.ConcurrentTransactions
	}
	codes := make([]wire.Code, len(partitions))
	for i, partition := range partitions {
		codes[i] = code
		if code == wire.None && (t.state != Ongoing || !slices.Contains(t.partitions, partition)) {
			codes[i] = wire.TransactionAbortable
		}
	}
	out.Reply(from, codes)
}

// EndTxn decides a producer's transaction; the answer, a wire.Code, leaves when
// that is stored, and the markers follow (TransactionCoordinator.endTransaction).
func (m *Machine) EndTxn(id string, p coordinator.Producer, commit bool, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	t, code := m.check(id, p)
	if code != wire.None {
		out.Reply(from, code)
		return
	}
	prepared, complete := PrepareAbort, CompleteAbort
	if commit {
		prepared, complete = PrepareCommit, CompleteCommit
	}
	switch t.state {
	case Ongoing:
		m.decide(t, t.stored, prepared, now, out)
	case prepared:
		code = wire.ConcurrentTransactions // and then the answer below
	case complete: // a retry
	default:
		code = wire.InvalidTxnState
	}
	out.Reply(from, code)
}

// Complete notes that all markers of a transaction are written. The answer is a
// wire.Code.
func (m *Machine) Complete(id string, p coordinator.Producer, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
	t, code := m.check(id, p)
	if code != wire.None {
		out.Reply(from, code)
		return
	}
	s := t.stored
	switch s.state {
	case PrepareCommit:
		s.state = CompleteCommit
	case PrepareAbort:
		s.state = CompleteAbort
	default:
		out.Reply(from, wire.InvalidTxnState)
		return
	}
	s.partitions, s.update = nil, now.UnixMilli()
	m.write(t, s, out)
	out.Reply(from, wire.None)
	if len(t.waiting) == 0 {
		return
	}
	out.Stop(waitOf(id))
	waiting := t.waiting
	t.waiting = nil
	for _, w := range waiting {
		if w.Producer != (coordinator.Producer{ID: s.producer, Epoch: s.epoch}) {
			out.Reply(w.from, wire.ProducerFenced)
			continue
		}
		s = m.add(t, s, w.partitions, w.from, now, out)
	}
}
