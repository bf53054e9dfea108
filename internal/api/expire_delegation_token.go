package api

import "github.com/twmb/franz-go/pkg/kmsg"

var _ = register(API{
	Key: 40, Name: "ExpireDelegationToken", Min: 0, Max: 2, MaxFrame: 64 << 10, Expansion: 4, Reuse: true,
	Versions: []string{
		"brings the end of a token forward (KIP-48)",
		"throttled after the answer (KIP-219)",
		"flexible",
	},
	Handle: handleExpireDelegationToken,
})

func handleExpireDelegationToken(b *Broker, q *Request) {
	in := kmsg.NewPtrExpireDelegationTokenRequest()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrExpireDelegationTokenResponse()
	r.ErrorCode, r.ExpiryTimestamp = int16(b.tokenRefusal(q)), noTokenTime
	q.Reply(r)
}
