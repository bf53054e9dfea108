package api

import (
	"sync/atomic"
	"time"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Version 1 is the last for ever: old Java clients take the newest version that
// a broker lists, whether they know it or not.
var _ = register(API{
	Key: 17, Name: "SaslHandshake", Min: 0, Max: 1, MaxFrame: 64 << 10, Expansion: 4, Reuse: true,
	Versions: []string{
		"the mechanism; its tokens follow as bare frames (KIP-43)",
		"its tokens follow in SaslAuthenticate (KIP-152)",
	},
	Handle: handleSASLHandshake,
})

// handleSASLHandshake begins an authentication, the first of a connection or a
// later one. A listener without SASL knows none.
func handleSASLHandshake(b *Broker, q *Request) {
	in := new(kmsg.SASLHandshakeRequest)
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrSASLHandshakeResponse()
	if q.Conn.SASL == nil {
		r.ErrorCode = int16(wire.IllegalSASLState)
		q.Reply(r)
		return
	}
	code, mechanisms, failure := q.Conn.SASL.Handshake(q.Version, in.Mechanism, b.Now())
	r.ErrorCode, r.SupportedMechanisms = int16(code), mechanisms
	q.write(r)
	if failure != nil {
		b.afterFailure(q, func() { q.last(failure) })
		return
	}
	q.Done()
}

// afterFailure ends a request, and its connection with it, when
// connection.failed.authentication.delay.ms have passed since the
// authentication failed: who guesses passwords is slow at it.
func (b *Broker) afterFailure(q *Request, end func()) {
	var ended atomic.Bool
	once := func() {
		if ended.CompareAndSwap(false, true) {
			end()
		}
	}
	delay := b.Config.Load().Duration("connection.failed.authentication.delay.ms")
	if delay == 0 {
		once()
		return
	}
	q.Cancel = once
	time.AfterFunc(delay, once)
}
