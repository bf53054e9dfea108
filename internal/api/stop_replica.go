package api

import "github.com/twmb/franz-go/pkg/kmsg"

var _ = register(API{
	Key: 5, Name: "StopReplica", Min: 0, Max: 4, Expansion: 24,
	Versions: []string{
		"partitions to stop, and whether to delete them",
		"the broker's epoch, partitions by topic (KIP-380)",
		"flexible",
		"leader epoch and deletion a partition (KIP-570)",
		"whether a KRaft controller sends it (KIP-866)",
	},
	Handle: handleStopReplica,
})

func handleStopReplica(b *Broker, q *Request) {
	in := kmsg.NewPtrStopReplicaRequest()
	if q.Decode(in) {
		carryOut(b, q, in, b.Controlled.StopReplica)
	}
}
