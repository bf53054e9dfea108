package server

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"barnabas/internal/record"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *harness) resting() int {
	r := h.server.rests
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.conns)
}

func heartbeat() *kmsg.HeartbeatRequest {
	r := kmsg.NewPtrHeartbeatRequest()
	r.Group, r.MemberID = "g", "m"
	return r
}

// restful returns a client whose connection rests.
func (h *harness) restful() *client {
	h.tb.Helper()
	c, before := h.dial(), h.resting()
	for range calmEnough {
		do[*kmsg.HeartbeatResponse](c, heartbeat(), 4)
	}
	eventually(h.tb, "the connection rests", func() bool { return h.resting() == before+1 })
	return c
}

func TestConnectionRestsAndWakes(t *testing.T) {
	h := start(t)
	h.topic("t", 1)
	c := h.restful()
	for range 10 {
		do[*kmsg.HeartbeatResponse](c, heartbeat(), 3)
	}
	if h.resting() != 1 {
		t.Fatal("heartbeats woke it")
	}
	other := h.restful()

	wakes := map[string]func(){
		"another request": func() { do[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), 9) },
		"two requests at once": func() {
			c.write(append(encode(heartbeat(), 4, 7), encode(heartbeat(), 4, 8)...))
			for want := int32(7); want < 9; want++ {
				if got, _ := c.next(); got != want {
					t.Errorf("answer to %d, want %d", got, want)
				}
			}
		},
		"a request in pieces": func() {
			b := encode(heartbeat(), 4, 9)
			for i := range b {
				c.write(b[i : i+1])
				if i == 2 {
					eventually(t, "it wakes", func() bool { return h.resting() == 1 })
				}
			}
			if got, _ := c.next(); got != 9 {
				t.Errorf("answer to %d", got)
			}
		},
		"a request that is large": func() {
			c.produce(9, "t", 0, 1, records(100, 1000))
		},
	}
	for what, wake := range wakes {
		t.Run(what, func(t *testing.T) {
			wake()
			for range calmAtMost {
				if do[*kmsg.HeartbeatResponse](c, heartbeat(), 4); h.resting() == 2 {
					return
				}
			}
			t.Error("it does not rest again")
		})
	}
	do[*kmsg.HeartbeatResponse](other, heartbeat(), 4)
}

func TestRestingConnectionsEnd(t *testing.T) {
	ends := map[string]func(h *harness, c *client){
		"the client goes": func(_ *harness, c *client) { c.nc.Close() },
		"the client sends no request": func(_ *harness, c *client) {
			c.write([]byte("GET / HTTP/1.1\r\n\r\n"))
			if !c.closed() {
				t.Error("it was answered")
			}
		},
		"it is idle": func(h *harness, c *client) {
			h.server.SetLimits(Limits{MaxIdle: 20 * time.Millisecond})
			if !c.closed() {
				t.Error("something came")
			}
		},
		"it makes room": func(h *harness, c *client) {
			h.server.closeIdlest(nil)
			if !c.closed() {
				t.Error("something came")
			}
		},
		"the server stops": func(h *harness, c *client) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := h.server.Close(ctx); err != nil {
				t.Error(err)
			}
			if !c.closed() {
				t.Error("something came")
			}
		},
	}
	for what, end := range ends {
		t.Run(what, func(t *testing.T) {
			h := start(t)
			c := h.restful()
			end(h, c)
			eventually(t, "the connection is gone", func() bool { return h.server.Connections() == 0 && h.resting() == 0 })
			if what == "the client sends no request" && !bytes.Contains([]byte(h.log.String()), []byte("looks like HTTP")) {
				t.Errorf("log: %s", h.log)
			}
		})
	}
}

// TestRestingConnectionIsAnsweredLater has requests wait while their connection
// rests, which others answer.
func TestRestingConnectionIsAnsweredLater(t *testing.T) {
	h := start(t, allBrief)
	h.topic("t", 1)
	c, producer := h.dial(), h.dial()
	for i := range int64(200) {
		for range calmEnough {
			do[*kmsg.HeartbeatResponse](c, heartbeat(), 4)
		}
		f := fetchRequest("t", [16]byte{}, 0, i)
		f.MaxWaitMillis = 30_000
		first := c.send(f, 12)
		second := c.send(heartbeat(), 4) // behind it: answered after it
		producer.produce(9, "t", 0, 1, set(record.None, fmt.Sprint(i)))
		for _, want := range []int32{first, second} {
			got, b := c.next()
			if got != want {
				t.Fatalf("answer to %d, want %d", got, want)
			}
			if want == first {
				r := decode(t, f, 12, b).(*kmsg.FetchResponse)
				equal(t, "record", fmt.Sprint(values(t, r.Topics[0].Partitions[0].RecordBatches)), fmt.Sprintf("[%d:%d]", i, i))
			}
		}
	}
}

// TestRestingConnectionThatDoesNotRead is woken when its socket takes no more,
// and gets every answer in the end.
func TestRestingConnectionThatDoesNotRead(t *testing.T) {
	h := start(t, allBrief, func(o *Options) { o.SendBuffer = 4096 })
	h.topic("t", 1)
	c := h.dial()
	c.produce(9, "t", 0, 1, records(100, 1000))
	for range calmEnough {
		do[*kmsg.HeartbeatResponse](c, heartbeat(), 4)
	}
	const n = 100
	go func() {
		for i := range int32(n) {
			c.nc.Write(encode(fetchRequest("t", [16]byte{}, 0, 0), 12, 1000+i))
		}
	}()
	eventually(t, "it wakes", func() bool { return h.resting() == 0 })
	for i := range int32(n) {
		got, b := c.next()
		if got != 1000+i {
			t.Fatalf("answer to %d, want %d", got, 1000+i)
		}
		r := decode(t, fetchRequest("t", [16]byte{}, 0, 0), 12, b).(*kmsg.FetchResponse)
		if len(r.Topics[0].Partitions[0].RecordBatches) < 100*1000 {
			t.Fatalf("answer %d has %d bytes", i, len(b))
		}
	}
}
