package server

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/wire"
)

const longAnswer = 4 << 20 // more than the sockets take before the client reads

// longWait sends a fetch that waits until produceLong has been called.
func (c *client) longWait(h *harness) {
	c.tb.Helper()
	r := fetchRequest("t", wire.UUID{}, 0, 0)
	r.MaxWaitMillis, r.MinBytes, r.MaxBytes = 60_000, longAnswer, 2*longAnswer
	r.Topics[0].Partitions[0].PartitionMaxBytes = 2 * longAnswer
	c.send(r, 11)
	eventually(c.tb, "the fetch waits", func() bool { return subscribers(h, "t", 0) == 1 })
}

func (c *client) produceLong() {
	c.tb.Helper()
	for range longAnswer/900_000 + 1 {
		c.produce(9, "t", 0, 1, set(record.None, strings.Repeat("x", 900_000)))
	}
}

// only returns the one connection that there is.
func (h *harness) only() *conn {
	h.tb.Helper()
	eventually(h.tb, "one connection", func() bool { return h.server.Connections() == 1 })
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	for c := range h.server.mu.conns {
		return c
	}
	return nil
}

// TestAnAnswerThatIsBeingWrittenArrivesWhole ends a connection while the last
// answer of it, which had to wait, is on its way.
func TestAnAnswerThatIsBeingWrittenArrivesWhole(t *testing.T) {
	ends := map[string]func(h *harness, c *client){
		"the client sends nothing more": func(_ *harness, c *client) {
			if err := c.nc.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		},
		"the client sends junk": func(h *harness, c *client) {
			c.write([]byte{0xff, 0xff, 0xff, 0xff})
			eventually(t, "the junk is read", func() bool { return strings.Contains(h.log.String(), errFrameSize.Error()) })
		},
		"the server stops": func(h *harness, _ *client) {
			closed := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				closed <- h.server.Close(ctx)
			}()
			t.Cleanup(func() {
				if err := <-closed; err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			eventually(t, "it stops", h.server.stopping)
		},
	}
	for what, end := range ends {
		t.Run(what, func(t *testing.T) {
			h := start(t)
			h.topic("t", 1)
			c := h.dial()
			c.longWait(h)
			h.dial().produceLong()
			var size [4]byte
			if _, err := io.ReadFull(c.nc, size[:]); err != nil {
				t.Fatal(err)
			}
			end(h, c)
			want := int64(binary.BigEndian.Uint32(size[:]))
			if n, err := io.Copy(io.Discard, c.nc); err != nil || n != want {
				t.Fatalf("%d bytes of %d: %v", n, want, err)
			}
		})
	}
}

func TestAConnectionThatIsBeingWrittenToIsNotIdle(t *testing.T) {
	h := start(t)
	h.dial()
	c := h.only()
	c.active.Store(0)
	judge := func(who turn) error {
		in := frameReader{c: c}
		c.mu.Lock()
		before := c.mu.turn
		c.mu.turn = who
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.mu.turn = before
		}()
		return in.judge(os.ErrDeadlineExceeded, false)
	}
	if err := judge(writer); err != nil {
		t.Errorf("while an answer is written: %v", err)
	}
	if err := judge(nobody); err != errIdle {
		t.Errorf("while nothing is: %v", err)
	}
}
