package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a broker behind net.Pipe.
type fake struct {
	t     *testing.T
	dials atomic.Int32
	fail  atomic.Bool // refuse connections
	serve func(n int32, c net.Conn)
	all   sync.WaitGroup
}

func newFake(t *testing.T, serve func(n int32, c net.Conn)) *fake {
	f := &fake{t: t, serve: serve}
	t.Cleanup(f.all.Wait)
	return f
}

var errRefused = errors.New("refused")

func (f *fake) Dial(context.Context, string) (net.Conn, error) {
	n := f.dials.Add(1)
	if f.fail.Load() {
		return nil, errRefused
	}
	near, far := net.Pipe()
	f.all.Go(func() {
		defer far.Close()
		f.serve(n, far)
	})
	return near, nil
}

func (f *fake) conn(change ...func(*Options)) *Conn {
	o := Options{Address: func() (string, bool) { return "there:1", true }, ClientID: "1", Dialer: f}
	for _, c := range change {
		c(&o)
	}
	c := New(o)
	f.t.Cleanup(c.Close)
	return c
}

func readRequest(c net.Conn) (wire.Header, []byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return wire.Header{}, nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return wire.Header{}, nil, err
	}
	r := wire.NewReader(b)
	h := wire.ReadHeader(&r)
	return h, r.Rest(), r.Err()
}

func answer(c net.Conn, h wire.Header, body []byte) {
	b := append(wire.AppendResponseHeader(make([]byte, 4), h), body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	_, _ = c.Write(b) // the other side may have gone
}

// echo answers each request with its own body.
func echo(_ int32, c net.Conn) {
	for {
		h, body, err := readRequest(c)
		if err != nil {
			return
		}
		answer(c, h, body)
	}
}

func ask(ctx context.Context, c *Conn, what string) (string, error) {
	var got string
	err := c.RoundTrip(ctx, 1, 12, func(b []byte) []byte { return append(b, what...) }, func(b []byte) error {
		got = string(b)
		return nil
	})
	return got, err
}

func TestEachCallGetsItsOwnAnswer(t *testing.T) {
	c := newFake(t, echo).conn()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			want := fmt.Sprint("question ", i)
			if got, err := ask(t.Context(), c, want); got != want || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
}

func TestHeaderFollowsTheRequestsVersion(t *testing.T) {
	headers := make(chan wire.Header, 2)
	f := newFake(t, func(_ int32, c net.Conn) {
		for {
			h, _, err := readRequest(c)
			if err != nil {
				return
			}
			headers <- h
			r := kmsg.NewPtrStopReplicaResponse()
			r.SetVersion(h.Version)
			answer(c, h, r.AppendTo(nil))
		}
	})
	c := f.conn()
	for _, v := range []int16{1, 3} {
		r := kmsg.NewPtrStopReplicaRequest()
		r.SetVersion(v)
		resp, err := c.Request(t.Context(), r)
		if err != nil || resp.GetVersion() != v {
			t.Fatalf("%v, %v", resp, err)
		}
		if h := <-headers; h.Version != v || h.ClientID != "1" || h.Flexible != (v == 3) {
			t.Errorf("header %+v", h)
		}
	}
	if n := f.dials.Load(); n != 1 {
		t.Errorf("%d connections, want 1 and no ApiVersions", n)
	}
}

func TestCancelledWaitClosesTheConnection(t *testing.T) {
	got := make(chan struct{})
	c := newFake(t, func(n int32, c net.Conn) {
		h, body, err := readRequest(c)
		if err != nil {
			return
		}
		if n == 1 {
			close(got)
			_, _, _ = readRequest(c) // until the connection goes
			return
		}
		answer(c, h, body)
	}).conn()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-got; cancel() }()
	if _, err := ask(ctx, c, "one"); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	if s, err := ask(t.Context(), c, "two"); s != "two" || err != nil {
		t.Fatalf("%q, %v: an answer to another question", s, err)
	}
}

func TestIdleConnectionThatThePeerClosedIsMadeAgain(t *testing.T) {
	f := newFake(t, func(_ int32, c net.Conn) {
		if h, body, err := readRequest(c); err == nil {
			answer(c, h, body)
		}
	})
	c := f.conn()
	for range 3 {
		if _, err := ask(t.Context(), c, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.dials.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

func TestFailuresArePausedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, echo)
		f.fail.Store(true)
		c := f.conn(func(o *Options) { o.MaxPause = 200 * time.Millisecond })
		began := time.Now()
		for range 20 {
			if _, err := ask(t.Context(), c, "x"); !errors.Is(err, errRefused) {
				t.Fatal(err)
			}
		}
		if d := time.Since(began); d < 2*time.Second || d > 4*time.Second {
			t.Errorf("20 failures took %v", d)
		}
		f.fail.Store(false)
		if _, err := ask(t.Context(), c, "x"); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if _, err := ask(t.Context(), c, "x"); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	})
}

func TestAnswersThatCannotBe(t *testing.T) {
	length := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	for name, bytes := range map[string][]byte{
		"negative length":  length(-1),
		"two GiB":          length(1<<31 - 1),
		"above the limit":  length(1001),
		"too short":        append(length(2), 0, 1),
		"another question": append(length(5), 0, 0, 0, 99, 0),
		"two answers":      append(length(5), 0, 0, 0, 1, 0, 0),
		"cut":              append(length(50), 0, 0, 0, 1),
		"header's tags":    append(length(4), 0, 0, 0, 1),
	} {
		t.Run(name, func(t *testing.T) {
			c := newFake(t, func(_ int32, c net.Conn) {
				if _, _, err := readRequest(c); err == nil {
					_, _ = c.Write(bytes)
				}
			}).conn(func(o *Options) { o.MaxAnswer = 1000 })
			if _, err := ask(t.Context(), c, "x"); err == nil {
				t.Fatal("taken")
			}
			if cap(c.in) > 8192 {
				t.Errorf("%d bytes were taken for it", cap(c.in))
			}
		})
	}
}

func TestPeerThatIsSilentTimesOut(t *testing.T) {
	c := newFake(t, func(_ int32, c net.Conn) {
		_, _, _ = readRequest(c)
		_, _, _ = readRequest(c)
	}).conn(func(o *Options) { o.Timeout = time.Millisecond })
	if _, err := ask(t.Context(), c, "x"); err == nil {
		t.Fatal("an answer out of nowhere")
	}
}

func TestNegotiation(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprint("old ", old), func(t *testing.T) {
			c := newFake(t, func(_ int32, c net.Conn) {
				for {
					h, body, err := readRequest(c)
					if err != nil {
						return
					}
					if h.Key != int16(kmsg.ApiVersions) {
						answer(c, h, body)
						continue
					}
					r := kmsg.NewPtrApiVersionsResponse()
					r.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: 56, MinVersion: 0, MaxVersion: 2}}
					r.SetVersion(h.Version)
					if old && h.Version > 0 {
						r.ErrorCode = int16(wire.UnsupportedVersion)
						r.SetVersion(0)
					}
					answer(c, h, r.AppendTo(nil))
				}
			}).conn(func(o *Options) { o.Negotiate = true })
			_, err := c.RequestFor(t.Context(), func(v *Versions) (kmsg.Request, error) {
				if best, err := v.Best(56, 3); best != 2 || err != nil {
					t.Errorf("%d, %v", best, err)
				}
				if v.Serves(57) {
					t.Error("serves what it did not list")
				}
				_, err := v.Best(57, 1)
				return nil, err
			})
			if !errors.Is(err, ErrVersion) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestRoundTripAllocatesLittle(t *testing.T) {
	c := newFake(t, echo).conn()
	body := make([]byte, 100)
	appendBody := func(b []byte) []byte { return append(b, body...) }
	read := func([]byte) error { return nil }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := testing.AllocsPerRun(100, func() {
		if err := c.RoundTrip(ctx, 1, 12, appendBody, read); err != nil {
			t.Fatal(err)
		}
	})
	if n > 30 { // the pipe's and the fake's own
		t.Errorf("%v allocations", n)
	}
}
