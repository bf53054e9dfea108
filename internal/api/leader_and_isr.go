package api

import "github.com/twmb/franz-go/pkg/kmsg"

var _ = register(API{
	Key: 4, Name: "LeaderAndIsr", Min: 0, Max: 7, Expansion: 24,
	Versions: []string{
		"partitions that this broker leads or follows",
		"whether a replica is new (KIP-112)",
		"the broker's epoch, partitions by topic (KIP-380)",
		"replicas that come and go (KIP-455)",
		"flexible",
		"topic ids (KIP-516)",
		"whether the leader recovers from an unclean election (KIP-704)",
		"whether a KRaft controller sends it (KIP-866)",
	},
	Handle: handleLeaderAndISR,
})

func handleLeaderAndISR(b *Broker, q *Request) {
	in := kmsg.NewPtrLeaderAndISRRequest()
	if q.Decode(in) {
		carryOut(b, q, in, b.Controlled.LeaderAndISR)
	}
}
