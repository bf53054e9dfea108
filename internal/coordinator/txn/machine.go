package txn

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"
)

// Config are the broker's properties that transactions go by.
type Config struct {
	MaxTimeout   time.Duration // transaction.max.timeout.ms
	IDExpiration time.Duration // transactional.id.expiration.ms
	// IDCheck is transaction.remove.expired.transaction.cleanup.interval.ms.
	IDCheck time.Duration
}

// Send commands that the leaders of a transaction's partitions write its end;
// then the machine is told by Complete.
type Send struct {
	TransactionalID string
	Marker          coordinator.Marker
	Partitions      []wire.TopicPartition
}

// Opened tells that a producer's transaction has these partitions, and that its
// records may be written there.
type Opened struct {
	coordinator.Producer
	Partitions []wire.TopicPartition
}

// Closed tells that a producer has this epoch and no transaction that it may
// write in.
type Closed struct{ coordinator.Producer }

// Forgotten tells that no transactional id has this producer id any more.
type Forgotten struct{ Producer int64 }

// AllTold follows what was told of the transactions that were loaded: who is not
// known then is nobody's.
type AllTold struct{}

// Machine is the transactional ids of one partition of __transaction_state.
type Machine struct {
	c     Config
	epoch int32 // of the coordinator
	ids   map[string]*transaction
}

// transaction is a transactional id.
type transaction struct {
	id string
	stored
	lastEpoch    int16 // the epoch before, if an InitProducerId raised it that named it; else -1
	lastProducer int64 // the producer id before, if its epochs were used up; else -1
	waiting      []waitingAdd
}

// New returns a Machine without transactional ids.
func New(c Config, epoch int32) *Machine {
	return &Machine{c: c, epoch: epoch, ids: map[string]*transaction{}}
}

const (
	noProducer = -1
	noEpoch    = -1
	// lastUsableEpoch is the largest epoch that a client gets: one more fences it.
	lastUsableEpoch = math.MaxInt16 - 1
)

// The timers of a machine: A is the transactional id.
const (
	abortTimer  uint8 = iota // a transaction has taken too long
	expiryTimer              // look for ids that are not used any more
	waitTimer                // an Add has waited for long
)

func waitOf(id string) coordinator.Timer { return coordinator.Timer{Kind: waitTimer, A: id} }

func abortOf(id string) coordinator.Timer { return coordinator.Timer{Kind: abortTimer, A: id} }

// write makes a transaction's record; the state is that of the record once it
// is replayed.
func (m *Machine) write(t *transaction, s stored, out *coordinator.Effects) {
	out.Append(keyOf(t.id), valueOf(&s))
	if t.producer != s.producer && t.producer >= 0 {
		out.Perform(Forgotten{t.producer})
	}
	m.tell(t.id, s, out)
	if s.state != Ongoing {
		out.Stop(abortOf(t.id))
	}
}

// tell commands what leaders judge records by, and sets the timer.
func (m *Machine) tell(id string, s stored, out *coordinator.Effects) {
	p := coordinator.Producer{ID: s.producer, Epoch: s.epoch}
	if s.state == Ongoing {
		out.Set(abortOf(id), time.UnixMilli(s.start+int64(s.timeout)))
		out.Perform(Opened{p, s.partitions})
	} else {
		out.Perform(Closed{p})
	}
}

// Replay applies a record.
func (m *Machine) Replay(e coordinator.Entry) error {
	id, err := decodeKey(e.Key)
	if err != nil {
		return err
	}
	if e.Value == nil {
		delete(m.ids, id)
		return nil
	}
	s, err := decodeValue(e.Value)
	if err != nil {
		return err
	}
	t := m.ids[id]
	if t == nil {
		t = &transaction{id: id, lastEpoch: noEpoch, lastProducer: noProducer}
		m.ids[id] = t
	}
	t.stored = s
	return nil
}

// End does nothing: nobody writes to __transaction_state in a transaction.
func (m *Machine) End(coordinator.Marker, int64) {}

// Loaded goes on where the coordinator before ended.
func (m *Machine) Loaded(now time.Time, out *coordinator.Effects) {
	for _, id := range slices.Sorted(maps.Keys(m.ids)) {
		t := m.ids[id]
		m.tell(id, t.stored, out)
		if t.state == PrepareCommit || t.state == PrepareAbort {
			m.send(t, out)
		}
	}
	out.Perform(AllTold{})
	out.Set(coordinator.Timer{Kind: expiryTimer}, now.Add(m.c.IDCheck))
}

// send commands the markers of a transaction that is decided.
func (m *Machine) send(t *transaction, out *coordinator.Effects) {
	out.Perform(Send{TransactionalID: t.id, Partitions: t.partitions, Marker: coordinator.Marker{
		Producer: coordinator.Producer{ID: t.producer, Epoch: t.epoch}, Commit: t.state == PrepareCommit, CoordinatorEpoch: m.epoch,
	}})
}

// Expired handles a timer.
func (m *Machine) Expired(timer coordinator.Timer, now time.Time, out *coordinator.Effects) {
	if timer.Kind == expiryTimer {
		m.removeUnused(now, out)
		out.Set(timer, now.Add(m.c.IDCheck))
		return
	}
	t := m.ids[timer.A]
	switch {
	case t == nil:
	case timer.Kind == waitTimer:
		t.giveUp(out)
	case t.state == Ongoing:
		m.fence(t, now, out)
	}
}

// fence aborts an open transaction under a higher epoch, which nobody has, so
// that its producer can't go on. Of the last epoch there is no higher one; the
// transaction is aborted under it.
func (m *Machine) fence(t *transaction, now time.Time, out *coordinator.Effects) {
	t.lastEpoch = noEpoch
	s := t.stored
	if s.epoch < math.MaxInt16 {
		s.epoch++
	}
	m.decide(t, s, PrepareAbort, now, out)
}

// decide ends a transaction.
func (m *Machine) decide(t *transaction, s stored, to State, now time.Time, out *coordinator.Effects) {
	s.state, s.update = to, now.UnixMilli()
	m.write(t, s, out)
	decided := &transaction{id: t.id, stored: s}
	m.send(decided, out)
}

// removeUnused forgets ids that were not used for long (KIP-98).
func (m *Machine) removeUnused(now time.Time, out *coordinator.Effects) {
	for _, id := range slices.Sorted(maps.Keys(m.ids)) {
		switch t := m.ids[id]; t.state {
		case Empty, CompleteCommit, CompleteAbort:
			if now.UnixMilli()-t.update >= m.c.IDExpiration.Milliseconds() {
				out.Append(keyOf(id), nil)
				out.Perform(Forgotten{t.producer})
			}
		}
	}
}

func comparePartitions(a, b wire.TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}
