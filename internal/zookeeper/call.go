package zookeeper

import (
	"context"
	"errors"

	"barnabas/internal/jute"
)

// Bounds of what Go takes before it waits (invariant 8).
const (
	maxUnsent  = 4 << 20
	maxPending = 16384
)

var (
	// ErrClosed is the error of calls on a closed client, and of calls that
	// Close cut off.
	ErrClosed = errors.New("zookeeper: client closed")
	// ErrRequestTooLarge is the error of a call whose request would exceed
	// Options.MaxRequest; a server would answer it by dropping the connection.
	ErrRequestTooLarge = errors.New("zookeeper: request exceeds jute.maxbuffer")
)

// Call is an operation on its way.
type Call struct {
	code   jute.Op
	xid    int32
	watch  bool
	stays  jute.WatchMode // of an AddWatchOp
	which  jute.WatchType // of a RemoveWatchesOp
	raw    bool
	chroot bool     // of our own, for the chroot
	path   string   // server path, for the watch or the chroot
	paths  []string // of a multi's ops, for its error
	done   chan struct{}
	result Result
	err    error

	response jute.Record // of a RawOp
}

// Done is closed when the result is there.
func (call *Call) Done() <-chan struct{} { return call.done }

// Wait returns the result, or ctx's error if that ends first; the operation is
// then still under way.
func (call *Call) Wait(ctx context.Context) (*Result, error) {
	select {
	case <-call.done:
		return &call.result, call.err
	default:
	}
	select {
	case <-call.done:
		return &call.result, call.err
	case <-ctx.Done():
		return &Result{}, ctx.Err()
	}
}

func (call *Call) finish(err error) {
	call.err = err
	close(call.done)
}

// Go sends op after all earlier ones and returns at once (save invariant 8).
// The order of Go calls in one goroutine is the order on the wire.
func (c *Client) Go(op Op) *Call {
	call := newCall(&op)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waitForRoomLocked()
	c.queueLocked(call, &op)
	return call
}

// GoAll is Go for several ops that must travel on one connection, as
// neighbours. It never splits them, so they may exceed the bound on what is
// unsent.
func (c *Client) GoAll(ops []Op) []*Call {
	calls := make([]*Call, len(ops))
	if len(ops) == 0 {
		return calls
	}
	for i := range ops {
		calls[i] = newCall(&ops[i])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waitForRoomLocked()
	for i, call := range calls {
		c.queueLocked(call, &ops[i])
	}
	return calls
}

func newCall(op *Op) *Call {
	call := &Call{code: op.code, watch: op.watch, stays: op.stays, which: op.which, raw: op.raw, response: op.response, done: make(chan struct{})}
	if op.code == jute.OpMulti {
		call.paths = make([]string, len(op.ops))
		for i := range op.ops {
			call.paths[i] = op.ops[i].path
		}
	}
	return call
}

func (c *Client) waitForRoomLocked() {
	for c.mu.state == connected && !c.mu.closing && (len(c.mu.out) >= maxUnsent || c.mu.pending.len() >= maxPending) {
		c.mu.waiting++
		c.room.Wait()
		c.mu.waiting--
	}
}

// queueLocked encodes the request behind those that wait for the writer.
func (c *Client) queueLocked(call *Call, op *Op) {
	if err := c.refusalLocked(); err != nil {
		call.finish(err)
		return
	}
	e := jute.Encoder{B: c.mu.out}
	before := len(e.B)
	start := e.BeginFrame()
	xid := c.nextXidLocked()
	(&jute.RequestHeader{Xid: xid, Op: op.code}).Encode(&e)
	path, err := c.encode(&e, op)
	if err == nil && len(e.B)-start > c.options.MaxRequest {
		err = ErrRequestTooLarge
	}
	if err != nil {
		c.mu.out = e.B[:before]
		call.finish(err)
		return
	}
	e.EndFrame(start)
	c.mu.out = e.B
	if call.watch || call.code == jute.OpAddWatch || call.code == jute.OpRemoveWatches {
		call.path = path
	}
	call.xid = xid
	c.mu.pending.push(call)
	c.wakeWriterLocked()
}

// refusalLocked is why a call can't be taken now, or nil.
func (c *Client) refusalLocked() error {
	switch {
	case c.mu.closing:
		return ErrClosed
	case c.mu.state == connected:
		return nil
	case c.mu.state == expired:
		return jute.ErrSessionExpired
	case c.mu.state == authFailed:
		return jute.ErrAuthFailed
	}
	return jute.ErrConnectionLoss
}

func (c *Client) nextXidLocked() int32 {
	c.mu.xid++
	if c.mu.xid <= 0 {
		c.mu.xid = 1 // negative ones have a meaning of their own
	}
	return c.mu.xid
}

// failAllLocked ends every call without a reply, in order.
func (c *Client) failAllLocked(err error) {
	for call := c.mu.pending.pop(); call != nil; call = c.mu.pending.pop() {
		call.finish(err)
	}
	c.mu.out = c.mu.out[:0]
	c.room.Broadcast()
}

// callQueue is a FIFO.
type callQueue struct {
	calls []*Call
	head  int
}

func (q *callQueue) len() int { return len(q.calls) - q.head }

func (q *callQueue) push(call *Call) {
	if q.head > 64 && q.head*2 > len(q.calls) {
		n := copy(q.calls, q.calls[q.head:])
		clear(q.calls[n:])
		q.calls, q.head = q.calls[:n], 0
	}
	q.calls = append(q.calls, call)
}

func (q *callQueue) first() *Call {
	if q.len() == 0 {
		return nil
	}
	return q.calls[q.head]
}

func (q *callQueue) pop() *Call {
	if q.len() == 0 {
		return nil
	}
	call := q.calls[q.head]
	q.calls[q.head] = nil
	if q.head++; q.head == len(q.calls) {
		q.calls, q.head = q.calls[:0], 0
	}
	return call
}
