package api

import "github.com/twmb/franz-go/pkg/kmsg"

var _ = register(API{
	Key: 41, Name: "DescribeDelegationToken", Min: 0, Max: 3, MaxFrame: 1 << 20, Expansion: 16, Reuse: true,
	Versions: []string{
		"the tokens of owners, null for all (KIP-48)",
		"throttled after the answer (KIP-219)",
		"flexible",
		"who asked for the token (KIP-373)",
	},
	Handle: handleDescribeDelegationToken,
})

func handleDescribeDelegationToken(b *Broker, q *Request) {
	in := kmsg.NewPtrDescribeDelegationTokenRequest()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrDescribeDelegationTokenResponse()
	r.ErrorCode = int16(b.tokenRefusal(q))
	q.Reply(r)
}
