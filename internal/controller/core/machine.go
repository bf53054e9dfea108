package core

import (
	"fmt"
	"log/slog"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
)

// Config is what a Machine is made with.
type Config struct {
	BrokerID            int32
	IBP                 config.IBP
	InterBrokerListener string
	DeleteTopicEnable   bool
	UncleanElection     bool
	AutoRebalance       bool
	ImbalancePercentage int
	ImbalanceInterval   time.Duration
	NewTopicID          func() wire.UUID // deterministic in tests
}

// firstRebalance is when, after the election, the imbalance of leaders is
// looked at first (KafkaController.onControllerFailover).
const firstRebalance = 5 * time.Second

// Machine is the active controller's decisions. Use New.
type Machine struct {
	cfg    Config
	active bool
	epoch  int32

	brokers     map[int32]*broker
	topics      map[string]*topic
	byID        map[wire.UUID]*topic
	unreadable  map[string]bool // topic nodes that were refused, until they change
	unled       map[*partition]struct{}
	onBroker    map[int32]map[*partition]struct{}
	queued      map[string]*topic // for deletion
	reassigning map[*partition]struct{}
	// hasReassignNode tells whether /admin/reassign_partitions was there when
	// it was read last.
	hasReassignNode bool
	// isrMoved are partitions that are being reassigned and whose ISR has
	// changed since it was looked at.
	isrMoved map[*partition]struct{}
	// noIDs is why the last call for producer ids was refused; "": it was not.
	noIDs string
	// bouncing tells that registered brokers are out of brokers for a moment,
	// since they are new ones of the same ids.
	bouncing bool

	now     time.Time
	out     []Effect
	batch   batch
	queue   []Event
	waiting map[Tag]func(Event)
	lastTag Tag
	calls   map[uint64]struct{} // taken and not yet answered
}

// New returns a Machine without a term.
func New(cfg Config) *Machine {
	m := &Machine{cfg: cfg}
	m.reset()
	return m
}

func (m *Machine) reset() {
	m.active, m.epoch = false, 0
	m.brokers = map[int32]*broker{}
	m.topics = map[string]*topic{}
	m.byID = map[wire.UUID]*topic{}
	m.unreadable = map[string]bool{}
	m.unled = map[*partition]struct{}{}
	m.onBroker = map[int32]map[*partition]struct{}{}
	m.queued = map[string]*topic{}
	m.reassigning = map[*partition]struct{}{}
	m.isrMoved = map[*partition]struct{}{}
	m.hasReassignNode, m.bouncing, m.noIDs = false, false, ""
	m.batch = batch{}
	m.queue = nil
	m.waiting = map[Tag]func(Event){}
	m.calls = map[uint64]struct{}{}
}

// Active tells whether the machine is in a term.
func (m *Machine) Active() bool { return m.active }

// Idle tells whether every event has been handled to its end.
func (m *Machine) Idle() bool { return len(m.waiting) == 0 && len(m.queue) == 0 }

// Step handles one event at a time now and appends the effects to out.
func (m *Machine) Step(now time.Time, ev Event, out []Effect) []Effect {
	m.now, m.out = now, out
	switch e := ev.(type) {
	case ReadsDone:
		m.resume(e.Tag, e)
	case WritesDone:
		m.resume(e.Tag, e)
	case Call:
		m.calls[e.ID] = struct{}{}
		m.queue = append(m.queue, ev)
	default:
		m.queue = append(m.queue, ev)
	}
	for len(m.waiting) == 0 && len(m.isrMoved)+len(m.queue) > 0 {
		if len(m.isrMoved) > 0 {
			moved := inOrder(m.isrMoved)
			clear(m.isrMoved)
			m.checkReassigned(moved, func() {})
			continue
		}
		next := m.queue[0]
		m.queue = m.queue[1:]
		m.handle(next)
	}
	out, m.out = m.out, nil
	return out
}

// Stop ends the term without a word to ZooKeeper: the session is gone, or the
// process ends.
func (m *Machine) Stop(now time.Time, reason string, out []Effect) []Effect {
	m.now, m.out = now, out
	m.resign(reason)
	out, m.out = m.out, nil
	return out
}

func (m *Machine) resume(tag Tag, ev Event) {
	then := m.waiting[tag]
	if then == nil {
		return // of a term that has ended
	}
	delete(m.waiting, tag)
	then(ev)
}

func (m *Machine) handle(ev Event) {
	if e, ok := ev.(Elected); ok {
		m.failover(e.Epoch)
		return
	}
	if e, ok := ev.(UncleanElection); ok {
		m.setUnclean(e.Enable)
		return
	}
	if !m.active {
		if c, ok := ev.(Call); ok {
			m.reply(c.ID, nil)
		}
		return
	}
	switch e := ev.(type) {
	case Changed:
		m.changed(e.Path)
	case Answered:
		m.answered(e)
	case Identified:
		m.identified(e)
	case Tick:
		m.rebalance()
	case Call:
		m.call(e)
	case TopicConfigChanged:
		if t := m.topics[e.Topic]; t != nil {
			mine := func(p *partition) bool { return p.topic == t }
			m.electUnled(filter(m.unledPartitions(), mine), func() {})
		}
	}
}

func (m *Machine) setUnclean(enable bool) {
	was := m.cfg.UncleanElection
	m.cfg.UncleanElection = enable
	if m.active && enable && !was {
		m.electUnled(m.unledPartitions(), func() {})
	}
}

func (m *Machine) call(c Call) {
	switch r := c.Request.(type) {
	case CreateTopics:
		m.createTopics(c.ID, r.Topics)
	case CreatePartitions:
		m.createPartitions(c.ID, r)
	case DeleteTopics:
		m.deleteTopics(c.ID, r.Topics)
	case ElectLeaders:
		m.electLeaders(c.ID, r)
	case Reassign:
		m.reassignCall(c.ID, r.Partitions)
	case ListReassignments:
		m.reply(c.ID, m.listReassignments(r.Partitions))
	case ControlledShutdown:
		m.controlledShutdown(c.ID, r)
	case AlterPartition:
		m.alterPartition(c.ID, r.Request)
	case AllocateProducerIDs:
		m.allocateProducerIDs(c.ID, r)
	case QueuedForDeletion:
		m.reply(c.ID, sortedKeys(m.queued))
	case Why:
		m.reply(c.ID, m.why(r.Topic))
	default:
		m.reply(c.ID, nil)
	}
}

func (m *Machine) emit(e Effect) { m.out = append(m.out, e) }

func (m *Machine) reply(call uint64, result any) {
	delete(m.calls, call)
	m.emit(Reply{call, result})
}

func (m *Machine) logf(level slog.Level, format string, args ...any) {
	m.emit(Log{level, fmt.Sprintf(format, args...)})
}

func (m *Machine) warnf(format string, args ...any) { m.logf(slog.LevelWarn, format, args...) }
func (m *Machine) infof(format string, args ...any) { m.logf(slog.LevelInfo, format, args...) }

// read goes on with then when the reads are done; at once if there are none.
func (m *Machine) read(ops []Read, then func([]ReadResult)) {
	if len(ops) == 0 {
		then(nil)
		return
	}
	m.lastTag++
	m.waiting[m.lastTag] = func(ev Event) { then(ev.(ReadsDone).Results) }
	m.emit(Reads{m.lastTag, ops})
}

// write goes on with then when the writes are done; at once if there are none.
// If the term turns out to be over it does not go on.
func (m *Machine) write(units []Unit, then func([]UnitResult)) {
	if len(units) == 0 {
		then(nil)
		return
	}
	m.lastTag++
	m.waiting[m.lastTag] = func(ev Event) {
		done := ev.(WritesDone)
		if done.Moved {
			m.resign("the controller has moved: /controller_epoch changed")
			return
		}
		then(done.Results)
	}
	m.emit(Writes{m.lastTag, units})
}

// resign forgets everything. Callers must not touch the machine afterwards.
func (m *Machine) resign(reason string) {
	if !m.active && len(m.calls) == 0 {
		return
	}
	was := m.active
	for _, id := range sortedKeys(m.calls) {
		m.reply(id, nil)
	}
	m.reset()
	if was {
		m.emit(Resign{reason})
	}
}

// done tells whether a delete has nothing left to do.
func done(r UnitResult) bool { return r.Err == jute.OK || r.Err == jute.ErrNoNode }
