package zookeeper

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/jute"
)

// With a session of 30 s: a ping after 10 s without a request, and an end to
// the connection after 20 s without a byte from the server.
func TestPingsAndSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		c, p := f.started()
		p.nc.SetDeadline(time.Time{})
		began := time.Now()
		for i := range 5 {
			if xid := p.request(jute.OpPing); xid != jute.XidPing {
				t.Errorf("xid %d", xid)
			}
			if got, want := time.Since(began), time.Duration(i+1)*10*time.Second; got != want {
				t.Errorf("ping %d after %v, want %v", i, got, want)
			}
			p.send(&jute.ReplyHeader{Xid: jute.XidPing})
		}
		call := c.Go(GetOp("/a", false))
		p.request(jute.OpGetData)
		go func() { // takes pings, says nothing
			for b := make([]byte, 64); ; {
				if _, err := p.nc.Read(b); err != nil {
					return
				}
			}
		}()
		quiet := time.Now()
		if _, err := call.Wait(t.Context()); !errors.Is(err, jute.ErrConnectionLoss) {
			t.Error(err)
		}
		if got := time.Since(quiet); got != 20*time.Second {
			t.Errorf("lost after %v", got)
		}
		c.Detach()
	})
}

// Rounds over servers that refuse wait longer and longer, up to a second.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var tries []time.Duration
		c, err := New(Options{Connect: "a,b", Dial: func(context.Context, string) (net.Conn, error) {
			tries = append(tries, time.Since(began))
			return nil, errors.New("refused")
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := c.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		c.Close()
		if tries[1] != 0 || tries[2] != minBackoff || tries[3] != minBackoff || tries[4] != 3*minBackoff {
			t.Error(tries)
		}
		if n := len(tries); n < 25 || n > 40 || tries[n-1]-tries[n-3] != maxBackoff {
			t.Error(n, tries)
		}
	})
}

// A server that accepts and says nothing does not hold a client up.
func TestAHandshakeThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		c := f.client("x:1", func(o *Options) { o.ConnectTimeout = 3 * time.Second })
		began := time.Now()
		go c.Start(t.Context())
		f.accept().receive(&jute.ConnectRequest{})
		f.welcome()
		if got := time.Since(began); got != 3*time.Second+minBackoff {
			t.Errorf("a second try after %v", got)
		}
		c.Detach()
	})
}
