package api

import "github.com/twmb/franz-go/pkg/kmsg"

var _ = register(API{
	Key: 39, Name: "RenewDelegationToken", Min: 0, Max: 2, MaxFrame: 64 << 10, Expansion: 4, Reuse: true,
	Versions: []string{
		"puts the end of a token off (KIP-48)",
		"throttled after the answer (KIP-219)",
		"flexible",
	},
	Handle: handleRenewDelegationToken,
})

func handleRenewDelegationToken(b *Broker, q *Request) {
	in := kmsg.NewPtrRenewDelegationTokenRequest()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrRenewDelegationTokenResponse()
	r.ErrorCode, r.ExpiryTimestamp = int16(b.tokenRefusal(q)), noTokenTime
	q.Reply(r)
}
