package server

import (
	"encoding/binary"
	"errors"
	"time"

	"barnabas/internal/api"
)

var (
	errAnswerTooLarge = errors.New("answer is larger than a frame can be")
	errClosedByAnswer = errors.New("request closes its connection")
)

// push enters a request at the end of the queue.
func (c *conn) push(r *request, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.inside, r.counted = true, bytes
	if c.mu.last == nil {
		c.mu.first = r
	} else {
		c.mu.last.next = r
	}
	c.mu.last = r
	c.mu.n++
	c.mu.bytes += bytes
}

// settle follows a handler's return: what can be answered now is.
func (c *conn) settle(r *request) error {
	c.mu.Lock()
	r.inside = false
	ready := c.mu.turn == nobody && c.readyLocked()
	if ready {
		c.mu.turn = reader
	} else if r.done { // it stays in memory for others to write
		r.counted += len(r.W.B)
		c.mu.bytes += len(r.W.B)
	}
	c.mu.Unlock()
	if ready {
		c.turnOver(reader, true)
	}
	return nil
}

// readyLocked tells whether whoever writes has something to do.
func (c *conn) readyLocked() bool {
	r := c.mu.first
	return r != nil && r.done && !r.inside || len(c.mu.tasks) > 0
}

// finished takes a request that its handler has ended, from any goroutine.
func (c *conn) finished(r *request) {
	c.mu.Lock()
	if r.done { // ended twice: the first end counts
		c.mu.Unlock()
		return
	}
	r.done = true
	if !r.inside {
		r.counted += len(r.W.B)
		c.mu.bytes += len(r.W.B)
	}
	c.passTurnLocked()
}

// later takes the continuation of a wait that has ended. The caller may hold
// locks of a partition.
func (c *conn) later(r *request, f func(*api.Request)) {
	c.mu.Lock()
	c.mu.tasks = append(c.mu.tasks, task{r, f})
	if r.inside { // its handler returns soon: settle goes on with it
		c.mu.Unlock()
		return
	}
	c.passTurnLocked()
}

// passTurnLocked gives the turn to the writing goroutine if there is something
// to do and nobody has it, and unlocks. A connection that is closing has no
// such goroutine any more: then a short-lived one tidies up, since the caller
// may hold locks that a continuation needs.
func (c *conn) passTurnLocked() {
	if c.mu.turn != nobody || !c.readyLocked() {
		c.mu.Unlock()
		return
	}
	if c.mu.resting {
		c.mu.turn = writer
		c.mu.Unlock()
		c.rest.watcher.Post(c.rest.write) // refused only once all were woken, who took the turn
		return
	}
	if c.mu.closing {
		c.mu.Unlock()
		go c.turnOver(nobody, false)
		return
	}
	c.mu.turn = writer
	start := !c.mu.writer
	c.mu.writer = true
	c.mu.Unlock()
	if start {
		c.s.conns.Go(c.writeLoop)
	}
	poke(c.wake)
}

// writeLoop is the writing goroutine: it works when it is given the turn.
func (c *conn) writeLoop() {
	for range c.wake {
		c.mu.Lock()
		mine, closing := c.mu.turn == writer, c.mu.closing
		c.mu.Unlock()
		if mine {
			c.turnOver(writer, true)
		} else if closing {
			return
		}
	}
}

// turnOver does all there is to do for the holder of the turn and gives it
// back. Without held the turn is taken first, if it is free.
func (c *conn) turnOver(who turn, held bool) {
	if !held {
		c.mu.Lock()
		if c.mu.turn != nobody || !c.readyLocked() {
			c.mu.Unlock()
			return
		}
		c.mu.turn = max(who, reader)
		c.mu.Unlock()
	}
	for {
		c.mu.Lock()
		if len(c.mu.tasks) > 0 {
			t := c.mu.tasks[0]
			c.mu.tasks[0] = task{}
			if c.mu.tasks = c.mu.tasks[1:]; len(c.mu.tasks) == 0 {
				c.mu.tasks = nil
			}
			c.mu.Unlock()
			c.runTask(t)
			continue
		}
		r := c.mu.first
		if r == nil || !r.done || r.inside {
			c.mu.turn = nobody
			closing := c.mu.closing
			c.mu.Unlock()
			poke(c.room) // who waits for room, or until the last answer is out
			if closing {
				poke(c.wake) // the writing goroutine may have missed its end meanwhile
			}
			return
		}
		if c.mu.first = r.next; c.mu.first == nil {
			c.mu.last = nil
		}
		full := c.mu.n >= maxUnanswered || c.mu.bytes >= maxUnansweredBytes
		c.mu.n--
		c.mu.bytes -= r.counted
		r.counted = 0
		closing := c.mu.closing
		c.mu.Unlock()
		c.answer(r, closing)
		if full {
			poke(c.room)
		}
	}
}

func (c *conn) runTask(t task) {
	defer func() {
		if p := recover(); p != nil {
			c.panicked(p, "wait", t.r)
		}
	}()
	t.f(&t.r.Request)
}

// answer puts a finished request's answer on the network and forgets the
// request. It is called by the holder of the turn.
func (c *conn) answer(r *request, closing bool) {
	var err error
	if !closing {
		err = c.put(r)
	}
	if !r.lost {
		r.recycle()
	}
	if err == nil {
		return
	}
	c.mu.Lock()
	c.mu.closing = true
	c.mu.Unlock()
	c.nc.Close() // the reading goroutine sees it and ends the connection
	poke(c.room)
}

func (c *conn) put(r *request) error {
	switch r.Outcome {
	case api.NoAnswer:
		return nil
	case api.CloseConn:
		c.giveReason(r)
		return errClosedByAnswer
	case api.LastAnswer:
		if err := c.send(r); err != nil {
			return err
		}
		c.giveReason(r)
		return errClosedByAnswer
	default:
		return c.send(r)
	}
}

// giveReason logs why a request closes its connection.
func (c *conn) giveReason(r *request) {
	if r.Reason != nil {
		c.s.complaints.add(c.info.RemoteHost, time.Now(), "closing a connection", "client", c.info.RemoteAddr,
			"listener", c.info.Listener, "client_id", r.ClientID, "err", r.Reason)
	}
}

func (c *conn) send(r *request) error {
	n := len(r.W.B) - 4
	for i := range r.Inserts {
		n += r.Inserts[i].Slice.Len
	}
	if n > 1<<31-1 {
		return errAnswerTooLarge
	}
	binary.BigEndian.PutUint32(r.W.B, uint32(n))
	return c.out.send(r.W.B, r.Inserts)
}
