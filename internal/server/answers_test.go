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

	"github.com/twmb/franz-go/pkg/kmsg"
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

// TestAnswersThatWaitTheirTurnCount has answers pile up in memory behind one
// that is not out: reading stops once they are many bytes.
func TestAnswersThatWaitTheirTurnCount(t *testing.T) {
	for what, begin := range map[string]func(c *client, h *harness){
		"the first waits": func(*client, *harness) {},
		"the first is being written": func(c *client, h *harness) {
			h.dial().produceLong()
			var size [4]byte
			if _, err := io.ReadFull(c.nc, size[:]); err != nil {
				t.Fatal(err)
			}
			c.nc = &again{Conn: c.nc, b: size[:]}
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := start(t)
			h.topic("t", 1)
			h.manyPartitions(20_000)
			c := h.dial()
			conn := h.only()
			c.longWait(h)
			begin(c, h)
			const n = 30
			for range n {
				c.send(metadataV1(), 1)
			}
			eventually(t, "reading stops", func() bool {
				conn.mu.Lock()
				defer conn.mu.Unlock()
				return conn.mu.bytes >= maxUnansweredBytes && conn.mu.n < n/2
			})
			if what == "the first waits" {
				h.dial().produceLong()
			}
			for want := range int32(n + 1) {
				if got, _ := c.next(); got != want+1 {
					t.Fatalf("answer to %d, want %d", got, want+1)
				}
			}
			eventually(t, "nothing is counted any more", func() bool {
				conn.mu.Lock()
				defer conn.mu.Unlock()
				return conn.mu.bytes == 0 && conn.mu.n == 0
			})
		})
	}
}

// again gives bytes that were read once more.
type again struct {
	net.Conn
	b []byte
}

func (a *again) Read(p []byte) (int, error) {
	if len(a.b) == 0 {
		return a.Conn.Read(p)
	}
	n := copy(p, a.b)
	a.b = a.b[n:]
	return n, nil
}

func metadataV1() *kmsg.MetadataRequest {
	r := kmsg.NewPtrMetadataRequest()
	r.Topics = nil // all
	return r
}

// manyPartitions lets Metadata tell of partitions that no log is behind.
func (h *harness) manyPartitions(n int32) {
	u := kmsg.NewPtrUpdateMetadataRequest()
	u.Version, u.ControllerEpoch, u.BrokerEpoch, u.ControllerID = 8, 1, -1, 1
	u.LiveBrokers = []kmsg.UpdateMetadataRequestLiveBroker{{ID: 1, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{
		{Host: "127.0.0.1", Port: 1, ListenerName: "PLAINTEXT"}}}}
	t := kmsg.UpdateMetadataRequestTopicState{Topic: "many", TopicID: wire.NewUUID()}
	for i := range n {
		t.PartitionStates = append(t.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{
			Partition: i, ControllerEpoch: 1, Leader: 1, ISR: []int32{1}, Replicas: []int32{1}})
	}
	u.TopicStates = append(u.TopicStates, t)
	h.broker.Metadata.Update(u)
}
