package api

import (
	"strings"

	"barnabas/internal/config"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 38, Name: "CreateDelegationToken", Min: 0, Max: 3, MaxFrame: 1 << 20, Expansion: 16, Reuse: true,
	Versions: []string{
		"a token that stands for the user who asks (KIP-48)",
		"throttled after the answer (KIP-219)",
		"flexible",
		"for another user (KIP-373)",
	},
	Handle: handleCreateDelegationToken,
})

// anonymous is who a connection without authentication is (KafkaPrincipal.ANONYMOUS).
const anonymous = "ANONYMOUS"

const userType = "User"

func handleCreateDelegationToken(b *Broker, q *Request) {
	in := kmsg.NewPtrCreateDelegationTokenRequest()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrCreateDelegationTokenResponse()
	r.ErrorCode = int16(b.tokenRefusal(q))
	user := anonymous
	if q.Conn.SASL != nil {
		user = strings.TrimPrefix(q.Conn.SASL.Principal(), userType+":")
	}
	r.PrincipalType, r.PrincipalName = userType, user
	r.TokenRequesterPrincipalType, r.TokenRequesterPrincipalName = userType, user
	if in.OwnerPrincipalName != nil && *in.OwnerPrincipalName != "" && in.OwnerPrincipalType != nil {
		r.PrincipalType, r.PrincipalName = *in.OwnerPrincipalType, *in.OwnerPrincipalName
	}
	for _, renewer := range in.Renewers {
		if r.ErrorCode == int16(wire.DelegationTokenAuthDisabled) && renewer.PrincipalType != userType {
			r.ErrorCode = int16(wire.InvalidPrincipalType)
		}
	}
	r.IssueTimestamp, r.ExpiryTimestamp, r.MaxTimestamp, r.HMAC = noTokenTime, noTokenTime, noTokenTime, []byte{}
	q.Reply(r)
}

const noTokenTime = -1 // DelegationTokenManager.ErrorTimestamp

// tokenRefusal is why there are no delegation tokens: the connection is not
// authenticated (KafkaApis.allowTokenRequests), or there is no
// delegation.token.secret.key.
func (b *Broker) tokenRefusal(q *Request) wire.Code {
	if p, _ := b.Config.Load().ListenerProtocol(q.Conn.Listener); p == config.Plaintext || p == config.SSL {
		return wire.DelegationTokenRequestNotAllowed
	}
	return wire.DelegationTokenAuthDisabled
}
