package api

import (
	"sync/atomic"
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"
)

// Groups runs the groups of this broker.
type Groups = coordinator.Runtime[*groups.Machine]

// groupPartition returns the partition of __consumer_offsets that a group
// belongs to; ok is false while there is no such topic.
func (b *Broker) groupPartition(id string) (partition int32, ok bool) {
	topic := b.Metadata.Topic(OffsetsTopic)
	if topic == nil || len(topic.Partitions) == 0 {
		return 0, false
	}
	return coordinator.PartitionOf(id, len(topic.Partitions)), true
}

// question is one question to a coordinator; one of its functions is called once.
type question struct {
	answer func(response any)
	fail   func(code wire.Code)
}

func (c *question) Answer(response any) { c.answer(response) }
func (c *question) Fail(code wire.Code) { c.fail(code) }

// atGroup has a group's coordinator decide. Exactly one of c's functions is
// called, perhaps before atGroup returns.
func (b *Broker) atGroup(id string, c coordinator.Caller, decide func(m *groups.Machine, now time.Time, out *coordinator.Effects)) {
	partition, ok := b.groupPartition(id)
	if !ok {
		c.Fail(wire.NotCoordinator)
		return
	}
	b.Groups.Do(partition, c, decide)
}

// askGroup is atGroup for a request that asks about one group and may wait
// long: answer and fail run on the connection's writing goroutine and must end
// the request.
func (b *Broker) askGroup(q *Request, id string, answer func(response any), fail func(code wire.Code),
	decide func(m *groups.Machine, c coordinator.Caller, now time.Time, out *coordinator.Effects)) {
	var ended atomic.Bool
	once := func(f func()) {
		if ended.CompareAndSwap(false, true) {
			q.Later(func(*Request) { f() })
		}
	}
	c := &question{
		answer: func(r any) { once(func() { answer(r) }) },
		fail:   func(code wire.Code) { once(func() { fail(code) }) },
	}
	q.Cancel = func() {
		if partition, ok := b.groupPartition(id); ok {
			b.Groups.Forget(partition, c)
		}
		if ended.CompareAndSwap(false, true) {
			q.Fail(ErrClosing)
		}
	}
	b.atGroup(id, c, func(m *groups.Machine, now time.Time, out *coordinator.Effects) { decide(m, c, now, out) })
}

// gather waits for the answers to several questions; the last one to end has
// done run on the connection's writing goroutine.
type gather struct {
	q    *Request
	left atomic.Int32
	done func()
}

// gatherOf returns a gather of n questions. With none it is done at once.
func gatherOf(q *Request, n int, done func()) *gather {
	g := &gather{q: q, done: done}
	g.left.Store(int32(n))
	if n == 0 {
		done()
	}
	return g
}

// call returns one of the questions.
func (g *gather) call(answer func(response any), fail func(code wire.Code)) *question {
	end := func() {
		if g.left.Add(-1) == 0 {
			g.q.Later(func(*Request) { g.done() })
		}
	}
	return &question{
		answer: func(r any) { answer(r); end() },
		fail:   func(code wire.Code) { fail(late(code, wire.CoordinatorNotAvailable)); end() },
	}
}

// late is a coordinator's code with as in place of REQUEST_TIMED_OUT: what a
// client tries again after when records were not replicated in time.
func late(code, as wire.Code) wire.Code {
	if code == wire.RequestTimedOut {
		return as
	}
	return code
}

// clientHost is an address as Kafka keeps it of a group's member: Java's
// InetAddress.toString of an address without a name.
func clientHost(q *Request) string { return "/" + q.Conn.RemoteHost }

func cloneBytes(b []byte) []byte { return append([]byte{}, b...) }
