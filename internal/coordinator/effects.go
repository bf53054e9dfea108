package coordinator

import (
	"time"

	"barnabas/internal/wire"
)

// A Caller waits for the answer to one request. Its methods are called once
// altogether, from any goroutine; they must be quick and must not block.
type Caller interface {
	// Answer gives the response that the machine made.
	Answer(response any)
	// Fail says why there is none: COORDINATOR_LOAD_IN_PROGRESS,
	// COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, or what became of the append
	// (see Code); REQUEST_TIMED_OUT when the records are there, but were not
	// replicated in time.
	Fail(code wire.Code)
}

// Timer names something that is due at a time. A machine has at most one timer
// of each name.
type Timer struct {
	Kind uint8
	A, B string
}

// Record is a record of an internal topic. A nil Value deletes the key.
type Record struct{ Key, Value []byte }

// Producer makes the records of an event part of a producer's transaction.
type Producer struct {
	ID    int64
	Epoch int16
}

// Marker is the end of a producer's transaction in this partition.
type Marker struct {
	Producer
	Commit           bool
	CoordinatorEpoch int32
}

// Entry is a record as it is replayed.
type Entry struct {
	// Position grows from record to record of the partition. It is the offset
	// when the partition is loaded.
	Position int64
	Time     int64 // ms since 1970
	Record
	Transactional bool
	Producer      Producer // if Transactional
}

// Reply is an answer on its way.
type Reply struct {
	To       Caller // nil: Response is a command
	Response any
	Now      bool // does not wait until what came before is committed
}

// TimerChange sets a timer, or stops it when At is zero.
type TimerChange struct {
	Timer
	At time.Time
}

// Effects is what one event does besides changing the machine: its owner uses
// it again for the next event. Records of a transaction, a marker and plain
// records never come from the same event.
type Effects struct {
	Records  []Record
	Producer *Producer // the records belong to a transaction
	Verified int64     // storage.AppendRequest's, of a transaction's records
	Marker   *Marker   // a control record
	Replies  []Reply
	Timers   []TimerChange
}

// Append adds a record.
func (e *Effects) Append(key, value []byte) {
	e.Records = append(e.Records, Record{key, value})
}

// Reply answers a request when all that the machine has decided so far is
// committed.
func (e *Effects) Reply(to Caller, response any) {
	e.Replies = append(e.Replies, Reply{To: to, Response: response})
}

// ReplyNow answers a request at once: it tells of nothing that may be lost.
func (e *Effects) ReplyNow(to Caller, response any) {
	e.Replies = append(e.Replies, Reply{To: to, Response: response, Now: true})
}

// Perform gives Options.Perform a command when all that the machine has decided
// so far is committed. If that fails, the command is dropped with the machine.
func (e *Effects) Perform(command any) {
	e.Replies = append(e.Replies, Reply{Response: command})
}

// Set sets a timer, in place of one of the same name.
func (e *Effects) Set(t Timer, at time.Time) {
	e.Timers = append(e.Timers, TimerChange{t, at})
}

// Stop stops a timer, if it is set.
func (e *Effects) Stop(t Timer) { e.Timers = append(e.Timers, TimerChange{Timer: t}) }

// Reset empties e and keeps its memory.
func (e *Effects) Reset() {
	clear(e.Records)
	clear(e.Replies)
	clear(e.Timers)
	*e = Effects{Records: e.Records[:0], Replies: e.Replies[:0], Timers: e.Timers[:0]}
}

// Machine is a coordinator's state of one partition and its decisions: no I/O,
// clock, lock or goroutine. Only one method runs at a time.
type Machine interface {
	// Replay applies a record: when it is made, or when the partition is loaded.
	// An error says that the record is foreign; it is skipped.
	Replay(e Entry) error
	// End applies a marker.
	End(m Marker, position int64)
	// Loaded is called when all records of the partition have been replayed.
	Loaded(now time.Time, out *Effects)
	// Expired is called when a timer that was set has run out.
	Expired(t Timer, now time.Time, out *Effects)
}
