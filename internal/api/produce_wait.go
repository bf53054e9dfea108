package api

import (
	"sync"
	"time"

	"barnabas/internal/replica"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// pendingAck is a partition of an acks=all request whose records are appended
// and not yet replicated. Its error code in the answer is written when the wait
// ends; nothing else of the answer depends on it.
type pendingAck struct {
	part   *replica.Partition
	offset int64 // exclusive
	at     int   // where the code lies in the answer
	ended  bool
}

// delayedProduce is a request that waits for replication (Kafka's
// DelayedProduce).
type delayedProduce struct {
	b     *Broker
	q     *Request
	start int // of the answer's body
	timer *time.Timer
	mu    struct {
		sync.Mutex
		waits []pendingAck
		left  int
		over  bool
		moved bool // a partition has another leader
	}
}

// awaitAcks parks a request until each wait has ended or the client's timeout
// has passed, which is REQUEST_TIMED_OUT for the partitions that are left.
func (p *producing) awaitAcks() {
	q, waits, timeout := p.q, p.waits, time.Duration(p.timeout)*time.Millisecond
	d := &delayedProduce{b: p.b, q: q, start: p.start}
	d.mu.waits, d.mu.left = waits, len(waits)+1 // one for this function
	q.Cancel = d.expire
	q.ReleaseFrame()
	d.timer = time.AfterFunc(max(timeout, 0), d.expire)
	for i := range waits {
		if code, done := waits[i].part.Await(waits[i].offset, d, i); done {
			d.Acked(i, code)
		}
	}
	d.mu.Lock()
	if d.mu.left--; d.mu.over { // expired already: leave nothing entered
		d.mu.Unlock()
		for i := range waits {
			waits[i].part.CancelAwait(d)
		}
		return
	}
	d.endIfOverLocked()
}

// Acked is called when one wait has ended.
func (d *delayedProduce) Acked(i int, code wire.Code) {
	d.mu.Lock()
	if w := &d.mu.waits[i]; !w.ended && !d.mu.over {
		w.ended = true
		putCode(d.q.W.B[w.at:], codeFor(d.q.Version, code))
		d.mu.left--
		d.mu.moved = d.mu.moved || code == wire.NotLeaderOrFollower
	}
	d.endIfOverLocked()
}

// endIfOverLocked answers when nothing is left, and unlocks.
func (d *delayedProduce) endIfOverLocked() {
	end, moved := d.mu.left == 0 && !d.mu.over, d.mu.moved
	d.mu.over = d.mu.over || end
	d.mu.Unlock()
	if end {
		d.timer.Stop()
		d.done(moved)
	}
}

// done answers. The leaders that moved meanwhile are not in the answer yet.
func (d *delayedProduce) done(moved bool) {
	if moved && d.q.Version >= 10 {
		d.q.Later(d.nameLeaders)
		return
	}
	d.q.Done()
}

// nameLeaders puts the new leaders into the answer (KIP-951).
func (d *delayedProduce) nameLeaders(q *Request) {
	r := kmsg.NewPtrProduceResponse()
	r.SetVersion(q.Version)
	if err := r.ReadFrom(q.W.B[d.start:]); err != nil {
		q.Fail(err) // never: it is our own answer
		return
	}
	var endpoints leaderEndpoints
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			if p := &r.Topics[i].Partitions[j]; wire.Code(p.ErrorCode) == wire.NotLeaderOrFollower {
				p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = d.b.currentLeader(r.Topics[i].Topic, p.Partition)
				endpoints.add(d.b, q.Conn.Listener, p.CurrentLeader.LeaderID)
			}
		}
	}
	r.Brokers = nil
	for _, n := range endpoints.nodes {
		r.Brokers = append(r.Brokers, kmsg.ProduceResponseBroker{NodeID: n.id, Host: n.at.Host, Port: n.at.Port, Rack: n.rack})
	}
	q.W.B = r.AppendTo(q.W.B[:d.start])
	q.Done()
}

// expire ends all waits that are left.
func (d *delayedProduce) expire() {
	d.mu.Lock()
	if d.mu.over {
		d.mu.Unlock()
		return
	}
	d.mu.over = true
	moved := d.mu.moved
	var parts []*replica.Partition
	for i := range d.mu.waits {
		if w := &d.mu.waits[i]; !w.ended {
			putCode(d.q.W.B[w.at:], wire.RequestTimedOut)
			parts = append(parts, w.part)
		}
	}
	d.mu.Unlock()
	for _, p := range parts {
		p.CancelAwait(d)
	}
	d.done(moved)
}
