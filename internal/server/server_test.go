package server

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/record"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAnswersLeaveInOrderWhileAFetchWaits(t *testing.T) {
	h := start(t)
	c, producer := h.dial(), h.dial()
	h.topic("t", 1)
	h.topic("other", 1)
	var want []int32
	for i := range 100 { // more than may be unanswered
		if i == 20 || i == 50 {
			r := fetchRequest("t", wire.UUID{}, 0, 0)
			r.MaxWaitMillis = 20_000
			want = append(want, c.send(r, 11))
		}
		want = append(want, c.send(produceRequest("other", 0, -1, set(record.None, "v")), 9))
	}
	eventually(t, "requests behind the fetch are done", func() bool {
		p := h.broker.Replicas.Partition(wire.TopicPartition{Topic: "other"})
		return p.HighWatermark() == 20+maxUnanswered-2
	})
	producer.produce(9, "t", 0, 1, set(record.None, "wake"))
	for _, corr := range want {
		if got, _ := c.next(); got != corr {
			t.Fatalf("answer to %d, want %d", got, corr)
		}
	}
}

func TestAcksAllWaitsForTheISR(t *testing.T) {
	h := start(t)
	c := h.dial()
	id := wire.NewUUID()
	h.lead("t", id, 1, 0, []int32{1, 2}, []int32{1, 2})
	r := produceRequest("t", 0, -1, set(record.None, "a"))
	r.TimeoutMillis = 20_000
	c.send(r, 9)
	p := h.broker.Replicas.Partition(wire.TopicPartition{Topic: "t"})
	eventually(t, "appended", func() bool { return p.Log().EndOffset() == 1 })
	equal(t, "high watermark", p.HighWatermark(), 0)
	equal(t, "not to be read yet", len(h.dial().fetch(11, func() *kmsg.FetchRequest {
		f := fetchRequest("t", wire.UUID{}, 0, 0)
		f.MaxWaitMillis = 0
		return f
	}()).Topics[0].Partitions[0].RecordBatches), 0)
	h.lead("t", id, 1, 1, []int32{1, 2}, []int32{1}) // the follower drops out
	_, b := c.next()
	equal(t, "answer", decode(t, r, 9, b).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode, 0)

	h.lead("t", id, 1, 2, []int32{1, 2}, []int32{1, 2})
	r = produceRequest("t", 0, -1, set(record.None, "b"))
	r.TimeoutMillis = 50
	got := do[*kmsg.ProduceResponse](c, r, 9).Topics[0].Partitions[0]
	equal(t, "timeout", fmt.Sprint(got.ErrorCode, got.BaseOffset), "7 1")

	r.TimeoutMillis = 20_000
	c.send(r, 9)
	eventually(t, "appended", func() bool { return p.Log().EndOffset() == 3 })
	h.remove("t", 1)
	_, b = c.next()
	if code := decode(t, r, 9, b).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; code != 3 && code != 6 {
		t.Fatalf("deleted while waiting: %d", code)
	}
}

func TestTooFewInSyncReplicas(t *testing.T) {
	h := start(t)
	c := h.dial()
	id := wire.NewUUID()
	h.lead("t", id, 1, 0, []int32{1, 2, 3}, []int32{1})
	topic, err := h.config.Topic(map[string]string{"min.insync.replicas": "2"})
	if err != nil {
		t.Fatal(err)
	}
	h.broker.Replicas.SetTopicConfig("t", topic)
	equal(t, "acks=all", c.produce(9, "t", 0, -1, set(record.None, "a")).ErrorCode, 19)
	equal(t, "acks=1", c.produce(9, "t", 0, 1, set(record.None, "a")).ErrorCode, 0)
	equal(t, "high watermark", h.broker.Replicas.Partition(wire.TopicPartition{Topic: "t"}).HighWatermark(), 0)
}

// bad is what a client may send instead of a request.
func bad() map[string][]byte {
	u32 := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	head := func(key, version int16, rest ...byte) []byte {
		b := binary.BigEndian.AppendUint16(nil, uint16(key))
		b = binary.BigEndian.AppendUint16(b, uint16(version))
		b = append(b, 0, 0, 0, 1, 0xff, 0xff)
		b = append(b, rest...)
		return append(u32(uint32(len(b))), b...)
	}
	most := []byte{0x7f, 0xff, 0xff, 0xff}
	cat := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	produce := []byte{0, 1, 0, 0, 0, 100} // acks, timeout
	fetch := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 100, 0, 0, 0, 1}
	return map[string][]byte{
		"size 2 GiB":                   u32(1<<31 - 1),
		"size -1":                      u32(1<<32 - 1),
		"size 0":                       u32(0),
		"size over the limit":          u32(104857601),
		"3-byte frame":                 {0, 0, 0, 3, 0, 18, 0},
		"HTTP":                         []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"TLS":                          {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03},
		"unknown key":                  head(999, 0),
		"negative key":                 head(-1, 0),
		"metadata v99":                 head(3, 99),
		"negative version":             head(0, -1),
		"header cut in the client id":  {0, 0, 0, 10, 0, 0, 0, 9, 0, 0, 0, 1, 0, 99},
		"produce: topics 2^31-1":       head(0, 8, cat([]byte{0xff, 0xff}, produce, most)...),
		"produce: topics null":         head(0, 8, cat([]byte{0xff, 0xff}, produce, u32(1<<32-1))...),
		"produce: partitions 2^31-1":   head(0, 8, cat([]byte{0xff, 0xff}, produce, u32(1), []byte{0, 1, 't'}, most)...),
		"produce: records 2^31-1":      head(0, 8, cat([]byte{0xff, 0xff}, produce, u32(1), []byte{0, 1, 't'}, u32(1), u32(0), most)...),
		"produce: compact length":      head(0, 9, 0, 0, 0, 1, 0, 0, 0, 100, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"produce: name longer than it": head(0, 8, cat([]byte{0xff, 0xff}, produce, u32(1), []byte{0x7f, 0xff, 't'})...),
		"fetch: topics 2^31-1":         head(1, 0, cat(fetch, most)...),
		"fetch: partitions 2^31-1":     head(1, 0, cat(fetch, u32(1), []byte{0, 1, 't'}, most)...),
		"fetch: forgotten 2^31-1":      head(1, 7, cat(fetch, u32(1), []byte{0}, u32(0), u32(0), u32(0), most)...),
		"fetch: tags without end":      head(1, 12, cat([]byte{0}, fetch, u32(1), []byte{0}, u32(0), u32(0), []byte{1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f})...),
		"list offsets: topics 2^31-1":  head(2, 1, cat(u32(1<<32-1), most)...),
		"epochs: topics 2^31-1":        head(23, 0, most...),
	}
}

func TestBadInputClosesTheConnectionWithOneLine(t *testing.T) {
	for what, b := range bad() {
		t.Run(what, func(t *testing.T) {
			h := start(t)
			c := h.dial()
			c.write(b)
			if !c.closed() {
				t.Fatal("answered or left open")
			}
			eventually(t, "one line", func() bool { return strings.Count(h.log.String(), "closing a connection") == 1 })
			do[*kmsg.ApiVersionsResponse](h.dial(), kmsg.NewPtrApiVersionsRequest(), 0) // others are served
		})
	}
}

func TestABodyCutAnywhereClosesTheConnection(t *testing.T) {
	h := start(t)
	id := h.topic("t", 1)
	session := fetchRequest("t", id, 0, 0)
	session.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "t", TopicID: id, Partitions: []int32{1}}}
	epochs := kmsg.NewPtrOffsetForLeaderEpochRequest()
	epochs.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{}}}}
	requests := map[kmsg.Request][]int16{
		produceRequest("t", 0, 1, set(record.None, "abc")): {0, 3, 9, 11},
		session:             {0, 3, 7, 11, 12, 13, 17},
		listOffsets("t", 5): {0, 1, 4, 6, 9},
		epochs:              {0, 2, 3, 4},
	}
	for r, versions := range requests {
		for _, version := range versions {
			whole := encode(r, version, 1)
			for cut := len(whole) - 1; cut > 14; cut-- {
				b := append([]byte(nil), whole[:cut]...)
				binary.BigEndian.PutUint32(b, uint32(cut-4))
				nc, err := net.Dial("tcp", h.addr)
				if err != nil {
					t.Fatal(err)
				}
				c := &client{tb: t, nc: nc}
				c.write(b)
				if !c.closed() {
					t.Fatalf("%T v%d cut at %d of %d: answered", r, version, cut, len(whole))
				}
				nc.Close()
			}
		}
	}
	p := h.broker.Replicas.Partition(wire.TopicPartition{Topic: "t"})
	equal(t, "nothing was appended", p.Log().EndOffset(), 0)
}

func TestRandomBytesNeverStopTheServer(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	h := start(t)
	h.topic("t", 1)
	seeds := [][]byte{
		encode(produceRequest("t", 0, 1, set(record.Gzip, "abc", "def")), 9, 1),
		encode(fetchRequest("t", wire.UUID{}, 0, 0), 12, 1),
		encode(listOffsets("t", -1), 6, 1),
		encode(kmsg.NewPtrApiVersionsRequest(), 3, 1),
	}
	var served []*api.API
	for _, b := range seeds {
		served = append(served, api.Lookup(int16(binary.BigEndian.Uint16(b[4:]))))
	}
	for range 600 {
		nc, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		nc.SetDeadline(time.Now().Add(20 * time.Second))
		b := append([]byte(nil), seeds[rnd.IntN(len(seeds))]...)
		if rnd.IntN(4) == 0 {
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
		}
		for range 1 + rnd.IntN(4) {
			b[4+rnd.IntN(len(b)-4)] = byte(rnd.Uint32())
		}
		if a := api.Lookup(int16(binary.BigEndian.Uint16(b[4:]))); a != nil && !slices.Contains(served, a) {
			b[4], b[5] = 0xff, 0xff // a request that needs what this broker is made without
		}
		nc.Write(b)
		nc.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, nc) // until the server closes
		nc.Close()
	}
	do[*kmsg.ApiVersionsResponse](h.dial(), kmsg.NewPtrApiVersionsRequest(), 0)
	if strings.Contains(h.log.String(), "panic") {
		t.Fatalf("panicked:\n%s", h.log.String())
	}
}

func TestMemoryFollowsWhatArrivesNotWhatIsClaimed(t *testing.T) {
	h := start(t)
	h.topic("t", 1)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	claim := encode(produceRequest("t", 0, 1, set(record.None, "a")), 8, 1)
	binary.BigEndian.PutUint32(claim, 100<<20) // 100 MiB are to come, and never do
	for range 200 {
		c := h.dial()
		c.write(claim)
	}
	eventually(t, "all have begun", func() bool { return h.server.Connections() == 200 })
	eventually(t, "frames are under way", func() bool { return h.server.budget.left.Load() <= h.server.o.QueuedBytes-200*firstGrowth })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 40<<20 {
		t.Fatalf("200 claims of 100 MiB took %d MiB", grown>>20)
	}
}

func TestFramesWaitForTheBudgetAndAllGetThrough(t *testing.T) {
	h := start(t, func(o *Options) { o.QueuedBytes = 100 << 10 })
	h.topic("t", 4)
	big := set(record.None, strings.Repeat("x", 300<<10))
	errs := make(chan error, 8)
	for i := range 8 {
		c := h.dial()
		go func() {
			for range 5 {
				b := encode(produceRequest("t", int32(i%4), -1, big), 9, 7)
				if _, err := c.nc.Write(b); err != nil {
					errs <- err
					return
				}
				if _, err := c.read(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the budget is whole again", func() bool { return h.server.budget.left.Load() == 100<<10 })
}

func TestAFrameThatStopsInTheMiddleIsGivenUp(t *testing.T) {
	h := start(t, func(o *Options) { o.Stall = 50 * time.Millisecond })
	c := h.dial()
	c.write([]byte{0, 0, 1, 0, 0, 0, 0, 9})
	if !c.closed() {
		t.Fatal("left open")
	}
	eventually(t, "a line", func() bool { return strings.Contains(h.log.String(), "stopped in the middle") })
}

// A client that went away in the middle of a large request holds nobody up for
// as long as it is allowed to pause.
func TestAStalledFrameGivesWayToThoseThatWait(t *testing.T) {
	const stall = 6 * time.Second
	h := start(t, func(o *Options) { o.QueuedBytes, o.Stall = 200<<10, stall })
	h.topic("t", 1)
	frame := encode(produceRequest("t", 0, 1, set(record.None, strings.Repeat("x", 300<<10))), 9, 7)
	alone := h.dial()
	alone.write(frame[:150<<10])
	eventually(t, "half a frame has come", func() bool { return h.server.budget.left.Load() < 100<<10 })
	<-time.After(3 * stall / steps) // nobody waits: it may pause
	alone.write(frame[150<<10:])
	if _, err := alone.read(); err != nil {
		t.Fatal(err)
	}
	gone := h.dial()
	gone.write(frame[:150<<10])
	eventually(t, "half a frame has come", func() bool { return h.server.budget.left.Load() < 100<<10 })
	began := time.Now()
	c := h.dial()
	c.nc.Write(frame)
	another := h.dial() // one may go beyond the budget, two may not
	another.nc.Write(frame)
	if _, err := c.read(); err != nil {
		t.Fatal(err)
	}
	if _, err := another.read(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > stall/2 {
		t.Fatalf("others waited for %v", took)
	}
	if !gone.closed() {
		t.Fatal("left open")
	}
}

// A reader that waits for all of a large frame is not woken by its pieces.
func TestALargeFrameMayComeSlowly(t *testing.T) {
	const stall, pieces = 600 * time.Millisecond, 8
	h := start(t, func(o *Options) { o.Stall = stall })
	h.topic("t", 1)
	c := h.dial()
	c.produce(9, "t", 0, 1, records(1000, 300)) // from now on a buffer for all of it
	frame := encode(produceRequest("t", 0, 1, records(1000, 300)), 9, 7)
	tick := time.NewTicker(stall / 4)
	defer tick.Stop()
	for i := range pieces {
		<-tick.C
		c.write(frame[i*len(frame)/pieces : (i+1)*len(frame)/pieces])
	}
	if id, _ := c.next(); id != 7 {
		t.Fatalf("the answer to %d", id)
	}
	c.produce(9, "t", 0, 1, records(1, 1)) // a small one after it is not held up
	c.write(frame[:len(frame)/2])
	if !c.closed() {
		t.Fatal("left open in the middle of a large frame")
	}
}

func TestIdleConnectionsAreClosedAndWaitingOnesAreNot(t *testing.T) {
	h := start(t, func(o *Options) { o.Limits.MaxIdle = 100 * time.Millisecond })
	h.topic("t", 1)
	idle, waiting := h.dial(), h.dial()
	r := fetchRequest("t", wire.UUID{}, 0, 0)
	r.MaxWaitMillis = 500
	waiting.send(r, 11)
	if !idle.closed() {
		t.Fatal("idle connection stays")
	}
	waiting.next()
}

func TestConnectionLimits(t *testing.T) {
	h := start(t, func(o *Options) { o.Limits.MaxPerIP = 2 })
	a, _ := h.dial(), h.dial()
	eventually(t, "two connections", func() bool { return h.server.Connections() == 2 })
	if !h.dial().closed() {
		t.Fatal("a third connection of one address")
	}
	a.nc.Close()
	eventually(t, "one has gone", func() bool { return h.server.Connections() == 1 })
	do[*kmsg.ApiVersionsResponse](h.dial(), kmsg.NewPtrApiVersionsRequest(), 0)
}

func TestOtherProtocolsAreRefusedAtStart(t *testing.T) {
	_, err := New(Options{Listeners: []Listener{{Name: "SECURE", Protocol: "SASL_SSL"}}})
	if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "SECURE") {
		t.Fatalf("%v", err)
	}
}

func TestCloseAnswersWhatWaits(t *testing.T) {
	h := start(t)
	c, idle := h.dial(), h.dial()
	h.topic("t", 1)
	r := fetchRequest("t", wire.UUID{}, 0, 0)
	r.MaxWaitMillis = 60_000
	c.send(r, 11)
	eventually(t, "the fetch waits", func() bool { return subscribers(h, "t", 0) == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.server.Close(ctx); err != nil {
		t.Fatal(err)
	}
	_, b := c.next()
	equal(t, "answer", decode(t, r, 11, b).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode, 0)
	if !c.closed() || !idle.closed() {
		t.Fatal("left open")
	}
	equal(t, "left behind", subscribers(h, "t", 0), 0)
}

func TestAClientThatGoesAwayLeavesNothingBehind(t *testing.T) {
	h := start(t)
	id := h.topic("t", 1)
	for _, inSession := range []bool{false, true} {
		c := h.dial()
		r := fetchRequest("t", id, 0, 0)
		r.MaxWaitMillis = 1 << 30
		if inSession {
			first := open(c, 12, id, 0)
			r = incremental(first.SessionID, 1)
			r.MaxWaitMillis = 1 << 30
			c.send(r, 12)
			r = incremental(first.SessionID, 2) // queues behind the first
			r.MaxWaitMillis = 1 << 30
		}
		c.send(r, 12)
		eventually(t, "it waits", func() bool { return subscribers(h, "t", 0) == 1 })
		c.nc.Close()
		eventually(t, "the connection ends", func() bool { return h.server.Connections() == 0 })
	}
	eventually(t, "the budget is whole again", func() bool { return h.server.budget.left.Load() == h.server.o.QueuedBytes })
}

func TestAPanicCostsOneConnection(t *testing.T) {
	h := start(t)
	h.topic("t", 1)
	c := h.dial()
	replicas := h.broker.Replicas
	h.broker.Replicas = nil // makes the handler of Produce panic
	c.send(produceRequest("t", 0, 1, set(record.None, "a")), 9)
	if !c.closed() {
		t.Fatal("left open")
	}
	if s := h.log.String(); !strings.Contains(s, "panicked") || !strings.Contains(s, "produce.go") {
		t.Fatalf("not logged with its stack:\n%s", s)
	}
	do[*kmsg.ApiVersionsResponse](h.dial(), kmsg.NewPtrApiVersionsRequest(), 0)
	h.broker.Replicas = replicas
}

func TestLargeAnswersArriveWhole(t *testing.T) {
	h := start(t)
	c := h.dial()
	h.topic("t", 3)
	for i := range 30 {
		c.produce(9, "t", int32(i%3), 1, set(record.None, strings.Repeat(string(rune('a'+i%26)), 1+i*9_000)))
	}
	r := fetchRequest("t", wire.UUID{}, 0, 0)
	r.MaxBytes = 50 << 20
	for p := range int32(2) {
		fp := kmsg.NewFetchRequestTopicPartition()
		fp.Partition, fp.PartitionMaxBytes = p+1, 50<<20
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, fp)
	}
	r.Topics[0].Partitions[0].PartitionMaxBytes = 50 << 20
	c.nc = slow{c.nc} // so that the socket's buffer fills
	for _, p := range c.fetch(12, r).Topics[0].Partitions {
		got := values(t, p.RecordBatches)
		if len(got) != 10 {
			t.Fatalf("partition %d: %d records", p.Partition, len(got))
		}
		for n, v := range got {
			i := n*3 + int(p.Partition)
			want := fmt.Sprintf("%d:%s", n, strings.Repeat(string(rune('a'+i%26)), 1+i*9_000))
			if v != want {
				t.Fatalf("partition %d record %d: %d bytes, want %d", p.Partition, n, len(v), len(want))
			}
		}
	}
}

// slow reads little at a time.
type slow struct{ net.Conn }

func (s slow) Read(p []byte) (int, error) {
	runtime.Gosched()
	return s.Conn.Read(p[:min(len(p), 3000)])
}

func TestPipelinedProducersKeepTheirOrder(t *testing.T) {
	h := start(t)
	h.topic("t", 1)
	c := h.dial()
	const n = 2000
	go func() {
		w := bufio.NewWriter(c.nc)
		for i := range n {
			w.Write(encode(produceRequest("t", 0, -1, set(record.None, fmt.Sprint(i))), 9, int32(i)))
		}
		w.Flush()
	}()
	for i := range int32(n) {
		if corr, _ := c.next(); corr != i {
			t.Fatalf("answer to %d, want %d", corr, i)
		}
	}
	r := fetchRequest("t", wire.UUID{}, 0, 0)
	for i, v := range values(t, h.dial().fetch(4, r).Topics[0].Partitions[0].RecordBatches) {
		equal(t, "record", v, fmt.Sprintf("%d:%d", i, i))
	}
}
