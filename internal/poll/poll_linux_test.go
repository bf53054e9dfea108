package poll

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a connection and the taken descriptor of its other end.
func pair(t *testing.T) (*net.TCPConn, int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := Take(far.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	return near.(*net.TCPConn), fd
}

func start(t *testing.T) *Poller {
	t.Helper()
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// on calls f on the poller's goroutine and waits for it.
func on(t *testing.T, p *Poller, f func()) {
	t.Helper()
	done := make(chan struct{})
	if !p.Post(func() { f(); close(done) }) {
		t.Fatal("closed")
	}
	<-done
}

func TestManyConnectionsEcho(t *testing.T) {
	p := start(t)
	var clients sync.WaitGroup
	for range 3 * batch {
		nc, fd := pair(t)
		b := make([]byte, 64)
		if err := p.Add(fd, func() {
			n, err := Read(fd, b)
			if err != nil {
				p.Remove(fd)
				Close(fd)
				return
			}
			if m, err := Write(fd, b[:n]); m != n {
				t.Errorf("wrote %d of %d: %v", m, n, err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			got := make([]byte, 5)
			for range 100 {
				nc.Write([]byte("hello"))
				if _, err := io.ReadFull(nc, got); err != nil || string(got) != "hello" {
					t.Errorf("%q: %v", got, err)
					return
				}
			}
			nc.CloseWrite()
			if n, err := nc.Read(got); err != io.EOF {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
	clients.Wait()
}

// TestThereAndBack moves a connection between the pollers; what came meanwhile
// is not lost.
func TestThereAndBack(t *testing.T) {
	p := start(t)
	near, fd := pair(t)
	got := make([]byte, 4)
	for range 50 {
		came := make(chan *net.TCPConn, 1)
		if err := p.Add(fd, func() {
			p.Remove(fd)
			nc, err := Give(fd)
			if err != nil {
				t.Error(err)
			}
			came <- nc
		}); err != nil {
			t.Fatal(err)
		}
		near.Write([]byte("ping"))
		nc := <-came
		if _, err := io.ReadFull(nc, got); err != nil || string(got) != "ping" {
			t.Fatalf("%q: %v", got, err)
		}
		nc.Write([]byte("pong"))
		if _, err := io.ReadFull(near, got); err != nil || string(got) != "pong" {
			t.Fatalf("%q: %v", got, err)
		}
		var err error
		if fd, err = Take(nc); err != nil {
			t.Fatal(err)
		}
	}
	Close(fd)
	if _, err := near.Read(got); err != io.EOF {
		t.Errorf("after Close: %v", err)
	}
}

func TestReadAndWriteDoNotWait(t *testing.T) {
	near, fd := pair(t)
	defer Close(fd)
	b := make([]byte, 1<<20)
	if n, err := Read(fd, b); n != 0 || err != ErrAgain {
		t.Errorf("read %d, %v", n, err)
	}
	total := 0
	for {
		n, err := Write(fd, b)
		total += n
		if err != nil {
			if err != ErrAgain || total == 0 {
				t.Errorf("after %d bytes: %v", total, err)
			}
			break
		}
	}
	if n, err := io.CopyN(io.Discard, near, int64(total)); err != nil {
		t.Errorf("%d of %d bytes came: %v", n, total, err)
	}
	Hangup(fd)
	if n, err := Read(fd, b); n != 0 || err != io.EOF {
		t.Errorf("after Hangup: read %d, %v", n, err)
	}
	if _, err := Write(fd, b); err == nil || errors.Is(err, ErrAgain) {
		t.Errorf("after Hangup: write %v", err)
	}
}

func TestClosed(t *testing.T) {
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	_, fd := pair(t)
	defer Close(fd)
	calls := 0
	on(t, p, func() { calls++ })
	p.Post(func() { calls++ })
	p.Close()
	p.Close()
	if calls != 2 {
		t.Errorf("%d of 2 posted calls were made", calls)
	}
	if err := p.Add(fd, func() {}); err != ErrClosed {
		t.Errorf("Add: %v", err)
	}
	if p.Post(func() {}) {
		t.Error("Post after Close")
	}
}
