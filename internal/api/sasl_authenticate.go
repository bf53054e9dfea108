package api

import (
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 36, Name: "SaslAuthenticate", Min: 0, Max: 2, MaxFrame: 1 << 20, Expansion: 4, Reuse: true,
	Versions: []string{
		"a token of the mechanism that SaslHandshake named (KIP-152)",
		"how long the session lasts (KIP-368)",
		"flexible",
	},
	Handle: handleSASLAuthenticate,
})

func handleSASLAuthenticate(b *Broker, q *Request) {
	in := new(kmsg.SASLAuthenticateRequest)
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrSASLAuthenticateResponse()
	r.SASLAuthBytes = []byte{}
	s := q.Conn.SASL
	if s == nil || s.Authenticated() {
		r.ErrorCode = int16(wire.IllegalSASLState)
		r.ErrorMessage = text("SaslAuthenticate request received after successful authentication")
		q.Reply(r)
		return
	}
	a, err := s.Authenticate(in.SASLAuthBytes, b.Now())
	if err != nil {
		b.afterFailure(q, func() { q.Fail(err) })
		return
	}
	r.ErrorCode, r.ErrorMessage, r.SessionLifetimeMillis = int16(a.Code), text(a.Message), a.Lifetime.Milliseconds()
	r.SASLAuthBytes = append(r.SASLAuthBytes, a.Token...)
	q.write(r)
	if a.Reason != nil {
		b.afterFailure(q, func() { q.last(a.Reason) })
		return
	}
	b.authenticated(q)
	q.Done()
}

// SASLToken stands for a frame that is no request but a bare token, as follows
// SaslHandshake v0. Its answer is one too, and of a failure there is none. The
// server has put no header into such an answer.
var SASLToken = &API{Name: "SASL token", MaxFrame: 1 << 20, Expansion: 4, Reuse: true, Handle: handleSASLToken}

func handleSASLToken(b *Broker, q *Request) {
	a, err := q.Conn.SASL.Authenticate(q.Body, b.Now())
	if err == nil {
		err = a.Reason
	}
	if err != nil {
		b.afterFailure(q, func() { q.Fail(err) })
		return
	}
	q.W.B = append(q.W.B, a.Token...)
	b.authenticated(q)
	q.Done()
}

func (b *Broker) authenticated(q *Request) {
	if s := q.Conn.SASL; s.Authenticated() {
		b.Log.Debug("authenticated", "client", q.Conn.RemoteAddr, "listener", q.Conn.Listener, "principal", s.Principal())
	}
}
