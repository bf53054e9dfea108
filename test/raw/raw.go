// Package raw speaks Kafka's protocol to a broker one frame at a time, at any
// version, right or wrong: what clients hide, its tests can see.
package raw

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrClosed tells that the broker closed the connection without an answer.
var ErrClosed = errors.New("connection closed without an answer")

// Conn is a connection to a broker.
type Conn struct {
	t    testing.TB
	c    net.Conn
	next int32
}

// Dial connects to a broker; the connection ends with the test.
func Dial(t testing.TB, addr string) *Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &Conn{t: t, c: c, next: 1}
}

// Close ends the connection.
func (c *Conn) Close() { c.c.Close() }

// Send writes bytes as they are.
func (c *Conn) Send(b []byte) {
	c.t.Helper()
	_ = c.c.SetWriteDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.c.Write(b); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// Frame reads one answer of at most 64 MiB, without its length, or returns
// ErrClosed.
func (c *Conn) Frame(wait time.Duration) ([]byte, error) {
	_ = c.c.SetReadDeadline(time.Now().Add(wait))
	var size [4]byte
	if _, err := io.ReadFull(c.c, size[:]); err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return nil, fmt.Errorf("no answer within %v", wait)
		}
		return nil, ErrClosed
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > 64<<20 {
		return nil, fmt.Errorf("an answer of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.c, b); err != nil {
		return nil, fmt.Errorf("half an answer: %w", err)
	}
	return b, nil
}

// Write sends a request at its version and returns its correlation id.
func (c *Conn) Write(r kmsg.Request) int32 {
	c.t.Helper()
	id := c.next
	c.next++
	c.Send(kmsg.NewRequestFormatter(kmsg.FormatterClientID("raw")).AppendRequest(nil, r, id))
	return id
}

// Try sends a request and returns the answer, or ErrClosed.
func (c *Conn) Try(r kmsg.Request) (kmsg.Response, error) {
	c.t.Helper()
	id := c.Write(r)
	return c.Read(r, id, 30*time.Second)
}

// Read reads the answer to a request that Write sent.
func (c *Conn) Read(r kmsg.Request, id int32, wait time.Duration) (kmsg.Response, error) {
	c.t.Helper()
	b, err := c.Frame(wait)
	if err != nil {
		return nil, err
	}
	if len(b) < 4 || int32(binary.BigEndian.Uint32(b)) != id {
		return nil, fmt.Errorf("answer %x is not to request %d", b[:min(len(b), 16)], id)
	}
	b = b[4:]
	if r.IsFlexible() && r.Key() != int16(kmsg.ApiVersions) {
		if len(b) == 0 || b[0] != 0 {
			return nil, fmt.Errorf("response header of a flexible version: %x", b[:min(len(b), 16)])
		}
		b = b[1:]
	}
	response := r.ResponseKind()
	response.SetVersion(r.GetVersion())
	return response, response.ReadFrom(b)
}

// Do is Try for an answer that must come.
func Do[R kmsg.Response](c *Conn, r kmsg.Request) R {
	c.t.Helper()
	response, err := c.Try(r)
	if err != nil {
		c.t.Fatalf("%s v%d: %v", kmsg.NameForKey(r.Key()), r.GetVersion(), err)
	}
	return response.(R)
}

// Ask is Do on a connection that is made for it and closed again: what waits for
// something may ask a thousand times.
func Ask[R kmsg.Response](t testing.TB, addr string, r kmsg.Request) R {
	t.Helper()
	c := Dial(t, addr)
	defer c.Close()
	return Do[R](c, r)
}
