package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"barnabas/internal/pemstore"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func startTLS(t *testing.T, set ...func(*Options)) (*harness, *tls.Config) {
	t.Helper()
	pem := real.PEM(t)
	served, err := pemstore.Server(pem.Server, "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := pemstore.Client("", pem.Authority, true)
	if err != nil {
		t.Fatal(err)
	}
	client.ServerName = "localhost"
	h := start(t, append([]func(*Options){func(o *Options) {
		o.Listeners[0].Protocol, o.Listeners[0].TLS = "SSL", served
	}}, set...)...)
	return h, client
}

// over speaks TLS on a client's connection.
func over(c *client, config *tls.Config) *client {
	c.nc = tls.Client(c.nc, config)
	return c
}

func TestRecordsOverTLS(t *testing.T) {
	h, config := startTLS(t)
	id := h.topic("t", 1)
	c := over(h.dial(), config)
	want := records(50, 5000)
	c.produce(9, "t", 0, 1, want)
	got := do[*kmsg.FetchResponse](c, fetchRequest("t", id, 0, 0), 11).Topics[0].Partitions[0]
	if got.HighWatermark != 50 || !bytes.Contains(got.RecordBatches, want[61:]) {
		t.Errorf("%d bytes, high watermark %d", len(got.RecordBatches), got.HighWatermark)
	}
	// One waits for what the other sends.
	wait := fetchRequest("t", id, 0, 50)
	wait.MaxWaitMillis = 20_000
	waiting := over(h.dial(), config)
	corr := waiting.send(wait, 11)
	eventually(t, "the fetch waits", func() bool { return subscribers(h, "t", 0) == 1 })
	c.produce(9, "t", 0, 1, records(1, 10))
	if answered, b := waiting.next(); answered != corr || len(b) < 10 {
		t.Errorf("answer to %d", answered)
	}
}

func TestHandshakesThatFail(t *testing.T) {
	h, config := startTLS(t, func(o *Options) { o.Stall = 300 * time.Millisecond })
	c := h.dial()
	c.write(encode(kmsg.NewPtrApiVersionsRequest(), 0, 1))
	for {
		if _, err := c.nc.Read(make([]byte, 100)); err != nil { // an alert may come first
			break
		}
	}
	silent := h.dial() // ends after Options.Stall
	if !silent.closed() {
		t.Error("a connection without a handshake stays")
	}
	old := config.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if err := tls.Client(h.dial().nc, old).Handshake(); err == nil {
		t.Error("TLS 1.1")
	}
	stranger := config.Clone()
	stranger.RootCAs = nil
	if err := tls.Client(h.dial().nc, stranger).Handshake(); err == nil {
		t.Error("trusted by nobody")
	}
	eventually(t, "all have gone", func() bool { return h.server.Connections() == 0 })
	if text := h.log.String(); !strings.Contains(text, "TLS handshake") {
		t.Errorf("the log says nothing: %s", text)
	}
}

func TestAStopEndsHandshakes(t *testing.T) {
	h, config := startTLS(t)
	silent, open := h.dial(), over(h.dial(), config)
	do[*kmsg.ApiVersionsResponse](open, kmsg.NewPtrApiVersionsRequest(), 0)
	eventually(t, "two connections", func() bool { return h.server.Connections() == 2 })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := h.server.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{silent.nc, open.nc} {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("still open")
		}
	}
}
