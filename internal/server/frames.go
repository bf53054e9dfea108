package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"barnabas/internal/api"
)

const (
	readAhead = 4 << 10
	// firstGrowth is what a frame of a connection that has proved nothing yet
	// may have before its bytes arrive.
	firstGrowth = 64 << 10
	// piece must arrive within Options.Stall once a frame has begun, and within
	// a few of its steps while others wait for the memory that it holds.
	piece = 4 << 10
	steps = 15
	// Of a frame with more than this to come the reader is woken once it is all
	// there, or as much as maxMark: each wakeup costs more than copying a piece.
	minMark = 32 << 10
	maxMark = 1 << 20
)

var (
	errIdle      = errors.New("connection was idle for connections.max.idle.ms")
	errFrameSize = errors.New("invalid frame size")
	errStalled   = errors.New("request stopped in the middle")
	errSqueezed  = errors.New("request stopped in the middle, while others wait for its memory (queued.max.request.bytes)")
)

// frameReader cuts a connection's bytes into frames.
type frameReader struct {
	c       *conn
	buf     []byte // readAhead bytes; nil until something is read
	r, w    int
	filled  int       // the largest frame that came whole: memory that the client is trusted with
	armed   time.Time // when the deadline for idleness was set
	stalled bool      // the deadline in force is that of a frame under way
	frame   frame     // the one that is being read
	mark    lowMark
}

// next reads a frame into in.frame, with its memory taken from the budget.
func (in *frameReader) next() (err error) {
	f := &in.frame
	if err = in.fill(4); err != nil {
		return err
	}
	size := int(int32(binary.BigEndian.Uint32(in.buf[in.r:])))
	limit, bare := in.limit()
	if size < 0 || size == 0 && !bare || int64(size) > limit {
		return fmt.Errorf("%w: %d%s", errFrameSize, size, hint(uint32(size)))
	}
	if bare {
		f.api = api.SASLToken
	} else if err = in.begin(f, size); err != nil {
		return err
	}
	f.size = size
	if err = in.body(f); err != nil {
		putBuffer(f.buf)
		in.c.s.budget.release(&f.claim)
		*f = frame{}
		return err
	}
	in.filled = max(in.filled, size)
	return nil
}

// limit returns how large the next frame may be, and whether it is a bare token
// of a SASL mechanism. Who has not authenticated gets little.
func (in *frameReader) limit() (limit int64, bare bool) {
	if s := in.c.info.SASL; s != nil && !s.Authenticated() {
		return int64(s.MaxReceive()), s.Raw()
	}
	return in.c.s.maxRequest.Load(), false
}

// begin reads the start of a request's header and decides on the request.
func (in *frameReader) begin(f *frame, size int) (err error) {
	if err = in.fill(4 + min(size, 4)); err != nil {
		return err
	}
	if size < 4 {
		return fmt.Errorf("%w: %d", errFrameSize, size)
	}
	head := in.buf[in.r+4:]
	f.api, err = in.c.judge(int16(binary.BigEndian.Uint16(head)), int16(binary.BigEndian.Uint16(head[2:])), size)
	return err
}

// hint guesses what a length that is none really was.
func hint(size uint32) string {
	switch {
	case size>>16 == 0x1603: // handshake record, TLS 1.x
		return " (this looks like TLS; the listener is plaintext)"
	case size == 0x47455420 || size == 0x504f5354 || size == 0x48454144: // GET, POST, HEAD
		return " (this looks like HTTP)"
	}
	return ""
}

// fill makes the next n bytes available in buf; n is small. Before a frame
// has begun the wait is bounded by connections.max.idle.ms.
func (in *frameReader) fill(n int) error {
	if in.buf == nil {
		in.buf = make([]byte, readAhead)
	}
	for in.w-in.r < n {
		if in.r == in.w {
			in.r, in.w = 0, 0
		} else if len(in.buf)-in.r < n {
			in.w = copy(in.buf, in.buf[in.r:in.w])
			in.r = 0
		}
		begun := in.w > in.r
		if err := in.arm(begun); err != nil {
			return err
		}
		m, err := in.c.nc.Read(in.buf[in.w:])
		in.w += m
		if err = in.judge(err, begun); err != nil {
			return err
		}
	}
	return nil
}

// arm sets the deadline of a read. That of idleness is set anew only when it
// has moved by a sixteenth: setting it costs as much as a small request.
func (in *frameReader) arm(begun bool) error {
	now := time.Now()
	idle := time.Duration(in.c.s.maxIdle.Load())
	switch {
	case begun:
		in.c.nc.SetReadDeadline(now.Add(in.c.s.o.Stall))
		in.stalled = true
	case idle < 0:
		if in.stalled {
			in.c.nc.SetReadDeadline(time.Time{})
			in.stalled = false
		}
	case in.stalled || now.Sub(in.armed) > idle/16:
		in.c.nc.SetReadDeadline(now.Add(idle))
		in.armed, in.stalled = now, false
	}
	if !begun && in.c.s.stopping() { // Close may have set its deadline before ours
		return errAskedToStop
	}
	return nil
}

// judge decides what an error of Read means; nil goes on.
func (in *frameReader) judge(err error, begun bool) error {
	if err == nil || !isTimeout(err) {
		return err
	}
	if in.c.s.stopping() {
		return errAskedToStop
	}
	if begun {
		return errStalled
	}
	idle := time.Duration(in.c.s.maxIdle.Load())
	in.c.mu.Lock()
	waiting := in.c.mu.n > 0 || in.c.mu.turn != nobody
	in.c.mu.Unlock()
	if waiting || time.Since(time.Unix(0, in.c.active.Load())) < idle {
		in.armed = time.Time{} // not idle: begin again
		return nil
	}
	return errIdle
}

// body reads a frame's bytes into memory that grows as they arrive.
func (in *frameReader) body(f *frame) error {
	n := f.size
	if n > max(firstGrowth, in.filled) {
		n = firstGrowth
	}
	if !in.grow(f, n) {
		return errAskedToStop
	}
	have := copy(f.buf.b[:min(f.size, len(f.buf.b))], in.buf[in.r+4:in.w])
	in.r += 4 + have
	due, slow := 0, false // up to where bytes have to come since begun; the client missed a step
	var begun time.Time
	step := in.c.s.o.Stall / steps
	for have < f.size {
		if have == len(f.buf.b) {
			if !in.grow(f, min(f.size, 2*have)) {
				return errAskedToStop
			}
		}
		to := min(f.size, len(f.buf.b))
		in.mark.set(markFor(to-have, slow))
		if have >= due {
			begun, due = time.Now(), min(f.size, have+piece)
			in.c.nc.SetReadDeadline(begun.Add(step))
			in.stalled = true
		}
		m, err := in.c.nc.Read(f.buf.b[have:to])
		have += m
		if isTimeout(err) {
			switch high := in.mark.high(); {
			case in.c.s.stopping():
				return errStalled
			case high:
				slow = true // a piece may have come without a wakeup
			case time.Since(begun) >= in.c.s.o.Stall:
				return errStalled
			case in.c.s.budget.short():
				return errSqueezed
			}
			in.c.nc.SetReadDeadline(time.Now().Add(step))
			continue
		}
		if err != nil {
			return err
		}
	}
	in.mark.set(1)
	return nil
}

// markFor is how much must have come before it is read, of n bytes wanted.
func markFor(n int, slow bool) int {
	if n < minMark || slow {
		return 1
	}
	return min(n, maxMark)
}

// grow replaces the frame's buffer by one of at least n bytes, taken from the
// budget first; false when the server stops.
func (in *frameReader) grow(f *frame, n int) bool {
	had := 0
	if f.buf != nil {
		had = len(f.buf.b)
	}
	if !in.c.s.budget.take(&f.claim, int64(bufferSize(n)-had), in.c.s.stop) {
		return false
	}
	bigger := getBuffer(n)
	if f.buf != nil {
		copy(bigger.b, f.buf.b)
		putBuffer(f.buf)
	}
	f.buf = bigger
	return true
}
