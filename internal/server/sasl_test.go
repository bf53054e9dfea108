package server

import (
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/security"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// startSASL starts a broker whose only listener has PLAIN; a failure waits for
// delay.
func startSASL(t *testing.T, delay time.Duration) *harness {
	t.Helper()
	c, err := config.NewBroker(map[string]string{
		"broker.id": "1", "zookeeper.connect": "unused:1", "sasl.enabled.mechanisms": "PLAIN", "sasl.server.max.receive.size": "1000",
		"connection.failed.authentication.delay.ms": strconv.FormatInt(delay.Milliseconds(), 10),
		"plain.sasl.jaas.config":                    `PlainLoginModule required user_alice="secret";`,
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := security.NewListener(c, "PLAINTEXT", security.NewCredentials())
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(o *Options) {
		o.Listeners[0].Protocol, o.Listeners[0].SASL = "SASL_PLAINTEXT", l
		o.Broker.Config = config.NewDynamic(c)
	})
}

func saslToken(password string) *kmsg.SASLAuthenticateRequest {
	r := kmsg.NewPtrSASLAuthenticateRequest()
	r.SASLAuthBytes = []byte("\x00alice\x00" + password)
	return r
}

func (c *client) shake(version int16) {
	c.tb.Helper()
	r := kmsg.NewPtrSASLHandshakeRequest()
	r.Mechanism = "PLAIN"
	if answer := do[*kmsg.SASLHandshakeResponse](c, r, version); answer.ErrorCode != 0 {
		c.tb.Fatalf("%+v", answer)
	}
}

func TestSASLRequestsInOneWrite(t *testing.T) {
	h := startSASL(t, 0)
	h.topic("t", 1)
	c := h.dial()
	r := kmsg.NewPtrSASLHandshakeRequest()
	r.Mechanism = "PLAIN"
	all := encode(r, 1, 1)
	all = append(all, encode(saslToken("secret"), 2, 2)...)
	c.corr = 3
	c.write(append(all, encode(produceRequest("t", 0, 1, records(1, 2000)), 9, 3)...)) // larger than a token may be
	for want := range int32(3) {
		if corr, _ := c.next(); corr != want+1 {
			t.Fatalf("answer to %d, want %d", corr, want+1)
		}
	}

	c = h.dial()
	c.shake(0)
	bare := append(binary.BigEndian.AppendUint32(nil, 13), "\x00alice\x00secret"...)
	c.write(append(bare, encode(kmsg.NewPtrApiVersionsRequest(), 0, 7)...))
	if b, err := c.read(); err != nil || len(b) != 0 {
		t.Fatalf("%x, %v", b, err)
	}
	if corr, _ := c.next(); corr != 7 {
		t.Fatalf("answer to %d", corr)
	}
}

func TestNothingIsReadAfterAFailedAuthentication(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second} {
		h := startSASL(t, delay)
		c := h.dial()
		c.shake(1)
		began := time.Now()
		c.write(append(encode(saslToken("wrong"), 1, 2), encode(saslToken("secret"), 1, 3)...))
		corr, b := c.next()
		if answer := decode(t, saslToken(""), 1, b).(*kmsg.SASLAuthenticateResponse); corr != 2 || answer.ErrorCode != 58 || time.Since(began) < delay {
			t.Errorf("%d: %+v after %v", corr, answer, time.Since(began))
		}
		if !c.closed() {
			t.Error("a second token was taken")
		}
		eventually(t, "the connection has gone", func() bool { return h.server.Connections() == 0 })
		if text := h.log.String(); !strings.Contains(text, "Invalid username or password") || strings.Contains(text, "wrong") {
			t.Errorf("the log does not say why, or too much: %s", text)
		}
	}
}

func TestAStopEndsTheDelayOfAFailure(t *testing.T) {
	h := startSASL(t, 100*time.Second)
	for _, version := range []int16{0, 1} {
		c := h.dial()
		c.shake(version)
		if version == 0 {
			c.write(append(binary.BigEndian.AppendUint32(nil, 0), 0, 0, 0, 0)) // an empty token, and a second
		} else {
			c.send(saslToken("wrong"), 1)
		}
	}
	eventually(t, "both have failed", func() bool { return unanswered(h) == 2 })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := h.server.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func unanswered(h *harness) (n int) {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	for c := range h.server.mu.conns {
		c.mu.Lock()
		n += c.mu.n
		c.mu.Unlock()
	}
	return n
}

func TestLittleIsTakenBeforeAuthentication(t *testing.T) {
	h := startSASL(t, 0)
	for _, version := range []int16{-1, 0, 1} {
		c := h.dial()
		if version >= 0 {
			c.shake(version)
		}
		c.write(binary.BigEndian.AppendUint32(nil, 1001))
		if !c.closed() {
			t.Errorf("after handshake v%d a frame of 1001 bytes was taken", version)
		}
	}
}
